"""When a fault of a real run begins: at its time, or after an append that it follows."""

import asyncio
import time
from itertools import repeat

from attrs import evolve

from fencepost.campaign.swarm.real_systems import PROCESS_FAULTS, swarm_for_real
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.record.observed_state import ObservedState
from fencepost.run.real.striking import Striker
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Operation, Outcome
from tests.run.real.small_plans import plan_of


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
