"""What an application did, as columns: the events of one run.

Owns the kinds of events and the columns. Must not know where they come from, or rules.
"""

from enum import IntEnum
from typing import Any

from attrs import frozen
from numpy.typing import NDArray

Ints = NDArray[Any]
"""Integers of any width."""
NOWHERE = -1
"""The place of an event that is about no partition."""
NO_HASH = -1
"""Of a key or value that a line does not name."""


class Kind(IntEnum):
    """The kinds of events, in the order of the table in docs/reference/events.md."""

    STARTED = 0
    SENT = 1
    ACKNOWLEDGED = 2
    FAILED = 3
    ASSIGNED = 4
    RECEIVED = 5
    PROCESSED = 6
    COMMITTED = 7
    REVOKED = 8
    LOST = 9
    STOPPED = 10
    SINK = 11


BY_NAME = {kind.name.lower(): kind for kind in Kind}
AT_A_RECORD = (Kind.ACKNOWLEDGED, Kind.RECEIVED, Kind.PROCESSED)
"""Kinds that name a record by topic, partition and offset."""


@frozen
class Life:
    """One life of a process."""

    # Its name.
    process: str
    # Which life, from 0: it began with the n-th line `started` after the first one.
    number: int
    # The file of its lines.
    file: str

    def __str__(self) -> str:
        return self.process if not self.number else f"{self.process} (life {self.number + 1})"


@frozen(kw_only=True)
class Events:
    """A run. The columns have one row for each event, in the order of reading."""

    kind: Ints
    # Of `lives`.
    life: Ints
    # Of `groups`.
    group: Ints
    # Of `places`; NOWHERE.
    place: Ints
    # -1: none.
    offset: Ints
    # hash_of; NO_HASH.
    key: Ints
    value: Ints
    # Of the file, from 1.
    line: Ints
    # 0 where a line `processed` says that no row of a sink follows.
    sink: Ints
    lives: tuple[Life, ...]
    # "" for processes that name no group.
    groups: tuple[str, ...]
    # Topic and partition.
    places: tuple[tuple[str, int], ...]
    # Lives of which lines are missing: a number was skipped, or a line could not be read.
    torn: frozenset[int] = frozenset()
    # Sends without a result in a life that ended with `stopped`: (life, topic, line).
    unanswered: tuple[tuple[int, str, int], ...] = ()
    # Sends without a result in a life that did not.
    under_way: int = 0
    # Lines that are left out, as sentences with file and line; at most MOST_LEFT_OUT.
    left_out: tuple[str, ...] = ()
    # All such lines.
    left_out_in_all: int = 0
    # Half lines at the end of files, as a killed process leaves them.
    halves: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.kind)

    def where(self, row: int) -> str:
        """File and line of an event."""
        return f"{self.lives[self.life[row]].file}:{self.line[row]}"


def all_stopped(events: Events) -> bool:
    """Whether each process has ended in order: the last line of its last life is `stopped`.

    Args:
        events: of a run. What only holds rows of a sink is no process.

    Returns:
        False, too, where there is no process.
    """
    last = {int(life): int(kind) for life, kind in zip(events.life, events.kind, strict=True)}
    latest = {events.lives[life].process: kind for life, kind in sorted(last.items())}
    kinds = set(latest.values()) - {Kind.SINK}
    return kinds == {Kind.STOPPED}
