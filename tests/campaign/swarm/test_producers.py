"""Pipelined producers in runs: the three delivery semantics that docs/explanation/producer.md shows, and what
the swarm draws for them."""

import re
from itertools import pairwise
from pathlib import Path

from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.record.claims import derive_claims
from fencepost.record.observed_state import ObservedState
from fencepost.run.simulated.run import Run, run
from fencepost.run.story import at_once
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import Plan
from fencepost.traces.plan_json import plan_from_json
from fencepost.traces.trace import Trace

PAGE = Path(__file__).parents[3] / "docs/explanation/producer.md"
SEMANTICS = {
    "at most once": {"acks": 0, "idempotent": False, "retry_unknown": False},
    "at least once": {"acks": -1, "idempotent": False, "retry_unknown": True},
    "idempotent": {"acks": -1, "idempotent": True, "retry_unknown": False},
}


def documented(semantics: str) -> Plan:
    """The plan of the page, with what differs."""
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    plan, differs = plan_from_json(text), SEMANTICS[semantics]
    producer = evolve(plan.client.producer, idempotent=differs["idempotent"])
    return evolve(
        plan,
        client=evolve(plan.client, retry_unknown=differs["retry_unknown"], producer=producer),
        operations=tuple(evolve(one, acks=differs["acks"]) for one in plan.operations),
    )


def log_of(trace: Trace) -> list[int]:
    """The op ids of the plan's appends, in the order of the log at the end."""
    values = [
        value
        for event in trace.events
        if event.name is Name.REPLICA_LOG and event.node == 1
        for value in event.values
    ]
    return [value // 1000 for value in values if value < 1_000_000]


def test_at_most_once_at_least_once_idempotent():
    """Rule: the same losses lose a record, write one twice, or do neither; each is what its claims allow, and
    the page shows these logs."""
    logs = {}
    for semantics in SEMANTICS:
        trace = run(documented(semantics))
        assert all(verdict.decision.value == "ok" for verdict in judge(trace)), semantics
        assert trace.claims.duplicates is (semantics == "at least once")
        logs[semantics] = log_of(trace)
        shown = re.search(rf"\| {semantics} \|[^|]*\| ([0-9 *]+)", PAGE.read_text())
        assert shown is not None
        assert [int(number) for number in re.findall(r"\d+", shown[1])] == logs[semantics]
    everything = list(range(1, 11))
    assert len(set(logs["at most once"])) == len(logs["at most once"]) < 10
    assert set(logs["at least once"]) == set(everything) and len(logs["at least once"]) > 10
    assert logs["idempotent"] == everything


def test_rows_of_pipelined_appends_carry_their_numbers():
    """Rule (docs/reference/traces.md): producer id, epoch and the sequence of the first record; the trace
    says that a process has several operations in flight."""
    trace = run(documented("idempotent"))
    rows = [one for one in trace.operations if one.function is Function.APPEND and one.op_id <= 10]
    assert trace.concurrent_processes
    assert [(one.producer_id, one.producer_epoch, one.sequence) for one in rows] == [
        (0, 0, number) for number in range(10)
    ]
    overlapping = [one for one, two in pairwise(rows) if one.completion_time > two.invoke_time]
    assert overlapping


KNOBS = {
    "idempotent": lambda plan: plan.client.producer.idempotent,
    "linger": lambda plan: plan.client.producer.linger_ms > 0,
    "partitioner": lambda plan: plan.client.producer.partitioner,
    "compression": lambda plan: plan.client.producer.compression != "none",
    "one in flight": lambda plan: plan.client.producer.max_in_flight == 1,
    "alone": lambda plan: plan.cluster.topics[0].replication_factor == 1,
    "retries unknown": lambda plan: plan.client.retry_unknown,
}


def test_knobs_of_producers_are_on_in_some_plans_and_off_in_others():
    """Rule: the profile producer has pipelined producers of every kind; idempotent ones append with acks=all
    and need not be told to retry."""
    plans = [swarm(seed, "default+producers") for seed in range(50)]
    for knob, drawn in KNOBS.items():
        assert 0 < sum(bool(drawn(plan)) for plan in plans) < len(plans), knob
    for plan in plans:
        assert plan.client.producer.pipelined
        if plan.client.producer.idempotent:
            assert not plan.client.retry_unknown
            assert {one.acks for one in plan.operations if one.function == "append"} <= {-1}


def cut(cause: str, offset: int) -> Event:
    """A replica cut its log, which then ends at this offset."""
    return Event(time=1, name=Name.TRUNCATED, node=2, topic="t", partition=0, offset=offset, cause=cause)


def test_a_replica_that_started_over_allows_duplicates():
    """Rule (docs/reference/claims.md): it never heard of producers whose batches were deleted; without such a
    replica an idempotent producer writes nothing twice."""
    plan = documented("idempotent")
    assert not derive_claims(plan, ObservedState(retained=True), ()).duplicates
    facts = ObservedState()
    facts.learn(cut("leader_epoch", 5))
    facts.learn(cut("full", 0))
    assert not facts.started_over, "nothing was deleted before offset 0"
    facts.learn(cut("full", 5))
    claims = derive_claims(plan, facts, ())
    assert claims.duplicates and "never heard of producers" in claims.reasons[0]


def test_appends_under_way_keep_their_partition_and_number():
    """Rule: when a run ends, its clients know where their appends were going; one that was sent is unknown,
    one that was not is fail."""
    plan = documented("idempotent")
    under_way = Run(evolve(plan, network=evolve(plan.network, loss_ppm=0)))
    assert at_once(under_way.set_up())
    world = under_way.cluster.world
    for operation in plan.operations:
        under_way.schedule(operation)
    world.run_until(world.now + 800 * MILLISECOND)
    assert (under_way.undecided()[2].outcome, under_way.queues.idle) == (Outcome.FAIL, False)
    for _ in range(400):
        world.run_until(world.now + MILLISECOND // 10)
        rows = under_way.undecided()
        if rows and rows[2].outcome is Outcome.UNKNOWN:
            break
    assert (rows[2].partition, rows[2].producer_id, rows[2].sequence) == (0, 0, 1)
    listed = under_way.cluster.history(rows)
    assert listed[-1].invoke_time > 0 and listed[-1].completion_time is None
