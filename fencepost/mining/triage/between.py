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

import msgspec
import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.verdict import Finding
from fencepost.mining.triage.steps import CODE_OF, Ints, Steps
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Name

MOST_NAMED = 2_000
"""Events of one trace with a detail that is read: groups and transactions have some hundred phases."""
NAMED = (
    *(Name.GROUP_PHASE, Name.GROUP_OFFSET_EXPIRED, Name.TRANSACTION_PHASE),
    *(Name.MARKER_WRITTEN, Name.MARKER_REFUSED),
)
"""Events that say of which group or producer they are."""
AT_HOME = (Name.GROUP_PHASE, Name.GROUP_OFFSET_EXPIRED, Name.TRANSACTION_PHASE)
"""Those that occur where the group or the transaction is kept."""
ELSEWHERE = ", not by the leader"
"""Words of an operation that a broker answered which did not lead the partition, by ZooKeeper."""
_INCARNATION = re.compile(r"#\d+$")


class _Detail(msgspec.Struct):
    """What an event says it is about."""

    group: str = ""
    topic: str = ""
    partition: int = -1
    producer_id: int = -1


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


@frozen(kw_only=True, eq=False)
class _Named:
    """An event of NAMED. at: its row; home: its partition's number in Steps."""

    at: int
    home: int
    detail: _Detail


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
            _Named(at=row, home=int(steps.partition[start + row]), detail=_detail(detail))
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


def _place(one: Finding | _Detail) -> tuple[str | None, int]:
    return one.topic, one.partition


def _detail(text: str | None) -> _Detail:
    try:
        found: _Detail = from_json(text or "", _Detail)
        return found
    except msgspec.MsgspecError:
        return _Detail()
