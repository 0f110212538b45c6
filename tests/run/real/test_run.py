"""One run against a system in real time: its phases, its faults, its record and its claims."""

import asyncio
import time
from itertools import repeat

import pytest
from attrs import evolve

from fencepost.campaign.swarm.real_systems import PROCESS_FAULTS, swarm_for_real
from fencepost.campaign.workers.real_worker import checked
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.impl.client.client import Client
from fencepost.record.observed_state import ObservedState
from fencepost.run.faults.kind import RealHit
from fencepost.run.faults.table import REAL_FAULTS, kinds_for
from fencepost.run.real.striking import ENDED, MOST_AGAIN, Striker
from fencepost.systems.system import PROCESS_VERBS
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.plan import Fault, Plan, PlannedOperation
from tests.run.real.small_plans import KEEPS, plan_of


def phases(trace):
    """Their names in order."""
    return [event.cause for event in trace.events if event.name is Name.PHASE]


def test_a_healthy_run_ends_with_a_read_of_everything(made):
    """All phases, one strong end, every acknowledged record in the final read, and the verdict Ok."""
    run, trace = made(plan_of())
    assert phases(trace) == ["safety", "heal", "liveness", "final", "end"] and not run.stuck
    strong = [one for one in trace.operations if one.strong]
    assert [one.function for one in strong] == [Function.LIST_OFFSETS] and strong[0].process == run.reader
    final = {
        record.value
        for one in trace.operations
        if one.process == run.reader and one.function is Function.POLL
        for record in one.records
    }
    acknowledged = {
        record.value
        for one in trace.operations
        if one.function is Function.APPEND and one.outcome is Outcome.OK
        for record in one.records
    }
    assert len(acknowledged) > 40 and acknowledged <= final
    assert combine(judge(trace)).decision.value == "ok" and trace.claims.dense
    assert {one.topic for one in trace.operations} == {"t"}, "the plan's name, not the cluster's"


def test_roles_are_resolved_when_a_fault_strikes(made):
    """The second crash hits whoever leads then, which is not the broker that was killed first."""
    plan = plan_of(("crash", 100, 5_000, "leader of t-0"), ("crash", 2_900, 100, "leader of t-0"), count=200)
    plan = checked(evolve(plan, safety_ms=3_200))
    run, trace = made(plan)
    hit = [event.node for event in trace.events if event.name is Name.FAULT_BEGAN]
    assert len(hit) == 2 and hit[0] != hit[1]
    leaders = [one.leader for one in trace.events if one.cause == "partition_state_seen" and one.leader > 0]
    assert leaders[0] == hit[0] and hit[1] in leaders
    assert not run.stuck and combine(judge(trace)).decision.value == "ok"


def test_every_kind_of_fault_strikes_and_is_healed(made, embedded):
    """Pause, clean restart, bounce, power loss, a cut, and disks that fail: each is recorded with its end,
    and the cluster is whole again."""
    able, _ = kinds_for(embedded.inside().can)
    for kind in (one for one in able if REAL_FAULTS[one].on == "broker"):
        _, trace = made(plan_of((kind, 100, 300, "follower 1 of t-0"), count=20))
        names = [event.name for event in trace.events if event.cause == kind]
        assert Name.FAULT_BEGAN in names, kind
        assert phases(trace)[-1] == "end" and "final" in phases(trace), kind


def test_what_operators_ask_for_is_done_while_records_are_written(made):
    """A replica moves to another broker, the preferred leader is asked for, the topic grows and gets another
    setting; what is refused is recorded with Kafka's name of the error."""
    plan = plan_of(
        ("reassign_move", 100, 0, "partition t-0"),
        ("preferred_election", 900, 0, "topic t"),
        ("reassign_move", 950, 0, "partition t-7"),
        ("add_partitions", 1_000, 0, "topic t"),
        ("alter_topic", 1_050, 0, "topic t"),
        count=80,
        replication_factor=2,
    )
    run, trace = made(plan)
    began = [event.cause for event in trace.events if event.name is Name.FAULT_BEGAN]
    assert began == [fault.kind for fault in plan.faults] and not run.stuck
    assert ("t", 1) in run.observer.state.assignments, "another partition came"
    assert set(run.observer.state.assignments["t", 0]) == {2, 3}, "the first of two replicas moved"
    skipped = [event.detail for event in trace.events if event.name is Name.FAULT_SKIPPED]
    assert len(skipped) == 1 and "nothing to change" in skipped[0]
    assert combine(judge(trace)).decision.value == "ok"


