"""The exactly-once judge against its naive twin, and over tables."""

from collections import Counter

import pytest
from attrs import evolve
from exactly_once_naive import history, naive

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.exactly_once import judge_table, judge_trace, judge_traces
from fencepost.checkers.judges import CHECKS
from fencepost.checkers.verdict import Decision
from fencepost.run.simulated.run import run_with_rows
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Claims, LossRange
from tests.selfcheck.amounts import amount

HISTORIES = amount(1_200, 3_000)
STACKED = 50
"""Histories in one call of the judge."""
NAMES = {"torn_transaction", "zombie_write", "output_twice", "output_without_commit", "output_missing"}


def found(trace):
    """The anomalies that the judge names."""
    return {finding.anomaly for finding in judge_trace(trace).findings}


def sweep(seed, histories):
    """(mismatches, illegal histories, how often each name was found) of so many histories from a seed on, in
    stacks: the judge takes many traces at once."""
    wrong, seen = [], Counter()
    for first in range(seed, seed + histories, STACKED):
        traces = [history(number) for number in range(first, min(first + STACKED, seed + histories))]
        verdicts = dict(judge_traces(traces))
        for trace in traces:
            expected = naive(trace)
            told = verdicts.get(trace.trace_id)
            if ({finding.anomaly for finding in told.findings} if told else set()) != expected:
                wrong.append(trace.seed)
            seen.update(expected or {"nothing"})
    return wrong, histories - seen["nothing"], seen


def test_the_judge_and_its_twin_agree():
    """Rule (KIP-98): the judge names what the rules say word for word; each rule has been broken and kept."""
    wrong, _, seen = sweep(0, HISTORIES)
    assert not wrong
    assert min(seen[name] for name in NAMES | {"nothing"}) > HISTORIES // 100, seen


def test_the_order_of_rows_says_nothing():
    """Rule: operations have times. Whichever row comes first, the anomalies are the same."""
    for trace in map(history, range(amount(10, 25))):
        expected, rows = found(trace), trace.operations
        for first in range(1, len(rows)):
            assert found(evolve(trace, operations=(*rows[first:], *rows[:first]))) == expected, trace.seed


def test_loss_that_the_claims_allow_excuses():
    """Rule (KIP-98): what is lost may be an input, an output or an offset; a broken assumption is no
    verdict."""
    trace = next(each for each in map(history, range(100)) if found(each))
    loss = LossRange(topic="out", partition=0, start=0, end=9, reason="a power loss")
    assert judge_trace(evolve(trace, claims=Claims(loss=(loss,)))).decision is Decision.OK
    broken = judge_trace(evolve(trace, claims=Claims(assumption_broken="no cluster")))
    assert broken.decision is Decision.ASSUMPTION_BROKEN


def test_a_certificate_names_its_operations():
    """Rule (KIP-98): a finding names the rows that prove it."""
    for trace in map(history, range(300)):
        known = {row.op_id for row in trace.operations}
        for finding in judge_trace(trace).findings:
            assert (
                finding.operations and set(finding.operations) <= known and finding.expected and finding.seen
            )


@pytest.mark.parametrize("bugs", [(), ("T6",)])
def test_the_form_over_tables_agrees(bugs):
    """Rule (KIP-98): over the columns of a run the verdict is the same."""
    trace, rows = run_with_rows(swarm(1, "default+transactions", bugs=bugs))
    table = tables_of((rows,)).operations
    verdict = judge_trace(trace)
    assert (verdict.decision is Decision.OK) == (not bugs)
    columns = CHECKS["exactly_once"].operation_columns
    told = judge_table(table.select([name for name in table.column_names if name in columns]), (trace,))
    assert told == ([] if not bugs else [(trace.trace_id, verdict)])
