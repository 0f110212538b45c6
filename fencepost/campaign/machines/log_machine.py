"""A Hypothesis state machine that does to a log whatever a broker and a disk can do to it, and compares with a plain mapping after every step.

Owns the rules. What it holds the log to:

- What was flushed is there after any crash; what was not is a clean prefix; nothing is invented; what was cut stays cut.
- After an error of the disk the log refuses work until it is opened anew.
- Retention and compaction remove what they may and nothing else, whatever interrupts them.
- A batch that was sent twice is recognised, before and after a restart; one that never got in is not.

`LogMachine` needs nothing but a file system and a process that can die; `DiskMachine` has the faults of the simulated disk on top.
"""

from collections.abc import Callable
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fencepost.campaign.machines.log_model import Known, LogModel
from fencepost.impl.files import FileSystem
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.record_batch import (
    BatchHeader,
    CorruptBatchError,
    Record,
    encode_batch,
    read_headers,
    read_records,
)
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.retention import Retention
from fencepost.impl.log.segmented_log import CLOSED, SegmentedLog
from fencepost.impl.messages import TopicPartition

KEY = TopicPartition("t", 0)
KEYS = st.sampled_from(["a", "b", "c"])
PRODUCERS = st.sampled_from([None, 7, 8])
DELETE_RETENTION_MS = 100
READ_BYTES = 150


