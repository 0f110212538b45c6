"""A consumer commits what its polls return, as its mode says."""

import pytest
from attrs import evolve

from fencepost.campaign.run.run import Run
from fencepost.checkers.meantime import judge
from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.outcomes import ErrorCode
from fencepost.traces.plan import (
    ClusterOptions,
    ConsumerOptions,
    GroupOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)
from tests.checkers.meantime_by_hand import SECOND, anomalies_of


def row(function: Function, at: int, offset: int, generation: int = 1) -> Operation:
    """A poll that returned a record, or a commit of the offset."""
    polled = function is Function.POLL
    return Operation(
        op_id=at,
        process=7,
        function=function,
        invoke_time=at * SECOND,
        completion_time=at * SECOND + 1_000_000,
        outcome=Outcome.OK,
        group="g",
        member="a",
        generation=generation,
        records=(Record(topic="t", partition=0, offset=offset, value=offset),) if polled else (),
        positions=() if polled else (Position(topic="t", partition=0, offset=offset),),
    )


def found(*operations: Operation, commit: str = "sync", events: tuple[Event, ...] = ()) -> bool:
    plan = Plan(
        seed=1,
        cluster=ClusterOptions(zookeeper_session_timeout_ms=1_000, replica_lag_time_max_ms=1_000),
        consumer=ConsumerOptions(commit=commit, auto_commit_interval_ms=4_000),
    )
    return "missing_commit" in anomalies_of(plan, operations, events)


FIRST, LATER = row(Function.POLL, 50, 3), row(Function.POLL, 53, 4)


@pytest.mark.parametrize("mode", ["sync", "async", "before"])
def test_each_poll_is_committed(mode: str) -> None:
    """Rule (MEANTIME): before the next one, and as far as it goes."""
    assert found(FIRST, LATER, commit=mode)
    assert found(FIRST, row(Function.COMMIT, 52, 3), LATER, commit=mode)
    assert found(FIRST, LATER, row(Function.COMMIT, 55, 4), commit=mode)
    assert not found(FIRST, row(Function.COMMIT, 52, 4), LATER, commit=mode)
    refused = evolve(row(Function.COMMIT, 52, 4), outcome=Outcome.FAIL, error="NOT_COORDINATOR")
    assert not found(FIRST, refused, LATER, commit=mode)


def test_an_automatic_commit_comes_after_its_interval() -> None:
    """Rule (MEANTIME): with the first poll that begins later."""
    assert not found(FIRST, LATER, commit="auto")
    last = row(Function.POLL, 56, 5)
    assert found(FIRST, LATER, last, commit="auto")
    assert not found(FIRST, LATER, row(Function.COMMIT, 55, 5), last, commit="auto")


def test_what_excuses_it() -> None:
    """Rule (MEANTIME): another generation, a process that begins anew (a static member keeps its generation:
    seed 46000186 of the profile everything), a fault, and a mode without commits."""
    assert not found(FIRST, row(Function.POLL, 53, 4, generation=2))
    for at, process, late in ((52, 7, False), (52, 8, True), (49, 7, True), (54, 7, True)):
        assert found(FIRST, LATER, evolve(row(Function.JOIN, at, 0), process=process)) is late
    assert not found(FIRST, LATER, commit="none")
    began = Event(time=49 * SECOND, name=Name.FAULT_BEGAN, node=1, cause="crash", detail='{"fault":1}')
    assert not found(FIRST, LATER, events=(began,))


def ran(mode: str) -> set[str]:
    """What is found in a run of a group without faults."""
    appends = [PlannedOperation(op_id=n, process=1, at_ms=250 * n, function="append") for n in range(1, 60)]
    joins = PlannedOperation(op_id=1_000, process=5, at_ms=500, function="subscribe", key="g")
    offsets = TopicOptions(name="__consumer_offsets", cleanup_policy="compact")
    plan = Plan(
        seed=4,
        safety_ms=25_000,
        cluster=ClusterOptions(
            topics=(TopicOptions(), offsets),
            zookeeper_session_timeout_ms=1_000,
            replica_lag_time_max_ms=1_000,
            groups=GroupOptions(initial_rebalance_delay_ms=200),
        ),
        consumer=ConsumerOptions(commit=mode, auto_commit_interval_ms=500),
        operations=(*appends, joins),
    )
    return {one.anomaly for one in judge(Run(plan).run()).findings}


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a commitSync that answers without a commit, a commitAsync that does nothing, an automatic commit
    that is never due."""
    assert not ran("sync") | ran("async") | ran("auto")
    monkeypatch.setattr(
        Consumer, "commit_sync", lambda self: self.application.committed(self, ErrorCode.NONE)
    )
    monkeypatch.setattr(Consumer, "commit_async", lambda self: None)
    monkeypatch.setattr(Consumer, "_on_auto_commit", lambda self: None)
    assert all("missing_commit" in ran(mode) for mode in ("sync", "async", "auto"))
