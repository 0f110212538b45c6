"""Both sources of columns, objects and the operations table, give the same columns and so the same
verdicts."""

from random import Random
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from log_histories import append, random_trace, trace, with_claims
from log_special_histories import special_trace

from fencepost.checkers.log import judge_columns, judge_traces, log_columns
from fencepost.checkers.operation_columns import OperationColumns, columns_of_table, columns_of_traces
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation, Position, Record
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.trace import Trace
from tests.checkers import lab


def table_of(traces: list[Trace]) -> pa.Table:
    """The operations table of these traces."""
    rows = [{"trace_id": t.trace_id, **attrs.asdict(operation)} for t in traces for operation in t.operations]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["operations"])


def arrays(columns: Any, prefix: str = "") -> dict[str, Any]:
    """All arrays of columns by name."""
    found: dict[str, Any] = {}
    for field in attrs.fields(type(columns)):
        value = getattr(columns, field.name)
        if attrs.has(type(value)) and not isinstance(value, Trace):
            found |= arrays(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found


def assert_same(a: OperationColumns, b: OperationColumns) -> None:
    """Equal, column by column."""
    left, right = arrays(a), arrays(b)
    for name, values in left.items():
        if isinstance(values, np.ndarray):
            np.testing.assert_array_equal(values, right[name], err_msg=name)
        elif name != "traces":
            assert values == right[name], name


def several(count: int = 60) -> list[Trace]:
    """Random traces, some of two partitions, some special."""
    made = []
    for n in range(count):
        make = special_trace if n % 4 == 2 else random_trace
        base = with_claims(Random(n), make(Random(n), profiles=("default", "strong", "session")))
        twin = [evolve(o, op_id=o.op_id + 100, partition=1, topic="t" if n % 3 else "u",
                       records=tuple(evolve(r, partition=1, topic="t" if n % 3 else "u") for r in o.records))
                for o in base.operations]  # fmt: skip
        made.append(
            evolve(base, trace_id=7 * n, operations=(*base.operations, *twin) if n % 2 else base.operations)
        )
    return made


@pytest.mark.parametrize("form", ["plain", "dictionary", "chunks", "batch"])
def test_table_gives_the_columns_of_the_traces(form: str) -> None:
    """Dictionary-encoded strings, several chunks and record batches read as plain tables do."""
    made = several()
    table = table_of(made)
    source: Any = table
    if form == "dictionary":
        for name in ("function", "outcome", "topic"):
            at = table.schema.get_field_index(name)
            source = source.set_column(at, name, table.column(name).dictionary_encode())
    elif form == "chunks":
        source = pa.concat_tables([table.slice(0, 11), table.slice(11, 5), table.slice(16)])
    elif form == "batch":
        source = table.combine_chunks().to_batches()[0]
    assert_same(columns_of_traces(made), columns_of_table(source, made))
    assert judge_columns(log_columns(columns_of_table(source, made))) == judge_traces(made)


def test_a_slice_of_a_table_is_judged_as_its_rows() -> None:
    """A table that begins in the middle of a buffer, as a row group does, reads as its own rows."""
    made = several(20)
    first = len(made[0].operations)
    assert_same(columns_of_traces(made[1:]), columns_of_table(table_of(made).slice(first), made[1:]))


def test_ordinary_logs_have_no_statements() -> None:
    """Traces that say nothing of log starts, transactions and keys carry no columns for them; one that does
    brings them, in both sources."""
    made = [random_trace(Random(n)) for n in range(5)]
    assert columns_of_traces(made).statements is None
    assert columns_of_table(table_of(made), made).statements is None
    special = special_trace(Random(1), features=("compaction", "transactions"))
    assert columns_of_traces([*made, special]).statements is not None
    assert columns_of_table(table_of([*made, evolve(special, trace_id=9)]), made).statements is not None


def test_unknown_runs_get_default_claims() -> None:
    """A trace id that nobody described is judged with the defaults, under its own id."""
    bad = trace(append(1, [10], 0, 1, 1), append(2, [20], 2, 3, 0), trace_id=42)
    ((trace_id, verdict),) = judge_columns(log_columns(columns_of_table(table_of([bad]))))
    assert (trace_id, verdict.anomaly) == (42, "append_inversion")


def test_a_missing_column_is_told() -> None:
    """A table that is no operations table is the caller's mistake, said in one sentence."""
    with pytest.raises(TraceError, match="invoke_time"):
        columns_of_table(table_of(several(2)).drop_columns(["invoke_time"]))


def test_empty_sources_are_ok() -> None:
    """No traces, and a trace without operations, have no findings."""
    assert judge_traces([]) == []
    assert judge_traces([trace()]) == []
    assert judge_columns(log_columns(columns_of_table(SCHEMAS["operations"].empty_table()))) == []


def poll(
    op_id: int, positions: list[tuple[int, int, int]], records: list[tuple[int, int, int]], invoke: int
) -> Operation:
    """A strong poll of several partitions of t: (partition, position, end) and (partition, offset, value)."""
    return lab.operation(
        *(op_id, Function.POLL, invoke, invoke + 1),
        strong=True,
        positions=tuple(Position(topic="t", partition=p, offset=o, end_offset=e) for p, o, e in positions),
        records=tuple(Record(topic="t", partition=p, offset=o, value=v) for p, o, v in records),
    )


def test_a_poll_of_several_partitions_is_one_read_of_each() -> None:
    """Each position claims an end of its own partition and owns the records of that partition, in any
    interleaving."""
    sent = [
        append(1, [10], 0, 1, 0),
        append(2, [20, 21], 0, 1, 0, partition=1),
        append(3, [30], 0, 1, 0, partition=2),
    ]
    records = [(1, 0, 20), (0, 0, 10), (1, 1, 21)]
    good = poll(4, [(0, 0, 1), (1, 0, 2), (2, 1, 1)], records, 5)
    assert judge_traces([trace(*sent, good)]) == []
    stale = poll(4, [(0, 0, 1), (1, 0, 2), (2, 0, 0)], records, 5)
    ((_, verdict),) = judge_traces([trace(*sent, stale)])
    assert [(f.anomaly, f.partition, f.operations) for f in verdict.findings] == [("lost_write", 2, (4, 3))]
    misplaced = poll(
        4, [(0, 0, 1), (1, 0, 2)], [*records, (2, 0, 10)], 5
    )  # t-2 has no position; the value belongs to t-0
    ((_, verdict),) = judge_traces([trace(*sent, misplaced)])
    assert {(f.anomaly, f.partition) for f in verdict.findings} == {
        ("phantom_record", 2),
        ("inconsistent_offsets", 2),
    }


def test_values_in_no_order_need_no_sort_order() -> None:
    """Foreign value ids, in no order and negative, are found by hashing: same verdicts as with ids in
    order."""
    renamed = {100 * n + i: (-1) ** n * (2**60 - 977 * n * (i + 3)) for n in range(1, 5) for i in range(3)}
    for n in range(200):
        made = random_trace(Random(n))
        operations = tuple(
            evolve(o, records=tuple(evolve(r, value=renamed.get(r.value, r.value)) for r in o.records))
            for o in made.operations
        )
        plain, foreign = judge_traces([made]), judge_traces([evolve(made, operations=operations)])
        assert [v.decision for _, v in plain] == [v.decision for _, v in foreign]
        assert [{f.anomaly for f in v.findings} for _, v in plain] == [
            {f.anomaly for f in v.findings} for _, v in foreign
        ]


def test_kernels_compile_where_nothing_can_be_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder that cannot be written costs time, not an exception."""
    import numba

    from fencepost.checkers import compiled

    plain = numba.njit

    def njit(*args: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", njit)
    with compiled.engine(compiled.COMPILED):
        assert compiled.compiled(lambda x: x + 1)(1) == 2
