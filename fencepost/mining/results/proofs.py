"""The proofs of a mining's samples: the smallest trace of each anomaly, found again in the input and
explained.

Owns which split a sample came from, and reading its one trace whole. Must not know Spark, or how a trace was
judged. Runs on the driver, once, over the few samples at the end of a mining. A task that proved its own
samples would decode whole traces, and nearly all of its proofs would be thrown away.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from attrs import evolve

from fencepost.mining.inputs.history_files import HistoryFile
from fencepost.mining.inputs.splits import Split
from fencepost.report.explain import explain
from fencepost.report.sample import Sample
from fencepost.traces.canonical_rows import trace_of
from fencepost.traces.errors import TraceError
from fencepost.traces.journal import read_frames
from fencepost.traces.parquet.row_groups import RowGroup, read_group, read_tables
from fencepost.traces.tables import only, traces_of_tables
from fencepost.traces.trace import Trace


def proven(samples: dict[str, Sample], splits: Sequence[Split | HistoryFile]) -> dict[str, Sample]:
    """The samples with their proofs, one line per convicting operation or event. splits: the input.

    A sample keeps the proof that it has, and stays without one where its trace cannot be read again.
    """
    found = dict(samples)
    for name, sample in samples.items():
        if not sample.proof:
            trace = next(_traces(sample, splits), None)
            if trace is not None:
                found[name] = evolve(sample, proof=explain(sample.finding, trace).proof)
    return found


def _traces(sample: Sample, splits: Iterable[Split | HistoryFile]) -> Iterator[Trace]:
    """The sample's trace, whole, from its split."""
    for split in splits:
        if split.source == sample.source:
            with contextlib.suppress(TraceError, OSError):
                if isinstance(split, HistoryFile):
                    yield split.trace(sample.trace_id)
                elif _holds(split, sample.trace_id):
                    yield _trace(split, sample.trace_id)


def _holds(split: Split, trace_id: int) -> bool:
    """Whether the trace is judged with this split. Raises TraceError."""
    if split.group is None:
        return any(frame.trace_id == trace_id for frame in split.frames)
    return trace_id not in split.repeated and _in_group(split.group, trace_id)


def _in_group(group: RowGroup, trace_id: int) -> bool:
    """Whether a row group has the trace; the ids are read only where the footer does not rule it out. Raises
    TraceError."""
    first, last = group.first_trace, group.last_trace
    if first is not None and last is not None and not first <= trace_id <= last:
        return False
    ids = read_group(group.part.traces, "traces", group.index, columns=["trace_id"])
    return bool((ids.column("trace_id").to_numpy() == np.int64(trace_id)).any())


def _trace(split: Split, trace_id: int) -> Trace:
    """One whole trace of a split. Raises TraceError."""
    if split.group is None:
        assert split.journal is not None
        frames = [frame for frame in split.frames if frame.trace_id == trace_id]
        return trace_of(next(read_frames(split.journal, frames)), where=split.place)
    tables = only(read_tables(split.group.part, split.group.index), trace_id)
    return next(traces_of_tables(tables, where=split.place))
