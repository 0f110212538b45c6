"""A consumer's requests to its group coordinator: those of every member, and committed offsets (P5).

Owns commits and fetches of committed offsets. Must not know positions or records. Each OffsetCommit has its
own row in the trace, because an unanswered one may still arrive.
"""

from collections.abc import Callable
from functools import partial

from attrs import define, field

from fencepost.impl.client.consumer.member import GONE, GroupMember, Stage, error_of
from fencepost.impl.client.consumer.requests import positions_of
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode, outcome_of_attempt
from fencepost.traces.operations import LATE, Function, Outcome

COMMIT_TIMER = "commit_again"
RETRIED = GONE | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Errors after which commitSync retries."""
Offsets = dict[TopicPartition, int]
CommitCallback = Callable[[ErrorCode], None]
Commit = tuple[str, str, int, Offsets]
"""Who commits (the name in the trace, the member id), the generation, and the offsets."""


@define
class ConsumerCoordinator(GroupMember):
    """Membership and commits of one consumer."""

    # The leader epoch of the last record before each position. Commits send it (KIP-320), and committed
    # offsets return it.
    epochs: Callable[[], dict[TopicPartition, int]] = dict
    # Commits that will be retried, by the number of their timer.
    again: dict[int, Callable[[], None]] = field(factory=dict)
    # Its last commit.
    made: Commit | None = None
    _last_again: int = 0

    def commit(self, offsets: Offsets, kind: str, on_end: CommitCallback, attempt: int = 1) -> None:
        """Send one OffsetCommit, which is one row of the trace. `on_end` is called with the final error.

        kind: auto, async, sync, or before: as sync, but the committed records are not processed yet.
        """
        if self.generation < 0 and not self.desk.identity.standalone:
            on_end(ErrorCode.UNKNOWN_MEMBER_ID)  # no longer a member: fencing would not be possible
            return
        if self.cooperative and self.stage is not Stage.STABLE:
            on_end(ErrorCode.REBALANCE_IN_PROGRESS)
            return
        if self.node < 0:
            self.find()
            self._after_commit(offsets, kind, on_end, attempt, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self.made = self.known_as, self.member_id, self.generation, offsets
        self._send(self.made, kind, attempt, partial(self._after_commit, offsets, kind, on_end, attempt))

    def heartbeat(self) -> None:
        """Send a heartbeat, and again later."""
        super().heartbeat()
        made = self.made
        if self.desk.options.late_commits and self.node >= 0 and made and made[2] != self.generation:
            self.made = None
            self._send(made, LATE, 1, lambda _: None)

    def _send(self, made: Commit, kind: str, attempt: int, on_error: CommitCallback) -> None:
        identity, (known_as, member, generation, offsets) = self.desk.identity, made
        epochs = dict(self.epochs())
        begun = self.desk.begin(
            Function.COMMIT,
            argument=kind,
            attempts=attempt,
            member=known_as,
            generation=generation,
            positions=positions_of(offsets),
        )

        def request(number: int) -> kafka.OffsetCommitRequest:
            return kafka.OffsetCommitRequest(
                correlation_id=number,
                group_id=identity.group,
                generation_id=generation,
                member_id=member,
                group_instance_id=identity.instance_id,
                offsets=tuple(
                    kafka.CommittedOffset(partition=key, offset=offset, leader_epoch=epochs.get(key, -1))
                    for key, offset in sorted(offsets.items())
                ),
            )

        def answered(answer: kafka.OffsetCommitResponse | None) -> None:
            error = error_of(answer)
            outcome = outcome_of_attempt(error, appended=answer is None or answer.appended)
            epoch = answer.coordinator_epoch if answer is not None and answer.coordinator_epoch >= 0 else None
            self.desk.end(begun, outcome, error, node=node, leader_epoch=epoch)
            if (member, generation) == (self.member_id, self.generation):
                self.refused(error)
            on_error(error)

        node = self.node
        self.desk.ask(node, request, answered)

    def _after_commit(
        self, offsets: Offsets, kind: str, on_end: CommitCallback, attempt: int, error: ErrorCode
    ) -> None:
        if (
            error not in RETRIED
            or self.commit_async_not_retried(kind)
            or attempt >= self.desk.options.commit_attempts
        ):
            on_end(error)
            return
        self._last_again += 1
        self.again[self._last_again] = partial(self.commit, offsets, kind, on_end, attempt + 1)
        self.desk.set_timer((COMMIT_TIMER, self._last_again), self.desk.options.retry_backoff_ms)

    def commit_async_not_retried(self, kind: str) -> bool:
        """Protection P5: only a commit that its consumer waits for (commitSync) is sent again. Any other may
        have been followed by a later one meanwhile, which it would overwrite."""
        return kind not in ("sync", "before")

    def on_commit_timer(self, number: int) -> None:
        """Retry a commit."""
        self.again.pop(number)()

    def fetch_committed(
        self, partitions: tuple[TopicPartition, ...], on_end: Callable[[Offsets | None], None]
    ) -> None:
        """Fetch committed offsets.

        Args:
            partitions: the partitions.
            on_end: called with the offsets (-1 if nothing is committed), or with None if there was no
                response.
        """
        identity = self.desk.identity
        begun = self.desk.begin(Function.FETCH_COMMITTED, member=self.known_as)

        def request(number: int) -> kafka.OffsetFetchRequest:
            return kafka.OffsetFetchRequest(
                correlation_id=number,
                group_id=identity.group,
                partitions=partitions,
                require_stable=True,  # as Java's consumer, whatever its isolation
            )

        def answered(answer: kafka.OffsetFetchResponse | None) -> None:
            error = error_of(answer)
            if answer is None or error is not NO_ERROR:
                self.desk.end(begun, Outcome.FAIL, error)
                self.refused(error)
                on_end(None)
                return
            offsets = {each.partition: each.offset for each in answer.offsets}
            self.epochs().update({each.partition: each.leader_epoch for each in answer.offsets})
            self.desk.end(
                begun,
                Outcome.OK,
                node=node,
                leader_epoch=answer.coordinator_epoch,
                positions=positions_of(offsets),
            )
            on_end(offsets)

        node = self.node
        self.desk.ask(node, request, answered)
