"""The events of a run as columns, and the reading of the files that hold them.

Owns which lines are left out and why, the numbers that stand for names, and the joining of each send with its
result. Must not know rules.

All files of one call are one run. A process is one name in one life: a line `started` begins another life,
and so does the first line of the name in another file, unless its `n` goes on (a file that was rotated).
Order is the order of lines within a process; between processes there is none but what offsets say, since no
two clocks are compared.

What a line becomes is bounded: 45 bytes of columns an event, whatever it holds, and one entry of a table for
each name of a process, a group or a partition.
"""

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from attrs import define, field

from fencepost.application.event_lines import LONGEST_LINE, Line, after_half, decode, hash_of
from fencepost.checkers.application.application_events import NO_HASH, NOWHERE, Events, Kind, Life
from fencepost.traces.errors import TraceError

MOST_EVENTS = 50_000_000
"""Of a run: 2.3 GB of columns. More is refused; it has to be cut into runs."""
MOST_NAMES = 1_000_000
"""Lives of processes, groups and partitions of a run."""
MOST_LEFT_OUT = 1_000
"""Lines that are listed with their reason; further ones are counted."""
MOST_UNDER_WAY = 5_000_000
"""Sends without a result at a time: each keeps its line in memory."""
_COLUMNS = ("kind", "life", "group", "place", "offset", "key", "value", "line", "sink")
_TYPES = dict(zip(_COLUMNS, "biiiqqqqb", strict=True))


