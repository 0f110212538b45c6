"""The groups check says of a table of operations what it says of the same traces in memory."""

import pyarrow as pa
from group_histories import append, commit, fetch, trace
from test_group_anomalies import ALLOWED, CASES

from fencepost.checkers.groups.groups_judge import judge_table
from fencepost.checkers.verdict import Decision
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.tables import tables_of
from tests.checkers import lab


def test_the_table_form_gives_the_same_verdicts() -> None:
    """Every verdict with its certificate is the same from columns of many traces as from one trace at a
    time."""
    histories = [history for case in CASES for history in case[-2:]] + [case[-1] for case in ALLOWED]
    found = lab.judged_from_columns("groups", histories)
    assert 0 < len(found) < len(histories)


def test_a_broken_assumption_is_told_of_traces_without_groups_too() -> None:
    """Rule: a trace that may not be judged is answered so, whether it has groups or not."""
    broken = [
        trace(append(1, 0), trace_id=1, assumption_broken="x"),
        trace(commit(1, "m1", 1, 5), trace_id=2, assumption_broken="x"),
    ]
    found = judge_table(tables_of([rows_of(one) for one in broken]).operations, broken)
    assert {trace_id: verdict.decision for trace_id, verdict in found.items()} == dict.fromkeys(
        (1, 2), Decision.ASSUMPTION_BROKEN
    )


def test_lists_that_are_null_are_empty() -> None:
    """Rule: rows of other writers may leave out records and positions altogether."""
    lost = trace(commit(1, "m1", 1, 3), fetch(2, None))
    table = tables_of([rows_of(lost)]).operations
    for name in ("records", "positions"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.nulls(len(table), table.schema.field(name).type))
    assert [f.anomaly for f in judge_table(table, (lost,))[1].findings] == ["committed_offset_lost"]
