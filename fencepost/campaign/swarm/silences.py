"""Brokers that fall silent before anybody replaces them: what the swarm draws for it.

Owns the draws. Must not know bugs, only that a broker that goes is cut off first,
and loses its session a little later.

A broker that dies leaves what it has sent on its way (network.py), so that its last answers and what it wrote
to ZooKeeper both arrive. One whose link broke does not: ZooKeeper may know what no broker has heard of, and a
follower may miss the very answer that would have shown it. Here brokers go in rows: a follower is silent for
so long that it leaves the ISR, then one leader after another falls silent within a round trip of a step of
the protocol, and its session ends. Some pairs of brokers are far from each other, so that of two followers
now this one and now that one hears first.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.campaign.swarm.races import ENDS, LATE, LOSSY, TOGETHER
from fencepost.campaign.swarm.relays import RECOVERY_MS, Reigns, requests_in, with_short_reigns
from fencepost.traces.plan import Fault, Plan

CUT = "partition"
STEPS = ("appended", "became_leader", "isr_proposed", "isr_updated")
"""Steps after which a leader owes somebody an answer."""


def with_silences(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with rows of silences instead of its faults, in as many plans of a hundred as the profile
    says; in the others the plan as it is."""
    if not bounds.silenced or not draw.chance(bounds.silenced, "silence") or CUT not in bounds.kinds:
        return plan
    latency_us = draw.between((5_000, 40_000), "silence.latency")
    far_us = latency_us * draw.between((1, 6), "silence.far_trips")
    row = Reigns(
        label="silence", latency_us=latency_us, slowest_us=far_us, balanced=30, balance_ms=(500, 3_000)
    )
    lag_ms = draw.between((800, 2_500), "silence.lag")
    plan = with_short_reigns(plan, draw, row, lag_ms=lag_ms)
    far = _far(plan, draw, far_us) if LATE in bounds.kinds else []
    return evolve(plan, faults=(*far, *_rows(plan, draw, bounds, row.trip_ms, lag_ms), *requests_in(plan)))


def _far(plan: Plan, draw: Draws, far_us: int) -> list[Fault]:
    """Some pairs of brokers, for the whole plan."""
    percent, brokers = draw.between((0, 60), "silence.far_share"), plan.cluster.brokers
    return [
        Fault(
            fault_id=LOSSY + TOGETHER * one + other,
            kind=LATE,
            at_ms=0,
            duration_ms=plan.safety_ms,
            target=f"broker {one}",
            other=f"broker {other}",
            parameter=far_us,
        )
        for one in range(1, brokers + 1)
        for other in range(one + 1, brokers + 1)
        if draw.chance(percent, "silence.far", one, other)
    ]


def _rows(plan: Plan, draw: Draws, bounds: Profile, trip_ms: int, lag_ms: int) -> list[Fault]:
    """A follower, mostly, and two to three leaders in a row; seconds between the rows."""
    key = f"{plan.cluster.topics[0].name}-0"
    found: list[Fault] = []
    number = row = at_ms = 0
    while True:
        at_ms += draw.between((1_000, 5_000), "silence.gap", row)
        if at_ms >= plan.safety_ms - RECOVERY_MS:
            return found
        if draw.chance(70, "silence.follower", row):
            who = f"follower {draw.between((1, plan.cluster.brokers - 1), 'silence.place', row)} of {key}"
            silent_ms = lag_ms + draw.between((0, 1_500), "silence.follower_for", row)
            found.append(
                Fault(fault_id=TOGETHER * number, kind=CUT, at_ms=at_ms, duration_ms=silent_ms, target=who)
            )
            number += 1
        for _ in range(draw.between((1, 3), "silence.leaders", row)):
            at_ms += draw.between((1, 8 * trip_ms), "silence.next", number)
            step = draw.choice([*STEPS], "silence.step", number)
            delay_ms = draw.between((0, trip_ms), "silence.delay", number)
            silent_ms = draw.between((200, 4_000), "silence.for", number)
            silent = Fault(
                fault_id=TOGETHER * number,
                kind=CUT,
                at_ms=at_ms,
                duration_ms=silent_ms,
                target=f"leader of {key}",
                follows=step,
                delay_ms=delay_ms,
            )
            found.append(silent)
            if ENDS in bounds.kinds:
                later_ms = delay_ms + draw.between((0, 3 * trip_ms), "silence.ends", number)
                found.append(
                    evolve(silent, fault_id=silent.fault_id + 1, kind=ENDS, duration_ms=1, delay_ms=later_ms)
                )
            number += 1
        row += 1
