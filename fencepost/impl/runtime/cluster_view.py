"""The state of a cluster in ZooKeeper: registered brokers, the controller, the leaders.

Owns the reading. Must not know processes.
"""

from collections.abc import Mapping

from attrs import Factory, frozen

from fencepost.impl.admin.cluster_state import ClusterTopics, read_cluster, read_states
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, GetData


@frozen(kw_only=True)
class ClusterView:
    """answers: whether the server answered. controller: -1 if there is none. leaders: of every partition of
    an assigned topic; -1: none yet. under_replicated: those of them with an assigned replica that is not in
    the ISR."""

    answers: bool = False
    registered: frozenset[int] = frozenset()
    controller: int = -1
    leaders: Mapping[TopicPartition, int] = Factory(dict)
    under_replicated: frozenset[TopicPartition] = frozenset()


def view(address: str) -> ClusterView:
    """Read the state once, in groups; its parts may be of different moments."""
    # here, so that a system without ZooKeeper needs no client of it (the extra zookeeper)
    from fencepost.impl.runtime.zookeeper.blocking import BlockingZooKeeper

    with BlockingZooKeeper(address) as zookeeper:
        controller = zookeeper.ask(GetData(znodes.CONTROLLER))
        cluster: ClusterTopics = zookeeper.run(read_cluster())
        keys = cluster.partitions()
        states = zookeeper.run(read_states(keys))
        return ClusterView(
            answers=True,
            registered=frozenset(cluster.brokers),
            controller=znodes.decode_controller(controller.data) if isinstance(controller, Data) else -1,
            leaders={key: states[key].leader if key in states else -1 for key in keys},
            under_replicated=frozenset(
                key
                for key in keys
                if key not in states
                or not set(cluster.topics[key.topic].assignment[key.partition]) <= set(states[key].isr)
            ),
        )
