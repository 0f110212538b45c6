"""Bugs of the controller's procedures: what a fail-over, a reassignment, a deletion or a controlled shutdown
forgets."""

from collections.abc import Collection

from fencepost.impl.controller.guards import ControllerGuards, Resume, Targets
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import StopReplicaRequest, TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode


class LeavesTheDeadInTheIsr(ControllerGuards):
    """KAFKA-3143: a broker died while there was no controller; the next one looks at leaders only, and leaves
    it in the ISRs."""

    def dead_replicas_offline(self, members: set[int], live: Collection[int]) -> set[int]:
        """Nobody."""
        return set()


class RemovesAllThatIsPending(ControllerGuards):
    """KAFKA-6193: when one entry of /admin/reassign_partitions is done the node goes, and with it the others,
    which the next controller will never hear of."""

    def keep_pending(self, entries: Targets, removed: list[TopicPartition]) -> Targets:
        """Keep nothing."""
        return {}


class TellsOfOldReplicas(ControllerGuards):
    """KAFKA-1097 (KAFKA-1170): leaders hear of the old replicas too after a move; one of them fetches
    once more before it is stopped, and is back in the ISR."""

    def assigned_replicas_only(self, replicas: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
        """All of them."""
        return replicas


class ForgetsDeletions(ControllerGuards):
    """KAFKA-1681: a new controller does not look below /admin/delete_topics; what its predecessor was
    deleting stays half deleted."""

    def resume_deletions(self, topics: tuple[str, ...], resume: Resume) -> ZooKeeperSteps:
        """None of them."""
        yield from ()


class NeedsAStateToDelete(ControllerGuards):
    """KAFKA-6650: a partition without a state cannot take its replicas offline, so that the deletion of its
    topic never ends."""

    def offline_without_state(self, *, has_state: bool) -> bool:
        """Only with one."""
        return has_state


class ShutsDownWhoLives(ControllerGuards):
    """KAFKA-7235 (KIP-380): a controlled shutdown is asked for again, the broker stops, returns, and only
    then the second request arrives: the leaders of the broker that lives are moved away, and it may not join
    an ISR."""

    def shutdown_fencing(self, live_epoch: int, asked_epoch: int) -> ErrorCode:
        """Whoever asks."""
        return ErrorCode.NONE


class TakesAnyStopForADeletion(ControllerGuards):
    """KAFKA-9946: the answer to the StopReplica of a controlled shutdown, which deletes nothing, counts as
    the end of a deletion that began meanwhile; the topic's nodes go, and the broker that stops comes back
    with its replica."""

    def answers_a_deletion(self, request: StopReplicaRequest, key: TopicPartition) -> bool:
        """Every answer does."""
        return True
