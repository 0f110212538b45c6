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
from fencepost.traces.plan import INSIDE, INSIDE_KINDS, STEP_START, STEP_STOP, Fault, Plan, TopicOptions

FIRST = 9_000
"""Fault ids begin here."""
STOPS, ENDS = "clean_restart", ("crash", "bounce", "power_loss")
"""What ends a broker before a start, or a stop, that is struck."""
CALLS = {"deletion": 3, "roll": 8, STEP_START: 40, STEP_STOP: 40, "swap": 6, "truncation": 2}
"""Of a step: the last call that is struck."""
OF_CHECKPOINTS = 12
SWAPS = ("deletion", "swap")
"""The steps of a compaction: drawn more often where there is one, as they are rare."""


def with_file_steps(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with faults inside such steps in addition to its own, in as many plans of a hundred as the
    profile says; without any fault, or where each comes alone, the plan as it is."""
    kinds = [kind for kind in INSIDE_KINDS if kind in bounds.kinds]
    if not draw.chance(bounds.file_steps, "file_steps") or not kinds or bounds.lone or not bounds.faults[1]:
        return plan
    if draw.chance(50, "file_steps.segments"):
        plan = _rolling(plan, draw)
    compacted = any(_may_swap(topic) for topic in plan.cluster.topics)
    if compacted:
        backoff_ms = draw.between((200, 1_000), "file_steps.backoff")
        plan = evolve(plan, cluster=evolve(plan.cluster, log_cleaner_backoff_ms=backoff_ms))
    lacking = {STEP_STOP: STOPS not in bounds.kinds, "swap": not compacted}
    steps = [step for step in (*INSIDE, *(SWAPS * 3 if compacted else ())) if not lacking.get(step)]
    if draw.chance(50, "file_steps.few"):
        steps = [draw.choice(steps, "file_steps.kept", number) for number in range(2)]
    found: list[Fault] = []
    for number in range(draw.between((3, 14), "file_steps.count")):
        found += _struck(plan, draw, bounds, kinds, draw.choice(steps, "file_steps.step", number), number)
    keeps_lengths = draw.chance(50, "file_steps.lengths")
    return evolve(plan, disk=evolve(plan.disk, keeps_lengths=keeps_lengths), faults=(*plan.faults, *found))


def _may_swap(topic: TopicOptions) -> bool:
    return "compact" in topic.cleanup_policy and not topic.created_later


def _rolling(plan: Plan, draw: Draws) -> Plan:
    """The plan, in which its first topic has segments of a few batches."""
    first, *others = plan.cluster.topics
    size = min(first.segment_bytes, draw.between((80, 1_500), "file_steps.segment_bytes"))
    return evolve(plan, cluster=evolve(plan.cluster, topics=(evolve(first, segment_bytes=size), *others)))


def _struck(
    plan: Plan, draw: Draws, bounds: Profile, kinds: list[str], step: str, number: int
) -> list[Fault]:
    """A fault inside a step, and what leads to a step that it waits for."""
    compacted = any(_may_swap(topic) for topic in plan.cluster.topics)
    topics = [
        topic
        for topic in plan.cluster.topics
        if not topic.created_later and (step not in SWAPS or not compacted or _may_swap(topic))
    ]
    topic = topics[draw.between((0, len(topics) - 1), "file_steps.topic", number)]
    most = draw.between((1, CALLS.get(step, OF_CHECKPOINTS)), "file_steps.most", number)
    fault = Fault(
        fault_id=FIRST + 2 * number,
        kind=draw.choice(kinds, "file_steps.kind", number),
        at_ms=draw.between((0, plan.safety_ms), "file_steps.at", number),
        duration_ms=draw.between((300, 6_000), "file_steps.duration", number),
        target=f"leader of {topic.name}-0"
        if step == "truncation"
        else role_of(draw, topic, "file_steps.target", number, plan.cluster.brokers),
        parameter=draw.between((1, most), "file_steps.call", number),
        follows="became_follower"
        if step == "truncation" and draw.chance(30, "file_steps.follow", number)
        else "",
        inside=step,
    )
    ends = [STOPS] if step == STEP_STOP else [kind for kind in ENDS if kind in bounds.kinds]
    if step not in (STEP_START, STEP_STOP) or not ends:
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
