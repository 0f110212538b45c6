"""The kafka check says of a table of operations what it says of the same traces in memory."""

import pytest
from attrs import evolve
from test_kafka_anomalies import ALLOWED, CASES

from fencepost.checkers import judges
from fencepost.checkers.kafka import kafka_judge as kafka_judge
from fencepost.checkers.kafka.extras import Extras
from fencepost.checkers.kafka.relations import KafkaColumns, kafka_columns
from fencepost.checkers.operation_columns import OperationColumns
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function
from fencepost.traces.tables import tables_of
from tests.checkers import lab


def test_the_table_form_gives_the_same_verdicts() -> None:
    """Every verdict with its certificate is the same from columns of many traces as from one trace at a
    time."""
    histories = [history for case in CASES for history in case[-2:]] + [case[-1] for case in ALLOWED]
    found = lab.judged_from_columns("kafka", histories)
    assert 0 < len(found) < len(histories)


def test_only_traces_with_a_rule_become_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: traces of clients that name every offset cost nothing beside ones with consumers, whose verdicts
    stay."""
    histories = (history for case in CASES for history in case[-2:])
    assigned = next(one for one in histories if kafka_judge.judge_trace(one).findings)
    plain = evolve(assigned, operations=(lab.operation(1, Function.LIST_OFFSETS, 0, 1, **lab.T0, offset=0),))
    traces = [evolve(trace, trace_id=number) for number, trace in enumerate((plain, assigned, plain))]
    table = tables_of([rows_of(trace) for trace in traces]).operations
    seen: list[set[int]] = []

    def noted(operations: OperationColumns, extras: Extras) -> KafkaColumns:
        seen.append({operations.traces[index].trace_id for index in operations.trace.tolist()})
        return kafka_columns(operations, extras)

    monkeypatch.setattr(kafka_judge, "kafka_columns", noted)
    headers = [evolve(trace, operations=()) for trace in traces]
    assert dict(kafka_judge.judge_table(table, headers)) == {1: kafka_judge.judge_trace(traces[1])}
    assert seen == [{1}, {1}]


def test_kafka_asks_the_log_beside_it() -> None:
    """Asked for kafka alone, the log is judged too, once, because kafka leaves to it what it decides."""
    assert [check.name for check in judges.checks_by_name(("kafka",))] == ["log", "kafka"]
    assert [check.name for check in judges.checks_by_name(("log", "kafka"))] == ["log", "kafka"]
