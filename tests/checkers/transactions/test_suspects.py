"""Which operations may be in a cycle: exactly those within the span of a read that leads downwards."""

import numpy as np
import pytest
from attrs import evolve
from test_transactions_differential import history

from fencepost.checkers.operation_columns import OperationColumns, columns_of_traces
from fencepost.checkers.transactions import judge_traces
from fencepost.checkers.transactions.graph import graph_of
from fencepost.checkers.transactions.suspects import may_be_cyclic
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import Trace

ERROR_NS = 2


def height(trace: Trace, row: int) -> int:
    """An end that is certain, later by twice the error of clocks; else the beginning."""
    operation = trace.operations[row]
    if operation.outcome is not Outcome.OK or operation.completion_time is None:
        return operation.invoke_time
    return operation.completion_time + 2 * trace.claims.clock_uncertainty_ns


def by_definition(traces: list[Trace], columns: OperationColumns, reads: list[tuple[int, int]]) -> list[bool]:
    """Each row with each read of its trace."""
    first = np.searchsorted(columns.trace, np.arange(len(traces))).tolist()
    of = columns.trace.tolist()
    heights = [height(traces[of[row]], row - first[of[row]]) for row in range(len(of))]
    return [
        any(
            of[source] == of[row] and heights[target] <= heights[row] <= heights[source]
            for source, target in reads
        )
        for row in range(len(of))
    ]


@pytest.mark.parametrize("seed", range(0, 120, 20))
def test_the_span_of_reads_that_lead_downwards(seed: int) -> None:
    """Rule: several traces together, with and without an error of clocks."""
    traces = [
        evolve(one, claims=evolve(one.claims, clock_uncertainty_ns=ERROR_NS * (number % 2)))
        for number, one in enumerate(history(each) for each in range(seed, seed + 20))
    ]
    columns = columns_of_traces(traces)
    wr = graph_of(columns).wr
    wanted = by_definition(traces, columns, list(zip(wr.source.tolist(), wr.target.tolist(), strict=True)))
    assert may_be_cyclic(columns, wr.source, wr.target).tolist() == wanted
    assert 0 < sum(wanted) < len(wanted)


def test_the_spans_of_all_histories_differ_from_everything() -> None:
    """The bound means something: rows of healthy traces are left out, though another trace has a cycle."""
    traces = [evolve(history(seed), trace_id=seed) for seed in range(200)]
    columns = columns_of_traces(traces)
    graph = graph_of(columns, suspects_only=True)
    kept = {traces[one].trace_id for one in np.unique(graph.trace[graph.wr.target]).tolist()}
    illegal = {trace_id for trace_id, verdict in judge_traces(traces) if verdict.findings}
    assert illegal <= kept and len(kept) < 190
    rows = np.unique(graph.realtime.source)
    assert len(rows[rows < graph.rows]) < graph.rows // 2


def test_an_end_before_its_beginning_makes_its_trace_suspect() -> None:
    """Rule: then time orders nothing, and no bound holds; other traces keep theirs."""
    plain = next(one for one in map(history, range(99)) if not judge_traces([one]))
    broken = evolve(
        plain, operations=tuple(evolve(op, completion_time=op.invoke_time - 9) for op in plain.operations)
    )
    columns = columns_of_traces([plain, broken, plain])
    none = np.empty(0, np.int64)
    count = len(plain.operations)
    assert may_be_cyclic(columns, none, none).tolist() == [False] * count + [True] * count + [False] * count


def test_who_is_ok_without_an_end_has_the_height_of_its_beginning() -> None:
    """Rule: only a certain end counts; with an error of clocks, the end of time would be its beginning."""
    plain = next(one for one in map(history, range(99)) if not judge_traces([one]))
    endless = evolve(
        plain,
        operations=tuple(evolve(op, completion_time=None) for op in plain.operations),
        claims=evolve(plain.claims, clock_uncertainty_ns=ERROR_NS),
    )
    none = np.empty(0, np.int64)
    assert not may_be_cyclic(columns_of_traces([endless]), none, none).any()
