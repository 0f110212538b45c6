"""Faults that race a step of the protocol: what the swarm draws for it.

Owns the draws. Must not know bugs: nothing here is a scenario, only that a fault comes within a few round
trips of a step, whatever the step is.

A window between two messages is seldom hit by a fault at a random time, however many there are. A fault that
follows an event (Fault.follows) is in the window each time: the leader dies when it has just been elected,
when its ISR has just grown, when a follower has just cut its log.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.plan import Fault, Plan

TOGETHER = 10
"""Fault ids of what belongs together differ in the last digit: the end of a session is 0, what costs it 1."""
LOSSY = 100_000
"""Fault ids of what lasts for the whole plan begin here."""
ENDS = "expire_session"
LATE = "slow_link"
STEPS = (
    *("became_follower", "became_leader", "broker_registered", "controller_elected", "isr_proposed"),
    *("isr_updated", "partition_state", "reassignment", "session_expired", "truncated"),
)
"""What races follow: appends are too many to be a moment (chain_rows.py has those)."""
KILLS = ("crash", "crash", "pause")


def raced(
    faults: tuple[Fault, ...], plan: Plan, draw: Draws, bounds: Profile, latency_us: int
) -> tuple[Fault, ...]:
    """The faults, most of them within two round trips of a step of the protocol, if the profile says so; what
    lasts for the whole plan stays."""
    if not bounds.followed:
        return faults
    steps = [step for step in STEPS if draw.chance(30, f"follow.{step}")] or list(STEPS)
    longest_ms = 1 + latency_us * 4 // 1_000
    kinds = [kind for kind in KILLS if kind in bounds.kinds and ENDS in bounds.kinds]
    most = draw.chance(50, "follow.kill_most")
    kills = {step: 95 if most else draw.between((0, 100), f"follow.kills.{step}") for step in steps}
    found = _behind(plan, draw, bounds, latency_us)
    for fault in faults:
        number = fault.fault_id // TOGETHER
        if fault.fault_id >= LOSSY or not draw.chance(bounds.followed, "follow", number):
            found.append(fault)
            continue
        follows = draw.choice(steps, "follow.step", number)
        delay_ms = draw.between((0, longest_ms), "follow.delay", number)
        fault = evolve(fault, follows=follows, delay_ms=delay_ms)
        if kinds and draw.chance(kills[follows], "follow.kill", number):
            found += _killed(fault, plan, draw, kinds)
        else:
            found.append(fault)
    return tuple(found)


def _killed(fault: Fault, plan: Plan, draw: Draws, kinds: list[str]) -> list[Fault]:
    """Instead of the fault, the leader stops and its session ends, so that nobody waits for the time-out.
    Later shots of a volley stay."""
    place = fault.fault_id % TOGETHER
    if place != 1:
        return [fault] if place > 1 else []
    leader = f"leader of {plan.cluster.topics[0].name}-0"
    kind = draw.choice(kinds, "follow.kind", fault.fault_id)
    ended = evolve(fault, fault_id=fault.fault_id - 1, kind=ENDS, duration_ms=1, target=leader, other="")
    return [ended, evolve(fault, kind=kind, target=leader, other="", parameter=0)]


def _behind(plan: Plan, draw: Draws, bounds: Profile, latency_us: int) -> list[Fault]:
    """One broker is always late, in many plans: it has what others had a few round trips ago, and is in and
    out of the ISR."""
    if LATE not in bounds.kinds or not draw.chance(60, "behind"):
        return []
    return [
        Fault(
            fault_id=LOSSY - 1,
            kind=LATE,
            at_ms=0,
            duration_ms=plan.safety_ms,
            target=f"broker {draw.between((1, plan.cluster.brokers), 'behind.broker')}",
            parameter=draw.between((2, 8), "behind.trips") * (latency_us + 10_000),
        )
    ]
