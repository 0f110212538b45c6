"""The controller's reads from ZooKeeper (C5): brokers and topics, and the nodes in /admin at failover. Owns
the reads and their watches."""

from collections.abc import Sequence

from fencepost.impl.controller.context import AdminNodes
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Children, Data, Done, Exists, GetChildren

BROKER_BYTES = 512
"""The largest size of a broker's registration."""
WAVE = 5_000
"""Topics that are read before the size of the largest becomes the estimate for the next ones."""


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
    """The assignments of all topics, watched: for topics that are created and deleted, and partitions that
    are added."""
    names = yield from list_topics()
    return (yield from read_assignments(controller, names))


def read_assignments(controller: ControllerState, names: Sequence[str]) -> ZooKeeperSteps:
    """Read the assignments of these topics, if they exist, and watch them.

    Args:
        controller: the active controller.
        names: the topics.

    Returns:
        the steps; their result is the assignments.
    """
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
    """Read the work to resume in /admin, watched, into the context of this reign.

    It runs concurrently with the failover. Its requests are sent right after the first one. ZooKeeper answers
    in order, so its answers come before those to any later request.
    """
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