def test_faults_that_cannot_happen_are_named(made):
    """A role that nobody plays, a broker that is stopped already, and kinds that the system lacks."""
    plan = plan_of(
        ("crash", 50, 900, "leader of t-7"), ("pause", 60, 900, "broker 1"), ("crash", 200, 900, "broker 1")
    )
    _, trace = made(plan, left_out=("power_loss",))
    skipped = {event.cause: event.detail for event in trace.events if event.name is Name.FAULT_SKIPPED}
    assert "this system cannot do it" in skipped["power_loss"]
    details = [event.detail for event in trace.events if event.name is Name.FAULT_SKIPPED]
    assert any("nobody is leader of t-7" in detail for detail in details)
    assert any("broker 1 is stopped already" in detail for detail in details)


def test_an_invocation_is_on_disk_before_it_is_sent(made, tmp_path, monkeypatch):
    """The line of an operation is in the file when its client gets it; the whole history can be read after a
    run that was killed."""
    ahead, seen = tmp_path / "ahead.jsonl", []
    invoke = Client._invoke

    def looking(self, operation):
        seen.append(f'"op_id":{operation.op_id},' in ahead.read_text())
        invoke(self, operation)

    monkeypatch.setattr(Client, "_invoke", looking)
    _, trace = made(plan_of(count=20), ahead=ahead)
    assert seen and all(seen)
    (kept,) = read_traces(ahead)
    assert {one.op_id for one in kept.operations} == {one.op_id for one in trace.operations}
    assert sorted(one.outcome for one in kept.operations) == sorted(one.outcome for one in trace.operations)


def test_a_retry_without_idempotence_is_found_where_it_is_not_allowed(made):
    """The control: a leader stands still longer than its clients wait, who send again. The records are twice
    in the log; claims from the run allow that, those of the control do not."""
    impatient = evolve(KEEPS, request_timeout_ms=150, retry_unknown=True)
    plan = plan_of(("pause", 150, 600, "leader of t-0"), client=impatient, count=120)
    _, trace = made(plan)
    assert trace.claims.duplicates and combine(judge(trace)).decision.value == "ok"
    _, trace = made(plan, control="duplicates")
    found = combine(judge(trace))
    assert found.anomaly is not None and not trace.claims.duplicates


def test_what_a_system_can_do_decides_which_faults_are_drawn():
    """By its verbs."""
    able, unable = kinds_for(PROCESS_VERBS)
    assert able == ("bounce", "clean_restart", "crash", "pause") and "partition" in unable
    assert "power_loss" in kinds_for(PROCESS_VERBS | {"cut", "power_off"})[0]
    every = {"cut", "power_off", "links", "requests", "disks", "administration"}
    assert kinds_for(PROCESS_VERBS | every)[1] == ()


def test_lying_disks_lose_what_was_acknowledged(made):
    """The control: every append is synced, all disks lie about it, all brokers lose power. Judged as if that
    kept records it is found; by what is known of the run it is allowed."""
    everyone = [(f"broker {broker}") for broker in (1, 2, 3)]
    lies = [("lying_fsync", 100, 2_000, broker) for broker in everyone]
    dark = [("power_loss", 900, 10, broker) for broker in everyone]
    plan = plan_of(*lies, *dark, count=120, flush_messages=1)
    _, trace = made(plan, control="lying-fsync")
    found = combine(judge(trace))
    assert found.anomaly in ("lost_write", "inconsistent_offsets") and not trace.claims.loss
    _, trace = made(plan)
    assert trace.claims.loss and combine(judge(trace)).decision.value == "ok"


class Three:
    """A system of three brokers."""

    brokers = (1, 2, 3)


