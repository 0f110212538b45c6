"""Requests of clients that arrive late, when they have been sent again already: for real systems.

Owns the draw. Must not know how bytes are held back. It is a fault of links that begins and ends soon: what
clients send meanwhile takes seconds, on the connection that it was sent on. They give up, close that
connection as Kafka's clients do, and send again on a new one, which is quick. So a request arrives when its
sender believes that it was done long ago: an EndTxn in the midst of the next transaction (KAFKA-17754).

Where that commits a part of the next transaction, nobody sees it if the rest is committed, too. So these
plans have many short transactions, a part of which their application aborts. A process has one request under
way at a time, and mostly that is one that ends nothing. So most windows are short and begin when a
transaction is open: they hold what is sent on the way to its end.
"""

from collections.abc import Iterator

from attrs import evolve

from fencepost.campaign.swarm.draws import Draws
from fencepost.run.faults.requests import LATE_REQUESTS
from fencepost.traces.events import Name
from fencepost.traces.plan import Fault, Plan, PlannedOperation

FIRST_LATE = 700
"""Fault ids."""
MICROSECONDS = 1_000
WINDOW_MS, LATE_MS, PATIENCE_MS = (300, 1_200), (100, 1_500), (400, 900)
"""How long what is sent becomes late, by how much more than clients wait for an answer, and how long they
wait."""
HOW_MANY = (6, 14)
"""Of them in a plan, each at all brokers."""
SHORT_MS, FOLLOWING, SOON_MS = (50, 300), 75, (0, 150)
"""How long a window lasts that follows an append in a transaction, of how many windows in a hundred that is
so, and how long it waits then. It is over before the first client gives up."""
WORK_MS = (30, 200)
"""How long an application works in a transaction before it decides: what is left to send then is the end, so
that windows hold it, and the next transaction is open when it arrives. Without it, in 25 runs of 3.9.2 with
93 windows, no judge saw a transaction ended by an earlier one's request."""
OWN_IDS = 70
"""Of a hundred of these plans: in how many no two processes share a transactional id. A process that takes an
id over raises its epoch, and what was sent before is refused by that alone."""
STAY = 70
"""Of a hundred of these plans: in how many each process begins and stays. Whenever one comes or goes, the
others wait for its session's time-out or for each other, and nobody writes: of the plans in which they came
and went, three were looked at, and nearly all their transactions came after the faults."""
LONGER_MS, LATEST_MS = 15_000, 1_500
"""The run lasts longer by so much, and no window waits in its last so many milliseconds. A group takes some
six seconds to its first transaction in a fresh cluster; before that windows hold nothing of one."""
ABORTS_PPM, POLL = (300_000, 600_000), (3, 10)
"""Transactions in a million that the application aborts; records that one takes at most."""


def with_late_requests(plan: Plan, draw: Draws) -> Plan:
    """The plan with windows in which requests come late.

    Args:
        plan: its processes write in transactions, many of them (with_many_transactions).
        draw: of its seed.
    """
    late = [
        window
        for number in range(draw.between(HOW_MANY, "late"))
        for window in _windows(plan, draw, number, plan.consumer.request_timeout_ms)
    ]
    return evolve(plan, faults=(*plan.faults, *late))


def with_many_transactions(plan: Plan, draw: Draws) -> Plan:
    """The plan with many short transactions, so that what was sent in one may arrive in the next.

    Args:
        plan: its processes write in transactions.
        draw: of its seed.
    """
    patience_ms, work_ms = draw.between(PATIENCE_MS, "late.patience"), draw.between(WORK_MS, "late.work")
    aborts_ppm, most = draw.between(ABORTS_PPM, "late.aborts"), draw.between(POLL, "late.poll")
    operations = _own_ids(plan.operations) if draw.chance(OWN_IDS, "late.own_ids") else plan.operations
    if draw.chance(STAY, "late.stay"):
        operations = _staying(operations)
    return evolve(
        plan,
        safety_ms=plan.safety_ms + LONGER_MS,
        consumer=evolve(plan.consumer, request_timeout_ms=patience_ms, max_poll_records=most),
        transform=evolve(plan.transform, aborts_ppm=aborts_ppm, pause_ms=work_ms),
        operations=operations,
    )


def _own_ids(operations: tuple[PlannedOperation, ...]) -> tuple[PlannedOperation, ...]:
    """Each process that transforms has a transactional id that no other one has."""
    return tuple(
        evolve(one, partition=one.process) if one.function == "transform" else one for one in operations
    )


def _staying(operations: tuple[PlannedOperation, ...]) -> tuple[PlannedOperation, ...]:
    """Each process that transforms begins, and stays."""
    processes = {one.process for one in operations if one.function == "transform"}
    first: dict[int, int] = {}
    for one in operations:
        if one.process in processes:
            first.setdefault(one.process, one.op_id)
    return tuple(one for one in operations if first.get(one.process, one.op_id) == one.op_id)


def _windows(plan: Plan, draw: Draws, number: int, patience_ms: int) -> Iterator[Fault]:
    """One window, at every broker."""
    following = draw.chance(FOLLOWING, "late.following", number)
    for broker in range(1, plan.cluster.brokers + 1):
        yield Fault(
            fault_id=FIRST_LATE + number * plan.cluster.brokers + broker,
            kind=LATE_REQUESTS,
            at_ms=draw.between((plan.safety_ms // 3, plan.safety_ms - LATEST_MS), "late.at", number),
            duration_ms=draw.between(SHORT_MS if following else WINDOW_MS, "late.for", number),
            target=f"broker {broker}",
            parameter=(patience_ms + draw.between(LATE_MS, "late.by", number)) * MICROSECONDS,
            follows=Name.TRANSACTION_PHASE if following else "",
            delay_ms=draw.between(SOON_MS, "late.soon", number) if following else 0,
        )
