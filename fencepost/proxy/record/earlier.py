"""Records that nobody sent here: what was in a log before the proxy, and what others write without it.

Owns the first end that a broker named of each partition, and which of these records are rows already. Must
not know connections or answers. Nobody saw their sending, so each becomes an append of unknown outcome by
NOBODY. When it was sent is not known either: the log may have had it before anything that is recorded. So
its invocation is where the record begins. At the time of the first poll that shows it, it would seem sent
after everything that was acknowledged or shown above it by then. The row names the offset of its records,
which tells them from equal records that were sent here (traces/parts.py).
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.proxy.record.lines import Lines, rows_of, run_text
from fencepost.proxy.record.reads import Run
from fencepost.traces.parts import BEFORE

NOBODY = 0
"""The process of records that were sent without the proxy, unless they may be of an aborted transaction."""
MOST_SPANS = 1_000
"""Separate ranges of offsets that are kept for a partition. The lowest is forgotten beyond it: its records
become rows again if they are read again, and are then known twice, which convicts no one."""


@define(eq=False)
class Spans:
    """Ranges [start, end) of offsets. Invariant: ascending, disjoint, and not adjacent."""

    starts: list[int] = field(factory=list)
    ends: list[int] = field(factory=list)

    def add(self, start: int, end: int) -> list[tuple[int, int]]:
        """Add a range.

        Args:
            start: its first offset.
            end: the first one after it.

        Returns:
            those parts of it that were not in here, ascending.
        """
        first = last = bisect_left(self.ends, start)
        new: list[tuple[int, int]] = []
        low, high, reached = start, end, start
        while last < len(self.starts) and self.starts[last] <= end:
            if reached < self.starts[last]:
                new.append((reached, self.starts[last]))
            reached = max(reached, self.ends[last])
            low, high = min(low, self.starts[last]), max(high, self.ends[last])
            last += 1
        if reached < end:
            new.append((reached, end))
        self.starts[first:last], self.ends[first:last] = [low], [high]
        if len(self.starts) > MOST_SPANS:
            del self.starts[0], self.ends[0]
        return new


@define(eq=False)
class Known:
    """What is known of a partition."""

    # The first end that a broker named: records below it were there before the proxy, unless it saw their
    # sending.
    baseline: int
    # Offsets whose records are rows already.
    rows: Spans = field(factory=Spans)


@define(eq=False, kw_only=True)
class Earlier:
    """The memory of one record."""

    lines: Lines
    # Topics that somebody writes to without the proxy.
    others: frozenset[str]
    # When the record began: nanoseconds, not later than any other row.
    began: int
    # The number of a process that no other row has.
    new_process: Callable[[], int]
    _known: dict[tuple[str, int], Known] = field(factory=dict, init=False)

    def ends_at(self, topic: str, partition: int, end: int) -> None:
        """A broker has named an offset that the log ends at or has passed; only the first counts.

        Args:
            topic: of the log.
            partition: of the log.
            end: the offset.
        """
        if (topic, partition) not in self._known:
            self._known[topic, partition] = Known(end)

    def shown(self, topic: str, partition: int, run: Run, *, may_abort: bool) -> None:
        """An answer shows records of a log of which an end is known.

        Args:
            topic: of the log.
            partition: of the log.
            run: the records; with their keys in a compacted topic.
            may_abort: whether they are of a transaction that is not known to have committed. Nobody saw which
                others are in it, or its end: it is a transaction of unknown outcome, of these records alone.
        """
        known, end = self._known[topic, partition], run.offset + len(run.values)
        if topic not in self.others:
            end = min(end, known.baseline)
        if end <= run.offset:
            return
        for start, stop in known.rows.add(run.offset, end):
            for key, part in run.part(start - run.offset, stop - run.offset).by_key():
                self._row(topic, partition, key, part, may_abort)

    def _row(self, topic: str, partition: int, key: str | None, run: Run, may_abort: bool) -> None:
        row: dict[str, Any] = {"process": NOBODY, "invoke_time": self.began, "outcome": "unknown"}
        row["argument"] = BEFORE
        if may_abort:
            row["process"] = self.new_process()
            self.lines.operation(row | {"op_id": self.lines.number(), "function": "txn"})
        row |= {"op_id": self.lines.number(), "function": "append", "topic": topic, "partition": partition}
        if key is not None:
            row["key"] = key
        texts = [run_text(topic, partition, run.offset, run.values)]
        self.lines.operation(row | {"acks": -1, "runs": rows_of(texts)})

    def passed(self, topic: str, partition: int, start: int, end: int) -> None:
        """Nothing else is in a range of a log: compaction took it away, or it has markers only.

        Args:
            topic: of the log.
            partition: of the log.
            start: the first offset.
            end: the first one after it.
        """
        known = self._known[topic, partition]
        if topic not in self.others:
            end = min(end, known.baseline)
        if start < end:
            known.rows.add(start, end)
