"""Faults inside the steps of a broker's work on its files: what the swarm draws for them.

Owns the draws. Must not know bugs, or which calls a step consists of (sim/disk_faults.py). A roll, a
checkpoint, a swap, a truncation, a deletion, a start and a clean stop take some milliseconds, so that a fault
which comes at any time seldom meets one. Here a file call in one of them fails, the process dies with it, or
the power does. A start that is struck is mostly the one after a crash: the next start recovers what a
recovery left.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws, role_of
from fencepost.traces.plan import DAY_MS, INSIDE, INSIDE_KINDS, MEBIBYTE, STEP_START, STEP_STOP, Fault, Plan

FIRST = 9_000
"""Fault ids begin here."""
STOPS, ENDS = "clean_restart", ("crash", "bounce", "power_loss")
"""What ends a broker before a start, or a stop, that is struck."""
SEGMENTS = ("deletion", "roll", "swap")
"""Steps that logs of more than one segment take."""
CALLS = {STEP_START: 60, STEP_STOP: 40}
"""Of a step: the last call that is struck."""
FEW = 12


def with_file_steps(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with faults inside such steps in addition to its own, in as many plans of a hundred as the
    profile says; without any fault, or where each comes alone, the plan as it is."""
    kinds = [kind for kind in INSIDE_KINDS if kind in bounds.kinds]
    if not draw.chance(bounds.file_steps, "file_steps") or not kinds or bounds.lone or not bounds.faults[1]:
        return plan
    rolls = any(topic.segment_bytes < MEBIBYTE or topic.segment_ms < DAY_MS for topic in plan.cluster.topics)
    steps = [
        step
        for step in INSIDE
        if (step != STEP_STOP or STOPS in bounds.kinds) and (rolls or step not in SEGMENTS)
    ]
    if draw.chance(50, "file_steps.few"):
        steps = [draw.choice(steps, "file_steps.kept", number) for number in range(2)]
    found: list[Fault] = []
    for number in range(draw.between((2, 10), "file_steps.count")):
        found += _struck(plan, draw, bounds, kinds, draw.choice(steps, "file_steps.step", number), number)
    keeps_lengths = draw.chance(50, "file_steps.lengths")
    return evolve(plan, disk=evolve(plan.disk, keeps_lengths=keeps_lengths), faults=(*plan.faults, *found))


def _struck(
    plan: Plan, draw: Draws, bounds: Profile, kinds: list[str], step: str, number: int
) -> list[Fault]:
    """A fault inside a step, and what leads to a step that it waits for."""
    topics = [topic for topic in plan.cluster.topics if not topic.created_later]
    topic = topics[draw.between((0, len(topics) - 1), "file_steps.topic", number)]
    most = draw.between((1, CALLS.get(step, FEW)), "file_steps.most", number)
    fault = Fault(
        fault_id=FIRST + 2 * number,
        kind=draw.choice(kinds, "file_steps.kind", number),
        at_ms=draw.between((0, plan.safety_ms), "file_steps.at", number),
        duration_ms=draw.between((300, 6_000), "file_steps.duration", number),
        target=role_of(draw, topic, "file_steps.target", number, plan.cluster.brokers),
        parameter=draw.between((1, most), "file_steps.call", number),
        follows="became_follower"
        if step == "truncation" and draw.chance(60, "file_steps.follow", number)
        else "",
        inside=step,
    )
    ends = [STOPS] if step == STEP_STOP else [kind for kind in ENDS if kind in bounds.kinds]
    if step not in CALLS or not ends:
        return [fault]
    end = evolve(
        fault,
        fault_id=fault.fault_id + 1,
        kind=draw.choice(ends, "file_steps.end", number),
        at_ms=min(plan.safety_ms, fault.at_ms + 1),
        duration_ms=draw.between((10, 3_000), "file_steps.down", number),
        parameter=0 if step == STEP_START else draw.between((1, 500), "file_steps.back", number),
        inside="",
    )
    return [fault, end]
