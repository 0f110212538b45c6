"""Histories in files (JSON lines, Jepsen's EDN and JSON, logs) as splits of a mining, in addition to the
folders of traces.

Owns how to distinguish the two in what the caller named, and reading a file's histories few at a time. Must
not know judges, or formats (traces.py reads them).
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from attrs import frozen

from fencepost.mining.inputs.splits import Unreadable
from fencepost.mining.inputs.traces import SUFFIX, Found, Piece, Quarantined, is_store, read_piece, sources
from fencepost.mining.inputs.walk import identity
from fencepost.traces import importers
from fencepost.traces.errors import FencepostError
from fencepost.traces.trace import Trace

TRACES_AT_ONCE = 200
"""Histories of a file that are judged together."""


@frozen(kw_only=True)
class HistoryFile:
    """One file, the unit of a task."""

    # Its path, twice: as for a split.
    source: str
    place: str
    size_bytes: int
    # As for `fencepost check`.
    format: str
    # Empty; a file has neither.
    frames: tuple[()] = ()
    # A split has some of both; they name tasks (results/checkpoint.py).
    repeated: tuple[()] = ()

    def read(self) -> Iterator[list[Trace] | Unreadable]:
        """Its histories, few at a time, and why the rest cannot be read. Raises nothing for bad input."""
        found = read_piece(Piece(source=self.place, size_bytes=self.size_bytes, format=self.format))
        while many := list(islice(found, TRACES_AT_ONCE)):
            traces = [one.trace for one in many if isinstance(one, Found)]
            if traces:
                yield traces
            for one in many:
                if isinstance(one, Quarantined):
                    yield Unreadable(source=self.source, place=self.place, reason=one.reason)

    def trace(self, trace_id: int) -> Trace:
        """One of its histories."""
        traces = (trace for many in self.read() if isinstance(many, list) for trace in many)
        return next(trace for trace in traces if trace.trace_id == trace_id)


def told_apart(inputs: list[Path], format: str) -> tuple[list[Path], list[HistoryFile]]:
    """Folders of traces, and files of histories, that the inputs mean. Raises FencepostError for one that
    means nothing, or that is meant twice."""
    stores: list[Path] = []
    files: list[HistoryFile] = []
    for path in inputs:
        if is_store(path) or not path.exists():
            stores.append(path)  # the code that opens it reports what is wrong with it
            continue
        for source in sources(path, suffixes=(SUFFIX, *importers.SUFFIXES)):
            if source.is_dir():
                stores.append(source)
            else:
                size = source.stat().st_size
                files.append(
                    HistoryFile(
                        source=str(source), place=str(source.absolute()), size_bytes=size, format=format
                    )
                )
    named = [identity(Path(file.place)) for file in files]
    if len(set(named)) != len(named):
        raise FencepostError(
            expected="each file of histories once", seen="the same one twice", where="the inputs"
        )
    return stores, files
