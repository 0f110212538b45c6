"""Brokers and controllers that meet bad nodes of ZooKeeper: they go on, or stop with the sentence that names
the node. Healthy topics are served all the while."""

import pytest
from controller_lab import cluster, marks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from impl_bad_znodes import RIGHT, contents
from impl_lab import CLIENT, T0, Lab

from fencepost.impl.core.broker_context import ZNODE_REFUSED
from fencepost.impl.core.core_interface import MessageArrived
from fencepost.impl.messages.broker_api import InitProducerIdRequest, TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Create, Delete, Failed, SetData

HEALTHY = TopicPartition("healthy", 0)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A cluster for each example: to shrink would take minutes, and two nodes are few."""


def put(lab: Lab, path: str, data: bytes) -> None:
    """An operator writes a node, with the nodes above it."""
    parts = path.split("/")[1:]
    for end in range(1, len(parts)):
        lab.admin(Create("/" + "/".join(parts[:end])))
    if isinstance(lab.admin(Create(path, data)), Failed):
        lab.admin(SetData(path, data))


def lead(lab: Lab, key: TopicPartition) -> bool:
    """Whether a broker that lives leads the partition."""
    leader = lab.state(key).leader
    return lab.drivers[leader].core is not None and lab.partition(leader, key).is_leader


@pytest.mark.parametrize("path", RIGHT)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=UNSHRUNK)
@given(data=st.data())
def test_nothing_in_zookeeper_makes_a_broker_fail(path: str, data: st.DataObject) -> None:
    """Rule: whatever this node and another hold, no broker raises. A fail-over reads both anew. A topic that
    was left alone is led by a live broker all the same, unless what elects is what cannot be read."""
    lab = cluster({0: (1, 2, 3)}, brokers=3)
    lab.create_topic({0: (3, 2, 1)}, "healthy").come_to_rest(300)
    paths = {path, data.draw(st.sampled_from(list(RIGHT)))}
    for one in sorted(paths):
        put(lab, one, data.draw(contents(one)))
    lab.come_to_rest(300)
    for broker in (3, 1):
        lab.restart(broker).come_to_rest(1_000)
    if not paths & {znodes.CONTROLLER, znodes.CONTROLLER_EPOCH, znodes.CLUSTER_ID}:
        assert len(lab.controllers()) == 1 and lead(lab, HEALTHY)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (znodes.topic_path("t"), b'{"partitions":{"0":"1"}}'),
        (znodes.topic_path("new"), b"{}"),
        (znodes.topic_path("new"), b'{"partitions":{"0":[1,1]}}'),
        (znodes.topic_path("x" * 300), b'{"partitions":{"0":[1,2]}}'),
        (znodes.state_path(T0), b"null"),
        (f"{znodes.ISR_CHANGE_PREFIX}0000000009", b"[]"),
        (znodes.CONTROLLER, b"{}"),
        (znodes.CONTROLLER_EPOCH, b"-1"),
        (znodes.PRODUCER_IDS, b"{}"),
    ],
)
def test_a_bad_node_is_named(path: str, content: bytes) -> None:
    """Rule: the mark names the node that was met, also after a fail-over."""
    lab = cluster({0: (1, 2, 3)}, brokers=3)
    if path in (znodes.CONTROLLER, znodes.CONTROLLER_EPOCH):
        lab.crash(1).come_to_rest(100)
    put(lab, path, content)
    lab.come_to_rest(100)
    (controller, *_) = [*lab.controllers(), 2]
    if path == znodes.PRODUCER_IDS:
        lab.step(2, MessageArrived(CLIENT, InitProducerIdRequest(correlation_id=7)))
    elif path == znodes.CONTROLLER_EPOCH or not marks(lab, ZNODE_REFUSED):
        lab.crash(controller)
    lab.come_to_rest(1_000)
    assert marks(lab, ZNODE_REFUSED) and marks(lab, ZNODE_REFUSED)[0].detail.startswith(path[:200])


def test_a_mended_controller_epoch_is_noticed() -> None:
    """Rule: nobody is controller while the epoch cannot be read; who mends it need not restart a broker."""
    lab = cluster({0: (1, 2, 3)}, brokers=3)
    put(lab, znodes.CONTROLLER_EPOCH, b"old")
    lab.crash(1).come_to_rest(1_000)
    assert lab.controllers() == [] and marks(lab, ZNODE_REFUSED)
    lab.admin(SetData(znodes.CONTROLLER_EPOCH, b"41"))
    lab.come_to_rest(1_000)
    (controller,) = lab.controllers()
    assert lab.core(controller).controller.state.context.epoch == 42


def test_a_broker_that_cannot_read_the_clusters_id_stops_with_the_sentence() -> None:
    """Rule: as Kafka's, it cannot start without one; it says which node is bad. One that knows the id goes
    on."""
    lab = cluster({0: (1, 2, 3)}, brokers=3)
    put(lab, znodes.CLUSTER_ID, b'{"id":null}')
    lab.expire(2).come_to_rest(100)
    assert lab.drivers[2].core is not None
    lab.restart(3).come_to_rest(100)
    assert lab.drivers[3].core is None
    assert {mark.detail.split(":")[0] for mark in marks(lab, ZNODE_REFUSED)} == {znodes.CLUSTER_ID}


def test_what_an_operator_put_below_a_topic_goes_with_it() -> None:
    """Rule: a deletion is not stopped by nodes that we did not make."""
    lab = cluster({0: (1, 2)}, brokers=3)
    for path in ("notes", "notes/inner", "partitions/0/state/more", "partitions/other"):
        lab.admin(Create(f"{znodes.topic_path('t')}/{path}"))
    lab.admin(Create(znodes.delete_topic_path("t")))
    lab.come_to_rest(1_000)
    assert lab.children(znodes.TOPICS) == [] and lab.children(znodes.DELETE_TOPICS) == []


@pytest.mark.parametrize("path", [znodes.ISR_CHANGES, znodes.DELETE_TOPICS])
def test_nodes_that_an_operator_removed_are_no_mistake_of_ours(path: str) -> None:
    """Rule: a list that is not there is empty."""
    lab = cluster({0: (1, 2, 3)}, brokers=3)
    lab.admin(Delete(path))
    lab.come_to_rest(1_000)
    lab.crash(1).come_to_rest(1_000)
    assert len(lab.controllers()) == 1 and lead(lab, T0)
