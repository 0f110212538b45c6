"""What the kafka check says of seeded histories, and what it measures, stays what it was (kept.py)."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from kafka_random import random_history

from fencepost.checkers.kafka import judge_traces, kafka_columns_of_traces, measure_columns, send_order
from fencepost.checkers.kafka.consumers import steps_of
from fencepost.checkers.kafka.extras import extras_of_traces
from fencepost.checkers.kafka.kafka_judge import applies
from fencepost.checkers.kafka.placements import placements_of
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.trace import Trace
from tests.checkers.kept import differences, plain, words_of
from tests.checkers.wild_histories import wild
from tests.selfcheck.amounts import amount

SEEDS, BLOCK = 560, 70


def histories(seed: int) -> list[Trace]:
    """Six of different kinds, judged in one call."""
    often = (
        ("transactions", "consumers"),
        ("consumers", "compaction", "retention"),
        ("transactions", "idempotence", "repeated"),
        (),
    )
    made = [wild(10_000 * (n + 1) + seed, features) for n, features in enumerate(often)]
    made[1:1] = [random_history(2 * seed), random_history(2 * seed + 1)]
    return [evolve(trace, trace_id=number) for number, trace in enumerate(made)]


def _measured(traces: list[Trace]) -> list[Any]:
    found = []
    for one in measure_columns(kafka_columns_of_traces(traces)):
        unseen = [(u.topic, u.partition, u.times.tolist(), u.counts.tolist(), u.left) for u in one.unseen]
        lags = one.lags
        ranges = [
            np.asarray(column).tolist()
            for column in (lags.op_id, lags.partition, lags.at_least_ns, lags.at_most_ns)
        ]
        worst = lags.worst()
        found.append((unseen, ranges, str(worst), one.allowed))
    return found


def said(seed: int) -> Any:
    """The verdicts of all together, whether there is anything to judge in each, the measurements, and (every
    other time) the relations."""
    traces = histories(seed)
    together = [(trace_id, words_of(verdict)) for trace_id, verdict in judge_traces(traces)]
    wanted = [applies(columns_of_traces((trace,)), extras_of_traces((trace,))) for trace in traces]
    columns = kafka_columns_of_traces(traces)
    placements = placements_of(columns)
    relations = (
        [plain(columns), plain(placements), plain(steps_of(columns, placements))] if seed % 2 else None
    )
    return together, wanted, _measured(traces), relations


@pytest.mark.parametrize("begin", range(0, amount(2 * BLOCK, SEEDS), BLOCK))
def test_what_is_said_of_consumers_and_producers_stays(begin: int) -> None:
    """Rule: the same operations are convicted of the same anomaly at the same offset, and the same is
    measured."""
    assert differences("kafka", said, range(begin, begin + BLOCK)) == []


def test_a_planted_fault_changes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a check that takes no producer at its word differs on some seed."""
    monkeypatch.setattr(
        send_order, "may_be_first", lambda operations, extras: np.ones(len(operations.op_id), np.bool_)
    )
    assert differences("kafka", said, range(60))
