"""The protections of the controller's procedures, as methods so that a bug can take one away.

Owns small decisions that would otherwise stand in the midst of a procedure. Must not ask ZooKeeper nor tell a
broker: a procedure does.
"""

from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.traces.outcomes import ErrorCode

Targets = dict[TopicPartition, tuple[int, ...]]


class ControllerGuards:
    """What a procedure may not forget."""

    def keep_pending(self, entries: Targets, removed: list[TopicPartition]) -> Targets:
        """Protection KAFKA-6193: only what was asked for is removed, whatever else is pending stays in the
        node, where the next controller finds it."""
        return {key: target for key, target in entries.items() if key not in removed}

    def told_after_move(self, target: tuple[int, ...], both: tuple[int, ...]) -> tuple[int, ...]:
        """Protection KAFKA-1097: once the target leads, everybody is told of the target alone, so that a late
        fetch brings no old replica back."""
        return target

    def resume_deletions(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        """Protection KAFKA-1681: a new controller takes up the deletions that stand in
        /admin/delete_topics."""
        return topics

    def offline_without_state(self, *, has_state: bool) -> bool:
        """Protection KAFKA-6650: the replicas of a topic that goes may go offline also if the partition has
        no state (any more)."""
        return True

    def dead_replicas_offline(self, dead: set[int]) -> set[int]:
        """Protection KAFKA-3143: brokers that died while nobody watched leave the ISRs when a controller
        takes over."""
        return dead

    def shutdown_fencing(self, live_epoch: int, asked_epoch: int) -> ErrorCode:
        """Protection KAFKA-7235 (KIP-380): a request of an earlier incarnation, sent again before the broker
        bounced, takes nothing from the one that lives."""
        return ErrorCode.NONE if live_epoch == asked_epoch else ErrorCode.STALE_BROKER_EPOCH

    def answers_a_deletion(self, *, asked: bool) -> bool:
        """Protection KAFKA-9946: a replica is deleted when a StopReplica is answered that asked for its
        deletion, not any other. asked: whether this one did.

            1. a broker stops cleanly: a StopReplica that deletes nothing is on its way to it
            2. the topic is to be deleted: a second StopReplica, which deletes, waits for the answer to the
               first
            3. the first one is answered
            4. the broker is gone before it hears of the second: its replica is still there
        """
        return asked
