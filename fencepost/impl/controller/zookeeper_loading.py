"""The controller's reads from ZooKeeper (C5): brokers and topics, and the nodes in /admin at failover. Owns
the reads and their watches."""

from collections.abc import Sequence

from fencepost.impl.controller.context import AdminNodes
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.messages.topic_partition import LONGEST_PARTITION
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, Done, Exists, GetChildren, names_of

BROKER_BYTES = 512
"""The largest size of a broker's registration."""
WAVE = 5_000
"""Topics that are read before the size of the largest becomes the estimate for the next ones."""


def read_brokers(controller: ControllerState) -> ZooKeeperSteps:
    """The live brokers with their epochs, watched."""
    listed = yield GetChildren(znodes.BROKER_IDS, watch=True)
    brokers = [broker for name in names_of(listed) if (broker := znodes.broker_of(name)) is not None]
    paths = map(znodes.broker_path, brokers)
    replies = yield from read_nodes(controller.broker_context.grouping, dict.fromkeys(paths, BROKER_BYTES))
    return {
        broker: reply.stat.czxid
        for broker, reply in zip(brokers, replies, strict=True)
        if isinstance(reply, Data)
    }


def list_topics() -> ZooKeeperSteps:
    """The names of all topics, watched."""
    listed = yield GetChildren(znodes.TOPICS, watch=True)
    return names_of(listed)


def read_topics(controller: ControllerState) -> ZooKeeperSteps:
    """The assignments of all topics, watched: for topics that are created and deleted, and partitions that
    are added."""
    names = yield from list_topics()
    return (yield from read_assignments(controller, names))


def read_assignments(controller: ControllerState, names: Sequence[str]) -> ZooKeeperSteps:
    """The assignments of topics, as far as they exist and can be read; changes are watched.

    Args:
        controller: that loads.
        names: of the topics.
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
                for number, replicas in _assigned(controller, topic, reply).items():
                    assignments[TopicPartition(topic, number)] = shared.setdefault(replicas, replicas)
    return assignments


def _assigned(controller: ControllerState, topic: str, node: Data) -> dict[int, tuple[int, ...]]:
    """The assignment of a topic; empty for one that cannot be read, or that no broker can have."""
    path = znodes.topic_path(topic)
    try:
        assigned = znodes.decode_topic(node.data, path)
        if not TopicPartition(topic, max(assigned)).is_legal:
            raise znodes.BadZnodeError(
                expected=f"a topic of a legal name, with partitions up to {LONGEST_PARTITION} characters",
                seen=f"partition {max(assigned)} of a name of {len(topic)} characters",
                where=path[:LONGEST_PARTITION],
            )
        return assigned
    except znodes.BadZnodeError as error:
        controller.broker_context.refuse_znode(error)
        return {}


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
        delete_topics=names_of(topics),
        reassign=isinstance(reassign, Done),
        preferred=isinstance(preferred, Done),
    )
