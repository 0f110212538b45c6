"""The folder of a Jepsen test: which of its files is the history.

Owns the names of these files. Must not know what is in them.
"""

from pathlib import Path

from fencepost.traces.errors import TraceError

HISTORIES = ("history.edn", "history.txt", "jepsen.log")
"""Files that hold the history; the first says most."""
_OTHERS = ("results.edn", "test.jepsen", "test.fressian")
_BINARY = (".jepsen", ".fressian")


def history_of(folder: Path) -> Path | None:
    """The history in the folder of a Jepsen test; None for another folder. A test leaves at least two files
    of its own: one alone may be called so by chance."""
    there = [name for name in (*HISTORIES, *_OTHERS) if (folder / name).is_file()]
    return folder / there[0] if len(there) > 1 and there[0] in HISTORIES else None


def check_text(path: Path) -> None:
    """Raises TraceError for the binary files of a Jepsen test."""
    if path.suffix in _BINARY:
        raise TraceError(
            expected="a history as text",
            seen="a binary file of a Jepsen test",
            where=str(path),
            hint="name history.edn in the same folder",
        )
