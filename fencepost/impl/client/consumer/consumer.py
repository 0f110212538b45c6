"""A consumer in a group: poll, commit, seek, pause (P5).

Owns the order of work within a poll: find the coordinator, join if the group requires it, learn where to
begin, commit if it is time, fetch. The application has one thread: it polls, processes the records, commits;
one thing at a time, each of which ends with a call to the application. Heartbeats continue meanwhile, until
it has not polled for max.poll.interval. Must not know the application.

    c = Consumer(identity, options, metadata, application)   a core: c.step(input, now) -> effects
    application.started(c)       then it calls c.poll(), c.commit_sync(), ... in these and only in these calls
    application.polled(c, records), application.committed(c, error), application.woken(c)
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field

from fencepost.impl.client.consumer.application import Application
from fencepost.impl.client.consumer.coordinator_requests import COMMIT_TIMER, ConsumerCoordinator
from fencepost.impl.client.consumer.fetch import ConsumedRecord, ConsumerFetcher
from fencepost.impl.client.consumer.member import FIND_TIMER, HEARTBEAT_TIMER, REJOIN_TIMER, Stage
from fencepost.impl.client.consumer.requests import REQUEST, ConsumerDesk, ConsumerIdentity, positions_of
from fencepost.impl.client.leader_metadata import ClientMetadata
from fencepost.impl.core.core_interface import Effect, Input, MessageArrived, Started, TimerFired
from fencepost.impl.log.values import value_of
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import CHANGED, SEEK, Function, Operation, Outcome, Position, Record
from fencepost.traces.plan import ConsumerOptions

POLL_TIMER, AGAIN_TIMER, AUTO_COMMIT_TIMER = ("poll",), ("again",), ("auto_commit",)
LISTENED = ("auto", "sync", "before")
"""Modes of commits in which what is revoked is committed before."""
MAX_POLL_TIMER, APPLICATION_TIMER, METADATA_TIMER = ("max_poll",), ("application",), ("metadata",)


@define
class Consumer:
    """A consumer in a group."""

    # Process, session and instance.
    identity: ConsumerIdentity
    # The options of consumers.
    options: ConsumerOptions
    # The known leaders.
    metadata: ClientMetadata
    # The user of the consumer.
    application: "Application[Consumer]"
    # The class of the group member.
    coordinator_type: type[ConsumerCoordinator] = ConsumerCoordinator
    # The class of positions and fetches.
    fetcher_type: type[ConsumerFetcher] = ConsumerFetcher
    # Whether a poll is in progress.
    polling: bool = False
    # The time of the poll is over; it ends at the next opportunity.
    deadline_passed: bool = False
    # A rebalance begins, and the work before JoinGroup is in progress.
    preparing: bool = False
    # Whether the committed offsets are being fetched.
    fetching_committed: bool = False
    # The assignment of a cooperative rebalance, until the next poll takes it.
    granted: tuple[TopicPartition, ...] | None = None
    # Whether the interval of auto commit is over.
    commit_due: bool = False
    # The trace row of the current poll; None if there is none.
    row: Operation | None = None
    # In the trace, a poll ends when the application reports that it has `taken` the records.
    open_rows: bool = False
    # Whether it is closed or has failed.
    dead: bool = False
    # Hears of timers that are not the consumer's own.
    on_other_timer: Callable[[tuple[Any, ...]], None] = lambda key: None
    # How often it was restarted after a failure.
    lives: int = 0
    # The result of a poll that the application has not `taken` yet.
    _held: Any = None
    # Requests, timers and trace rows.
    desk: ConsumerDesk = field(init=False)
    # Positions and fetches.
    fetcher: ConsumerFetcher = field(init=False)
    # Group membership and commits.
    coordinator: ConsumerCoordinator = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.desk = ConsumerDesk(self.identity, self.options, self.metadata)
        self.fetcher = self.fetcher_type(self.desk)
        self.coordinator = self.coordinator_type(self.desk, self._advance, self._assigned)
        self.coordinator.epochs = lambda: self.fetcher.epochs

    # ---- the interface

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply the input `input` at host time `now` (nanoseconds); returns the effects."""
        self.desk.now, self.desk.outbox = now, []
        if isinstance(input, MessageArrived):
            self.desk.answered(input.message)
        elif isinstance(input, TimerFired):
            self._on_timer(input.key)
        else:
            assert isinstance(input, Started), input
            if self.options.commit == "auto":
                self.desk.set_timer(AUTO_COMMIT_TIMER, self.options.auto_commit_interval_ms)
            self.desk.set_timer(METADATA_TIMER, self.options.metadata_max_age_ms)
            self.application.started(self)
        return self.desk.outbox

    def use(self, verb: Callable[["Consumer"], None], now: int) -> list[Effect]:
        """Let the application use the consumer between steps.

        Args:
            verb: called with the consumer.
            now: host time in nanoseconds.

        Returns:
            the effects.
        """
        self.desk.now, self.desk.outbox = now, []
        verb(self)
        return self.desk.outbox

    def _on_timer(self, key: tuple[Any, ...]) -> None:
        if key[0] == REQUEST:
            self.desk.gave_up(key[1])
        elif key[0] == COMMIT_TIMER:
            self.coordinator.on_commit_timer(key[1])
        else:
            timers: dict[Any, Callable[[], None]] = {
                FIND_TIMER: self.coordinator.on_find_timer,
                REJOIN_TIMER: self.coordinator.on_rejoin_timer,
                HEARTBEAT_TIMER: self.coordinator.heartbeat,
                POLL_TIMER: self._on_deadline,
                AGAIN_TIMER: self._advance,
                AUTO_COMMIT_TIMER: self._on_auto_commit,
                MAX_POLL_TIMER: self._on_max_poll,
                METADATA_TIMER: self._on_old_metadata,
                APPLICATION_TIMER: lambda: self.application.woken(self),
            }
            timers.get(key, partial(self.on_other_timer, key))()

    def _on_old_metadata(self) -> None:
        self.desk.set_timer(METADATA_TIMER, self.options.metadata_max_age_ms)
        if not self.dead:
            self.desk.refresh_metadata(lambda answered: self._on_new_metadata())

    def _on_new_metadata(self) -> None:
        self.coordinator.metadata_came()
        self._advance()  # a poll that began meanwhile waits for it

    # ---- methods for the application

    def poll(self) -> None:
        """Do the work that is due, then fetch; the result is a call to the application."""
        assert not self.polling, "one thing at a time"
        self.polling, self.deadline_passed = True, False
        self.desk.set_timer(POLL_TIMER, self.options.poll_timeout_ms)
        self.desk.set_timer(MAX_POLL_TIMER, self.options.max_poll_interval_ms)
        self._advance()

    def commit_sync(self, offsets: dict[TopicPartition, int] | None = None) -> None:
        """Commit the positions (or these offsets), with retries until it is decided; the result is a call to
        the application."""
        what = dict(self.fetcher.positions) if offsets is None else offsets
        if what:
            kind = "before" if self.open_rows else "sync"
            self.coordinator.commit(what, kind, lambda error: self.application.committed(self, error))
        else:
            self.application.committed(self, NO_ERROR)

    def commit_async(self, offsets: dict[TopicPartition, int] | None = None) -> None:
        """Commit the positions (or these offsets) once, without waiting."""
        what = dict(self.fetcher.positions) if offsets is None else offsets
        if what:
            self.coordinator.commit(what, "async", lambda error: None)

    def sleep(self, milliseconds: int) -> None:
        """The application processes records for this time."""
        self.desk.set_timer(APPLICATION_TIMER, milliseconds)

    def seek(self, key: TopicPartition, offset: int) -> None:
        """Continue to read the partition `key` at `offset`."""
        assert key in self.fetcher.assigned, f"{key} is not assigned"
        self.fetcher.begin_at(key, offset)

    def seek_by_time(self, key: TopicPartition, timestamp: int) -> None:
        """Continue to read the partition `key` at its first record of this time (milliseconds, EARLIEST or
        LATEST); at the log end, if there is none."""
        assert key in self.fetcher.assigned, f"{key} is not assigned"
        self.fetcher.begin_by_time(key, timestamp)

    def record_seek(self, moved: Mapping[TopicPartition, int]) -> None:
        """Show in the trace that the application seeks.

        Args:
            moved: by partition the offset; LATEST, EARLIEST or BY_TIME, if a broker has to say it.
        """
        row = self.desk.begin(
            Function.ASSIGN,
            argument=SEEK,
            member=self.coordinator.known_as,
            generation=self.coordinator.held,
            result=" ".join(f"{key}@{offset}" for key, offset in sorted(moved.items())),
            positions=positions_of({key: -1 for key in self.fetcher.assigned if key not in moved}),
        )
        self.desk.end(row, Outcome.OK)

    def subscribe_again(self, topics: tuple[str, ...]) -> None:
        """Unsubscribe, which leaves the group without a commit, and subscribe to these topics."""
        self._subscribes(topics, None)
        self._revoke()
        self.coordinator.leave()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to these topics from now on. A member stays one: its next poll joins again, and so lets
        the group divide them (KafkaConsumer.subscribe)."""
        self._subscribes(topics, CHANGED)

    def _subscribes(self, topics: tuple[str, ...], how: str | None) -> None:
        row = self.desk.begin(Function.SUBSCRIBE, argument=how, member=self.coordinator.known_as)
        self.desk.end(row, Outcome.OK)
        self.identity = self.desk.identity = evolve(self.identity, topics=topics)

    def pause(self, *keys: TopicPartition) -> None:
        """Do not read these partitions for now; they stay assigned."""
        self.fetcher.paused.update(dict.fromkeys(keys))

    def resume(self, *keys: TopicPartition) -> None:
        """Read these partitions again."""
        for key in keys:
            self.fetcher.paused.pop(key, None)

    def start_over(self) -> None:
        """After a failure: restart as a new process, and poll."""
        self.dead, self.preparing, self.lives = False, False, self.lives + 1
        self.fetcher.assign(())
        self.granted = None
        self.coordinator.start_over()
        self.poll()

    def close(self) -> None:
        """Commit under auto commit, leave the group, and stop."""
        self._end_poll_row()
        self.polling, self.dead = False, True
        self.desk.cancel_timer(APPLICATION_TIMER)
        if (
            self.options.commit == "auto"
            and self.coordinator.stage is Stage.STABLE
            and self.fetcher.positions
        ):
            self.coordinator.commit(dict(self.fetcher.positions), "auto", lambda _: self.coordinator.leave())
        else:
            self.coordinator.leave()

    # ---- a poll's progress

    def _advance(self) -> None:
        """Do the next steps of the current poll that need no waiting."""
        if not self.polling or self.dead:
            return
        self._settle()
        coordinator, fetcher = self.coordinator, self.fetcher
        if coordinator.failed is not NO_ERROR:
            self._fail(coordinator.failed)
        elif fetcher.complete():
            self._end_round()
        elif self.deadline_passed and fetcher.round is None:
            self._end_poll([])
        elif fetcher.round is not None or self.preparing or self.fetching_committed:
            return
        elif self.fetcher.stale or self.desk.asking_metadata:
            self._refresh()
        elif coordinator.stage in (Stage.JOINING, Stage.SYNCING):
            if fetcher.assigned:
                self._read()
        elif coordinator.node < 0:
            coordinator.find()
        elif coordinator.must_join:
            self._end_poll_row()
            self._rejoin()
        elif fetcher.missing():
            self._fetch_committed()
        elif self.commit_due:
            self._auto_commit()
        else:
            self._read()

    def _refresh(self) -> None:
        if self.desk.asking_metadata:
            return
        self.fetcher.stale = False

        def on_answer(answered: bool) -> None:
            if answered and all(self.desk.partitions(self.identity.topics).values()):
                self._advance()
                return
            self.fetcher.stale = True
            self.desk.set_timer(AGAIN_TIMER, self.options.retry_backoff_ms)

        self.desk.refresh_metadata(on_answer)

    def _read(self) -> None:
        self.fetcher.reset(self._advance)
        if self.row is None:
            self.row = self.desk.begin(
                Function.POLL,
                member=self.coordinator.known_as,
                generation=self.coordinator.held,
                isolation=self.options.isolation,
            )
        wait_ms = min(self.options.poll_timeout_ms, self.options.request_timeout_ms // 2)
        if not self.fetcher.start_round(wait_ms, self._advance):
            self.desk.set_timer(AGAIN_TIMER, self.options.retry_backoff_ms)

    def _on_deadline(self) -> None:
        self.deadline_passed = True
        self._settle()
        if self.fetcher.round is not None and self.fetcher.round.answers:
            self._end_round()  # use the records that came; leaders that have not answered are asked again
        else:
            self._advance()

    def _end_round(self) -> None:
        records, answers = self.fetcher.take()
        if not records and not self.deadline_passed:
            # an error, or the end of every log: wait before the next round
            self.desk.set_timer(
                AGAIN_TIMER, self.options.retry_backoff_ms if self.fetcher.stale or not answers else 0
            )
            return
        positions = tuple(
            Position(
                topic=key.topic,
                partition=key.partition,
                offset=offset,
                end_offset=fetched.high_watermark,
                last_stable_offset=fetched.last_stable_offset if self.fetcher.committed_only else None,
                log_start_offset=fetched.log_start_offset,
                leader_epoch=fetched.leader_epoch,
            )
            for key, (offset, fetched) in sorted(answers.items())
        )
        self._end_poll(records, positions)

    def _end_poll(self, records: list[ConsumedRecord], positions: tuple[Position, ...] = ()) -> None:
        """Give the application the records. open_rows: it reports itself when it has taken them (`taken`)."""
        if self.row is not None and not (self.open_rows and records):
            self._complete_row(self.row, records, positions)
            self.row = None
        elif self.row is not None:
            self._held = self.row, records, positions
            self.row = None
        self.polling = False
        # Kafka restarts this timer with each heartbeat of the poll loop: time inside of a poll does not count
        self.desk.set_timer(MAX_POLL_TIMER, self.options.max_poll_interval_ms)
        self.desk.cancel_timer(POLL_TIMER)
        self.desk.cancel_timer(AGAIN_TIMER)
        self.application.polled(self, records)

    def taken(self) -> None:
        """With open_rows: the application has taken the records of its last poll."""
        if self._held is not None:
            self._complete_row(*self._held)
            self._held = None

    def _complete_row(
        self, row: Operation, records: list[ConsumedRecord], positions: tuple[Position, ...]
    ) -> None:
        self.desk.end(
            row,
            Outcome.OK,
            positions=positions,
            records=tuple(
                Record(
                    topic=each.partition.topic,
                    partition=each.partition.partition,
                    offset=each.record.offset,
                    value=value_of(each.record),
                    leader_epoch=each.leader_epoch,
                )
                for each in records
            ),
        )

    def _end_poll_row(self) -> None:
        if self.row is not None:
            self._complete_row(self.row, [], ())
            self.row = None

    # ---- membership and positions

    def _rejoin(self) -> None:
        """Before JoinGroup: commit consumed records, then tell the listener that all partitions are revoked,
        unless the rebalance is cooperative."""
        self.preparing = True
        positions = dict(self.fetcher.positions)
        member = self.coordinator.generation >= 0
        if self.options.commit == "auto" and positions and member:
            life = self.lives
            self.coordinator.commit(positions, "auto", lambda _: self._prepared(life))
        else:
            self._prepared(self.lives)

    def _prepared(self, life: int) -> None:
        """The work before JoinGroup is done. life: in which the commit was sent; its response is ignored in
        the next one."""
        if self.dead or life != self.lives:
            return
        if not self.coordinator.cooperative:
            self._revoke()
        self.preparing = False
        if self.identity.standalone:
            self._assign_all()
        elif self.coordinator.node >= 0:
            self.coordinator.join()
        else:
            self.coordinator.find()

    def _revoke(self) -> None:
        owned, self.granted = self.fetcher.assigned, None
        self.fetcher.assign(())
        if owned:
            self.application.revoked(self, owned)

    def _assign_all(self) -> None:
        """Assign all partitions without the group, and go on in none of them."""
        counts = self.desk.partitions(self.identity.topics)
        self.desk.end(self.desk.begin(Function.ASSIGN), Outcome.OK)
        self.coordinator.assigned_alone(counts)
        self._assigned(
            tuple(TopicPartition(topic, n) for topic, count in counts.items() for n in range(count))
        )
        self._advance()

    def _assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        if self.coordinator.cooperative:
            self.granted = partitions
            return
        self.fetcher.assign(partitions)
        self.application.assigned(self, partitions)

    def _settle(self) -> None:
        """Within a poll of a cooperative member: give up what it has lost, and take a new assignment. What is
        revoked is committed before."""
        coordinator, fetcher = self.coordinator, self.fetcher
        if not coordinator.cooperative or self.preparing:
            return
        if coordinator.held < 0 and fetcher.assigned:
            granted = self.granted
            self._end_poll_row()
            self._revoke()
            self.granted = granted
        if self.granted is None or coordinator.stage is not Stage.STABLE:
            self.granted = None
            return
        leaving = {key: at for key, at in fetcher.positions.items() if key not in self.granted}
        if leaving and self.options.commit in LISTENED:
            self.preparing, life = True, self.lives
            coordinator.commit(leaving, self.options.commit, lambda _: self._given_up(life))
        else:
            self._take()

    def _given_up(self, life: int) -> None:
        if self.dead or life != self.lives:
            return
        self.preparing = False
        if self.granted is not None and self.coordinator.stage is Stage.STABLE:
            self._take()
        self._advance()

    def _take(self) -> None:
        """Take the assignment: go on in what stays, tell the listener of the rest."""
        assert self.granted is not None
        granted, had, self.granted = self.granted, self.fetcher.assigned, None
        revoked = tuple(key for key in had if key not in granted)
        self._end_poll_row()
        self.fetcher.keep(granted)
        self.coordinator.hold(granted)
        if revoked:
            self.application.revoked(self, revoked)
        self.application.assigned(self, tuple(key for key in granted if key not in had))

    def _fetch_committed(self) -> None:
        self.fetching_committed = True
        asked, generation = self.fetcher.missing(), self.coordinator.generation

        def on_answer(offsets: dict[TopicPartition, int] | None) -> None:
            self.fetching_committed = False
            if offsets is None:
                self.desk.set_timer(AGAIN_TIMER, self.options.retry_backoff_ms)
                return
            if generation == self.coordinator.generation:
                for key, offset in offsets.items():
                    if self.fetcher.still_missing(key):
                        self.fetcher.begin_at(key, offset)
            if self.options.auto_offset_reset == "none" and self.fetcher.resets:
                self._fail(ErrorCode.OFFSET_OUT_OF_RANGE)
            else:
                self._advance()

        self.coordinator.fetch_committed(asked, on_answer)

    def _on_auto_commit(self) -> None:
        self.commit_due = True
        self.desk.set_timer(AUTO_COMMIT_TIMER, self.options.auto_commit_interval_ms)

    def _auto_commit(self) -> None:
        """Commit the records of earlier polls: they are consumed, because the application polls again."""
        self.commit_due = False
        if self.fetcher.positions:
            self.coordinator.commit(dict(self.fetcher.positions), "auto", lambda _: None)
        self._advance()

    def _on_max_poll(self) -> None:
        """The application has not polled in time: leave the group."""
        if not self.polling:
            self.coordinator.leave()

    def _fail(self, error: ErrorCode) -> None:
        """The poll raises: the application hears of it, and so does the trace."""
        self._end_poll_row()
        coordinator = self.coordinator
        row = self.desk.begin(
            Function.POLL, member=coordinator.member_id or None, generation=coordinator.generation
        )
        self.desk.end(row, Outcome.FAIL, error, node=coordinator.node)
        self.polling, self.dead = False, True
        self.application.failed(self, error)