@pytest.mark.parametrize(
    ("parameter", "links"),
    [(0, {(1, 2), (2, 1), (1, 3), (3, 1)}), (1, {(1, 2), (1, 3)}), (2, {(2, 1), (3, 1)})],
)
def test_a_cut_is_directed(parameter, links):
    """Both ways, what the target sends, or what it receives."""
    fault = Fault(fault_id=1, kind="partition", at_ms=0, target="broker 1", parameter=parameter)
    hit = RealHit(kind=REAL_FAULTS["partition"], fault=fault, node=1, system=Three())
    assert set(hit.links) == links
    assert set(evolve(hit, other=2).links) == {link for link in links if 3 not in link}


def test_a_plan_that_real_systems_cannot_run_is_refused():
    """In one sentence, before anything starts."""
    with pytest.raises(PlanError, match="faults of a real system"):
        checked(Plan(seed=1, faults=(Fault(fault_id=1, kind="bit_rot", at_ms=0),)))
    with pytest.raises(PlanError, match="delete_records"):
        checked(
            Plan(
                seed=1, operations=(PlannedOperation(op_id=1, process=0, at_ms=0, function="delete_records"),)
            )
        )


class SlowToStart:
    """A system whose only broker takes a while to start, as Java does."""

    brokers = (1,)

    def __init__(self):
        self.starts, self.up = 0, False

    def runs(self, broker):
        """Whether it is there."""
        return self.up

    def resume(self, broker):
        """It was not paused."""

    def restart(self, broker):
        """Start it, if it is down."""
        if not self.up:
            time.sleep(0.2)
            self.starts, self.up = self.starts + 1, True


def test_a_broker_is_not_started_twice():
    """The time of a fault is over at the moment at which everything is healed: the thread that starts the
    broker goes on, and a second process would find its port taken and take its place in the books."""
    plan, system = plan_of(("crash", 0, 0, "broker 1")), SlowToStart()
    striker = Striker(plan=plan, system=system, state=ObservedState(), note=lambda *what, **more: None)

    async def both():
        hit = RealHit(kind=REAL_FAULTS["crash"], system=system, fault=plan.faults[0], node=1)
        ending = asyncio.ensure_future(striker._end(hit))
        striker._begun.add(ending)
        await asyncio.sleep(0.05)
        await striker.end_all()

    asyncio.run(both())
    assert system.starts == 1


class Failing(SlowToStart):
    """A system whose broker ends by itself again and again."""

    def restart(self, broker):
        """It starts, and ends."""
        self.starts += 1


def test_a_broker_that_ends_in_its_start_is_started_again_a_few_times():
    """After a fault, and each time with a mark; without a fault it stays down, which is a finding."""
    plan, system, notes = plan_of(("crash", 0, 0, "broker 1")), Failing(), []
    striker = Striker(
        plan=plan, system=system, state=ObservedState(), note=lambda name, **what: notes.append(what["cause"])
    )

    async def again():
        for _ in range(9):
            await striker.start_ended()

    asyncio.run(again())
    assert not system.starts and not notes
    striker._struck.add(1)
    asyncio.run(again())
    assert system.starts == MOST_AGAIN and notes == [ENDED] * MOST_AGAIN


# When a fault of a real run begins: at its time, or after an append that it follows.


class Pausing:
    """A system that takes its time to pause a broker. calls: what was done, in order."""

    brokers = (1, 2)

    def __init__(self):
        self.calls = []

    def pause(self, broker):
        """Not at once."""
        time.sleep(0.1)
        self.calls.append(f"pause {broker}")

    def resume(self, broker):
        """At once."""

    def restart(self, broker):
        """It was not down."""


def appended(partition):
    """An acknowledged append."""
    return Operation(
        op_id=1,
        process=0,
        function=Function.APPEND,
        topic="t",
        partition=partition,
        invoke_time=0,
        outcome=Outcome.OK,
    )


