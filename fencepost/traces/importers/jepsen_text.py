"""The text files of a Jepsen test: history.txt, and jepsen.log in its two layouts.

Owns what a line of them is. Must not know how entries are paired.

An entry is `PROCESS :TYPE :FUNCTION VALUE ERROR`, with tabs between. The error is free text. In jepsen.log
the entry follows `INFO jepsen.util - ` or `TIME INFO [THREAD] jepsen.util: `, between other lines.
"""

import re
from collections.abc import Iterator

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.conventions import Tell, silent
from fencepost.traces.importers.edn import EdnReader, Keyword, plain
from fencepost.traces.importers.entries import HistoryEntry, entry_of
from fencepost.traces.importers.window import Window

_LOG = re.compile(r"(?:\S+\s+\S+\s+)?(?:INFO|WARN|DEBUG|ERROR)\s")
_LOGGED = re.compile(r"(?:\S+\s+\S+\s+)?INFO\s+(?:\[[^\]]*\]\s+)?jepsen\.util(?:\s+-|:)\s+(.*)")
_ENTRY = re.compile(r"[^\s\[({#]\S*\s+:(?:invoke|ok|fail|info)(?:\s|$)")
_NAMES = ("process", "type", "f", "value")


def is_log(text: str) -> bool:
    """Whether a text begins as a log."""
    return _LOG.match(text) is not None


def is_entry(text: str) -> bool:
    """Whether a text begins as an entry."""
    return _ENTRY.match(text) is not None


def log_entries(window: Window, tell: Tell = silent) -> Iterator[HistoryEntry]:
    """The entries of jepsen.log. tell: is called with the number of other lines."""
    others = 0
    for number, content in window.lines():
        match = _LOGGED.fullmatch(content.rstrip())
        if match is None or not is_entry(match.group(1)):
            others += bool(content.strip())
            continue
        entry = _entry(match.group(1), number, window.where)
        if entry is not None:
            yield entry
    if others:
        tell(f"{window.where}: {others} lines of the log are no entries of the history and are left out")


def history_entries(window: Window, tell: Tell = silent) -> Iterator[HistoryEntry]:
    """The entries of history.txt; blank lines are skipped.

    Args:
        window: the text.
        tell: is called with a sentence for what can be read in two ways.

    Raises:
        TraceError: for a line that is no entry.
    """
    for number, content in window.lines():
        if not content.strip():
            continue
        if not is_entry(content):
            raise TraceError(
                expected="PROCESS :TYPE :FUNCTION VALUE",
                seen=repr(content[:80]),
                where=f"{window.where}:{number}",
            )
        entry = _entry(content.rstrip(), number, window.where)
        if entry is not None:
            yield entry


def _entry(text: str, line: int, where: str) -> HistoryEntry | None:
    """One entry; None for the nemesis, whose values may be anything. Raises TraceError."""
    if text.startswith(":nemesis"):
        return None
    parts = text.split("\t", 4)
    fields, rest = ("\t".join(parts[:4]), parts[4:]) if len(parts) >= 4 else (text, [])
    reader = EdnReader(Window.of_text(fields, where, line))
    values = [value for value, _ in reader.values()]
    if len(values) not in (4, 5) or not all(isinstance(value, Keyword) for value in values[1:3]):
        raise TraceError(
            expected="process, :type, :function and value", seen=repr(text[:80]), where=f"{where}:{line}"
        )
    row = dict(zip(_NAMES, map(plain, values), strict=False))
    error = rest[0].removeprefix(":") if rest else plain(values[4]) if len(values) == 5 else None
    return entry_of({**row, "error": error}, line=line, where=where)
