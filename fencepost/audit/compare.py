"""The replicas of one partition, side by side.

Owns when two replicas differ and how serious that is. Must not know files beyond a batch's place, nor what is
wrong within one replica.

All replicas are read at once, in the order of their offsets. Batches with the same bytes are skipped.
Otherwise their records are compared one by one. Another codec, other boundaries of batches
or segments are not a difference; epoch, producer, sequence, time, key, value and headers are.

A replica is not compared below its start, above its end, or where damage has made it unreadable. The
remaining differences are:

    both hold a record there, and not the same one    in one leader epoch, or below both high watermarks:
                                                      log_divergence
                                                      else uncommitted_divergence: the one of the older epoch
                                                      will be cut
    one holds a record, the other a hole              the same, unless the topic is compacted: brokers compact
                                                      each at its own time
"""

from collections.abc import Sequence
from typing import Protocol

from attrs import define, field

from fencepost.audit.cursor import FIELDS, Cursor

Pair = tuple[str, str, bool, str]
"""Two brokers, whether the second one lacks records, and the anomaly."""
MOST_RUNS = 1000
"""Stretches of differing offsets that are kept of one partition."""


class Watcher(Protocol):
    """What wants to see every record."""

    def see(self, offset: int, here: Sequence[Cursor], lacking: Sequence[Cursor]) -> None:
        """The replicas that hold a record at this offset, and those that certainly do not."""
        ...


@define(kw_only=True)
class Run:
    """Neighbouring offsets at which two replicas differ in the same way."""

    anomaly: str
    # First and last offset.
    first: int
    last: int
    # Offsets that differ.
    count: int
    # What was expected and seen at the first offset.
    expected: str
    seen: str
    # Whether one replica has no record there, instead of another one.
    lacks: bool
    # The replica that the finding blames.
    replica: str


