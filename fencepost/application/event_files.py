"""Which files hold events of an application.

Owns their recognition by content, and the order of the files of a run. Must not know what lines mean.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from fencepost.application.event_lines import LONGEST_LINE
from fencepost.checkers.application.application_events import BY_NAME
from fencepost.traces.errors import TraceError

SUFFIX = ".events"
"""Of the files of a folder."""
SAME = 1 << 20
"""Bytes at the beginning of files of one size that tell copies apart."""
_EVENT = re.compile(rb'"event"\s*:\s*"(' + "|".join(BY_NAME).encode() + rb')"')
_PROCESS = re.compile(rb'"process"\s*:')


def event_files(inputs: Iterable[Path]) -> tuple[Path, ...]:
    """The files of events among inputs, in the order of their names; none if no input is one.

    Args:
        inputs: files, or folders with files `*.events`.

    Returns:
        the files, those of folders and of folders below them included.

    Raises:
        TraceError: some inputs are events and others are not; or two files are copies of each other.
    """
    found: list[Path] = []
    others: list[Path] = []
    for path in inputs:
        inside = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else []
        if path.is_file() and is_events(path):
            found.append(path)
        elif inside and not any(path.glob("*.parquet")) and not (path / "traces").exists():
            found += inside
        else:
            others.append(path)
    if found and others:
        raise TraceError(
            expected=f"files of events alone, as {found[0]} is one",
            seen=f"{others[0]}, which is none",
            where=str(others[0]),
            hint="judge the others in a call of their own",
        )
    files = tuple(sorted(dict.fromkeys(found), key=_by_number))
    _refuse_copies(files)
    return files


def is_run(path: Path) -> bool:
    """Whether a folder holds files of events, which are one run."""
    return any(file.is_file() and is_events(file) for file in path.glob(f"*{SUFFIX}"))


def _by_number(path: Path) -> tuple[tuple[int, str], ...]:
    """Names in the order of their numbers: app.2.events is before app.10.events."""
    parts = re.findall(r"\d+|\D+", str(path))
    return tuple((int(part), "") if part.isdigit() and len(part) < 19 else (-1, part) for part in parts)


def is_events(path: Path) -> bool:
    """Whether the first line of a file that is not blank is one of events."""
    try:
        with path.open("rb") as file:
            for _ in range(100):
                line = file.readline(LONGEST_LINE)
                if not line:
                    return False
                if not line.isspace():
                    return bool(
                        line.lstrip().startswith(b"{") and _EVENT.search(line) and _PROCESS.search(line)
                    )
    except OSError:
        return False
    return False


def _refuse_copies(files: tuple[Path, ...]) -> None:
    seen: dict[tuple[int, bytes], Path] = {}
    for path in files:
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                begin = hashlib.blake2b(file.read(SAME)).digest()
        except OSError:
            continue  # its reading says why
        other = seen.setdefault((size, begin), path)
        if other != path and size:
            raise TraceError(
                expected="each line once",
                seen=f"a copy of {other}",
                where=str(path),
                hint="leave one of them out, or each record counts as processed twice",
            )
