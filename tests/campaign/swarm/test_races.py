"""Faults that follow an event, and the profile that draws them."""

import json
import re
from pathlib import Path

import pytest
from alone import alone

from fencepost.campaign.swarm.chain_rows import RACED
from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import FOLLOWED, Fault, Plan
from fencepost.traces.plan_json import plan_from_json, plan_to_json
from fencepost.traces.trace import Trace

MILLISECOND = 1_000_000
DOCUMENTATION = (Path(__file__).parents[3] / "docs" / "reference" / "plans.md").read_text()


def fault(number: int, follows: str, **options) -> Fault:
    """A crash of the leader, 40 ms after such an event."""
    given = {"at_ms": 1_000, "delay_ms": 40, "duration_ms": 300, "kind": "crash", "target": "leader of t-0"}
    return Fault(fault_id=number, follows=follows, **(given | options))


def ran(*faults: Fault, safety_ms: int = 20_000) -> Trace:
    """A run with nothing but these faults."""
    return run(Plan(seed=3, safety_ms=safety_ms, faults=faults))


def named(trace: Trace, name: Name) -> list[Event]:
    """Events of this name, in order."""
    return [event for event in trace.events if event.name is name]


def begun(trace: Trace) -> dict[int, int]:
    """When each fault began."""
    return {json.loads(event.detail)["fault"]: event.time for event in named(trace, Name.FAULT_BEGAN)}


def test_a_fault_follows_the_next_event_of_its_name():
    """Rule: the onset is exactly delay_ms after the first such event that comes once at_ms has passed."""
    trace = ran(
        fault(1, "", at_ms=3_000),
        fault(2, "became_leader", kind="pause", target="controller"),
        safety_ms=20_000,
    )
    start = next(event.time for event in named(trace, Name.PHASE) if event.cause == "safety")
    elected = [
        event.time for event in named(trace, Name.BECAME_LEADER) if event.time > start + 1_000 * MILLISECOND
    ]
    assert begun(trace) == {1: start + 3_000 * MILLISECOND, 2: elected[0] + 40 * MILLISECOND}


def test_each_event_starts_the_faults_of_one_moment():
    """Rule: faults of the earliest at_ms begin together; those of a later one wait for the next event."""
    trace = ran(
        fault(1, "", at_ms=3_000),
        fault(2, "became_leader", at_ms=1_000, kind="expire_session"),
        fault(3, "became_leader", at_ms=1_000),
        fault(4, "became_leader", at_ms=1_001, kind="pause", target="controller"),
        safety_ms=40_000,
    )
    start = begun(trace)[1]
    elected = [event.time for event in named(trace, Name.BECAME_LEADER) if event.time > start]
    began = begun(trace)
    assert began[2] == began[3] == elected[0] + 40 * MILLISECOND
    assert began[4] == elected[1] + 40 * MILLISECOND


def test_only_events_of_the_targets_partition_count():
    """Rule: a target that names a partition waits for its events; the same fault with another partition never
    begins, and the trace says why."""
    trace = ran(fault(1, "", at_ms=3_000), fault(2, "became_leader", target="leader of u-0"))
    (skipped,) = named(trace, Name.FAULT_SKIPPED)
    assert json.loads(skipped.detail) == {"fault": 2, "reason": "no became_leader came"} and 2 not in begun(
        trace
    )


def test_plans_without_it_are_written_as_before():
    """Rule: the fields are left out while they say nothing, so that digests of older plans stand; what they
    say is read back."""
    plain, follows = (
        Plan(seed=1, faults=(fault(1, name, delay_ms=delay),)) for name, delay in (("", 0), ("truncated", 7))
    )
    assert not {"follows", "delay_ms"} & json.loads(plan_to_json(plain))["faults"][0].keys()
    assert plan_from_json(plan_to_json(plain)) == plain and plan_from_json(plan_to_json(follows)) == follows
    with pytest.raises(PlanError, match=r"plan.faults\[0\].follows: expected"):
        plan_from_json(plan_to_json(follows).replace("truncated", "nonsense"))


def test_what_can_be_followed_exists_and_is_documented():
    """Rule: each is an event's name, and docs/reference/plans.md lists them all."""
    assert {*FOLLOWED} <= {name.value for name in Name}
    section = DOCUMENTATION.split("## Faults that follow an event")[1].split("\n## ")[0]
    assert set(re.findall(r"`([a-z_]+)`", section.split("What can be followed:")[1])) == {*FOLLOWED}


def test_the_profile_races_steps_of_the_protocol():
    """Rule: most faults follow an event, each event is followed in some plan, some plans have a broker that
    is always late; --faults narrows it."""
    plans = [alone(seed, "quick+followed") for seed in range(60)]
    faults = [one for plan in plans for one in plan.faults]
    assert sum(bool(one.follows) for one in faults) * 2 > len(faults)
    assert {one.follows for one in faults} == {"", *RACED} and {*RACED} < {*FOLLOWED}
    late = [plan for plan in plans if any(one.kind == "slow_link" and not one.at_ms for one in plan.faults)]
    assert 10 < len(late) < 50
    assert all(len({one.fault_id for one in plan.faults}) == len(plan.faults) for plan in plans)
    narrowed = [one for seed in range(20) for one in alone(seed, "quick+followed", faults=("pause",)).faults]
    assert {one.kind for one in narrowed} == {"pause"} <= {*PROFILES["default"].kinds}


def test_nothing_is_found_in_a_healthy_cluster():
    """Rule: faults at the worst moment show nothing where no protection is missing; and they are at that
    moment (planted: KAFKA-7415)."""
    for seed in (0, 1, 9, 13):
        assert not [
            one for verdict in judge(run(alone(seed, "quick+followed"))) for one in verdict.findings
        ], seed
    planted = run(alone(9, "quick+followed", bugs=("KAFKA-7415",)))
    assert {one.anomaly for verdict in judge(planted) for one in verdict.findings} == {"conformance"}