def read_events(files: Iterable[Path]) -> Events:
    """The events of the files of a run.

    Args:
        files: of JSON lines, each read once and from its beginning.

    Returns:
        the columns, with the lines that were left out.

    Raises:
        TraceError: a file cannot be read, or the run has more than MOST_EVENTS or MOST_NAMES.
    """
    reading = Reading()
    for path in files:
        reading.file(str(path), _lines(path))
    return reading.events()


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their line feeds; of an overlong one, what is too much is passed over."""
    try:
        with path.open("rb") as file:
            while text := file.readline(LONGEST_LINE + 1):
                yield text
                while len(text) > LONGEST_LINE and not text.endswith(b"\n"):
                    text = file.readline(LONGEST_LINE)
                    if not text:
                        return
    except OSError as error:
        raise TraceError(
            expected="a readable file of events", seen=error.strerror or str(error), where=str(path)
        ) from None


@define
class _Known:
    """What the lines of a life have said so far."""

    number: int
    # Of its last counted line.
    n: int = -1
    group: int = 0
    # Whether its last line says that it ended in order.
    stopped: bool = False
    # Whether a result named no send of its own, so that a send without one may have had it.
    nameless: bool = False
    # Sends without a result: id -> topic, key, value, line.
    sends: dict[str | int, tuple[str, int, int, int]] = field(factory=dict)


@define(eq=False)
class Reading:
    """A run that is being read, file by file."""

    _columns: dict[str, "array[int]"] = field(
        factory=lambda: {name: array(code) for name, code in _TYPES.items()}, init=False
    )
    _lives: list[Life] = field(factory=list, init=False)
    _groups: dict[str, int] = field(factory=lambda: {"": 0}, init=False)
    _places: dict[tuple[str, int], int] = field(factory=dict, init=False)
    _known: list[_Known] = field(factory=list, init=False)
    _torn: set[int] = field(factory=set, init=False)
    _unanswered: list[tuple[int, str, int]] = field(factory=list, init=False)
    _left_out: list[str] = field(factory=list, init=False)
    _left_out_in_all: int = field(default=0, init=False)
    _halves: list[str] = field(factory=list, init=False)
    _sends: int = field(default=0, init=False)
    # Of the file at hand: the present life of each process.
    _here: dict[str, _Known] = field(factory=dict, init=False)
    # The last life of each name, in all files.
    _named: dict[str, _Known] = field(factory=dict, init=False)
    _file: str = field(default="", init=False)

    def file(self, name: str, lines: Iterable[bytes]) -> None:
        """Read a file.

        Args:
            name: for messages, and to keep its processes apart from those of other files.
            lines: with their line feeds.
        """
        self._here, self._file, unread, uncounted = {}, name, False, False
        for number, text in enumerate(lines, start=1):
            if text.isspace():
                continue
            said = decode(text) if len(text) <= LONGEST_LINE else _TOO_LONG
            if isinstance(said, str) and said != _TOO_LONG:
                rest = after_half(text)
                if rest is not None or not text.endswith(b"\n"):
                    self._halves.append(f"{name}:{number}")
                if rest is not None:
                    said, uncounted = rest, True
                elif not text.endswith(b"\n"):
                    continue
            reason = said if isinstance(said, str) else self._take(*said, number)
            if reason:
                unread |= self._leave_out(number, reason)
        # half a line of a process that went on: the count of its lines shows it, where it counts them
        self._torn.update(
            known.number for known in self._here.values() if unread or (uncounted and known.n < 0)
        )

    def _leave_out(self, number: int, reason: str) -> bool:
        """Take down a line that is left out; whether it may have said what is missed elsewhere."""
        self._left_out_in_all += 1
        if len(self._left_out) < MOST_LEFT_OUT:
            self._left_out.append(f"{self._file}:{number}: {reason}")
        return reason != _AGAIN

    def _take(self, line: Line, kind: Kind, number: int) -> str:
        """Add an event; why it is left out, or ""."""
        known = self._here.get(line.process)
        if known is None:
            before = self._named.get(line.process)
            goes_on = before is not None and line.n is not None and 0 <= before.n < line.n
            known = before if goes_on and before is not None else self._life(line.process, before)
            self._here[line.process] = known
        elif kind is Kind.STARTED and not line.n:
            known = self._life(line.process, known)
        if line.n is not None:
            if line.n <= known.n:
                return _AGAIN
            if line.n > known.n + 1:
                self._torn.add(known.number)
            known.n = line.n
        if line.group is not None:
            known.group = self._number(self._groups, line.group)
        known.stopped = kind is Kind.STOPPED
        self._add(line, kind, number, known)
        return ""

    def _life(self, process: str, before: _Known | None) -> _Known:
        if len(self._lives) >= MOST_NAMES:
            raise self._too_many(f"{MOST_NAMES:,} lives of processes")
        count = 0 if before is None else self._lives[before.number].number + 1
        known = _Known(number=len(self._lives))
        self._lives.append(Life(process, count, self._file))
        self._known.append(known)
        self._here[process] = self._named[process] = known
        return known

    def _number(self, table: "dict[str, int]", name: str) -> int:
        if name not in table and len(table) >= MOST_NAMES:
            raise self._too_many(f"{MOST_NAMES:,} groups")
        return table.setdefault(name, len(table))

    def _place(self, topic: str | None, partition: int | None) -> int:
        if topic is None or partition is None:
            return NOWHERE
        place = self._places.get((topic, partition))
        if place is None:
            if len(self._places) >= MOST_NAMES:
                raise self._too_many(f"{MOST_NAMES:,} partitions")
            place = self._places[topic, partition] = len(self._places)
        return place

    def _too_many(self, what: str) -> TraceError:
        return TraceError(
            expected=f"at most {what} in a run", seen="more", where=self._file,
            hint="judge fewer files at a time",
        )  # fmt: skip

    def _add(self, line: Line, kind: Kind, number: int, known: _Known) -> None:
        key, value = hash_of(line.key), hash_of(line.value)
        if kind is Kind.SENT:
            assert line.id is not None and line.topic is not None
            if line.id not in known.sends:
                self._sends += 1
            known.sends[line.id] = (line.topic, key, value, number)
            if self._sends > MOST_UNDER_WAY:
                raise self._too_many(f"{MOST_UNDER_WAY:,} sends without a result")
        elif kind in (Kind.ACKNOWLEDGED, Kind.FAILED):
            sent = None if line.id is None else known.sends.pop(line.id, None)
            known.nameless |= sent is None
            if sent is not None:
                self._sends -= 1
                key = key if key != NO_HASH else sent[1]
                value = value if value != NO_HASH else sent[2]
        columns = self._columns
        if len(columns["kind"]) >= MOST_EVENTS:
            raise self._too_many(f"{MOST_EVENTS:,} events")
        columns["kind"].append(kind)
        columns["life"].append(known.number)
        columns["group"].append(known.group)
        columns["place"].append(self._place(line.topic, line.partition))
        columns["offset"].append(-1 if line.offset is None else line.offset)
        columns["key"].append(key)
        columns["value"].append(value)
        columns["line"].append(number)
        columns["sink"].append(line.sink is not False)

    def _end(self, known: _Known) -> None:
        """Sends that were left without a result by a life that has ended."""
        if known.stopped and not known.nameless:
            self._unanswered += [(known.number, topic, line) for topic, _, _, line in known.sends.values()]
            self._sends -= len(known.sends)
            known.sends.clear()

    def events(self) -> Events:
        """The columns of what was read."""
        for known in self._known:
            self._end(known)
        columns = {name: np.asarray(column) for name, column in self._columns.items()}  # no copy
        return Events(
            **columns,
            lives=tuple(self._lives),
            groups=tuple(self._groups),
            places=tuple(self._places),
            torn=frozenset(self._torn),
            unanswered=tuple(self._unanswered),
            under_way=sum(len(known.sends) for known in self._known),
            left_out=tuple(self._left_out),
            left_out_in_all=self._left_out_in_all,
            halves=tuple(self._halves),
        )


_TOO_LONG = f"expected at most {LONGEST_LINE:,} bytes, saw more"
_AGAIN = "expected a higher `n` than that of the process's line before, saw one that was there: left out"
