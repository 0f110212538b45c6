"""The kafka and groups checks say of a table of operations what they say of the same traces in memory."""

import sys
from pathlib import Path

import pytest
from attrs import evolve

from fencepost.checkers import judges
from fencepost.traces.rows import rows_of
from fencepost.traces.tables import tables_of

HERE = Path(__file__).parent


def histories(folder: str, module: str) -> list:
    """The hand-written traces of a folder's tests, numbered."""
    sys.path.insert(0, str(HERE / folder))
    loaded = __import__(module)
    traces = [item for case in loaded.CASES for item in case[-2:]] + [case[-1] for case in loaded.ALLOWED]
    return [evolve(trace, trace_id=number) for number, trace in enumerate(traces)]


@pytest.mark.parametrize(
    "check,folder,module",
    [("kafka", "kafka", "test_kafka_anomalies"), ("groups", "groups", "test_group_anomalies")],
)
def test_the_table_form_gives_the_same_verdicts(check, folder, module) -> None:
    """Every verdict with its certificate is the same from columns of many traces as from one trace at a time."""
    traces = histories(folder, module)
    table = tables_of([rows_of(trace) for trace in traces])
    judge = judges.CHECKS[check]
    headers = [evolve(trace, operations=()) for trace in traces]
    columns = sorted(set(judge.operation_columns), key=table.operations.column_names.index)
    found = judge.judge_table(table.operations.select(columns), headers)
    alone = {trace.trace_id: judge.judge(trace) for trace in traces}
    assert found == {trace_id: verdict for trace_id, verdict in alone.items() if verdict.decision != "ok"}
    assert 0 < len(found) < len(traces)


def test_kafka_asks_the_log_beside_it() -> None:
    """Asked for kafka alone, the log is judged too, once, because kafka leaves to it what it decides."""
    assert [check.name for check in judges.checks_by_name(("kafka",))] == ["log", "kafka"]
    assert [check.name for check in judges.checks_by_name(("log", "kafka"))] == ["log", "kafka"]
