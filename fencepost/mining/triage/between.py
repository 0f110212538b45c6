"""What happened between cause and effect: the steps from the first convicting row of a finding to the last,
on the partitions that it is about.

Owns: which partitions and which rows these are, and their words. Must not know: weights, groups.

A finding of client operations names a topic's partition, but what went wrong is often on another one: the
partition of __consumer_offsets that keeps the group, or that of __transaction_state that keeps the
transaction. These homes are found by what their events say of group and producer id. Steps of another group
on the same partition do not count, and neither does what an event says of another partition than the
finding's.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.verdict import Finding
from fencepost.mining.triage.event_steps import CODE_OF, Ints, Steps
from fencepost.mining.triage.subjects import Detail, detail_of
from fencepost.traces.events import Name
from fencepost.traces.operations import Function

MOST_NAMED = 2_000
"""Events of one trace with a detail that is read: groups and transactions have some hundred phases."""
NAMED = (
    *(Name.GROUP_PHASE, Name.GROUP_OFFSET_EXPIRED, Name.TRANSACTION_PHASE),
    *(Name.MARKER_WRITTEN, Name.MARKER_REFUSED),
)
"""Events that say of which group or producer they are."""
AT_HOME = (Name.GROUP_PHASE, Name.GROUP_OFFSET_EXPIRED, Name.TRANSACTION_PHASE)
"""Those that occur where the group or the transaction is kept."""
ENDS = (Name.MARKER_WRITTEN, Name.GROUP_OFFSET_EXPIRED)
"""Those after which a record, or a committed offset, counts otherwise."""
NOTHING = "nothing"
"""Said where none of ENDS occurred before the read."""
READS = (Function.POLL, Function.FETCH_COMMITTED)
"""Operations that show what others wrote."""
ELSEWHERE = ", not by the leader"
"""Words of an operation that a broker answered which did not lead the partition, by ZooKeeper."""
_INCARNATION = re.compile(r"#\d+$")


@frozen(kw_only=True)
class Convicting:
    """A convicting operation."""

    # Function, acks, outcome, error.
    words: str
    # Invocation and completion, nanoseconds; both are the invocation's if there was no answer.
    start: int
    end: int
    # "" and -1 for none.
    group: str
    producer_id: int
    # The broker that answered; -1: unknown.
    node: int
    function: str = ""
    # Topic and partition; None and -1 for none.
    place: tuple[str | None, int] = (None, -1)
    # Of the records that it wrote or read.
    values: frozenset[int] = frozenset()


@frozen(kw_only=True, eq=False)
class _Named:
    """An event of NAMED."""

    # Its row.
    at: int
    # Its partition's number in Steps.
    home: int
    detail: Detail


class Story:
    """The rows of one bad trace, to be asked about its findings.

    events: the table of the row group; steps: of all of it; start, stop: the rows of the trace.
    """

    def __init__(self, events: pa.Table, steps: Steps, start: int, stop: int) -> None:
        self.steps, self.start, self.stop = steps, start, stop
        self.is_named = np.isin(steps.name[start:stop], [CODE_OF[name] for name in NAMED])
        at: Ints = np.flatnonzero(self.is_named)[:MOST_NAMED]
        details: Any = events.column("detail").take(pa.array(at + start, pa.int64())).to_pylist()
        self.named = [
            _Named(at=row, home=int(steps.partition[start + row]), detail=detail_of(detail))
            for row, detail in zip(at.tolist(), details, strict=True)
        ]
        self.leader: Any = events.column("leader").slice(start, stop - start).to_numpy()

    def between(self, finding: Finding, rows: Sequence[Convicting]) -> tuple[int, set[str]]:
        """What happened between the first convicting row and the last.

        Args:
            finding: of the trace.
            rows: that convict.

        Returns:
            (nanoseconds, words of the steps); none if only one row convicts.
        """
        start, stop, steps = self.start, self.stop, self.steps
        moments = [int(steps.time[start + at]) for at in finding.events if start + at < stop]
        moments += [moment for row in rows for moment in (row.start, row.end)]
        if not moments:
            return 0, set()
        first, last = min(moments), max(moments)
        time = steps.time[start:stop]
        inside = (time >= first) & (time <= last) & (steps.code[start:stop] >= 0)
        own = self._own(rows)
        found = {
            steps.words[steps.code[start + one.at]]
            for one in own
            if inside[one.at] and (not one.detail.topic or _place(one.detail) == _place(finding))
        }
        homes = {one.home for one in own if one.home >= 0}
        about = np.isin(steps.partition[start:stop], sorted(homes)) | self._on(finding)
        codes = np.unique(steps.code[start:stop][inside & about & ~self.is_named])
        return last - first, found | {steps.words[code] for code in codes.tolist()}

    def ends(self, finding: Finding, rows: Sequence[Convicting]) -> set[str]:
        """What had become of what was written, when it was read: of each convicting write and each read
        that shows it, the first of ENDS before the answer to the read, of the writing group or producer.

        Args:
            finding: of the trace.
            rows: that convict.

        Returns:
            Function of the write, and words of the step or NOTHING; empty if no row reads, or none has a
            group or a producer.
        """
        reads = [row for row in rows if row.function in READS]
        found = set()
        for write in rows:
            if write.function in READS or not (write.group or write.producer_id >= 0):
                continue
            ends = self._ends(write, {_place(finding), write.place})
            for read in reads:
                if read.function == Function.POLL and not write.values & read.values:
                    continue
                at = next((at for moment, at in ends if moment <= read.end), -1)
                found.add(f"{write.function}, {NOTHING if at < 0 else self._words(at)}")
        return found

    def _ends(self, write: Convicting, places: set[tuple[str | None, int]]) -> list[tuple[int, int]]:
        """Time and row of ENDS of a write's group or producer on these partitions, from its start on."""
        kinds = {CODE_OF[name] for name in ENDS}
        found = [
            (int(self.steps.time[self.start + one.at]), self.start + one.at)
            for one in self._own([write])
            if int(self.steps.name[self.start + one.at]) in kinds and self._place(one) in places
        ]
        return [(moment, at) for moment, at in found if moment >= write.start]

    def _place(self, one: _Named) -> tuple[str | None, int]:
        """The partition that an event is about: what its detail names, or its own."""
        at = self.start + one.at
        if one.detail.topic or self.steps.topic[at] < 0:
            return _place(one.detail)
        return self.steps.topics[self.steps.topic[at]], int(self.steps.number[at])

    def _words(self, at: int) -> str:
        """The words of a step without relations."""
        words: str = self.steps.words[self.steps.code[at]]
        return words.split(",")[0]

    def words(self, finding: Finding, row: Convicting) -> str:
        """The words of a convicting operation, with what its broker was.

        Args:
            finding: of the trace.
            row: the operation.
        """
        if row.node < 0:
            return row.words
        if row.group and any(row.words.startswith(name) for name in ("commit", "fetch_committed", "join")):
            about = np.isin(
                self.steps.partition[self.start : self.stop],
                sorted({one.home for one in self._own([row]) if self._is_home(one)}),
            )
        else:
            about = self._on(finding)
        state = self.steps.name[self.start : self.stop] == CODE_OF[Name.PARTITION_STATE]
        time = self.steps.time[self.start : self.stop]
        led = np.flatnonzero(about & state & (time <= row.end))
        lately = led[time[led] >= row.start]
        known = {int(self.leader[at]) for at in [*led[-1:].tolist(), *lately.tolist()]}
        before = led[time[led] < row.start]
        known |= {int(self.leader[at]) for at in before[-1:].tolist()}
        return row.words + (ELSEWHERE if known and row.node not in known else "")

    def _is_home(self, one: _Named) -> bool:
        return int(self.steps.name[self.start + one.at]) in {CODE_OF[name] for name in AT_HOME}

    def _own(self, rows: Sequence[Convicting]) -> list[_Named]:
        """The events of the groups and producers of these operations."""
        groups = {_INCARNATION.sub("", row.group) for row in rows if row.group}
        producers = {row.producer_id for row in rows if row.producer_id >= 0}
        return [
            one for one in self.named if one.detail.group in groups or one.detail.producer_id in producers
        ]

    def _on(self, finding: Finding) -> Any:
        """The rows of the finding's partition."""
        if finding.topic not in self.steps.topics:
            return np.zeros(self.stop - self.start, bool)
        topic = self.steps.topics.index(finding.topic)
        rows = slice(self.start, self.stop)
        return (self.steps.topic[rows] == topic) & (self.steps.number[rows] == finding.partition)


def _place(one: Finding | Detail) -> tuple[str | None, int]:
    return one.topic, one.partition
