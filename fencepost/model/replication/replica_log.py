"""A replica's log according to a trace: epochs and values by offset, with the records that a power loss made
unknown.

Owns one mutable log, which is fed with recorded appends, truncations and recoveries. Must not know roles,
guards or verdicts: refinement.py and the invariants of checkers/ read it.
"""

from collections.abc import Sequence

from attrs import define, field

from fencepost.traces.errors import TraceError

MOST_RECORDS = 10_000_000
"""Offsets of a log that is followed record by record: 160 MB of memory for each replica. A damaged or foreign
offset near 2^63 would otherwise take all there is."""
UNKNOWN_EPOCH = -1
"""The epoch of a record that the trace never named: a fault interrupted the step that appended it after the
bytes had reached the file."""


@define
class ReplicaLog:
    """epochs[o], values[o]: the record at offset o; UNKNOWN_EPOCH and 0 if the trace does not name it."""

    epochs: list[int] = field(factory=list)
    values: list[int] = field(factory=list)
    # The number of such records. It changes by append at its end, truncation, and recovery.
    unknown: int = 0

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return len(self.epochs)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; UNKNOWN_EPOCH if it is unknown or there is none."""
        return self.epochs[-1] if self.epochs else UNKNOWN_EPOCH

    def append(self, offset: int, epoch: int, values: Sequence[int]) -> None:
        """Append records at `offset`. A gap below becomes unknown; records from `offset` on are truncated.
        (Conformance would stop here, but the checks of content continue.)"""
        if offset != len(self.epochs):
            self.resize(offset)
        self.epochs += [epoch] * len(values)
        self.values += values

    def extend(self, other: "ReplicaLog", end_offset: int) -> None:
        """Copy the records of `other` from this log's end up to `end_offset`."""
        added = other.epochs[len(self.epochs) : end_offset]
        self.values += other.values[len(self.epochs) : end_offset]
        self.epochs += added
        if other.unknown:
            self.unknown += added.count(UNKNOWN_EPOCH)

    def resize(self, end_offset: int) -> None:
        """Truncate the log, or extend it with unknown records. Raises TraceError beyond MOST_RECORDS."""
        end_offset = max(end_offset, 0)
        if end_offset > MOST_RECORDS:
            raise TraceError(
                expected=f"offsets up to {MOST_RECORDS}, as far as logs are followed record by record",
                seen=str(end_offset),
                where="an event of a replica's log",
            )
        missing = end_offset - len(self.epochs)
        if missing > 0:
            self.unknown += missing
            self.epochs += [UNKNOWN_EPOCH] * missing
            self.values += [0] * missing
        elif missing < 0:
            if self.unknown:
                self.unknown -= self.epochs[end_offset:].count(UNKNOWN_EPOCH)
            del self.epochs[end_offset:], self.values[end_offset:]

    def start_over(self, end_offset: int) -> None:
        """Remove all records and continue at `end_offset`; records below it are unknown here."""
        self.resize(0)
        self.resize(end_offset)

    def copy(self) -> "ReplicaLog":
        """An independent log with the same records."""
        return ReplicaLog(self.epochs.copy(), self.values.copy(), self.unknown)

    def shared_prefix(self, other: "ReplicaLog") -> int:
        """The number of records at the beginning that are certainly the same in both."""
        end = min(len(self.epochs), len(other.epochs))
        if (
            not self.unknown
            and not other.unknown
            and self.epochs[:end] == other.epochs[:end]
            and self.values[:end] == other.values[:end]
        ):
            return end
        for offset in range(end):
            epoch = self.epochs[offset]
            if (
                epoch == UNKNOWN_EPOCH
                or epoch != other.epochs[offset]
                or self.values[offset] != other.values[offset]
            ):
                return offset
        return end

    def first_difference(self, offset: int, epochs: Sequence[int], values: Sequence[int]) -> int | None:
        """The first offset at which this log certainly differs from these records (given from `offset` on);
        None if it may have all of them.

        An offset before the start or past the end of this log is a difference; an unknown record on either
        side is not.
        """
        if offset < 0 and values:
            return offset
        end = offset + len(values)
        if self.values[offset:end] == values and self.epochs[offset:end] == epochs:
            return None
        for index in range(len(values)):
            at = offset + index
            if at >= len(self.epochs):
                return at
            known = self.epochs[at] != UNKNOWN_EPOCH and epochs[index] != UNKNOWN_EPOCH
            if known and (self.epochs[at] != epochs[index] or self.values[at] != values[index]):
                return at
        return None

    def learn(self, offset: int, epochs: Sequence[int], values: Sequence[int]) -> None:
        """Fill in unknown records, after another replica copied them from here.

        Args:
            offset: the offset of the first record.
            epochs: their leader epochs.
            values: their value ids.
        """
        if not self.unknown:
            return
        for index, epoch in enumerate(epochs):
            at = offset + index
            if at < len(self.epochs) and self.epochs[at] == UNKNOWN_EPOCH and epoch != UNKNOWN_EPOCH:
                self.epochs[at], self.values[at] = epoch, values[index]
                self.unknown -= 1
