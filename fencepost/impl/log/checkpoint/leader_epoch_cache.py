"""The leader epoch cache: the start offset of each leader epoch of a log (KIP-101).

Owns the entries and their checkpoint. Must not know the log's bytes. Entries are strictly increasing in epoch
and not decreasing in start offset. A new entry removes older ones that contradict it (KAFKA-7415).
"""

from attrs import define, field

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.checkpoint.checkpoint_file import format_lines, parse_lines, read_file, replace_file
from fencepost.impl.log.layout import EPOCH_CHECKPOINT

UNDEFINED = (-1, -1)
"""No epoch, no offset: the log has no answer."""


@define
class LeaderEpochCache:
    """entries: (epoch, start offset), oldest first. They change when a new epoch is appended, at an election
    and at a truncation, and are then checkpointed."""

    files: FileSystem
    directory: str
    entries: list[tuple[int, int]] = field(factory=list)

    def load(self) -> None:
        """Read the checkpoint."""
        self.entries = parse_lines(read_file(self.files, f"{self.directory}/{EPOCH_CHECKPOINT}"), _decode)

    def latest_epoch(self) -> int:
        """The epoch of the last entry; -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Epoch `epoch` begins at `start_offset`. No effect if it is already the latest one."""
        if self.entries and self.entries[-1][0] == epoch:
            return
        kept = [entry for entry in self.entries if entry[0] < epoch and entry[1] < start_offset]
        self.entries = [*kept, (epoch, start_offset)]
        self._checkpoint()

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch <= `epoch`, its end offset); UNDEFINED if this log does not know it (KIP-279).

        An epoch below the first entry ends where the first entry begins. An epoch above the latest is not
        known here.
        """
        if not self.entries or epoch < 0 or epoch > self.entries[-1][0]:
            return UNDEFINED
        if epoch == self.entries[-1][0]:
            return epoch, log_end_offset
        floor, end = epoch, self.entries[0][1]
        for index, (known, _) in enumerate(self.entries):
            if known <= epoch:
                floor, end = known, self.entries[index + 1][1]
        return floor, end

    def epoch_of(self, offset: int) -> int:
        """The epoch of the record at `offset`; -1 if it is before the first entry."""
        return max((epoch for epoch, start in self.entries if start <= offset), default=-1)

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that began at or after `end_offset`, even if no record is truncated (KAFKA-10706)."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if kept != self.entries:
            self.entries = kept
            self._checkpoint()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that ended at or before `start_offset`. The epoch that spans it now begins there
        (retention)."""
        later = [entry for entry in self.entries if entry[1] > start_offset]
        earlier = self.entries[: len(self.entries) - len(later)]
        kept = [(earlier[-1][0], max(earlier[-1][1], start_offset)), *later] if earlier else later
        if kept != self.entries:
            self.entries = kept
            self._checkpoint()

    def rebuild(self, entries: list[tuple[int, int]]) -> None:
        """Replace all entries (recovery: the log's batches are the truth)."""
        if entries != self.entries:
            self.entries = entries
            self._checkpoint()

    def _checkpoint(self) -> None:
        lines = [f"{epoch} {start}" for epoch, start in self.entries]
        replace_file(self.files, self.directory, EPOCH_CHECKPOINT, format_lines(lines))


def _decode(words: list[str]) -> tuple[int, int]:
    epoch, start = words
    return int(epoch), int(start)
