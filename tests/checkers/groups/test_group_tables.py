"""The groups check says of a table of operations what it says of the same traces in memory."""

from attrs import evolve
from test_group_anomalies import ALLOWED, CASES

from fencepost.checkers import judges
from fencepost.traces.rows import rows_of
from fencepost.traces.tables import tables_of


def test_the_table_form_gives_the_same_verdicts() -> None:
    """Every verdict with its certificate is the same from columns of many traces as from one trace at a time."""
    histories = [history for case in CASES for history in case[-2:]] + [case[-1] for case in ALLOWED]
    traces = [evolve(history, trace_id=number) for number, history in enumerate(histories)]
    table = tables_of([rows_of(trace) for trace in traces])
    judge = judges.CHECKS["groups"]
    headers = [evolve(trace, operations=()) for trace in traces]
    columns = sorted(set(judge.operation_columns), key=table.operations.column_names.index)
    found = judge.judge_table(table.operations.select(columns), headers)
    alone = {trace.trace_id: judge.judge(trace) for trace in traces}
    assert found == {trace_id: verdict for trace_id, verdict in alone.items() if verdict.decision != "ok"}
    assert 0 < len(found) < len(traces)
