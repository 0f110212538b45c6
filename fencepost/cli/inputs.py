"""Traces out of whatever a person points at: JSON lines, journals, folders of traces, folders of those, foreign histories.

Owns: which reader a path gets, and that one unreadable piece does not stop the rest. Must not know: judges.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from fencepost.mining.splits import Split, work_of
from fencepost.traces import importers, jsonlines
from fencepost.traces.errors import TraceError
from fencepost.traces.journal import read_frames
from fencepost.traces.parquet import read_tables
from fencepost.traces.rows import trace_of
from fencepost.traces.tables import rows_of_tables
from fencepost.traces.trace import Trace

DEEPEST = 3
"""Levels of folders below the named one that are searched."""
SUFFIX = ".jsonl"
OURS = "fencepost"
"""The format of JSON lines among those of the importers."""
FORMATS = ("auto", OURS, *importers.FORMATS)


@frozen(kw_only=True)
class Quarantined:
    """A piece of the input that could not be read, and why in one sentence."""

    source: str
    reason: str


@frozen(kw_only=True)
class Found:
    """A trace and the path, as named by the caller, that it came from. stored: it can be replayed from there."""

    source: str
    trace: Trace
    stored: bool


def _is_store(path: Path) -> bool:
    return (path / "traces").is_dir() or (path / "journal").is_dir()


def sources(path: Path, depth: int = DEEPEST, suffixes: tuple[str, ...] = (SUFFIX,)) -> Iterator[Path]:
    """The folders of traces and the files (with these suffixes) that a path means. Raises TraceError if it means none."""
    if not path.exists():
        raise TraceError(expected="a file or folder of traces", seen="nothing there", where=str(path))
    found = list(_sources(path, depth, suffixes))
    if not found:
        raise TraceError(
            expected=f"a folder of traces or files {', '.join(f'*{suffix}' for suffix in suffixes)}",
            seen="a folder without any",
            where=str(path),
        )
    yield from found


def _sources(path: Path, depth: int, suffixes: tuple[str, ...]) -> Iterator[Path]:
    if not path.is_dir() or _is_store(path):
        yield path
        return
    yield from sorted(entry for entry in path.iterdir() if entry.suffix in suffixes and entry.is_file())
    if depth > 0:
        for folder in sorted(
            entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith(".")
        ):
            yield from _sources(folder, depth - 1, suffixes)


def _of_store(path: Path) -> Iterator[Found | Quarantined]:
    work = work_of([path])
    for piece in work.unreadable:
        yield Quarantined(source=str(path), reason=piece.reason)
    for split in work.splits:
        try:
            for trace in _of_split(split):
                yield Found(source=str(path), trace=trace, stored=True)
        except TraceError as error:
            yield Quarantined(source=str(path), reason=str(error))


def _of_split(split: Split) -> Iterator[Trace]:
    if split.group is not None:
        tables = read_tables(split.group.part, split.group.index)
        for rows in rows_of_tables(tables, where=split.place):
            yield trace_of(rows, where=split.place)
    else:
        assert split.journal is not None, f"a split of nothing: {split.place}"
        for rows in read_frames(split.journal, list(split.frames)):
            yield trace_of(rows, where=split.place)


def _of_file(path: Path, format: str) -> Iterator[Found | Quarantined]:
    if path.suffix == ".parquet":
        reason = f"{path}: expected the folder of the campaign, saw one of its files; name the folder that holds traces/"
        yield Quarantined(source=str(path), reason=reason)
        return
    try:
        if format == OURS or (format == "auto" and _is_ours(path)):
            for trace in jsonlines.read_traces(path):
                yield Found(source=str(path), trace=trace, stored=False)
        else:
            yield Found(source=str(path), trace=importers.import_file(path, format=format), stored=False)
    except TraceError as error:
        yield Quarantined(source=str(path), reason=str(error))


def _is_ours(path: Path) -> bool:
    """Whether a file begins with the line of a trace of ours."""
    try:
        with path.open("rb") as file:
            first = next((line for line in file if line.strip()), b"")
    except OSError:
        return True  # reading it says what is wrong
    return re.match(rb'\s*\{[^\n]*"type"\s*:\s*"trace"', first) is not None


def traces_of(paths: tuple[Path, ...], format: str = OURS) -> Iterator[Found | Quarantined]:
    """Every trace that the paths mean, one at a time, and every piece that cannot be read. Raises nothing for bad input.

    format: of files, one of FORMATS; folders are searched for foreign histories unless it is our own.
    """
    suffixes = (SUFFIX,) if format == OURS else (SUFFIX, *importers.SUFFIXES)
    for path in paths:
        try:
            for source in sources(path, suffixes=suffixes):
                yield from _of_store(source) if source.is_dir() else _of_file(source, format)
        except TraceError as error:
            yield Quarantined(source=str(path), reason=str(error))
