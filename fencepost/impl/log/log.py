"""The log of one replica: an append-only file of batches.

Owns the file, the offsets and the epoch cache. Must not know leaders, followers, high watermarks or time. The in-memory index holds one entry per
batch; recovery scans the file, cuts a torn tail and rebuilds it.
"""

from bisect import bisect_right
from typing import Self

from attrs import define, field

from fencepost.impl.files import File, FileSystem
from fencepost.impl.log.epochs import LeaderEpochCache
from fencepost.impl.log.records import Batch, CorruptBatchError, decode_batches, encode_batch
from fencepost.traces.errors import FencepostError

LOG_FILE = "00000000000000000000.log"


class UnexpectedOffsetError(FencepostError):
    """A leader sent batches that do not continue this log."""


@define
class Log:
    """log_end_offset: the offset that the next record gets; moves on append and truncation. log_start_offset <= log_end_offset.
    bases, positions: base offset and byte position of every batch, in order. unflushed: records since the last fsync."""

    files: FileSystem
    directory: str
    file: File
    epochs: LeaderEpochCache
    flush_messages: int
    log_start_offset: int = 0
    log_end_offset: int = 0
    size: int = 0
    unflushed: int = 0
    bases: list[int] = field(factory=list)
    positions: list[int] = field(factory=list)

    @classmethod
    def open(
        cls, files: FileSystem, directory: str, *, flush_messages: int, epoch_cache: type[LeaderEpochCache]
    ) -> Self:
        """Open or create the log in `directory` and recover it."""
        path = f"{directory}/{LOG_FILE}"
        if not files.exists(path):
            files.make_directory(directory)
            files.sync_directory("")
        file = files.open(path)
        if not file.size():
            files.sync_directory(
                directory
            )  # also if an earlier process made the file and died before this line
        epochs = epoch_cache(files, directory)
        epochs.load()
        log = cls(files, directory, file, epochs, flush_messages)
        log.recover()
        return log

    # ---- writing

    def append_as_leader(self, values: tuple[int, ...], leader_epoch: int) -> int:
        """Append one batch at the log end offset; returns its base offset."""
        base_offset = self.log_end_offset
        self.epochs.assign(leader_epoch, base_offset)
        self._write(encode_batch(base_offset, leader_epoch, values), base_offset, len(values))
        return base_offset

    def append_as_follower(self, data: bytes) -> list[Batch]:
        """Append the batches that a leader sent, as they are; returns them. Raises UnexpectedOffsetError if they do not begin at the log end offset."""
        batches = list(decode_batches(data))
        if batches and batches[0].base_offset != self.log_end_offset:
            raise UnexpectedOffsetError(
                expected=f"a batch at the log end offset {self.log_end_offset}",
                seen=f"one at {batches[0].base_offset}",
                where=f"append to {self.directory}",
            )
        for batch in batches:
            assert batch.base_offset == self.log_end_offset, (batch.base_offset, self.log_end_offset)
            if batch.leader_epoch != self.epochs.latest_epoch():
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
            self._write(
                data[batch.position : batch.position + batch.size], batch.base_offset, len(batch.values)
            )
        return batches

    def flush(self) -> None:
        """Make everything appended so far durable."""
        self.file.sync()
        self.unflushed = 0

    def truncate_to(self, offset: int) -> None:
        """Cut the log so that it ends at `offset`, or at the start of the batch that holds it; never extends it."""
        index = bisect_right(self.bases, offset)
        if index and self._next_offset(index - 1) > offset:
            index -= 1
        if index < len(self.bases):
            self.size = self.positions[index]
            self.log_end_offset = self.bases[index]
            self.file.truncate(self.size)
            self.file.sync()
            del self.bases[index:], self.positions[index:]
        self.epochs.truncate_from_end(self.log_end_offset)

    # ---- reading

    def read(self, offset: int, *, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that holds `offset`, as many as end at or below `end_offset` and fit `max_bytes` (at least one)."""
        if offset >= end_offset or not self.bases:
            return b""
        first = bisect_right(self.bases, offset) - 1
        last = bisect_right(self.bases, end_offset - 1) - 1
        if self._next_offset(last) > end_offset:
            last -= 1
        if last < first:
            return b""
        start = self.positions[first]
        end = self._end_position(last)
        if end - start > max_bytes:
            last = max(first, bisect_right(self.positions, start + max_bytes) - 2)
            end = self._end_position(last)
        return self.file.read_at(start, end - start)

    def batches(self) -> list[Batch]:
        """Every batch of the log."""
        return list(decode_batches(self.file.read_at(0, self.size)))

    def runs(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """(leader epoch, base offset, values) of each run of records of one epoch; one empty run for an empty log."""
        runs: list[tuple[int, int, tuple[int, ...]]] = []
        for batch in self.batches():
            if runs and runs[-1][0] == batch.leader_epoch:
                epoch, base, values = runs[-1]
                runs[-1] = (epoch, base, values + batch.values)
            else:
                runs.append((batch.leader_epoch, batch.base_offset, batch.values))
        return runs or [(-1, self.log_end_offset, ())]

    # ---- recovery

    def recover(self) -> None:
        """Scan the file, cut what follows the last whole batch, rebuild index and epochs from the batches."""
        data = self.file.read_at(0, self.file.size())
        entries: list[tuple[int, int]] = []
        self.bases, self.positions, self.size, self.log_end_offset = [], [], 0, 0
        try:
            for batch in decode_batches(data):
                if batch.base_offset != self.log_end_offset:
                    break
                self.bases.append(batch.base_offset)
                self.positions.append(batch.position)
                self.size = batch.position + batch.size
                self.log_end_offset = batch.next_offset
                if not entries or entries[-1][0] != batch.leader_epoch:
                    entries.append((batch.leader_epoch, batch.base_offset))
        except CorruptBatchError:
            pass  # what was torn was never synced: the log ends at the last whole batch
        if self.size < len(data):
            self.file.truncate(self.size)
            self.file.sync()
        self.epochs.rebuild(entries)

    # ---- internals

    def _write(self, data: bytes, base_offset: int, count: int) -> None:
        position = self.file.append(data)
        assert position == self.size, (position, self.size)
        self.bases.append(base_offset)
        self.positions.append(position)
        self.size += len(data)
        self.log_end_offset = base_offset + count
        self.unflushed += count
        if self.flush_messages and self.unflushed >= self.flush_messages:
            self.flush()

    def _end_position(self, index: int) -> int:
        return self.positions[index + 1] if index + 1 < len(self.positions) else self.size

    def _next_offset(self, index: int) -> int:
        return self.bases[index + 1] if index + 1 < len(self.bases) else self.log_end_offset
