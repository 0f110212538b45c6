"""Bits that turn over on the simulated disk, in every kind of file that a log directory has.

Owns what may be left then. Never a record that nobody wrote, never an error that is not a FencepostError. Per
kind of file, and what Kafka does:

- Batches: read from the recovery point on and cut at the first bad checksum, as in Kafka. Below it nobody
  looks before somebody reads: the reader, the cleaner and a follower refuse the batch (Kafka:
  CorruptRecordException, a partition that is not cleanable, KIP-346). Base offset and leader epoch are
  outside the checksum: a batch may be found displaced or in another epoch where gaps are allowed, in Kafka as
  here.
- Offset index: an entry that leads to no batch, or to one that is too late, makes the index anew. Time index:
  only its order and form are checked, so that a look-up may answer a later record until the index is made
  anew, in Kafka as here.
- Producer snapshot: has a checksum; a bad one counts as none and the batches are asked. Kafka removes it
  likewise.
- Epoch checkpoint, recovery points, log starts, cleaner offsets: text without a checksum. What cannot be
  parsed counts as empty, which costs only time; Kafka does so for recovery points and log starts, and takes
  the log directory offline for a malformed epoch checkpoint, which here is made again out of the batches. A
  digit that became another digit is believed, in Kafka as here: records below a log start that is too high
  are gone.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fencepost.impl.log.batch.header import LENGTH_END, MAGIC_AT
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.log.layout import (
    CLEANER_OFFSETS,
    EPOCH_CHECKPOINT,
    INDEX,
    LOG,
    LOG_STARTS,
    RECOVERY_POINTS,
    SNAPSHOT,
    TIME_INDEX,
)
from fencepost.machines.log.disk_machine import FaultyDiskMachine
from fencepost.machines.log.life import KEY
from fencepost.sim.disk import RottenBit
from fencepost.traces.errors import FencepostError

BASE_OFFSET_BYTES = 8
MOST_READS = 60
"""A rotten base offset may put the end of a log anywhere."""
KINDS = (
    LOG,
    LOG,
    INDEX,
    TIME_INDEX,
    SNAPSHOT,
    EPOCH_CHECKPOINT,
    RECOVERY_POINTS,
    LOG_STARTS,
    CLEANER_OFFSETS,
)
BELIEVED = (EPOCH_CHECKPOINT, LOG_STARTS)
"""A digit in them that became another one changes what the log answers."""


class DiskMachine(FaultyDiskMachine):
    """All that can go wrong on a disk."""

    def well(self) -> bool:
        """For preconditions: the log is in service and no fault waits."""
        return self.in_service and not self.armed

    @precondition(lambda self: self.well() and not self.model.lied)
    @rule(kind=st.sampled_from(KINDS), pick=st.integers(0, 10), stop=st.booleans())
    def rot(self, kind: str, pick: int, stop: bool) -> None:
        """A bit turns over while the log is closed, after a clean stop or a crash, and everything is read at
        the start that has batches: what is left is a clean prefix, and of all other files nothing is
        missed."""
        end = self.model.end
        if stop and kind != LOG:
            self.stop_and_restart()
        self.leave()
        paths = [path for path in self.paths() if path.endswith(kind)]
        rotten = self.turn(paths, pick)
        if rotten is None or kind == LOG:
            if self.disk.exists(RECOVERY_POINTS):
                self.disk.remove(RECOVERY_POINTS)
            end = self.model.durable = 0
        if kind in BELIEVED:
            end, self.model.lied = 0, True
        self.start(at_least=end)
        if kind in (LOG, *BELIEVED):
            self.epoch += 1  # no later batch is taken for one from before
            self.model.lied = True  # the leader epoch of a batch is outside its checksum
            self.forget_lies()
        elif kind in (INDEX, TIME_INDEX):
            self.rebuild_indexes()
        elif kind == RECOVERY_POINTS:
            self.checkpoint()
        elif kind == CLEANER_OFFSETS and self.logs is not None:
            self.logs.first_dirty.pop(KEY, None)
            self.checkpoint()

    def turn(self, paths: list[str], pick: int) -> RottenBit | None:
        """Turn over one bit of one of these files, and say what the model must expect if no checksum covers
        it.

        Args:
            paths: the files.
            pick: which file, modulo their count.

        Returns:
            The bit; None if there is none to turn over.
        """
        if not paths:
            return None
        path = paths[pick % len(paths)]
        before = self.disk.open(path).read_at(0, 1 << 20)
        rotten = self.disk.rot_bit(path)
        if rotten is not None and path.endswith(LOG):
            self.expect_displaced(before, self.disk.open(path).read_at(0, 1 << 20), rotten.position)
        return rotten

    def expect_displaced(self, before: bytes, after: bytes, position: int) -> None:
        """Expect what a rotten base offset does: it moves its batch to where offsets may have gaps. Its
        leader epoch may be anything.

        Args:
            before: the file.
            after: the file with the bit turned over.
            position: of the bit's byte.
        """
        start = 0
        while start + LENGTH_END <= position:
            size = LENGTH_END + int.from_bytes(before[start + BASE_OFFSET_BYTES : start + LENGTH_END], "big")
            if start + size > position:
                break
            start += size
        if position - start < MAGIC_AT:
            self.model.lied = True
            first, moved = (
                int.from_bytes(data[start : start + BASE_OFFSET_BYTES], "big") for data in (before, after)
            )
            self.model.may_be_displaced(first, moved)

    def rebuild_indexes(self) -> None:
        """Make all indexes anew."""
        if self.logs is None:
            return
        log = self.log

        def rebuild() -> None:
            for segment in log.segments.all:
                segment.rebuild_indexes()
                if segment is not log.segments.active:
                    segment.seal()

        self.survive(rebuild)

    @precondition(lambda self: self.in_service and len(self.log.segments) > 1)
    @rule(pick=st.integers(0, 30), ahead=st.integers(0, 8))
    def rot_index(self, pick: int, ahead: int) -> None:
        """A bit turns over in the offset index of an old segment of a log in service. Readers find the
        records all the same.

        Args:
            pick: which old segment, modulo their count.
            ahead: how many offsets after the segment's first the reader begins.
        """
        old = self.log.segments.all[pick % (len(self.log.segments) - 1)]
        old.release()
        self.disk.rot_bit(old.offsets.path)
        self.read(back=self.model.end - old.base_offset - ahead, bound_back=0)

        def repair() -> None:
            old.rebuild_indexes()
            old.seal()

        if self.in_service:
            self.survive(repair)

    @precondition(lambda self: self.well() and not self.model.lied)
    @rule(
        pick=st.integers(0, 10),
        bits=st.integers(1, 3),
        restart=st.sampled_from(["", "crash", "stop"]),
        ms=st.integers(0, 100),
    )
    def rot_unseen(self, pick: int, bits: int, restart: str, ms: int) -> None:
        """Bits turn over in batches that no start reads. Each request is answered out of what was written, or
        refused in a sentence.

        Args:
            pick: in which file the first bit is, modulo their count; each further bit is in the next one.
            bits: how many.
            restart: "crash" or "stop": the log is closed before and opened after; "": it stays open.
            ms: virtual milliseconds that pass.
        """
        self.flush()
        self.checkpoint()
        self.model.lied = True
        asked = [self.read_all, self.read_whole, self.read_late, self.clean_and_retain, self.cut]
        try:
            if restart == "stop":
                self.stop()
            if restart:
                self.leave()
            for bit in range(bits):
                self.turn([path for path in self.paths() if path.endswith(LOG)], pick + bit)
            if restart:
                self.open_directory()
                self.model.adopt([], first=0, end=self.log.log_end_offset)
                self.model.start = self.log.log_start_offset
            self.now_ms += ms
        except FencepostError:
            self.leave()
        for question in asked:
            try:
                if self.in_service:
                    question()
            except FencepostError:
                continue
        self.throw_away()

    def throw_away(self) -> None:
        """The replica is deleted and begins anew."""
        self.leave()
        for path in self.paths():
            self.disk.remove(path)
        self.disk.sync_directory(str(KEY))
        self.disk.sync_directory("")
        self.model.restart_at(0)
        self.model.anywhere = True
        self.model.displaced.clear()
        self.model.lied, self.loading_began = False, False
        self.epoch += 1
        self.start(at_least=0)

    # ---- questions to a log with rotten batches

    def read_all(self) -> None:
        """Every record there is was written."""
        for one in self.found():
            assert one in self.model.ever.get(one.offset, []), f"invented: {one}"

    def read_whole(self) -> None:
        """From each offset on, with the checks of a reader."""
        behind = self.model.end - self.log.log_start_offset
        for back in range(0, min(behind, MOST_READS), 2):
            try:
                self.read(back=back, bound_back=0)
            except FencepostError:
                continue

    def read_late(self) -> None:
        """The latest timestamps."""
        for back_ms in (0, 20, 100):
            found = self.log.find_timestamp(self.now_ms - back_ms, end_offset=self.model.end)
            offsets = self.model.ever.get(found.offset, []) if found else []
            assert not found or any(found.value == one.value for one in offsets), f"invented: {found}"

    def clean_and_retain(self) -> None:
        """The background work of a broker."""
        self.model.high_watermark = self.model.end
        self.roll()
        if self.options.compact:
            self.compact(ms=100)
        self.retain(ms=100)

    def cut(self) -> None:
        """As a follower whose leader knows less."""
        self.model.high_watermark = 0
        self.truncate(back=3)
        for header, data in self.log.batches(check_crc=True):
            read_records(data, header)
