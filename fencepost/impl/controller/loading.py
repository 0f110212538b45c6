"""What the controller reads from ZooKeeper (C5): brokers and topics, and what stood below /admin at
fail-over. Owns the reads and their watches."""

from collections.abc import Sequence

from fencepost.impl.controller.context import AdminNodes
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Children, Data, Done, Exists, GetChildren

BROKER_BYTES = 512
"""What a broker's registration holds at most."""
WAVE = 5_000
"""Topics that are read before the largest of them says what to believe of the next."""


def read_brokers(controller: ControllerState) -> ZooKeeperSteps:
    """The live brokers with their epochs, watched."""
    listed = yield GetChildren(znodes.BROKER_IDS, watch=True)
    assert isinstance(listed, Children), listed
    paths = [znodes.broker_path(int(name)) for name in listed.names]
    replies = yield from read_nodes(controller.broker_context.grouping, dict.fromkeys(paths, BROKER_BYTES))
    return {
        int(name): reply.stat.czxid
        for name, reply in zip(listed.names, replies, strict=True)
        if isinstance(reply, Data)
    }


def list_topics() -> ZooKeeperSteps:
    """The names of all topics, watched."""
    listed = yield GetChildren(znodes.TOPICS, watch=True)
    assert isinstance(listed, Children), listed
    return listed.names


def read_topics(controller: ControllerState) -> ZooKeeperSteps:
    """The assignments of all topics, watched: topics that come and go, and partitions that are added."""
    names = yield from list_topics()
    return (yield from read_assignments(controller, names))


def read_assignments(controller: ControllerState, names: Sequence[str]) -> ZooKeeperSteps:
    """The assignments of these topics, as far as they exist, watched."""
    assignments = {}
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    largest = znodes.TOPIC_BYTES
    for begin in range(0, len(names), WAVE):
        topics = names[begin : begin + WAVE]
        nodes = {znodes.topic_path(topic): largest for topic in topics}
        replies = yield from read_nodes(controller.broker_context.grouping, nodes, watch=True)
        for topic, reply in zip(topics, replies, strict=True):
            if isinstance(reply, Data):
                largest = max(largest, len(reply.data))
                for number, replicas in znodes.decode_topic(reply.data).items():
                    assignments[TopicPartition(topic, number)] = shared.setdefault(replicas, replicas)
    return assignments


def read_admin(controller: ControllerState) -> ZooKeeperSteps:
    """What there is to resume below /admin, watched, into the context of this reign. It runs beside the
    fail-over: its requests go out right behind the first one, and since ZooKeeper answers in order, its
    answers are here before those to whatever is asked later."""
    context = controller.context
    topics, reassign, preferred = yield (
        GetChildren(znodes.DELETE_TOPICS, watch=True),
        Exists(znodes.REASSIGN, watch=True),
        Exists(znodes.PREFERRED_ELECTION, watch=True),
    )
    context.admin = AdminNodes(
        delete_topics=topics.names if isinstance(topics, Children) else (),
        reassign=isinstance(reassign, Done),
        preferred=isinstance(preferred, Done),
    )