@define
class Comparison:
    """The comparison of all replicas of a partition."""

    # One per replica.
    cursors: Sequence[Cursor]
    # Whether it is known beforehand that records may be gone.
    compacted: bool = False
    # Is shown every record, if there is one; then no batch is skipped.
    watcher: Watcher | None = None
    # Records that one replica lacks and another has.
    absent: int = 0
    # Runs beyond the bound of `closed`.
    more: int = 0
    # Runs that may continue, by pair of brokers, kind and anomaly.
    runs: dict[Pair, Run] = field(factory=dict)
    # Complete runs; bounded.
    closed: list[Run] = field(factory=list)
    # Keys of `runs` that were seen at the current offset.
    touched: set[Pair] = field(factory=set)

    def run(self) -> list[Run]:
        """Read everything; returns where the replicas differ, in the order of offsets."""
        for cursor in self.cursors:
            cursor.advance()
        while live := [cursor for cursor in self.cursors if cursor.batch is not None]:
            self._next(live)
        self._close(())
        return sorted(self.closed, key=lambda run: (run.first, run.last))

    def _next(self, live: list[Cursor]) -> None:
        offset = min([cursor.offset for cursor in live])
        here = [cursor for cursor in live if cursor.offset == offset]
        lacking = [cursor for cursor in live if cursor.offset > offset >= cursor.known_from]
        if not lacking and self.watcher is None and _same_bytes(here):
            for cursor in here:
                cursor.advance()
            self._close(())
            return
        packed = [cursor for cursor in here if cursor.records is None]
        if packed:
            for cursor in packed:
                cursor.decode()
            return
        self.touched.clear()
        self._compare(offset, here, lacking)
        self._close(self.touched)
        for cursor in here:
            cursor.step()

    def _compare(self, offset: int, here: list[Cursor], lacking: list[Cursor]) -> None:
        if self.watcher is not None:
            self.watcher.see(offset, here, lacking)
        classes: list[list[Cursor]] = []
        for cursor in here:
            same = next((one for one in classes if one[0].record.content == cursor.record.content), None)
            if same is None:
                classes.append([cursor])
            else:
                same.append(cursor)
        classes.sort(key=len, reverse=True)
        reported: set[frozenset[str]] = set()
        for odd in [cursor for others in classes[1:] for cursor in others]:
            rivals = [cursor for others in classes if odd not in others for cursor in others]
            rival = max(rivals, key=lambda one: (_committed(offset, odd, one), one.replica.high_watermark))
            pair = frozenset((odd.replica.broker, rival.replica.broker))
            if pair not in reported:
                reported.add(pair)
                self._differ(offset, rival, odd)
        self.absent += len(lacking)
        for cursor in () if self.compacted else lacking:
            holder = max(here, key=lambda one: one.replica.high_watermark)
            self._lacks(offset, holder, cursor)

    def _differ(self, offset: int, one: Cursor, other: Cursor) -> None:
        committed = _committed(offset, one, other)
        epoch = one.record.epoch
        grave = committed or (epoch == other.record.epoch and epoch >= 0)
        anomaly = "log_divergence" if grave else "uncommitted_divergence"
        if self._goes_on(offset, (one.replica.broker, other.replica.broker, False, anomaly)):
            return
        contents = zip(FIELDS, one.record.content, other.record.content, strict=True)
        fields = " and ".join(name for name, a, b in contents if a != b)
        self._begin(
            offset,
            (one.replica.broker, other.replica.broker, False, anomaly),
            expected=f"one record at offset {offset}{_bound(one, other, committed)}: epoch {epoch} in "
            f"{one.where}",
            seen=f"another {fields}: epoch {other.record.epoch} in {other.where}",
        )

    def _lacks(self, offset: int, one: Cursor, other: Cursor) -> None:
        committed = _committed(offset, one, other)
        anomaly = "log_divergence" if committed else "uncommitted_divergence"
        if self._goes_on(offset, (one.replica.broker, other.replica.broker, True, anomaly)):
            return
        self._begin(
            offset,
            (one.replica.broker, other.replica.broker, True, anomaly),
            expected=f"the record of offset {offset}{_bound(one, other, committed)}, as epoch "
            f"{one.record.epoch} in {one.where} has it",
            seen=f"none before {other.where}, which continues at offset {other.offset}",
        )

    def _goes_on(self, offset: int, pair: Pair) -> bool:
        """Whether it was so at the offset before."""
        self.touched.add(pair)
        run = self.runs.get(pair)
        if run is None:
            return False
        run.last, run.count = offset, run.count + 1
        return True

    def _begin(self, offset: int, pair: Pair, *, expected: str, seen: str) -> None:
        _, replica, lacks, anomaly = pair
        self.runs[pair] = Run(
            anomaly=anomaly,
            first=offset,
            last=offset,
            count=1,
            expected=expected,
            seen=seen,
            lacks=lacks,
            replica=replica,
        )

    def _close(self, but: set[Pair] | tuple[()]) -> None:
        """Close the runs that did not continue, except `but`."""
        if self.runs:
            for key in [key for key in self.runs if key not in but]:
                run = self.runs.pop(key)
                if len(self.closed) < MOST_RUNS:
                    self.closed.append(run)
                else:
                    self.more += 1


def _same_bytes(here: list[Cursor]) -> bool:
    """Whether all of them are before a batch, and the same one."""
    first = here[0].batch
    assert first is not None, "a replica at its end"
    if here[0].records is not None:
        return False
    return all(
        cursor.records is None and cursor.batch is not None and cursor.batch.data == first.data
        for cursor in here[1:]
    )


def _committed(offset: int, one: Cursor, other: Cursor) -> bool:
    """Whether the offset is below both high watermarks."""
    return offset < min(one.replica.high_watermark, other.replica.high_watermark)


def _bound(one: Cursor, other: Cursor, committed: bool) -> str:
    low = min(one.replica.high_watermark, other.replica.high_watermark)
    return (
        f", below the high watermark {low} of both"
        if committed
        else f", above the lower high watermark {low}"
    )
