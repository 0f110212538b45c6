"""In which order the entries of a history happened: by their times, by their index, or as they stand in the
file.

Owns the choice, and the sentences about it. Must not know what an entry asks.

A recorder may write an invocation together with its completion, when that arrives. Then the order of the
file is wrong, and the times say what was first. Equal times say nothing: such entries are concurrent, unless
Jepsen's `:index` orders them.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Generic, TypeVar

from attrs import frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.conventions import Conventions, Tell
from fencepost.traces.importers.entry_places import Entry, Process

BY_FILE = "--order file takes the order of the file"


E = TypeVar("E", bound=Entry)


@frozen
class Ordered(Generic[E]):
    """Entries in order, each with its position; entries that may have been at the same moment share one."""

    entries: list[tuple[E, int]]
    # Whether every entry has a time, and times decided.
    by_time: bool = False
    # What to add to an error about pairing.
    hint: str = ""


def in_order(entries: list[E], conventions: Conventions, where: str, tell: Tell) -> Ordered[E]:
    """The entries of a file in the order in which they happened. where: the file; tell: is called with what
    was taken. Raises TraceError if their times contradict the file and are not complete."""
    late = [] if conventions.order == "file" else list(_going_back(entries))
    times = [entry.time for entry in entries if entry.time is not None]
    if conventions.order == "file" or not times:
        return Ordered(list(zip(_by_index(entries, conventions), range(len(entries)), strict=True)))
    if len(times) < len(entries):
        if late:
            missing = next(entry for entry in entries if entry.time is None)
            raise TraceError(
                expected=f"a time of each entry, because that of line {late[0].line} contradicts the order "
                f"of the file",
                seen="none",
                where=f"{where}:{missing.line}",
                hint=BY_FILE,
            )
        return Ordered(list(zip(entries, range(len(entries)), strict=True)))
    hint = ""
    if late:
        hint = f"entries are in the order of their times; {BY_FILE}"
        tell(
            f"{where}: the times of {len(late)} entries contradict the order of the file: the times count "
            f"({BY_FILE})"
        )
    indexed = _by_index(entries, conventions)
    if _indexed(entries) and not any(True for _ in _going_back(indexed)):
        return Ordered(list(zip(indexed, range(len(indexed)), strict=True)), True, hint)
    found = Ordered(list(_by_time(entries)), True, hint)
    ties = _ties(found)
    if ties:
        tell(
            f"{where}: {ties} completions have equal times with an invocation of another process: they "
            f"count as concurrent ({BY_FILE})"
        )
    return found


def _going_back(entries: Sequence[E]) -> Iterator[E]:
    """Entries with an earlier time than one before them."""
    latest: int | None = None
    for entry in entries:
        if entry.time is None:
            continue
        if latest is not None and entry.time < latest:
            yield entry
        else:
            latest = entry.time


def _indexed(entries: Sequence[Entry]) -> bool:
    found = {entry.index for entry in entries}
    return None not in found and len(found) == len(entries)


def _by_index(entries: list[E], conventions: Conventions) -> list[E]:
    """In the order of the index, where each entry has one of its own."""
    if conventions.order == "file" or not _indexed(entries):
        return entries
    return sorted(entries, key=lambda entry: entry.index or 0)


def _by_time(entries: list[E]) -> Iterator[tuple[E, int]]:
    """Each entry with the rank of its time. At one time a process completes what it has in flight, and then
    invokes."""
    busy: dict[Process, str | None] = defaultdict(lambda: None)
    in_time = sorted(entries, key=lambda entry: entry.time or 0)
    for rank, (_, together) in enumerate(groupby(in_time, key=lambda entry: entry.time)):
        waiting: dict[Process, tuple[deque[E], deque[E]]] = {}
        for entry in together:
            invoked, completed = waiting.setdefault(entry.process, (deque(), deque()))
            (invoked if entry.type == "invoke" else completed).append(entry)
        for process, (invoked, completed) in waiting.items():
            while invoked or completed:
                if completed and (busy[process] is not None or not invoked):
                    entry = _matching(completed, busy[process])
                    busy[process] = None
                else:
                    entry = invoked.popleft()
                    busy[process] = entry.function
                yield entry, rank


def _matching(completed: "deque[E]", function: str | None) -> E:
    """The first completion of a function; of any, if there is none."""
    found = next((entry for entry in completed if entry.function == function), completed[0])
    completed.remove(found)
    return found


def _ties(ordered: Ordered[E]) -> int:
    """How many completions share their moment with an invocation of another process."""
    count = 0
    for _, group in groupby(ordered.entries, key=lambda one: one[1]):
        together = [entry for entry, _ in group]
        invokers = {entry.process for entry in together if entry.type == "invoke"}
        count += sum(entry.type != "invoke" and bool(invokers - {entry.process}) for entry in together)
    return count
