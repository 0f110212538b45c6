"""Every verdict says what the trace has no data for, and a trace of which nothing was judged is not Ok."""

import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import CHECKS, judge
from fencepost.checkers.unjudged import Data, data_of, data_of_tables, line_of
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.simulated.run import run
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tests.checkers.wild_histories import wild

EMPTY = lab.trace(trace_id=1, seed=0)


def one(function: Function, **more: object) -> Operation:
    """An operation that says nothing but its function."""
    return Operation(
        op_id=0, process=0, function=function, invoke_time=0, outcome=Outcome.OK, completion_time=1, **more
    )


def test_both_forms_read_the_same_of_a_trace() -> None:
    traces = [wild(seed) for seed in range(30)] + [run(swarm(3, "default+transactions")), EMPTY]
    traces = [evolve(trace, trace_id=number) for number, trace in enumerate(traces)]
    tables = tables_of(map(rows_of, traces))

    found = data_of_tables(tables.operations, tables.events)

    assert {trace.trace_id: data_of(trace) for trace in traces} == {
        trace.trace_id: found.get(trace.trace_id, Data(0)) for trace in traces
    }


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        (one(Function.APPEND), Data.APPENDS),
        (one(Function.APPEND, result="t-0@1"), Data.APPENDS | Data.OUTPUTS),
        (one(Function.POLL), Data.READS),
        (one(Function.POLL, strong=True), Data.READS | Data.STRONG),
        (one(Function.POLL, node=3), Data.READS | Data.ENDS),
        (one(Function.LIST_OFFSETS, leader_epoch=0), Data.READS | Data.ENDS),
        (one(Function.LIST_OFFSETS, leader_epoch=-1), Data.READS),
        (one(Function.JOIN, node=3), Data.GROUPS),
        (one(Function.TXN), Data.TRANSACTIONS),
        (one(Function.CRASH), Data(0)),
        (one(Function.CAS), Data.MODEL),
    ],
)
def test_what_an_operation_is_data_for(operation: Operation, data: Data) -> None:
    trace = evolve(EMPTY, operations=(operation,))
    tables = tables_of([rows_of(trace)])
    assert data_of(trace) == data
    assert data_of_tables(tables.operations, tables.events).get(1, Data(0)) == data


def test_each_check_names_what_it_lacks() -> None:
    """A check without a line would pass in silence what it has no data for. What an application wrote is no
    data of a system, and its judge says itself what is lacking."""
    for name in set(CHECKS) - {"application"}:
        assert line_of(name, Data(0))
        assert line_of(name, ~Data(0)) == ""


@pytest.mark.parametrize(
    "trace",
    [
        EMPTY,
        evolve(EMPTY, plan="a plan"),
        evolve(EMPTY, events=(Event(time=1, name=Name.CONNECTION), Event(time=2, name=Name.FAULT_BEGAN))),
        evolve(EMPTY, operations=(one(Function.CRASH),)),
        evolve(EMPTY, operations=(one(Function.WRITE, argument="1"),)),
    ],
    ids=["nothing", "a plan", "events of the run", "a crash", "a register"],
)
@pytest.mark.parametrize("checks", [tuple(CHECKS), ("invariants",)])
def test_a_trace_of_which_nothing_was_judged_is_not_ok(trace: Trace, checks: tuple[str, ...]) -> None:
    verdict = combine(judge(trace, checks))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert "nothing was judged: " in verdict.reason
    assert "what brokers did (no events of brokers)" in verdict.unjudged


def test_events_of_brokers_alone_can_be_judged() -> None:
    trace = evolve(EMPTY, events=(Event(time=1, name=Name.BROKER_STARTED, node=1),))
    assert combine(judge(trace)).decision is Decision.OK
    assert "what was acknowledged (no append)" in combine(judge(trace)).unjudged
