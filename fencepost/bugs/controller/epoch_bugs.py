"""Bugs of fencing: epochs that are adopted, ignored, or missing."""

from collections.abc import Sequence

from fencepost.impl.broker.control_gate import ControlGate
from fencepost.impl.controller.context import ControllerContext
from fencepost.impl.controller.writer import ControllerWriter, Member
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import (
    ControlRequest,
    LeaderAndIsrRequest,
    PartitionState,
    StopReplicaRequest,
)
from fencepost.impl.replication.manager import ReplicaManager
from fencepost.impl.replication.partition import Partition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, GetData
from fencepost.traces.kafka_names.outcomes import ErrorCode


class AdoptsTheNewestEpoch(ControllerWriter):
    """KAFKA-1096: a controller that was deposed while it paused reads /controller_epoch again and takes what
    is there for its own: no fence holds it."""

    def write_all(self, context: ControllerContext, members: Sequence[Member]) -> ZooKeeperSteps:
        """Read, adopt, write."""
        current = yield GetData(znodes.CONTROLLER_EPOCH)
        if isinstance(current, Data):
            context.epoch, context.epoch_version = int(current.data), current.stat.version
        return (yield from super().write_all(context, members))


class ObeysWhoeverIsMeant(ControlGate):
    """KIP-380: a control request that was meant for a broker before it bounced is carried out by the one that
    came back, which may have other replicas, and remembers less."""

    def broker_epoch_fencing(self, request: ControlRequest) -> ErrorCode:
        """It is meant for this one."""
        return ErrorCode.NONE


class ObeysOldLeaderEpochs(ReplicaManager):
    """KAFKA-1188: a broker applies whichever LeaderAndIsr comes, also one of an earlier leader epoch that was
    overtaken."""

    def leader_epoch_fencing(self, partition: Partition, state: PartitionState) -> bool:
        """Compare nothing."""
        return True


class StopsWhateverTheEpoch(ReplicaManager):
    """KIP-570 (KAFKA-9539): a StopReplica says nothing of the order it was given in, so that a late one
    stops, or deletes, the replica that came back since.

    The epoch of the partition, and the order of requests of one controller, guard the same thing here, where
    messages may overtake each other; a StopReplica without an epoch has neither."""

    def stop_replica_fencing(self, partition: Partition, leader_epoch: int) -> bool:
        """It was meant."""
        return True

    def late_copy_fencing(self, request: LeaderAndIsrRequest | StopReplicaRequest) -> bool:
        """It is on time."""
        return super().late_copy_fencing(request) or isinstance(request, StopReplicaRequest)
