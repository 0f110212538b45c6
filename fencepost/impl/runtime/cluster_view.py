"""What ZooKeeper says of a cluster: who is registered, who is the controller, who leads what.

Owns the reading. Must not know processes.
"""

from collections.abc import Mapping

from attrs import Factory, frozen

from fencepost.impl import znodes
from fencepost.impl.messages import TopicPartition
from fencepost.impl.runtime.zookeeper_blocking import BlockingZooKeeper
from fencepost.impl.zookeeper import Children, Data, GetChildren, GetData


@frozen(kw_only=True)
class ClusterView:
    """answers: the server was there. controller: -1 if there is none. leaders: of every partition whose topic is assigned; -1: none yet."""

    answers: bool = False
    registered: frozenset[int] = frozenset()
    controller: int = -1
    leaders: Mapping[TopicPartition, int] = Factory(dict)


def view(address: str) -> ClusterView:
    """Read it once; the parts may be of different moments."""
    with BlockingZooKeeper(address) as zookeeper:
        controller = zookeeper.ask(GetData(znodes.CONTROLLER))
        return ClusterView(
            answers=True,
            registered=frozenset(int(name) for name in _names(zookeeper, znodes.BROKER_IDS)),
            controller=znodes.decode_controller(controller.data) if isinstance(controller, Data) else -1,
            leaders={
                key: _leader(zookeeper, key)
                for topic in _names(zookeeper, znodes.TOPICS)
                for key in _partitions(zookeeper, topic)
            },
        )


def _names(zookeeper: BlockingZooKeeper, path: str) -> tuple[str, ...]:
    reply = zookeeper.ask(GetChildren(path))
    return reply.names if isinstance(reply, Children) else ()


def _partitions(zookeeper: BlockingZooKeeper, topic: str) -> list[TopicPartition]:
    reply = zookeeper.ask(GetData(znodes.topic_path(topic)))
    if not isinstance(reply, Data):
        return []
    return [TopicPartition(topic, number) for number in sorted(znodes.decode_topic(reply.data))]


def _leader(zookeeper: BlockingZooKeeper, key: TopicPartition) -> int:
    reply = zookeeper.ask(GetData(znodes.state_path(key)))
    if not isinstance(reply, Data):
        return -1
    return znodes.decode_state(reply.data, reply.stat.version).leader
