"""Every codec gives back exactly the trace that it was given, and the digest is a function of the run
alone."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import attrs
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.traces import jsonlines
from fencepost.traces.canonical_rows import DURATIONS, LONGEST_MS, rows_of, trace_of
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name, lacks_topic
from fencepost.traces.journal import JournalWriter, decode_payload, encode_frame, scan
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.tables import CHUNK_ROWS as ROWS
from fencepost.traces.tables import (
    chunks_of,
    operations_of_table,
    rows_of_tables,
    tables_of,
    traces_of_tables,
)
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab

INTS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=8)
FIELD = {
    int: INTS,
    int | None: st.none() | INTS,
    str: TEXT,
    str | None: st.none() | TEXT,
    bool: st.booleans(),
}


def values_of(cls: type, **special: st.SearchStrategy) -> st.SearchStrategy:
    """Any value of an attrs class: each field by its type."""
    plain = {field.name: FIELD[field.type] for field in attrs.fields(cls) if field.name not in special}
    return st.builds(cls, **plain, **special)


def tuples(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(strategy, max_size=3).map(tuple)


OPERATIONS = values_of(
    Operation,
    function=st.sampled_from(Function),
    outcome=st.sampled_from(Outcome),
    records=tuples(values_of(Record)),
    positions=tuples(values_of(Position)),
)
EVENTS = values_of(
    Event, name=st.sampled_from(Name), isr=tuples(INTS), replicas=tuples(INTS), values=tuples(INTS)
).filter(lambda event: not lacks_topic(event))
COUNTS = st.integers(0, 2**63 - 1)
CLAIMS = values_of(
    Claims,
    # Other numbers are refused: test_hostile_files.py.
    clock_uncertainty_ns=COUNTS,
    **dict.fromkeys(DURATIONS, st.integers(0, LONGEST_MS)),
    loss=tuples(
        st.tuples(values_of(LossRange), COUNTS, COUNTS).map(
            lambda drawn: attrs.evolve(drawn[0], start=min(drawn[1:]), end=max(drawn[1:]))
        )
    ),
    reasons=tuples(TEXT),
    compacted=tuples(TEXT),
)
TRACES = values_of(
    Trace,
    claims=CLAIMS,
    # An id is one operation's: a row without an answer and one with it, under one id, are read as one.
    operations=st.lists(OPERATIONS, max_size=3, unique_by=lambda operation: operation.op_id).map(tuple),
    events=tuples(EVENTS),
)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(st.lists(TRACES, max_size=3, unique_by=lambda trace: trace.trace_id))
@QUICK
def test_tables_give_back_the_traces(traces: list[Trace]) -> None:
    """Arrow tables hold whole traces without loss, in order."""
    tables = tables_of([rows_of(trace) for trace in traces])
    assert list(traces_of_tables(tables)) == traces


@given(TRACES)
@QUICK
def test_a_frame_gives_back_the_trace(trace: Trace) -> None:
    """A journal's frame holds a run without loss, and its rows digest as the run does."""
    frame = encode_frame(rows_of(trace))
    header = frame[:20]
    from fencepost.traces import journal

    found, end = journal._frame_at(frame, 0)
    assert header and found is not None and end == len(frame) and found.trace_id == trace.trace_id
    assert trace_of(decode_payload(frame[found.offset :], found, where="frame")) == trace


@given(st.lists(TRACES, max_size=3))
@QUICK
def test_json_lines_give_back_the_traces(traces: list[Trace]) -> None:
    """JSON lines hold traces without loss though they leave out what is default."""
    lines = [line for trace in traces for line in jsonlines.lines_of(trace)]
    assert list(jsonlines.read_lines(lines, where="x")) == traces


@given(TRACES)
@QUICK
def test_the_digest_survives_the_tables(trace: Trace) -> None:
    """A run digests the same before it is stored and after it was read."""
    (back,) = rows_of_tables(tables_of([rows_of(trace)]))
    assert digest_of(trace_of(back)) == digest_of(trace)


def test_parts_and_journals_give_back_the_traces(tmp_path: Path, make_trace) -> None:
    """A store gives back what was appended, with its digest filled in, before sealing and after."""
    from fencepost.traces.sealing import seal

    traces = [make_trace(number) for number in range(5)]
    expected = [attrs.evolve(trace, digest=digest_of(trace)) for trace in traces]
    store = lab.stored(tmp_path, traces, sealed=False)
    assert list(store) == expected
    assert seal(store).traces == 5
    store.refresh()
    assert list(store) == expected
    assert store.read(3) == expected[3]
    assert store.trace_ids() == frozenset(range(5))


