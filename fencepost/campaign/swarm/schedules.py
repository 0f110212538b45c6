"""Targeted schedules of real systems: the steps hold, write, strike and return at one partition, in any
order.

Owns the orders and the draw of one. Must not know what an order leads to: nobody wrote that down. Each order
is in the hat, and a steered campaign learns from the marks of its runs which to draw more often
(driver/steering.py).

    hold      the followers are paused or cut off
    write     clients append to the partition
    strike    the leader is killed, paused, cut off, or loses power
    return    the followers come back; the leader does so some time after its strike

Roles are resolved when a fault begins. Random faults are rarely so close together.
"""

from itertools import permutations

from attrs import evolve, frozen

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.operations import ACKS_ALL
from fencepost.traces.plan import Fault, Plan, PlannedOperation

HOLD, WRITE, STRIKE, RETURN = "hold", "write", "strike", "return"
ORDERS = tuple(
    ".".join(steps)
    for steps in permutations((HOLD, WRITE, STRIKE, RETURN))
    if steps.index(HOLD) < steps.index(RETURN)
)
"""Every order in which the followers return after they were held."""
HOLDS, STRIKES = ("pause", "partition"), ("crash", "pause", "bounce", "clean_restart", "partition")
"""Kinds of fault for these steps, if the system has them."""
DARK = "power_loss"
FIRST_SCHEDULED = 500
"""Fault ids."""
BEGIN_MS, LONG_MS, DARK_LONG_MS, SHORT_MS = (300, 1_500), (100, 3_500), (1_000, 6_000), (0, 800)
"""When the first step comes; how long after a hold the next one, in general and where the leader loses power,
so that the followers have left the ISR; and how long after another step."""
AWAY_MS, RETURN_MS = (2_500, 4_500), (1, 1_500)
"""How long the leader is away after the last step, or after its own if its fault may be short."""
FOLLOWS = 50
"""Of a hundred strikes right after a write: how many wait for its acknowledgement."""
WRITER_MS, WRITES = 40, (3, 20)
"""Between two appends of a process that does nothing else, and how many of them a write is."""
SHORT = 30
"""Of a hundred strikes: how many are over soon."""


@frozen(kw_only=True)
class Schedule:
    """What is drawn of one."""

    # A name of ORDERS.
    order: str
    # Whether the leader loses power.
    dark: bool = False


def with_schedule(
    plan: Plan, draw: Draws, bounds: Profile, schedule: Schedule, kept: tuple[Fault, ...]
) -> Plan:
    """The plan with these faults and a schedule, instead of its own faults.

    Args:
        plan: has a topic.
        draw: of its seed.
        bounds: says which kinds there are.
        schedule: what to do.
        kept: faults of the plan that stay.
    """
    topics = plan.cluster.topics
    topic = topics[draw.between((0, len(topics) - 1), "schedule.topic")]
    key = topic.name, draw.between((0, topic.partitions - 1), "schedule.partition")
    steps, at_ms, times = schedule.order.split("."), draw.between(BEGIN_MS, "schedule.at"), {}
    for step in steps:
        times[step] = at_ms
        long_ms = DARK_LONG_MS if schedule.dark else LONG_MS
        at_ms += draw.between(long_ms if step == HOLD else SHORT_MS, f"schedule.{step}")
    hold = _kind(draw, bounds, HOLDS, HOLD)
    held = tuple(
        Fault(
            fault_id=FIRST_SCHEDULED + place,
            kind=hold,
            at_ms=times[HOLD],
            duration_ms=max(1, times[RETURN] - times[HOLD]),
            target=f"follower {place} of {key[0]}-{key[1]}",
        )
        for place in range(1, topic.replication_factor)
    )
    kind = DARK if schedule.dark else _kind(draw, bounds, STRIKES, STRIKE)
    soon = not schedule.dark and draw.chance(SHORT, "schedule.short")
    away_ms = draw.between(RETURN_MS if soon else AWAY_MS, "schedule.away")
    length_ms = away_ms if soon else max(0, times[steps[-1]] - times[STRIKE]) + away_ms
    restarted = kind in ("bounce", "clean_restart")
    follows = (
        steps[steps.index(STRIKE) - 1] == WRITE
        and steps[0] != STRIKE
        and draw.chance(FOLLOWS, "schedule.follows")
    )
    struck = Fault(
        fault_id=FIRST_SCHEDULED,
        kind=kind,
        at_ms=times[WRITE] if follows else times[STRIKE],
        duration_ms=1 if restarted else length_ms,
        parameter=length_ms if restarted else 0,
        target=f"leader of {key[0]}-{key[1]}",
        follows="appended" if follows else "",
        delay_ms=times[STRIKE] - times[WRITE] if follows else 0,
    )
    plan = evolve(plan, safety_ms=max(plan.safety_ms, at_ms + 1_000), faults=(*kept, *held, struck))
    writes = draw.between(WRITES, "schedule.writes")
    moments = range(times[WRITE], times[WRITE] + writes * WRITER_MS, WRITER_MS)
    return with_writer(plan, key, ACKS_ALL, moments)


def _kind(draw: Draws, bounds: Profile, kinds: tuple[str, ...], step: str) -> str:
    """One of these, as often as it is in the hat of the profile."""
    return draw.choice([kind for kind in bounds.kinds if kind in kinds], f"schedule.kind.{step}")


def with_writer(plan: Plan, key: tuple[str, int], acks: int, moments: range) -> Plan:
    """The plan with a process that does nothing but append to this partition: the others wait for leaders
    that are paused, so that nothing may reach it while it counts.

    Args:
        plan: to add to.
        key: the partition.
        acks: of the appends.
        moments: when it appends, in milliseconds.
    """
    process, op_id = (1 + max(getattr(one, of) for one in plan.operations) for of in ("process", "op_id"))
    written = tuple(
        PlannedOperation(
            op_id=op_id + place,
            process=process,
            at_ms=at_ms,
            function="append",
            topic=key[0],
            partition=key[1],
            acks=acks,
        )
        for place, at_ms in enumerate(moments)
    )
    operations = sorted((*plan.operations, *written), key=lambda one: (one.at_ms, one.op_id))
    return evolve(plan, operations=tuple(operations))
