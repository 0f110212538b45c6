"""The protections of the controller's procedures, as methods so that a planted bug can remove one.

Owns small decisions that would otherwise be inside a procedure. Must not call ZooKeeper or brokers:
procedures do that.
"""

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.outcomes import ErrorCode

Targets = dict[TopicPartition, tuple[int, ...]]


class ControllerGuards:
    """Checks that a procedure needs."""

    def keep_pending(self, entries: Targets, removed: list[TopicPartition]) -> Targets:
        """Protection KAFKA-6193: only the requested entries are removed. All other pending entries stay in
        the node, where the next controller finds them."""
        return {key: target for key, target in entries.items() if key not in removed}

    def told_after_move(self, target: tuple[int, ...], both: tuple[int, ...]) -> tuple[int, ...]:
        """Protection KAFKA-1097: once the target leads, all brokers get the target replicas only, so that a
        late fetch does not restore an old replica."""
        return target

    def resume_deletions(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        """Protection KAFKA-1681: a new controller continues the deletions in /admin/delete_topics."""
        return topics

    def offline_without_state(self, *, has_state: bool) -> bool:
        """Protection KAFKA-6650: the replicas of a topic under deletion may go offline even if the partition
        has no state."""
        return True

    def dead_replicas_offline(self, dead: set[int]) -> set[int]:
        """Protection KAFKA-3143: when a controller takes over, brokers that died while there was no
        controller are removed from ISRs."""
        return dead

    def shutdown_fencing(self, live_epoch: int, asked_epoch: int) -> ErrorCode:
        """Protection KAFKA-7235 (KIP-380): a retried request of an earlier incarnation takes nothing from the
        current one.

        Args:
            live_epoch: the broker epoch of the current incarnation.
            asked_epoch: the broker epoch in the request.

        Returns:
            the error; NONE if the request may be executed.
        """
        return ErrorCode.NONE if live_epoch == asked_epoch else ErrorCode.STALE_BROKER_EPOCH

    def answers_a_deletion(self, *, asked: bool) -> bool:
        """Protection KAFKA-9946: a replica counts as deleted only after the response to a StopReplica that
        asked for its deletion. asked: whether this one did.

            1. a broker stops cleanly: a StopReplica that deletes nothing is on its way to it
            2. the topic is to be deleted: a second StopReplica, which deletes, waits for the response to the
               first
            3. the first one is answered
            4. the broker is gone before it gets the second: its replica still exists
        """
        return asked