def test_what_the_digest_leaves_out(make_trace) -> None:
    """The digest ignores trace_id, digest, version, target and profile, and nothing else of a trace."""
    trace = make_trace(1)
    ignored = {
        "trace_id": 2,
        "digest": "x",
        "software_version": "y",
        "target": "processes",
        "profile": "chaos",
    }
    other = {
        "plan": "{}",
        "seed": 5,
        "claims": Claims(dense=True),
        "unique_values": False,
        "concurrent_processes": True,
        "operations": trace.operations[:-1],
        "events": trace.events[1:] + trace.events[:1],
    }
    assert {*ignored, *other} == {field.name for field in attrs.fields(Trace)}
    for name, value in ignored.items():
        assert digest_of(attrs.evolve(trace, **{name: value})) == digest_of(trace), name
    for name, value in other.items():
        assert digest_of(attrs.evolve(trace, **{name: value})) != digest_of(trace), name


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_the_digest_ignores_the_hash_seed(hash_seed: str) -> None:
    """The digest of the golden trace is the same in another process with another PYTHONHASHSEED."""
    golden = Path(__file__).parent / "golden" / "v1"
    program = (
        "import sys; from pathlib import Path; from fencepost.traces import jsonlines, digest;"
        "print([digest.digest_of(t) for t in jsonlines.read_traces(Path(sys.argv[1]))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(golden / "traces.jsonl")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.stdout.strip() == str((golden / "digests").read_text().split())


@pytest.mark.parametrize(
    ("change", "column"),
    [({"op_id": 2**63}, "op_id"), ({"topic": 7}, "topic"), ({"records": lab.records(2**70)}, "value")],
)
def test_a_value_without_a_place_is_refused_by_column(make_trace, change: dict, column: str) -> None:
    """A value that no column can hold is refused, naming the column."""
    trace = make_trace(1)
    bad = attrs.evolve(trace, operations=(attrs.evolve(trace.operations[0], **change),))
    with pytest.raises(TraceError, match=f"column {column}"):
        tables_of([rows_of(bad)])
    if column != "topic":
        with pytest.raises(TraceError):
            encode_frame(rows_of(attrs.evolve(trace, seed=2**70)))


def test_unpaired_surrogates_are_refused(make_trace, tmp_path: Path) -> None:
    """Text that UTF-8 cannot hold is the caller's mistake, not a traceback."""
    bad = attrs.evolve(make_trace(1), plan="\ud800")
    with pytest.raises(TraceError), JournalWriter.open(tmp_path / "a.journal") as writer:
        writer.append(bad)
    assert scan(tmp_path / "a.journal").frames == ()


@pytest.mark.parametrize("rows", [1, 7, 40, 10_000])
def test_chunks_cut_only_between_traces(make_trace, rows: int) -> None:
    """Cut into chunks of any size, tables still hold every trace whole, once and in order."""
    traces = [make_trace(number, appends=number % 6) for number in range(12)]
    bare = attrs.evolve(traces[5], operations=(), events=())
    traces[5] = traces[11] = bare
    traces[11] = attrs.evolve(bare, trace_id=11)
    chunks = list(chunks_of(tables_of([rows_of(trace) for trace in traces]), rows=rows))
    assert [trace for chunk in chunks for trace in traces_of_tables(chunk)] == traces
    assert len(chunks) > 1 or rows == 10_000


def test_a_trace_with_two_rows_is_refused(make_trace) -> None:
    """The same trace twice in one table is a contradiction, not two runs."""
    rows = [rows_of(make_trace(number)) for number in (1, 1)]
    with pytest.raises(TraceError, match="expected one row in traces per trace, saw two for 1"):
        list(rows_of_tables(tables_of(rows)))


def test_what_is_made_on_the_way_does_not_grow_with_the_rows() -> None:
    """Rule: operations are made few rows at a time, so that a long history costs what its operations are."""
    one = lab.operation(0, Function.APPEND, 0, 7, process=1, **lab.T0, acks=-1, offset=5)
    rows = tuple(evolve(one, op_id=n, invoke_time=n << 20, completion_time=n << 21) for n in range(3 * ROWS))
    table = tables_of([rows_of(lab.trace(rows))]).operations
    tracemalloc.start()
    try:
        (made,) = operations_of_table(table, table.column_names).values()
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made == rows and most < 1.25 * kept
