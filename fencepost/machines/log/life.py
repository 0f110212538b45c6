"""The life of a log under test: its process starts, crashes and stops, and after every start the log is
compared with the model.

Owns the parts that a planted bug replaces, and what a restart may change. Must not know what is written or
removed in between (writing.py, removing.py) or which faults there are (disk_machine.py).
"""

from collections.abc import Callable
from typing import Any, cast

from attrs import frozen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.record_batch import BatchHeader, Record, read_records
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.layout import CLEANER_OFFSETS, EPOCH_CHECKPOINT, LOG_STARTS, RECOVERY_POINTS
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.retention import Retention
from fencepost.impl.log.segmented_log import CLOSED, SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.machines.log.model import Known, LogModel

KEY = TopicPartition("t", 0)
DELETED = "-delete"
"""How the directory of a deleted replica ends."""
DELETE_RETENTION_MS = 100
POLICIES = {"delete": (True, False), "compact": (False, True), "both": (True, True)}
"""cleanup.policy: (delete, compact)."""

DERIVED = (
    ".index",
    ".timeindex",
    ".snapshot",
    EPOCH_CHECKPOINT,
    RECOVERY_POINTS,
    LOG_STARTS,
    CLEANER_OFFSETS,
)
"""Files that say nothing that the batches do not say."""


@frozen(kw_only=True)
class LogParts:
    """What a log is made of; a planted bug replaces one of them."""

    log: type[SegmentedLog] = SegmentedLog
    recovery: type[LogRecovery] = LogRecovery
    directory: type[LogDirectory] = LogDirectory
    retention: type[Retention] = Retention
    cleaner: type[Cleaner] = Cleaner


class LogLife(RuleBasedStateMachine):
    """now_ms: the clock of everybody. written: values so far, so that no two are equal. epoch: of the leader.
    loading_began: files were touched since the last clean stop."""

    parts: LogParts = LogParts()

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
        """Do something that a fault may interrupt; False if it did, and the log is out of service then. Here
        nothing does."""
        action()
        return True

    @initialize(
        policy=st.sampled_from(sorted(POLICIES)),
        segment_bytes=st.sampled_from([300, 160, 600]),
        flush_messages=st.sampled_from([0, 3, 1]),
        retention_bytes=st.sampled_from([0, 400, -1]),
        retention_ms=st.sampled_from([-1, 60]),
        log_append_time=st.booleans(),
    )
    def begin(
        self,
        policy: str,
        segment_bytes: int,
        flush_messages: int,
        retention_bytes: int,
        retention_ms: int,
        log_append_time: bool,
    ) -> None:
        """Open a new log.

        Args:
            policy: cleanup.policy.
            segment_bytes: size of a segment.
            flush_messages: records between two syncs.
            retention_bytes: -1: no bound.
            retention_ms: -1: no bound.
            log_append_time: whether the log stamps records itself.
        """
        delete, compact = POLICIES[policy]
        self.options = LogOptions(
            segment_bytes=segment_bytes,
            index_interval_bytes=80,
            contiguous=not compact,
            flush_messages=flush_messages,
            compact=compact,
            delete=delete,
            retention_bytes=retention_bytes,
            retention_ms=retention_ms,
            delete_retention_ms=DELETE_RETENTION_MS,
            log_append_time=log_append_time,
        )
        self.start(at_least=0)

    # ---- starting

    def start(self, *, at_least: int) -> None:
        """Open the log and compare: at_least is what its end may not be below."""

        found: list[Known] = []

        def opening() -> None:
            self.open_directory()
            found.extend(self.found())

        if not self.survive(opening):
            self.leave()
            return
        log = self.log
        first = log.segments.first.base_offset
        wrong = self.model.complaints(found, first=first, end=log.log_end_offset, at_least=at_least)
        assert not wrong, wrong
        self.model.adopt(found, first=first, end=log.log_end_offset)
        self.model.started_at(log.log_start_offset)

    def open_directory(self) -> None:
        """Load the log as a broker does that starts."""
        self.logs = None
        loaded_before = self.loading_began
        logs = self.watched_directory().start(
            self.files, {KEY: self.options}, log_type=self.parts.log, recovery=self.parts.recovery
        )
        self.logs = logs
        assert not (logs.clean and loaded_before), (
            "taken for clean, though files were loaded since the clean stop"
        )

    def watched_directory(self) -> type[LogDirectory]:
        """The directory's type, made to say when the first log is touched: from there on a crash is a crash
        (KAFKA-10471)."""
        machine, directory_type = self, self.parts.directory

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

    # ---- ending

    def leave(self) -> None:
        """The process is gone; its files are as it left them."""
        if self.logs is not None:
            self.logs.abandon()
        self.logs = None

    def drop_if_offline(self) -> None:
        """What a failed cut left is found out at the next start."""
        if not self.in_service:
            self.leave()

    @rule()
    def crash_and_restart(self) -> None:
        """kill -9: the page cache survives, and with it what the log knows of its producers."""
        end = self.model.end if self.in_service else self.model.durable
        remembered = self.remembered()
        self.leave()
        self.start(at_least=min(end, self.model.end))
        self.still_remembers(remembered)

    @precondition(up)
    @rule()
    def stop_and_restart(self) -> None:
        """A clean stop."""
        remembered = self.remembered()
        whole = self.stop()
        self.leave()
        self.start(at_least=self.model.durable)
        if whole:
            self.still_remembers(remembered)

    def stop(self) -> bool:
        """Close the log; whether that was done whole, even if a fault struck later on."""
        assert self.logs is not None
        log = self.log
        self.survive(self.logs.close)
        if log.offline != CLOSED:
            return False
        self.model.durable = self.model.end
        self.loading_began = False
        return True

    @precondition(up)
    @rule(kinds=st.lists(st.sampled_from(DERIVED), min_size=1, max_size=3, unique=True), stop=st.booleans())
    def lose_derived_files(self, kinds: list[str], stop: bool) -> None:
        """An administrator removes what can be made again, after a clean stop or a crash."""
        end = self.model.end
        lost = stop and not self.stop()
        self.leave()
        doomed = [path for path in self.paths() if path.endswith(tuple(kinds))]

        def remove() -> None:
            for path in doomed:
                self.files.remove(path)

        lost = not self.survive(remove) or lost
        self.start(at_least=self.model.durable if lost else end)

    def paths(self) -> list[str]:
        """Every file of the log and the checkpoints."""
        top = [name for name in self.files.list("") if name != str(KEY) and not name.endswith(DELETED)]
        return top + [f"{KEY}/{name}" for name in self.files.list(str(KEY))]

    # ---- what a restart must not forget

    def remembered(self) -> dict[int, tuple[int, int]]:
        """Epoch and last sequence of each producer, where the log is in service and nothing has lied."""
        if not self.in_service or self.model.lied:
            return {}
        known = self.log.producers.producers
        return {producer: (state.epoch, state.last_sequence) for producer, state in known.items()}

    def still_remembers(self, remembered: dict[int, tuple[int, int]]) -> None:
        """Producers whose batches were deleted are in the snapshots (KIP-360), the others in the batches
        too."""
        now = self.remembered()
        if self.in_service and remembered:
            assert now == remembered, f"producers before the restart: {remembered}, after it: {now}"

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
            producer_epoch=header.producer_epoch,
            sequence=header.base_sequence,
        )

    def teardown(self) -> None:
        """Release the files."""
        self.leave()
