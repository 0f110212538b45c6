"""A replica's log as a trace tells it: epochs and values by offset, with what a power loss left unknown.

Owns one mutable log, fed with recorded appends, truncations and recoveries. Must not know roles, guards or
verdicts: refinement.py and the invariants of checkers/ read it.
"""

from collections.abc import Sequence

from attrs import define, field

UNKNOWN_EPOCH = -1
"""Of a record that the trace never named: a fault interrupted the step that appended it after the bytes had
reached the file."""


@define
class ReplicaLog:
    """epochs[o], values[o]: the record at offset o; UNKNOWN_EPOCH and 0 where the trace does not say.
    unknown: how many such records there are. Moves by append at its end, cut, and recovery."""

    epochs: list[int] = field(factory=list)
    values: list[int] = field(factory=list)
    unknown: int = 0

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return len(self.epochs)

    @property
    def last_epoch(self) -> int:
        """Of the last record; UNKNOWN_EPOCH if it is unknown or there is none."""
        return self.epochs[-1] if self.epochs else UNKNOWN_EPOCH

    def append(self, offset: int, epoch: int, values: Sequence[int]) -> None:
        """Records at `offset`. A gap below becomes unknown, what stood there is cut: a judge of content goes
        on where conformance would stop."""
        if offset != len(self.epochs):
            self.resize(offset)
        self.epochs += [epoch] * len(values)
        self.values += values

    def extend(self, other: "ReplicaLog", end_offset: int) -> None:
        """Take over the records that `other` holds from this log's end up to `end_offset`."""
        added = other.epochs[len(self.epochs) : end_offset]
        self.values += other.values[len(self.epochs) : end_offset]
        self.epochs += added
        if other.unknown:
            self.unknown += added.count(UNKNOWN_EPOCH)

    def resize(self, end_offset: int) -> None:
        """Cut the log, or let it grow by unknown records."""
        end_offset = max(end_offset, 0)
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
        """Drop all records and go on at `end_offset`; what lies below it is unknown here."""
        self.resize(0)
        self.resize(end_offset)

    def copy(self) -> "ReplicaLog":
        """An independent log with the same records."""
        return ReplicaLog(self.epochs.copy(), self.values.copy(), self.unknown)

    def shared_prefix(self, other: "ReplicaLog") -> int:
        """How many records at the beginning certainly are the same in both."""
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
        """The first offset at which this log certainly does not hold these records (given from `offset` on);
        None if it may hold all of them.

        An offset past the end of this log is a difference; an unknown record on either side is not.
        """
        end = offset + len(values)
        if self.epochs[offset:end] == epochs and self.values[offset:end] == values:
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
        """Fill unknown records with what another replica copied from here."""
        if not self.unknown:
            return
        for index, epoch in enumerate(epochs):
            at = offset + index
            if at < len(self.epochs) and self.epochs[at] == UNKNOWN_EPOCH and epoch != UNKNOWN_EPOCH:
                self.epochs[at], self.values[at] = epoch, values[index]
                self.unknown -= 1