def test_a_fault_follows_the_next_append_of_its_partition():
    """Not one of another partition, nor one in a transaction, and none that was sent before it waited: a
    follower may have it. It waits until the faults before it have begun."""
    plan = plan_of(("pause", 0, 5_000, "broker 2"), ("pause", 1, 5_000, "leader of t-0"))
    after = evolve(plan.faults[1], follows="appended")
    state, system, notes = ObservedState(), Pausing(), []
    state.partition(("t", 0)).leader = 1
    striker = Striker(
        plan=plan,
        system=system,
        state=state,
        note=lambda name, **what: notes.append((name, what["cause"], what.get("node", -1))),
    )

    async def story():
        striker.strike(plan.faults[0])
        await asyncio.sleep(0)
        striker.strike(after)
        early = time.monotonic_ns()
        while not striker._waiting:
            await asyncio.sleep(0.01)
        assert system.calls == ["pause 2"]
        striker.acknowledged(appended(0), early)
        striker.acknowledged(appended(0), time.monotonic_ns(), Name.TRANSACTION_PHASE)
        striker.acknowledged(appended(1), time.monotonic_ns())
        assert len(striker._waiting) == 1
        striker.acknowledged(appended(0), time.monotonic_ns())
        for _ in repeat(None, 1_000):
            if len(system.calls) == 2:
                break
            await asyncio.sleep(0.01)
        await striker.end_all()

    asyncio.run(story())
    assert system.calls == ["pause 2", "pause 1"]
    assert [node for name, _, node in notes if name is Name.FAULT_BEGAN] == [2, 1]


def test_an_append_starts_the_earliest_of_those_that_wait():
    """The others wait for the next one, as in the simulation; those of the same time begin together."""
    plan = plan_of(*(("pause", at_ms, 5_000, f"broker {1 + at_ms % 2}") for at_ms in (5, 5, 7)))
    striker = Striker(plan=plan, system=Pausing(), state=ObservedState(), note=lambda name, **what: None)

    async def story():
        for fault in plan.faults:
            striker.strike(evolve(fault, follows="appended"))
        while len(striker._waiting) < 3:
            await asyncio.sleep(0.01)
        left = []
        for _ in range(2):
            striker.acknowledged(appended(0), time.monotonic_ns())
            left.append([one.fault.at_ms for one in striker._waiting])
        await striker.end_all()
        return left

    assert asyncio.run(story()) == [[7], []]


def test_a_fault_whose_append_never_came_is_named():
    """It is skipped with the reason when everything is healed."""
    plan = plan_of(("pause", 0, 100, "leader of t-0"))
    notes = []
    striker = Striker(
        plan=plan,
        system=Pausing(),
        state=ObservedState(),
        note=lambda name, **what: notes.append((name, what["detail"]["reason"])),
    )

    async def story():
        striker.strike(evolve(plan.faults[0], follows="appended"))
        await asyncio.sleep(0.05)
        await striker.end_all()

    asyncio.run(story())
    assert notes == [(Name.FAULT_SKIPPED, "no appended came")]


def test_the_control_acks_1_is_found(made):
    """The leader dies with records that nobody else has; the mark is that it died after the acknowledgement
    of an append that began while all followers stood still."""
    run, trace = made(swarm_for_real(2, PROCESS_FAULTS, "acks-1"), control="acks-1")
    began = {event.cause for event in trace.events if event.name is Name.FAULT_BEGAN}
    assert began == {"pause", "crash"} and not run.stuck
    assert combine(judge(trace)).decision is Decision.ILLEGAL


def test_a_fault_that_waits_when_all_end_is_over():
    """What is acknowledged afterwards begins nothing, and does not end the run."""
    plan = plan_of(("pause", 0, 5_000, "leader of t-0"))
    system, notes = Pausing(), []
    striker = Striker(
        plan=plan, system=system, state=ObservedState(), note=lambda name, **what: notes.append(name)
    )

    async def story():
        striker.strike(evolve(plan.faults[0], follows="appended"))
        while not striker._waiting:
            await asyncio.sleep(0.01)
        await striker.end_all()
        striker.acknowledged(appended(0), time.monotonic_ns())

    asyncio.run(story())
    assert system.calls == [] and notes == [Name.FAULT_SKIPPED]