class LogMachine(RuleBasedStateMachine):
    """Rules for any file system. The parts can be replaced in a subclass, which is how planted bugs get in."""

    log_type: type[SegmentedLog] = SegmentedLog
    recovery_type: type[LogRecovery] = LogRecovery
    directory_type: type[LogDirectory] = LogDirectory
    retention_type: type[Retention] = Retention
    cleaner_type: type[Cleaner] = Cleaner

    def __init__(self) -> None:
        super().__init__()
        self.files = self.make_files()
        self.model = LogModel()
        self.logs: LogDirectory | None = None
        self.now_ms = 1_000
        self.written = 0
        self.epoch = 0
        self.loading_began = False

    def make_files(self) -> FileSystem:
        """An empty file system."""
        raise NotImplementedError

    def survive(self, action: Callable[[], Any]) -> bool:
        """Do something that a fault may interrupt; False if it did, and the log is out of service then. Here nothing does."""
        action()
        return True

    # ---- the life of the process

    @initialize(compact=st.booleans(), flush_messages=st.sampled_from([0, 3]), log_append_time=st.booleans())
    def begin(self, compact: bool, flush_messages: int, log_append_time: bool) -> None:
        """A new log."""
        self.options = LogOptions(
            segment_bytes=300,
            index_interval_bytes=80,
            flush_messages=flush_messages,
            compact=compact,
            delete=not compact,
            retention_bytes=0,
            delete_retention_ms=DELETE_RETENTION_MS,
            log_append_time=log_append_time,
        )
        self.start(at_least=0)

    def start(self, *, at_least: int) -> None:
        """Open the log and compare: at_least is what its end may not be below."""

        found: list[Known] = []

        def opening() -> None:
            self.logs = None
            loaded_before = self.loading_began
            logs = self.watched_directory().start(
                self.files, {KEY: self.options}, log_type=self.log_type, recovery=self.recovery_type
            )
            self.logs = logs
            assert not (logs.clean and loaded_before), (
                "taken for clean, though files were loaded since the clean stop"
            )
            found.extend(self.found())

        if not self.survive(opening):
            self.leave()
            return
        log = self.log
        first = log.segments.first.base_offset
        wrong = self.model.complaints(found, first=first, end=log.log_end_offset, at_least=at_least)
        assert not wrong, wrong
        self.model.adopt(found, first=first, end=log.log_end_offset)
        self.model.start = log.log_start_offset

    def watched_directory(self) -> type[LogDirectory]:
        """The directory's type, made to say when the first log is touched: from there on a crash is a crash (KAFKA-10471)."""
        machine, directory_type = self, self.directory_type

        class Watched(directory_type):  # type: ignore[valid-type, misc]
            def open(self, *arguments: Any) -> SegmentedLog:
                machine.loading_began = True
                return cast(SegmentedLog, super().open(*arguments))

        return cast(type[LogDirectory], Watched)

    @property
    def log(self) -> SegmentedLog:
        """The log, which must be open."""
        assert self.logs is not None
        return self.logs.logs[KEY]

    @property
    def in_service(self) -> bool:
        """Whether the log is open and no fault has struck."""
        return self.logs is not None and not self.log.offline

    def up(self) -> bool:
        """For preconditions."""
        return self.in_service

    def leave(self) -> None:
        """The process is gone; its files are as it left them."""
        if self.logs is not None:
            self.logs.abandon()
        self.logs = None

    @rule()
    def crash_and_restart(self) -> None:
        """kill -9: the page cache survives."""
        end = self.model.end if self.in_service else self.model.durable
        self.leave()
        self.start(at_least=min(end, self.model.end))

    @precondition(up)
    @rule()
    def stop_and_restart(self) -> None:
        """A clean stop."""
        assert self.logs is not None
        log = self.log
        self.survive(self.logs.close)
        if log.offline == CLOSED:  # whole, even if a fault struck later on
            self.model.durable = self.model.end
            self.loading_began = False
        self.leave()
        self.start(at_least=self.model.durable)

    # ---- writing

    @precondition(up)
    @rule(
        keys=st.lists(KEYS, min_size=1, max_size=3),
        tombstone=st.booleans(),
        producer=PRODUCERS,
        ms=st.integers(0, 60),
    )
    def append(self, keys: list[str], tombstone: bool, producer: int | None, ms: int) -> None:
        """One batch as the leader. tombstone: its first record."""
        self.now_ms += ms
        base, sequence = self.model.end, self.next_sequence(producer)
        batch = []
        for index, key in enumerate(keys):
            self.written += 1
            batch.append(
                Known(
                    offset=base + index,
                    key=key.encode(),
                    value=None if tombstone and index == 0 else b"%d" % self.written,
                    timestamp_ms=self.now_ms,
                    first=base,
                    last=base + len(keys) - 1,
                    producer_id=-1 if producer is None else producer,
                    sequence=sequence,
                )
            )
        self.model.try_append(batch)
        if self.survive(lambda: self.log.append_as_leader(produced(batch), self.epoch, now_ms=self.now_ms)):
            self.acknowledge(base + len(keys))

    @precondition(up)
    @rule(
        batches=st.lists(st.lists(KEYS, min_size=1, max_size=3), min_size=2, max_size=8), producer=PRODUCERS
    )
    def append_many(self, batches: list[list[str]], producer: int | None) -> None:
        """Several batches, so that there are several segments."""
        for keys in batches:
            if self.in_service:
                self.append(keys=keys, tombstone=len(keys) == 2, producer=producer, ms=len(keys))

    def acknowledge(self, end: int) -> None:
        """The log ends here now."""
        self.model.end = end
        if self.options.flush_messages and end - self.log.recovery_point >= self.options.flush_messages:
            raise AssertionError("flush.messages is due")
        self.model.durable = max(self.model.durable, self.log.recovery_point)

    def next_sequence(self, producer: int | None) -> int:
        """What the producer sends next: after its last batch in the log."""
        if producer is None:
            return -1
        last, state = self.last_of(producer), self.log.producers.producers.get(producer)
        if last is None:  # its batches were deleted; the log may remember it all the same
            return 0 if state is None else state.last_sequence + 1
        return last.sequence + last.last - last.first + 1

    def last_of(self, producer: int) -> Known | None:
        """A record of the last batch of a producer, as far as the model knows."""
        mine = [
            one
            for offset, one in sorted(self.model.records.items())
            if one.producer_id == producer and offset < self.model.end
        ]
        return mine[-1] if mine else None

    @precondition(up)
    @rule(producer=st.sampled_from([7, 8]))
    def retry(self, producer: int) -> None:
        """The last batch once more: it is recognised."""
        last = self.last_of(producer)
        if last is None or last.first < self.log.segments.first.base_offset:
            return
        records = [one for one in self.model.ever[last.offset] if one == last]
        batch = [replayed(records[0], offset) for offset in range(last.first, last.last + 1)]
        answers = []
        if self.survive(lambda: answers.append(self.log.append_as_leader(produced(batch), self.epoch))):
            assert (answers[0].duplicate, answers[0].base_offset, answers[0].last_offset) == (
                True,
                last.first,
                last.last,
            ), answers

    @precondition(up)
    @rule()
    def flush(self) -> None:
        """Make it durable."""
        if self.survive(self.log.flush):
            self.model.durable = self.model.end

    @precondition(up)
    @rule()
    def roll(self) -> None:
        """Begin a new segment."""
        if self.survive(self.log.roll):
            self.model.durable = max(self.model.durable, self.log.recovery_point)

    @precondition(up)
    @rule()
    def checkpoint(self) -> None:
        """Write recovery point, log start and the cleaner's offset."""
        assert self.logs is not None
        if not self.survive(self.logs.checkpoint):
            self.leave()

    @precondition(up)
    @rule()
    def new_epoch(self) -> None:
        """A new leader."""
        self.epoch += 1

    # ---- removing

    @precondition(up)
    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        """Cut so many offsets before the end (or all of them)."""
        committed = self.model.high_watermark if self.options.compact else 0  # what superseded a record stays
        logs, offset = self.logs, max(self.log.log_start_offset, self.model.end - back, committed)
        assert logs is not None
        end = self.model.batch_start(offset)
        if end < self.log.segments.first.base_offset:
            return
        self.model.may_cut(end)
        if self.survive(lambda: logs.truncate_to(KEY, offset)):
            self.model.cut(self.log.log_end_offset)
            assert end <= self.log.log_end_offset <= offset
        self.drop_if_offline()

    def drop_if_offline(self) -> None:
        """What a failed cut left is found out at the next start."""
        if not self.in_service:
            self.leave()

    @precondition(up)
    @rule(ahead=st.integers(-3, 20))
    def truncate_fully(self, ahead: int) -> None:
        """Drop everything and go on elsewhere."""
        logs, offset = self.logs, max(0, self.model.end + ahead)
        assert logs is not None
        self.model.may_cut(0)
        self.model.anywhere = True
        if self.survive(lambda: logs.truncate_fully_and_start_at(KEY, offset)):
            self.model.restart_at(offset)

    @precondition(up)
    @rule(share=st.integers(0, 4))
    def commit(self, share: int) -> None:
        """The high watermark moves up: by no, one, ... all quarters of what is missing."""
        self.model.high_watermark += (self.model.end - self.model.high_watermark) * share // 4

    @precondition(up)
    @rule()
    def retain(self) -> None:
        """Remove what is committed, as far as whole segments go."""
        self.model.deletable_below = max(self.model.deletable_below, self.model.start)
        if not self.options.compact:
            self.model.deletable_below = max(self.model.deletable_below, self.model.high_watermark)
        retention = self.retention_type(self.log)
        if self.survive(
            lambda: retention.apply(high_watermark=self.model.high_watermark, now_ms=self.now_ms)
        ):
            self.model.start = self.log.log_start_offset
            self.model.durable = max(self.model.durable, self.log.recovery_point)

    @precondition(up)
    @rule(share=st.integers(1, 4))
    def delete_records(self, share: int) -> None:
        """Move the log start up to a part of what is committed."""
        start = self.log.log_start_offset
        offset = start + max(0, self.model.high_watermark - start) * share // 4
        if self.survive(lambda: self.log.advance_log_start_offset(offset)):
            self.model.start = self.log.log_start_offset
            self.model.deletable_below = max(self.model.deletable_below, offset)

    @precondition(lambda self: self.in_service and self.options.compact)
    @rule(ms=st.integers(0, 150))
    def compact(self, ms: int) -> None:
        """Keep the latest record of each key."""
        self.now_ms += ms
        logs, model = self.logs, self.model
        assert logs is not None
        below = min(model.high_watermark, self.log.segments.active.base_offset)
        model.may_compact(below, self.now_ms, DELETE_RETENTION_MS)
        model.compacted(below, self.now_ms)
        before, cleaner = self.now_ms, self.cleaner_type(self.log)

        def cleaning() -> None:
            done = cleaner.clean(
                first_dirty_offset=min(logs.first_dirty.get(KEY, 0), self.log.log_end_offset),
                high_watermark=model.high_watermark,
                now_ms=before,
            )
            logs.first_dirty[KEY] = done.first_dirty_offset
            present = {one.offset for one in self.found()}
            stale = {
                one
                for one in model.superseded(done.first_dirty_offset)
                if one in present and one >= model.start
            }
            assert not stale, f"superseded and still there: {sorted(stale)}"

        self.survive(cleaning)

    # ---- looking

    def found(self) -> list[Known]:
        """What the log holds, read whole with every checksum."""
        found = []
        for header, data in self.log.batches(check_crc=True):
            found += [self.known(header, record) for record in read_records(data, header)]
        return found

    def known(self, header: BatchHeader, record: Record) -> Known:
        """A record as the model writes it."""
        return Known(
            offset=record.offset,
            key=record.key or b"",
            value=record.value,
            timestamp_ms=record.timestamp_ms,
            first=header.base_offset,
            last=header.last_offset,
            producer_id=header.producer_id,
            sequence=header.base_sequence,
        )

    @precondition(up)
    @invariant()
    def agrees(self) -> None:
        """The log is what the model says."""
        log, model = self.log, self.model
        assert (log.log_end_offset, log.log_start_offset) == (model.end, model.start)
        try:
            found, batches = self.found(), [header for header, _ in log.batches()]
        except CorruptBatchError as error:
            raise AssertionError(f"a batch in the log is bad: {error}") from error
        except OSError:
            return
        first = log.segments.first.base_offset
        assert not (
            wrong := model.complaints(found, first=first, end=log.log_end_offset, at_least=model.end)
        ), wrong
        for producer in (7, 8):
            state, last = log.producers.producers.get(producer), self.last_of(producer)
            if last is not None and last.first >= first and not model.lied:
                assert state is not None, f"producer {producer} is forgotten, and {last} is in the log"
                assert state.last_sequence == last.sequence + last.last - last.first, (state, last)
            ahead = state is not None and any(
                batch.last_offset >= log.log_end_offset for batch in state.batches
            )
            assert not ahead, f"producer ahead of the log: {state}"
        if not model.lied:
            self.epochs_agree(batches)

    def epochs_agree(self, batches: list[BatchHeader]) -> None:
        """Each batch's epoch is the one that the cache has for its offset."""
        entries, start = self.log.epochs.entries, self.log.log_start_offset
        for header in batches:
            began = [entry for entry in entries if entry[1] <= max(header.base_offset, start)]
            if header.last_offset >= start:
                assert began and began[-1][0] == header.leader_epoch, (header, entries)

    @precondition(up)
    @rule(offset=st.integers(0, 60), bound=st.integers(0, 60))
    def read(self, offset: int, bound: int) -> None:
        """From an offset, up to a bound."""
        log = self.log
        start = max(offset, log.log_start_offset)
        answers: list[bytes] = []
        if not self.survive(lambda: answers.append(log.read(start, max_bytes=READ_BYTES, end_offset=bound))):
            return
        headers = list(read_headers(answers[0]))
        got = [self.known(header, one) for header in headers for one in read_records(answers[0], header)]
        assert all(self.model.records.get(one.offset) == one for one in got), got
        assert all(header.last_offset < bound for header in headers)
        expected = self.model.records.get(start)
        if (
            expected is not None
            and start not in self.model.removable
            and expected.last < min(bound, self.model.end)
        ):
            assert start in [one.offset for one in got], f"{expected} is not in what was read"

    @precondition(lambda self: self.in_service and not self.model.lied)
    @rule(back_ms=st.integers(-10, 400))
    def look_up(self, back_ms: int) -> None:
        """The first record as late as a timestamp."""
        wanted, log = self.now_ms - back_ms, self.log

        def looking() -> None:
            found = log.find_timestamp(wanted, end_offset=log.log_end_offset)
            start = log.log_start_offset
            late = [one.offset for one in self.found() if one.timestamp_ms >= wanted and one.offset >= start]
            assert (found.offset if found else None) == min(late, default=None), (found, late)

        self.survive(looking)

    def teardown(self) -> None:
        """Release the files."""
        self.leave()


def replayed(record: Known, offset: int) -> Known:
    """A record of the same batch with the same sequence numbers; duplicates are known by those alone."""
    return Known(
        offset=offset, key=record.key, value=record.value, timestamp_ms=record.timestamp_ms,
        first=record.first, last=record.last, producer_id=record.producer_id, sequence=record.sequence,
    )  # fmt: skip


def produced(batch: list[Known]) -> bytes:
    """A batch as its producer sends it: offsets count from 0."""
    first = batch[0]
    return encode_batch(
        [Record(one.offset - first.first, one.timestamp_ms, one.key, one.value) for one in batch],
        base_offset=0,
        leader_epoch=-1,
        producer_id=first.producer_id,
        producer_epoch=-1 if first.producer_id < 0 else 0,
        base_sequence=first.sequence,
    )
