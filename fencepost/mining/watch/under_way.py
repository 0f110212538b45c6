"""What a watch knows of a trace under way between rounds: its files, how far time has come, what was
reported.

Owns when it is judged again, and up to which moment. Must not know Spark, judges, how files are read.

Two events are for the watcher: `mark` with the cause `low_watermark` (everything before its time has been
written), and `phase` with the cause `end` (no more will come). Files may be listed in another order than they
were written: an `offset` of such an event numbers the files of the trace, 1, 2, ..., and it holds once all up
to that number have arrived.
"""

import math
from collections.abc import Iterable

import msgspec
from attrs import define, field

from fencepost.checkers.verdict import Subject
from fencepost.traces.canonical_rows import ROWS_MAX
from fencepost.traces.events import Name
from fencepost.traces.parts import in_parts
from fencepost.traces.trace import Trace

LOW_WATERMARK, END_OF_TRACE = "low_watermark", "end"
GROWTH = 1.5
"""A trace is judged again when it has so many times the rows of the last time. All judgings together then
cost three times as much as one of the whole; with 1.25 five times, with 2 twice, and findings come later."""
FEW_ROWS = 5_000
"""With so few new rows a trace is judged in each round: a tenth of a second."""
QUIET_S = 2.0
"""A trace is judged, too, when nothing of it has come for so long."""
RUN = -1
"""The trace id of an application's run, which has none."""

Key = tuple[str, int]
"""Folder and trace id."""


class PartNews(msgspec.Struct, array_like=True, frozen=True):
    """What a file says of a trace under way."""

    source: str
    trace_id: int
    # The file.
    place: str
    # Rows of operations; of a file of events its bytes.
    rows: int
    # The latest time in it, nanoseconds; None: it has none.
    newest: int | None = None
    # If the file states one, else 0.
    number: int = 0
    # Low watermarks: (number of the file from which it holds, time).
    marks: tuple[tuple[int, int], ...] = ()
    # Number of the file after which nothing follows; None: more follows.
    end_after: int | None = None
    # Why a part of the trace is missing; "": none is.
    gap: str = ""


class SoFar(msgspec.Struct, array_like=True, frozen=True):
    """What was made of a trace under way in one round."""

    source: str
    trace_id: int
    # So many of its rows were judged.
    rows: int
    # What was reported now.
    subjects: tuple[Subject, ...]
    # Whether it has ended; a run of an application may go on.
    ended: bool = False


def news_of(trace: Trace, source: str, place: str, *, gap: str = "") -> PartNews:
    """What a part says of its trace.

    Args:
        trace: the part.
        source, place: its folder and its file.
        gap: why a part of the trace is missing.
    """
    marks = tuple(
        (event.offset, event.time)
        for event in trace.events
        if (event.name, event.cause) == (Name.MARK, LOW_WATERMARK)
    )
    ends = [event.offset for event in trace.events if (event.name, event.cause) == (Name.PHASE, END_OF_TRACE)]
    times = [
        row.invoke_time if row.completion_time is None else row.completion_time for row in trace.operations
    ]
    return PartNews(
        source=source, trace_id=trace.trace_id, place=place, rows=len(trace.operations), gap=gap,
        newest=max([*times, *(event.time for event in trace.events)], default=None),
        number=max((number for number, _ in marks), default=max(ends, default=0)),
        marks=marks, end_after=max(ends, default=None),
    )  # fmt: skip


@define(kw_only=True)
class UnderWay:
    """A trace, or the run of an application, that more is expected of."""

    source: str
    trace_id: int
    # Rows by file.
    files: dict[str, int] = field(factory=dict)
    # Of the files that state one.
    numbers: set[int] = field(factory=set)
    # As in PartNews, of all files.
    marks: list[tuple[int, int]] = field(factory=list)
    end_after: int | None = None
    newest: int | None = None
    # Why it cannot be judged any more; "": it can.
    gap: str = ""
    # Rows at the last judging; -1: there was none.
    judged: int = -1
    reported: set[Subject] = field(factory=set)
    ended: bool = False
    # When something of it came last, seconds of the caller's clock.
    heard_s: float = -math.inf

    def take(self, news: PartNews, now_s: float = -math.inf) -> None:
        """What a file says, new or grown. now_s: by the caller's clock."""
        self.files[news.place] = news.rows
        self.marks += news.marks
        self.gap = self.gap or news.gap
        if news.number > 0:
            self.numbers.add(news.number)
        if news.end_after is not None:
            self.end_after = max(news.end_after, self.end_after or 0)
        if news.newest is not None:
            self.newest = news.newest if self.newest is None else max(news.newest, self.newest)
        if self.rows > ROWS_MAX and self.trace_id != RUN:
            self.gap = self.gap or f"more than {ROWS_MAX:,} rows: {in_parts(self.source)}"
        self.heard_s = now_s

    def note(self, so_far: SoFar) -> None:
        """What was made of it in a round."""
        self.judged = so_far.rows
        self.reported.update(so_far.subjects)
        self.ended = so_far.ended
        if self.ended and self.trace_id != RUN:
            self.files, self.marks, self.numbers = {}, [], set()

    @property
    def rows(self) -> int:
        """Rows that have arrived."""
        return sum(self.files.values())

    @property
    def waiting(self) -> int:
        """Rows that were not there at the last judging."""
        return 0 if self.ended and self.trace_id != RUN else max(0, self.rows - max(self.judged, 0))

    def _holds(self, number: int) -> bool:
        """Whether all files up to a number have arrived."""
        return number <= 0 or self.numbers.issuperset(range(1, number + 1))

    @property
    def missing(self) -> int | None:
        """The number of the first file that has not arrived although later ones have; None: there is none."""
        most = max(self.numbers, default=0)
        return next((number for number in range(1, most) if number not in self.numbers), None)

    @property
    def ending(self) -> bool:
        """Whether nothing more will come."""
        return self.end_after is not None and self._holds(self.end_after)

    def moment(self, lateness_ns: int) -> int | None:
        """Everything before it has arrived; None: nothing is certain. lateness_ns: how late rows may come
        in a trace without low watermarks."""
        holding = [time for number, time in self.marks if self._holds(number)]
        if holding:
            return max(holding)
        return None if self.marks or self.numbers or self.newest is None else self.newest - lateness_ns

    def is_due(self, now_s: float, *, last: bool) -> bool:
        """Whether it is judged now. now_s: by the clock of `take`; last: whether this is the last round."""
        if self.trace_id != RUN and (self.ended or self.ending or self.gap):
            return self.ending and not self.ended
        if not self.waiting:
            return False
        grown = self.waiting <= FEW_ROWS or self.rows >= GROWTH * self.judged
        return last or grown or now_s - self.heard_s >= QUIET_S


def taken_up(
    known: dict[Key, UnderWay], news: Iterable[PartNews], now_s: float = -math.inf
) -> list[PartNews]:
    """Add news to what is known. Returns those of traces that had ended.

    Args:
        known: traces under way, by folder and id.
        news: in the order of arrival.
        now_s: as for `UnderWay.take`.
    """
    too_late = []
    for one in news:
        key = (one.source, one.trace_id)
        state = known.setdefault(key, UnderWay(source=one.source, trace_id=one.trace_id))
        if state.ended and one.trace_id != RUN:
            too_late.append(one)
        else:
            state.take(one, now_s)
    return too_late
