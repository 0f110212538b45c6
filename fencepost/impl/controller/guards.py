"""The protections of the controller's procedures, as methods so that a planted bug can remove one.

Owns small decisions that would otherwise interrupt a procedure. Must not ask ZooKeeper nor tell a
broker by itself: a procedure does.
"""

from collections.abc import Callable, Collection

from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import StopReplicaRequest, TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

Targets = dict[TopicPartition, tuple[int, ...]]
Resume = Callable[[tuple[str, ...]], ZooKeeperSteps]
"""A procedure that goes on with these topics."""


class ControllerGuards:
    """Checks that a procedure needs."""

    def keep_pending(self, entries: Targets, removed: list[TopicPartition]) -> Targets:
        """Protection KAFKA-6193: only the requested entries are removed. All other pending entries stay in
        the node, where the next controller finds them."""
        return {key: target for key, target in entries.items() if key not in removed}

    def assigned_replicas_only(self, replicas: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
        """Protection KAFKA-1097: once the target leads, everybody hears of those replicas only that are in
        the target, in its order, so that a late fetch brings no old replica back."""
        return tuple(replica for replica in target if replica in replicas)

    def resume_deletions(self, topics: tuple[str, ...], resume: Resume) -> ZooKeeperSteps:
        """Protection KAFKA-1681: a new controller takes up the deletions that are in /admin/delete_topics.

        Args:
            topics: their names.
            resume: takes one deletion up.
        """
        if topics:
            yield from resume(topics)

    def offline_without_state(self, *, has_state: bool) -> bool:
        """Protection KAFKA-6650: the replicas of a topic under deletion may go offline even if the partition
        has no state."""
        return True

    def dead_replicas_offline(self, members: set[int], live: Collection[int]) -> set[int]:
        """Protection KAFKA-3143: brokers that died while nobody watched leave the ISRs when a controller
        takes over. Of these members, those that do."""
        return {member for member in members if member not in live}

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

    def answers_a_deletion(self, request: StopReplicaRequest, key: TopicPartition) -> bool:
        """Protection KAFKA-9946: a replica is deleted when a StopReplica is answered that asked for its
        deletion, and no other.

            1. a broker stops cleanly: a StopReplica that deletes nothing is on its way to it
            2. the topic is to be deleted: a second StopReplica, which deletes, waits for the response to the
               first
            3. the first one is answered
            4. the broker is gone before it gets the second: its replica still exists

        Args:
            request: the one that was answered.
            key: the partition.

        Returns:
            Whether the request asked for the replica's deletion.
        """
        return any(stopped == key and delete for stopped, _, delete in request.partitions)
