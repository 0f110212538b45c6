"""Traces from everything that a person names: JSON lines, journals, folders of traces, folders of those,
foreign histories.

Owns which reader a path gets, the pieces for several processes, and that one unreadable piece
does not stop the rest. Must not know judges.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import frozen

from fencepost.application.event_columns import read_events
from fencepost.application.event_files import SUFFIX as EVENTS_SUFFIX
from fencepost.application.event_files import event_files, is_run
from fencepost.checkers.application.application_judge import Claims
from fencepost.checkers.application.recorded import trace_of_events
from fencepost.mining.inputs.split_reading import sound_rows
from fencepost.mining.inputs.splits import Split, Unreadable, work_of
from fencepost.mining.inputs.walk import Identity, Walk, identity
from fencepost.traces import importers, jsonlines
from fencepost.traces.canonical_rows import known_events, left_out_in_words, trace_of
from fencepost.traces.errors import TraceError
from fencepost.traces.importers import DEFAULT, Conventions
from fencepost.traces.parts import is_recording, parts_of, read_recording
from fencepost.traces.tables import place_of
from fencepost.traces.trace import Trace

DEEPEST = 3
"""Levels of folders below the named one that are searched."""
SUFFIX = ".jsonl"
OURS = "fencepost"
"""The format of JSON lines among those of the importers."""
RECORDED = "recording"
"""The format of a folder that holds one trace in parts; it is detected, never named by the user."""
EVENTS = "events"
"""The format of a folder of files that an application wrote, which are one run; it is detected likewise."""
FORMATS = ("auto", OURS, *importers.FORMATS)


@frozen(kw_only=True)
class Quarantined:
    """A piece of the input that could not be read, and why in one sentence."""

    source: str
    reason: str


@frozen(kw_only=True)
class Found:
    """A trace and the path, as named by the caller, that it came from."""

    source: str
    trace: Trace
    # It can be replayed from there.
    stored: bool
    # An importer made it, and its trace id means nothing.
    foreign: bool = False
    # How it was read where it can be read in two ways, in sentences.
    taken: tuple[str, ...] = ()


def is_store(path: Path) -> bool:
    """Whether it is a folder of traces."""
    return (path / "traces").is_dir() or (path / "journal").is_dir()


def _wanted(suffixes: tuple[str, ...]) -> Callable[[Path], bool]:
    """Whether a file or folder is meant by a folder above it."""

    foreign = suffixes != (SUFFIX,)

    def wanted(entry: Path) -> bool:
        if not entry.is_dir():
            return entry.suffix in suffixes
        return is_store(entry) or is_recording(entry) or (foreign and (_is_jepsen(entry) or is_run(entry)))

    return wanted


def sources(path: Path, suffixes: tuple[str, ...] = (SUFFIX,)) -> Iterator[Path]:
    """The folders of traces, recordings and files that a path means, each real one once.

    Args:
        path: as the caller named it; a file is meant whatever its name is.
        suffixes: of files in folders.

    Yields:
        their paths.

    Raises:
        TraceError: if it means none.
    """
    if not path.exists():
        raise TraceError(expected="a file or folder of traces", seen="nothing there", where=str(path))

    found = list(Walk().below(path, _wanted(suffixes), DEEPEST))
    if not found:
        raise TraceError(
            expected=f"a folder of traces or files {', '.join(f'*{suffix}' for suffix in suffixes)}",
            seen="a folder without any",
            where=str(path),
        )
    for source in found:
        yield (importers.history_of(source) or source) if _is_jepsen(source) else source


def _is_jepsen(source: Path) -> bool:
    """Whether it is the folder of a Jepsen test, which is one history in several files."""
    return source.is_dir() and not is_store(source) and importers.history_of(source) is not None


@frozen(kw_only=True)
class Piece:
    """A part of the input that is read separately: a file, or one split of a folder of traces."""

    # The path as the caller named it.
    source: str
    # On disk.
    size_bytes: int
    # Of a file.
    format: str = OURS
    # Of a foreign history.
    conventions: Conventions = DEFAULT
    split: Split | None = None


def _of_store(path: Path) -> Iterator[Piece | Quarantined]:
    work = work_of([path])
    for unreadable in work.unreadable:
        yield Quarantined(source=str(path), reason=unreadable.reason)
    for split in work.splits:
        yield Piece(source=str(path), size_bytes=split.size_bytes, split=split)


def _of_split(split: Split) -> Iterator[Trace | str]:
    """The traces of a split, and why others cannot be judged, each in a sentence: it costs only itself.
    Events of unknown names are left out, in a sentence too."""
    for found in sound_rows(split):
        if isinstance(found, Unreadable):
            named = found.trace_id < 0 or found.reason.startswith(split.place)
            yield found.reason if named else f"{place_of(split.place, found.trace_id)}: {found.reason}"
            continue
        rows, strange = known_events(found)
        where = place_of(split.place, rows.trace_id)
        for name, count in strange.items():
            yield left_out_in_words(name, count, where)
        try:
            yield trace_of(rows, where=where)
        except TraceError as error:
            yield str(error)


def read_piece(piece: Piece) -> Iterator[Found | Quarantined]:
    """The traces of a piece, one at a time, and why the rest of it cannot be read. Raises nothing for bad
    input."""
    path = Path(piece.source)
    left_out: list[str] = []
    try:
        if piece.split is not None:
            for one in _of_split(piece.split):
                if isinstance(one, str):
                    yield Quarantined(source=piece.source, reason=one)
                else:
                    yield Found(source=piece.source, trace=one, stored=True)
        elif piece.format == RECORDED:
            yield Found(source=piece.source, trace=read_recording(path), stored=False)
        elif piece.format == EVENTS:
            yield from _run(piece, path)
        elif piece.format == OURS or (piece.format == "auto" and _is_ours(path)):
            for trace in jsonlines.read_traces(path, left_out.append):
                yield Found(source=piece.source, trace=trace, stored=False)
        else:
            yield _foreign(piece, path)
    except TraceError as error:
        yield Quarantined(source=piece.source, reason=str(error))
    for reason in left_out:
        yield Quarantined(source=piece.source, reason=reason)


def _foreign(piece: Piece, path: Path) -> Found:
    taken: list[str] = []
    trace = importers.import_file(path, format=piece.format, conventions=piece.conventions, tell=taken.append)
    return Found(source=piece.source, trace=trace, stored=False, foreign=True, taken=tuple(taken))


def _run(piece: Piece, path: Path) -> Iterator[Found | Quarantined]:
    """What an application did, as one trace; and the lines that could not be read."""
    events = read_events(event_files([path]))
    for sentence in events.left_out:
        yield Quarantined(source=piece.source, reason=sentence)
    yield Found(source=piece.source, trace=trace_of_events(events, Claims()), stored=False, foreign=True)


def _size_of_run(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob(f"*{EVENTS_SUFFIX}"))


def _of_file(path: Path, format: str, conventions: Conventions) -> Piece | Quarantined:
    if path.suffix == ".parquet":
        reason = (
            f"{path}: expected the folder of the campaign, saw one of its files; name the folder that "
            f"holds traces/"
        )
        return Quarantined(source=str(path), reason=reason)
    try:
        size_bytes = path.stat().st_size
    except OSError as error:
        return Quarantined(source=str(path), reason=f"{path}: {error.strerror or error}")
    return Piece(source=str(path), size_bytes=size_bytes, format=format, conventions=conventions)


def _size_of(recording: Path) -> int:
    return sum(part.stat().st_size for part in parts_of(recording))


def _is_ours(path: Path) -> bool:
    """Whether a file holds traces of ours. One that is called so and is no foreign history is ours: its
    reader says what is wrong."""
    try:
        with path.open("rb") as file:
            first = next((line for line in file if line.strip()), b"")
    except OSError:
        return True  # reading it says what is wrong
    if re.match(rb'\s*\{[^\n]*"type"\s*:\s*"(?:trace|operation|event)"', first):
        return True
    return path.suffix == SUFFIX and not importers.is_history(path)


def pieces_of(
    paths: tuple[Path, ...],
    format: str = OURS,
    tell: Callable[[str], None] = lambda sentence: None,
    conventions: Conventions = DEFAULT,
) -> Iterator[Piece | Quarantined]:
    """What the paths mean, in pieces, without reading them; what they mean twice, once. Raises nothing for
    bad input.

    format: of files, one of FORMATS; folders are searched for foreign histories unless it is our own. tell:
    is called with a sentence about a path that means again what an earlier one means. conventions: of
    foreign histories.
    """
    met: set[Identity] = set()
    for path in paths:
        try:
            for source in _sources(path, format):
                if _met(source, met):
                    tell(f"{source}: it is named twice, and read once")
                    continue
                if _is_jepsen(source.parent) and identity(source) != identity(path):
                    tell(f"{source.parent}: a folder of a Jepsen test, of which {source.name} is read")
                if source.is_dir() and is_run(source):
                    yield Piece(source=str(source), size_bytes=_size_of_run(source), format=EVENTS)
                elif is_recording(source):
                    yield Piece(source=str(source), size_bytes=_size_of(source), format=RECORDED)
                elif source.is_dir():
                    yield from _of_store(source)
                else:
                    yield _of_file(source, format, conventions)
        except TraceError as error:
            yield Quarantined(source=str(path), reason=str(error))


def _sources(path: Path, format: str) -> Iterator[Path]:
    """What a path means in a format. In a folder with traces of ours, other texts are notes and logs, but for
    those that begin as a history."""
    everything = (SUFFIX, *importers.SUFFIXES)
    if format == OURS:
        return sources(path)
    if format == "auto" and path.is_dir() and any(Walk().below(path, _wanted((SUFFIX,)), DEEPEST)):
        ours = set(sources(path))
        return (one for one in sources(path, everything) if one in ours or importers.is_history(one))
    return sources(path, suffixes=everything)


def _met(source: Path, met: set[Identity]) -> bool:
    """Whether an earlier path means it too."""
    try:
        found = identity(source)
    except OSError:
        return False
    known = found in met
    met.add(found)
    return known


def traces_of(paths: tuple[Path, ...], format: str = OURS) -> Iterator[Found | Quarantined]:
    """Every trace that the paths mean, one at a time, and every piece that cannot be read. Raises nothing for
    bad input."""
    for piece in pieces_of(paths, format):
        if isinstance(piece, Quarantined):
            yield piece
        else:
            yield from read_piece(piece)
