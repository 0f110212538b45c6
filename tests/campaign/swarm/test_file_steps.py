"""Faults inside the steps of a broker's work on its files, as the swarm draws them."""

from functools import cache

import pytest

from fencepost.campaign.swarm.file_steps import FIRST
from fencepost.campaign.swarm.swarm import swarm
from fencepost.traces.errors import PlanError
from fencepost.traces.plan import INSIDE, INSIDE_KINDS, Fault, Plan
from fencepost.traces.plan_json import plan_from_json, plan_to_json


@cache
def plans() -> list[Plan]:
    return [swarm(seed, "default+file_steps") for seed in range(60)]


def test_every_step_and_kind_is_drawn() -> None:
    """Rule: each kind strikes inside each step; what a fault waits for is drawn with it, and other plans have
    none."""
    struck = [fault for plan in plans() for fault in plan.faults if fault.inside]
    assert {(fault.kind, fault.inside) for fault in struck} == {(k, s) for k in INSIDE_KINDS for s in INSIDE}
    assert {plan.disk.keeps_lengths for plan in plans()} == {True, False}
    for plan in plans():
        by_id = {fault.fault_id: fault for fault in plan.faults if fault.fault_id >= FIRST}
        for fault in by_id.values():
            if fault.inside == "stop":
                assert by_id[fault.fault_id + 1].kind == "clean_restart"
    bare = swarm(1, "default+lone+file_steps")
    assert not any(fault.inside for fault in bare.faults) and "inside" not in plan_to_json(bare)


def test_only_what_can_strike_inside_a_step_does() -> None:
    """Rule: another kind, or step, is refused in a sentence."""
    fault = Fault(fault_id=1, kind="crash", at_ms=0, inside="roll")
    text = plan_to_json(Plan(seed=1, faults=(fault,)))
    assert plan_from_json(text).faults == (fault,)
    with pytest.raises(PlanError, match="only crash, io_error, power_loss strike inside a step, not pause"):
        plan_from_json(text.replace('"crash"', '"pause"'))
    with pytest.raises(PlanError, match=r"faults\[0\].inside"):
        plan_from_json(text.replace('"roll"', '"lunch"'))
