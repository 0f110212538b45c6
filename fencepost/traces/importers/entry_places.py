"""The place of an entry in its history: line, process, time; and the fields that every entry has.

Owns which fields an entry must have, and numbers for processes that have names. Must not know what an entry
asks.
"""

from collections.abc import Iterable
from itertools import count
from typing import Any

from attrs import frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.conventions import Tell
from fencepost.traces.importers.edn import opaque_in

TYPES = ("invoke", "ok", "fail", "info")
NEEDED = ("process", "type", "f", "value", "key", "rebalance-log")
"""Fields that say what was asked or answered. Any other field may hold anything."""
NEMESIS = "nemesis"
Process = int | str
MOST_NAMED = 5
"""As many names of processes fit in a sentence."""


@frozen(kw_only=True)
class Entry:
    """One line of a history, as far as its place is concerned."""

    # Its number in the file.
    line: int
    # A number, or a name.
    process: Process
    # invoke, ok, fail or info.
    type: str
    function: str
    # As recorded, in any unit.
    time: int | None = None
    # Its place in Jepsen's history.
    index: int | None = None


def is_integer(value: Any) -> bool:
    """Whether a JSON value is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def place_of(row: Any, line: int, where: str) -> dict[str, Any] | None:
    """The fields of an `Entry` in a map of JSON values; None if it is not a client's (the nemesis). line,
    where: its place. Raises TraceError."""
    at = f"{where}:{line}"
    if not isinstance(row, dict):
        raise TraceError(expected="a map for each entry", seen=type(row).__name__, where=at)
    process = row.get("process")
    if process == NEMESIS:
        return None
    for name in NEEDED:
        strange = opaque_in(row.get(name))
        if strange is not None:
            raise TraceError(expected=strange.expected, seen=strange.text, where=at)
    if row.get("type") not in TYPES:
        raise TraceError(expected=f"a type of {', '.join(TYPES)}", seen=repr(row.get("type")), where=at)
    if not is_integer(process) and not (isinstance(process, str) and process):
        raise TraceError(expected="an integer or a name as process", seen=repr(process), where=at)
    time, index = row.get("time"), row.get("index")
    return {
        "line": line,
        "process": process,
        "type": row["type"],
        "function": "" if row.get("f") is None else str(row["f"]),
        "time": time if is_integer(time) else None,
        "index": index if is_integer(index) else None,
    }


def numbers_of(entries: Iterable[Entry], where: str, tell: Tell) -> dict[Process, int]:
    """The number of each process: its own, or for a name the next one after all numbers. tell: is called
    with the names."""
    processes = list(dict.fromkeys(entry.process for entry in entries))
    numbers: dict[Process, int] = {process: process for process in processes if isinstance(process, int)}
    names = [process for process in processes if isinstance(process, str)]
    named: dict[Process, int] = dict(zip(names, count(max(numbers.values(), default=-1) + 1), strict=False))
    if named:
        listed = [f"{name} is {number}" for name, number in named.items()][:MOST_NAMED]
        more = ", ..." if len(named) > MOST_NAMED else ""
        tell(f"{where}: processes with names got numbers: {', '.join(listed)}{more}")
    return {**numbers, **named}
