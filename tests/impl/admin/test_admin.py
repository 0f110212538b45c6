"""Admin procedures on the simulated ZooKeeper tree: proposals, clusters without brokers, and large files.
Over a real server: tests/cli/test_admin.py."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.admin import reassignment
from fencepost.impl.admin.cluster_state import AdminError, read_cluster
from fencepost.impl.admin.topic_administration import add_partitions, create_topic
from fencepost.impl.controller.placement import ReplicationFactorError
from fencepost.impl.core.procedures import Pipelined
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Data, GetData
from fencepost.sim.zookeeper_tree import Tree


def run(tree: Tree, steps):
    """Carry a procedure out at once."""
    value = None
    while True:
        try:
            asked = steps.send(value)
        except StopIteration as done:
            return done.value
        if isinstance(asked, Pipelined):
            value = [asked.kept(tree.apply(1, request).reply) for request in asked.requests]
        elif isinstance(asked, tuple):
            value = [tree.apply(1, request).reply for request in asked]
        else:
            value = tree.apply(1, asked).reply


def cluster(brokers: int, **topics: dict[int, tuple[int, ...]]) -> Tree:
    """Registered brokers from 1 on, and topics."""
    tree = Tree()
    for path in znodes.PERSISTENT_PATHS:
        tree.apply(0, Create(path))
    for broker in range(1, brokers + 1):
        tree.apply(1, Create(znodes.broker_path(broker), b"", ephemeral=True))
    for topic, assignment in topics.items():
        tree.apply(0, Create(znodes.topic_path(topic), znodes.encode_topic(assignment)))
    return tree


def draw(seed: int):
    """As the commands draw."""
    return Random(seed).randrange


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 99), st.data())
def test_a_proposal_can_be_executed_and_verified(brokers: int, partitions: int, seed: int, data) -> None:
    """Rule (C13): whatever --generate proposes has each partition's number of replicas on the brokers named,
    survives its file, passes --execute's checks, and is in progress then."""
    factor = data.draw(st.integers(1, brokers))
    tree = cluster(brokers)
    placed = run(tree, create_topic("t", partitions=partitions, replication_factor=factor, draw=draw(seed)))
    chosen = data.draw(
        st.permutations(range(1, brokers + 1)).map(lambda ids: ids[: max(factor, brokers - 1)])
    )
    proposal = run(tree, reassignment.generate(["t"], chosen, draw(seed + 1), "here"))
    assert {key.partition: ids for key, ids in proposal.current.items()} == placed
    assert all(len(set(ids)) == factor and set(ids) <= set(chosen) for ids in proposal.proposed.values())
    targets = reassignment.decode_reassignment(
        reassignment.encode_reassignment(proposal.proposed).encode(), "file"
    )
    assert targets == proposal.proposed
    assert run(tree, reassignment.execute(targets, "file")) == proposal.current
    assert {one.progress for one in run(tree, reassignment.verify(targets))} == {
        reassignment.ReassignmentProgress.IN_PROGRESS
    }
    with pytest.raises(AdminError, match="existing assignment running"):
        run(tree, reassignment.execute(targets, "file"))


def test_too_few_brokers_for_the_replicas() -> None:
    """Rule (C13): a proposal for fewer brokers than replicas is refused, and so is one for a broker that is
    not alive."""
    tree = cluster(3, t={0: (1, 2, 3)})
    with pytest.raises(
        ReplicationFactorError, match="a replication factor from 1 to 2, the number of brokers, saw 3"
    ):
        run(tree, reassignment.generate(["t"], [1, 2], draw(1), "here"))
    with pytest.raises(AdminError, match="replicas on live brokers \\(1, 2, 3\\), saw broker 9"):
        run(tree, reassignment.generate(["t"], [1, 2, 9], draw(1), "here"))
    with pytest.raises(AdminError, match="each broker once, saw 2 twice"):
        run(tree, reassignment.generate(["t"], [1, 2, 2], draw(1), "here"))


def test_a_cluster_without_brokers() -> None:
    """Rule: nothing is placed on nobody; it is said, and nothing is written."""
    tree = cluster(0, t={0: (1,)})
    before = tree.zxid
    for steps in (
        create_topic("x", partitions=1, replication_factor=1, draw=draw(1)),
        add_partitions("t", 2),
    ):
        with pytest.raises(AdminError, match="at least one live broker, saw none"):
            run(tree, steps)
    assert tree.zxid == before


def test_an_assignment_that_fits_no_request() -> None:
    """Rule: a reassignment longer than jute.maxbuffer is refused before it is sent: ZooKeeper would close the
    connection again and again."""
    many = dict.fromkeys(range(1000), (1, 2))
    tree = cluster(3, **{f"topic-{number:02d}{'x' * 200}": many for number in range(5)})
    targets = dict.fromkeys(run(tree, read_cluster()).partitions(), (2, 3))
    before = tree.zxid
    with pytest.raises(AdminError, match=r"at most 1,048,575 bytes .* saw 1,\d\d\d,\d\d\d; ask for fewer"):
        run(tree, reassignment.execute(targets, "file"))
    assert tree.zxid == before


def test_partitions_go_on_where_the_topic_began() -> None:
    """Rule (C14): partitions that are added continue the round robin from the broker that leads partition
    0."""
    tree = cluster(4, t={0: (3, 4), 1: (4, 1)})
    assert run(tree, add_partitions("t", 4)) == {0: (3, 4), 1: (4, 1), 2: (1, 4), 3: (2, 1)}
    stood = tree.apply(0, GetData(znodes.topic_path("t"))).reply
    assert isinstance(stood, Data) and stood.stat.version == 1


def test_the_cluster_is_read_as_it_is() -> None:
    """Rule: brokers, topics, deletions and the reassignment in progress come from one look."""
    tree = cluster(2, a={0: (1,)}, b={0: (2,)})
    tree.apply(0, Create(znodes.delete_topic_path("b")))
    tree.apply(0, Create(znodes.REASSIGN, znodes.encode_reassignments({TopicPartition("a", 0): (2,)})))
    seen = run(tree, read_cluster({"a"}))
    assert (seen.brokers, seen.names, set(seen.topics), seen.deleting) == ((1, 2), ("a", "b"), {"a"}, {"b"})
    assert seen.reassigning == {TopicPartition("a", 0): (2,)} and not seen.electing
