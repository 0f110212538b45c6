"""The state that the controller's procedures share."""

from collections import defaultdict

from attrs import define, field

from fencepost.impl.controller.channels import Channels
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.guards import ControllerGuards
from fencepost.impl.controller.legal_transitions import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionPhase,
    ReplicaPhase,
)
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.events import Name


@define
class ControllerState:
    """The state of a controller."""

    # The context that all parts share.
    broker_context: BrokerContext
    # The fenced writes to ZooKeeper.
    writer: ControllerWriter
    # The requests to brokers.
    channels: Channels
    # The strategies of leader election.
    election: LeaderElection
    # The protections.
    guards: ControllerGuards = field(factory=ControllerGuards)
    # What the controller knows about the cluster.
    context: ControllerContext = field(factory=ControllerContext)
    # True from the end of a won election to the resignation.
    active: bool = False
    # The state machine of each partition.
    phases: dict[TopicPartition, PartitionPhase] = field(factory=dict)
    # The state machines of replicas, by broker.
    replicas: defaultdict[int, dict[TopicPartition, ReplicaPhase]] = field(factory=lambda: defaultdict(dict))
    # The number of illegal transitions that were refused.
    refused: int = 0

    def move(self, key: TopicPartition, phase: PartitionPhase) -> bool:
        """Change a partition's phase; an illegal transition is refused, logged and counted."""
        current = self.phases.get(key, PartitionPhase.NON_EXISTENT)
        if phase not in PARTITION_TRANSITIONS[current]:
            self._refuse(key, current, phase)
            return False
        self.phases[key] = phase
        return True

    # ---- replicas

    def adopt_replicas(self, key: TopicPartition) -> None:
        """New assigned replicas start in the state NewReplica."""
        for replica in self.context.assignments[key]:
            if key not in self.replicas[replica]:
                self.move_replica(key, replica, ReplicaPhase.NEW)

    def settle_replicas(self, key: TopicPartition) -> None:
        """Set the assigned replicas online or offline, as their brokers are."""
        for replica in self.context.assignments[key]:
            self.settle_replica(key, replica)

    def settle_replica(self, key: TopicPartition, broker: int) -> None:
        """As `settle_replicas`, for one replica. It needs no leader state, because a partition may have none
        (KAFKA-6650).

        Args:
            key: the partition.
            broker: the broker of the replica.
        """
        live = broker in self.context.live_brokers
        self.move_replica(key, broker, ReplicaPhase.ONLINE if live else ReplicaPhase.OFFLINE)

    def forget_partition(self, key: TopicPartition) -> None:
        """The partition no longer exists."""
        self.context.assignments.pop(key, None)
        self.context.states.pop(key, None)
        self.phases.pop(key, None)

    def replica_phase(self, key: TopicPartition, broker: int) -> ReplicaPhase:
        """The state of the replica on a broker."""
        return self.replicas[broker].get(key, ReplicaPhase.NON_EXISTENT)

    def move_replica(self, key: TopicPartition, broker: int, *phases: ReplicaPhase) -> bool:
        """Change a replica's state step by step. The first illegal transition is refused, logged and counted,
        and ends it.

        Args:
            key: the partition.
            broker: the broker of the replica.
            phases: the states to pass through, in order.

        Returns:
            whether all transitions were legal.
        """
        for phase in phases:
            current = self.replica_phase(key, broker)
            if phase not in REPLICA_TRANSITIONS[current]:
                self._refuse(key, current, phase, broker)
                return False
            if phase is ReplicaPhase.NON_EXISTENT:
                del self.replicas[broker][key]
            else:
                self.replicas[broker][key] = phase
        return True

    def _refuse(self, key: TopicPartition, current: str, phase: str, broker: int = -1) -> None:
        self.refused += 1
        self.broker_context.record(
            Name.MARK,
            key,
            controller_epoch=self.context.epoch,
            leader=broker,
            cause="illegal_transition_refused",
            detail=f"{current} -> {phase}",
        )

    def reset_on_resign(self) -> ControllerContext:
        """Protection KAFKA-5310: the next reign begins without any state of this one, so that no old
        reassignment is continued."""
        return ControllerContext()

    def reset(self) -> None:
        """Reset all state."""
        self.channels.close()
        self.context = self.reset_on_resign()
        self.phases = {}
        self.replicas.clear()
        self.active = False
