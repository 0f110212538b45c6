"""Rolling restarts, a minute of them: what the swarm draws for a real system in which everything that is owed
must come true.

Owns the draws. Must not know bugs. A short run of a real system is over before anything is late: its plans
are for what may never happen. Here brokers stop in order, one after another, or one dies, or nothing does;
between two of these lies more time than any bound, and consumers in a plain group come, leave and come back.
"""

from attrs import evolve

from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.operations import ACKS_ALL, BY_TIME
from fencepost.traces.plan import ConsumerOptions, Fault, Plan, PlannedOperation

LONG_MS = (60_000, 70_000)
FIRST_MS, GAP_MS = (4_000, 8_000), (36_000, 40_000)
"""From the beginning to the first restart, and from one to the next: a start takes up to ten seconds, and the
longest bound of patient settings is below thirty."""
QUIET, DIES = 25, 20
"""Of a hundred plans: how many have no restart, and of a hundred restarts: how many are deaths."""
DOWN_MS = (500, 3_000)
GROUP, FIRST_MEMBER = "g", 500
EACH_MS = 100
"""Between two operations of a client."""
ASKS_EACH = 42
"""Even, so that it is the reader who asks; no multiple of the partitions' number, so that each is asked."""
SINCE_TENTHS = 100
"""Tenths of a second: longer than a restart."""
CONSUMER = ConsumerOptions(
    session_timeout_ms=6_000,
    heartbeat_interval_ms=500,
    max_poll_interval_ms=10_000,
    auto_commit_interval_ms=1_000,
    poll_timeout_ms=300,
    processing_ms=10,
    request_timeout_ms=3_000,
)


def with_rolling_restarts(plan: Plan, draw: Draws, kinds: tuple[str, ...]) -> Plan:
    """The plan as a long one with few faults.

    Args:
        plan: of the swarm, for its topic and its clients.
        draw: of its seed.
        kinds: of fault that the system can carry out.
    """
    safety_ms = draw.between(LONG_MS, "rolling.length")
    return evolve(
        plan,
        safety_ms=safety_ms,
        faults=tuple(_faults(plan, draw, kinds, safety_ms)),
        consumer=evolve(CONSUMER, commit=draw.choice(["auto", "sync", "async"], "rolling.commit")),
        client=evolve(plan.client, request_timeout_ms=3_000, delivery_timeout_ms=20_000, retry_unknown=False),
        operations=(*_clients(plan, safety_ms), *_members(draw)),
    )


def _faults(plan: Plan, draw: Draws, kinds: tuple[str, ...], safety_ms: int) -> list[Fault]:
    able = [kind for kind in ("clean_restart", "crash") if kind in kinds]
    if not able or draw.chance(QUIET, "rolling.quiet"):
        return []
    found: list[Fault] = []
    at_ms, first = draw.between(FIRST_MS, "rolling.first"), draw.between((0, 2), "rolling.who")
    while at_ms < safety_ms - 1_000:
        number = len(found)
        kind = able[-1] if draw.chance(DIES, "rolling.dies", number) else able[0]
        down_ms = draw.between(DOWN_MS, "rolling.down", number)
        found.append(
            Fault(
                fault_id=number,
                kind=kind,
                at_ms=at_ms,
                duration_ms=down_ms,
                target=f"broker {1 + (first + number) % plan.cluster.brokers}",
                parameter=down_ms,
            )
        )
        at_ms += draw.between(GAP_MS, "rolling.gap", number)
    return found


def _clients(plan: Plan, safety_ms: int) -> list[PlannedOperation]:
    """A writer and a reader of each partition, at an even pace; now and then the reader asks by time."""
    found: list[PlannedOperation] = []
    topic = plan.cluster.topics[0]
    for at_ms in range(500, safety_ms, EACH_MS):
        number = len(found) + 1
        by_time = number % ASKS_EACH == 0
        reads = "list_offsets" if by_time else "poll"
        found.append(
            PlannedOperation(
                op_id=number,
                process=number % 2,
                at_ms=at_ms,
                function="append" if number % 2 else reads,
                partition=number // 2 % topic.partitions,
                acks=ACKS_ALL,
                argument=BY_TIME if by_time else "",
                records=SINCE_TENTHS if by_time else 1,
            )
        )
    return found


def _members(draw: Draws) -> list[PlannedOperation]:
    """Two members that stay; a third one comes, leaves and comes back."""
    third = FIRST_MEMBER + 2
    lives = [
        (FIRST_MEMBER, 1_000, "subscribe"),
        (FIRST_MEMBER + 1, 1_500, "subscribe"),
        (third, draw.between((20_000, 30_000), "rolling.comes"), "subscribe"),
        (third, draw.between((34_000, 40_000), "rolling.leaves"), "unsubscribe"),
        (third, draw.between((48_000, 52_000), "rolling.back"), "subscribe"),
    ]
    return [
        PlannedOperation(op_id=900_000 + number, process=process, at_ms=at_ms, function=function, key=GROUP)
        for number, (process, at_ms, function) in enumerate(lives)
    ]
