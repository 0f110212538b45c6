"""Reading: positions of the assigned partitions, rounds of fetches, and where to begin without a position
(P5).

Owns positions. Must not know groups. A round asks every leader of an assigned partition once. Nothing is read
ahead, so the records of a poll were read during that poll.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.client.consumer.requests import ConsumerDesk
from fencepost.impl.client.isolation import committed_batches
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.log.batch.header import CorruptBatchError
from fencepost.impl.log.batch.record_batch import Record, read_records
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

MAX_BYTES = 1_048_576
"""Bytes of one partition in one fetch."""


@frozen
class ConsumedRecord:
    """A record as a poll returns it."""

    partition: TopicPartition
    record: Record
    # Of its batch.
    leader_epoch: int


@define
class Round:
    """A round of fetches."""

    # By correlation id, the partitions with their start offsets.
    asked: dict[int, dict[TopicPartition, int]] = field(factory=dict)
    # The responses without an error.
    answers: dict[TopicPartition, tuple[int, kafka.FetchedPartition]] = field(factory=dict)


@define(eq=False)
class Reset:
    """A partition needs the offset that its leader has for a timestamp."""

    # Milliseconds, or EARLIEST or LATEST.
    timestamp: int
    # Whether a request is in flight.
    asking: bool = False


@define
class ConsumerFetcher:
    """The fetcher of one consumer."""

    # Requests, timers and trace rows.
    desk: ConsumerDesk
    # The partitions to read.
    assigned: tuple[TopicPartition, ...] = ()
    # The next offset to read of each partition, if it is known.
    positions: dict[TopicPartition, int] = field(factory=dict)
    # The highest known leader epoch of each partition, from records or commits.
    epochs: dict[TopicPartition, int] = field(factory=dict)
    # Partitions that need an offset: by the reset policy, or because the application sought there.
    resets: dict[TopicPartition, Reset] = field(factory=dict)
    # Partitions that are not read for now.
    paused: dict[TopicPartition, None] = field(factory=dict)
    # The current round; None if there is none.
    round: Round | None = None
    # Whether leaders must be asked for again.
    stale: bool = True

    def assign(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Read these partitions; their positions are not known yet."""
        self.stop()
        self.assigned = tuple(sorted(partitions))
        self.epochs, self.resets, self.paused = {}, {}, {}
        self.forget_positions()

    def keep(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Protection P5-KEPT: read these partitions, and go on in those that it had (KIP-429)."""
        self.stop()
        self.assigned = tuple(sorted(partitions))
        known: tuple[dict[TopicPartition, Any], ...] = (self.positions, self.epochs, self.resets, self.paused)
        for each in known:
            for key in each.keys() - set(partitions):
                del each[key]

    def forget_positions(self) -> None:
        """Protection P5-POSITIONS: a consumer that gets a partition back goes on from what is committed:
        others may have had it meanwhile."""
        self.positions.clear()

    def begin_at(self, key: TopicPartition, offset: int) -> None:
        """Start reading here. A negative offset: start as the reset policy says."""
        self.resets.pop(key, None)
        if offset >= 0:
            self.positions[key] = offset
        else:
            earliest = self.desk.options.auto_offset_reset == "earliest"
            self.begin_by_time(key, kafka.EARLIEST if earliest else kafka.LATEST)

    def begin_by_time(self, key: TopicPartition, timestamp: int) -> None:
        """Start reading `key` at the first record of `timestamp` (milliseconds, EARLIEST or LATEST), once the
        leader has said where that is."""
        self.positions.pop(key, None)
        self.resets[key] = Reset(timestamp)

    def missing(self) -> tuple[TopicPartition, ...]:
        """Partitions without a known start."""
        return tuple(key for key in self.assigned if key not in self.positions and key not in self.resets)

    def still_missing(self, key: TopicPartition) -> bool:
        """Protection P5-SEEK: a committed offset is where to begin only if the application has not sought
        while it was asked for."""
        return key in self.missing()

    def leader_of_this_age(self, key: TopicPartition) -> tuple[int, int] | None:
        """KIP-320: the leader and its epoch, unless a later epoch is known: an old leader would report that
        the position is out of range."""
        leader = self.desk.metadata.leader(key)
        return None if leader is None or leader[1] < self.epochs.get(key, -1) else leader

    # ---- where to begin

    def reset(self, then: Callable[[], None]) -> None:
        """Ask for the offset of each partition that needs one."""
        for key, reset in list(self.resets.items()):
            leader = self.leader_of_this_age(key)
            if reset.asking or leader is None:
                self.stale = self.stale or leader is None
                continue
            reset.asking = True
            self.desk.ask(
                leader[0],
                partial(_list_offsets, self.committed_only, key, leader[1], reset.timestamp),
                partial(self._listed, key, reset, then),
            )

    def still_wanted(self, key: TopicPartition, reset: Reset) -> bool:
        """Protection KAFKA-7703: an answer is used only if it is the one to the last reset of its partition:
        the application may have sought to the other end meanwhile.

        Args:
            key: an assigned partition, or one that was.
            reset: what is answered.
        """
        return self.resets.get(key) is reset

    def _listed(self, key: TopicPartition, reset: Reset, then: Callable[[], None], answer: Any) -> None:
        if not self.still_wanted(key, reset):
            return
        if answer is None or answer.error is not NO_ERROR:
            reset.asking, self.stale = False, True
        elif answer.offset < 0:
            self.begin_by_time(key, kafka.LATEST)  # nothing is as late as that
        else:
            self.begin_at(key, answer.offset)
        then()

    # ---- rounds

    def start_round(self, wait_ms: int, then: Callable[[], None]) -> bool:
        """Ask every leader; `then` is called when all have answered or timed out. Returns whether there was
        anything to ask for."""
        by_leader: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
        for key in self.assigned:
            leader = self.leader_of_this_age(key)
            if leader is None:
                self.stale = True
            elif key in self.positions and key not in self.paused:
                by_leader.setdefault(leader[0], {})[key] = (self.positions[key], leader[1])
        if not by_leader:
            return False
        self.round = Round()
        for node, wanted in sorted(by_leader.items()):
            number = self.desk.ask(
                node,
                partial(_fetch, self.committed_only, wait_ms, wanted),
                partial(self._fetched, self.round, then, wanted),
            )
            self.round.asked[number] = {key: offset for key, (offset, _) in wanted.items()}
        return True

    def stop(self) -> None:
        """Ignore the responses of the current round."""
        for number in self.round.asked if self.round is not None else ():
            self.desk.forget(number)
        self.round = None

    def _fetched(
        self, current: Round, then: Callable[[], None], wanted: dict[TopicPartition, Any], answer: Any
    ) -> None:
        if current is not self.round:
            return
        number = next(asked for asked, keys in current.asked.items() if keys.keys() == wanted.keys())
        offsets = current.asked.pop(number)
        self.stale = self.stale or answer is None
        for fetched in () if answer is None else answer.partitions:
            key = fetched.partition
            if self.positions.get(key) != offsets[key]:
                continue  # the application sought meanwhile
            if fetched.error is NO_ERROR:
                current.answers[key] = (offsets[key], fetched)
            elif fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                self.begin_at(key, -1)
            else:
                self.stale = True
        then()

    def complete(self) -> bool:
        """Whether every leader has answered or timed out."""
        return self.round is not None and not self.round.asked

    def take(self) -> tuple[list[ConsumedRecord], dict[TopicPartition, tuple[int, kafka.FetchedPartition]]]:
        """The records of the round, at most max_poll_records, and their responses. Positions move beyond
        them."""
        assert self.round is not None
        room, taken, answers = self.desk.options.max_poll_records, [], self.round.answers
        self.stop()
        for key, (offset, fetched) in sorted(answers.items()):
            records, following = self.shown(key, offset, fetched, room)
            room -= len(records)
            taken += records
            self.positions[key] = following
            if records:
                self.epochs[key] = max(records[-1].leader_epoch, self.epochs.get(key, -1))
        return taken, answers

    def shown(
        self, key: TopicPartition, offset: int, fetched: kafka.FetchedPartition, room: int
    ) -> tuple[list[ConsumedRecord], int]:
        """At most `room` records from `offset` on, and where to go on after them. A reader of committed
        records is not shown aborted ones."""
        found: list[ConsumedRecord] = []
        following, data = offset, fetched.records
        try:
            for header, visible in committed_batches(data, fetched.aborted):
                records = read_records(data, header) if visible else ()
                for record in records:
                    if record.offset < offset:
                        continue
                    if len(found) >= room:
                        return found, following
                    found.append(ConsumedRecord(key, record, header.leader_epoch))
                    following = record.offset + 1
                following = max(following, header.next_offset)
        except CorruptBatchError:
            return found, following  # the rest is asked for again
        return found, following

    @property
    def committed_only(self) -> bool:
        """isolation.level=read_committed."""
        return self.desk.options.isolation == "read_committed"


def _fetch(
    committed: bool, wait_ms: int, wanted: dict[TopicPartition, tuple[int, int]], number: int
) -> kafka.FetchRequest:
    return kafka.FetchRequest(
        correlation_id=number,
        replica_id=-1,
        max_wait=wait_ms * MILLISECOND,
        max_bytes=MAX_BYTES,
        partitions=tuple(
            kafka.FetchPartition(partition=key, offset=offset, leader_epoch=epoch)
            for key, (offset, epoch) in sorted(wanted.items())
        ),
        read_committed=committed,
    )


def _list_offsets(
    committed: bool, key: TopicPartition, epoch: int, timestamp: int, number: int
) -> kafka.ListOffsetsRequest:
    return kafka.ListOffsetsRequest(
        correlation_id=number,
        partition=key,
        leader_epoch=epoch,
        timestamp=timestamp,
        read_committed=committed,
    )
