"""The state machines of partitions and replicas as tables of legal transitions (C7). An illegal transition is
refused."""

from enum import StrEnum


class PartitionPhase(StrEnum):
    """The state of one partition at the controller."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaPhase(StrEnum):
    """The state of one replica at the controller."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


_P, _R = PartitionPhase, ReplicaPhase

PARTITION_TRANSITIONS: dict[PartitionPhase, frozenset[PartitionPhase]] = {
    _P.NON_EXISTENT: frozenset({_P.NEW}),
    _P.NEW: frozenset({_P.ONLINE, _P.OFFLINE}),
    _P.ONLINE: frozenset({_P.ONLINE, _P.OFFLINE}),
    _P.OFFLINE: frozenset({_P.ONLINE, _P.OFFLINE, _P.NON_EXISTENT}),
}

REPLICA_TRANSITIONS: dict[ReplicaPhase, frozenset[ReplicaPhase]] = {
    _R.NON_EXISTENT: frozenset({_R.NEW}),
    _R.NEW: frozenset({_R.ONLINE, _R.OFFLINE}),
    _R.ONLINE: frozenset({_R.ONLINE, _R.OFFLINE}),
    _R.OFFLINE: frozenset({_R.ONLINE, _R.OFFLINE, _R.DELETION_STARTED, _R.DELETION_INELIGIBLE}),
    _R.DELETION_STARTED: frozenset({_R.DELETION_SUCCESSFUL, _R.DELETION_INELIGIBLE}),
    _R.DELETION_SUCCESSFUL: frozenset({_R.NON_EXISTENT}),
    _R.DELETION_INELIGIBLE: frozenset({_R.ONLINE, _R.OFFLINE}),
}
