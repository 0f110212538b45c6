"""Single requests of clients that the network breaks: for systems whose clients come in through a proxy.

Owns the draw. Must not know how a request is broken (proxy/faults), or any bug: each kind of request that the
plan's clients send is as likely as the next one, and so is each client. All of it is what a network may do
between a client and a correct broker. A request that is held is on its way still when its connection ends:
its sender sends it again on another one, goes on, and the first one takes effect after that.
"""

from attrs import evolve

from fencepost.campaign.swarm.draws import Draws
from fencepost.proxy.faults import checked
from fencepost.proxy.faults.drawing import CONSUMING, GROUPS, PRODUCING, TRANSACTIONS
from fencepost.run.client_cores import client_of
from fencepost.run.faults.requests import BROKEN_REQUEST
from fencepost.traces.events import Name
from fencepost.traces.plan import Fault, Plan

FIRST_BROKEN = 800
"""Fault ids."""
HOLDS = ("hold", "hold connection")
VERBS = (
    *("hold", "hold", "hold", *HOLDS, "lose answer"),
    *("half answer", "delay answer", "cut before", "cut after"),
)
"""What happens to the requests; half of them are held. Left out is silence: a client that waits on a
connection as long as it takes would wait for the rest of the run."""
HOW_MANY = (15, 40)
"""Of them in a plan: each costs its sender one time-out at most, and a client sends hundreds of requests."""
SOON_MS, LATE_MS, SOON = (20, 150), (20, 2_000), 25
"""How much later a request or an answer comes: soon, in so many of a hundred, or so much later than its
sender waits for it, who has sent it again by then."""
ARMED_MS = (2_000, 8_000)
"""How long a fault waits for its request."""
NTH = (1, 3)
"""Which one of those that fit."""
OF_ONE_CLIENT = 50
"""Of a hundred of these faults, how many hit requests of one client only."""
PLAIN = (PRODUCING | CONSUMING) - {"InitProducerId"}
"""Requests of clients that append, poll and ask for offsets, but for the one that each sends once at most,
long before."""
IN_TRANSACTIONS = (TRANSACTIONS | GROUPS | {"InitProducerId", "Produce", "Fetch"}) - {"OffsetCommit"}
"""Requests of processes that consume, transform and produce."""
READS = CONSUMING | {"FindCoordinator", "Heartbeat", "OffsetFetch"}
"""Requests that change nothing, or nothing that lasts: to hold one is to lose it. They are not held."""
INSIDE, FOLLOWING, SOON_AFTER_MS = 80, 60, (0, 150)
"""Of a hundred of these faults, how many hit requests of processes that write in transactions, where there
are any; of a hundred of those, how many begin when one has just been acknowledged an append in a transaction,
and how long they wait then: a group takes seconds to its first transaction, and other faults stop it."""
FROM_THE_START, LAST_MS = 3, 500
"""The first of so many parts of the run has none: topics and groups begin there; nor do its last so many
milliseconds."""


def with_broken_requests(plan: Plan, draw: Draws) -> Plan:
    """The plan with broken requests, in addition to its faults.

    Args:
        plan: says who sends what, and how long it lasts.
        draw: of its seed.
    """
    count = draw.between(HOW_MANY, "broken")
    return evolve(plan, faults=(*plan.faults, *(_broken(plan, draw, number) for number in range(count))))


def _broken(plan: Plan, draw: Draws, number: int) -> Fault:
    transforming = sorted({one.process for one in plan.operations if one.function == "transform"})
    others = sorted({one.process for one in plan.operations} - set(transforming))
    inside = bool(transforming) and draw.chance(INSIDE, "broken.inside", number)
    verb = draw.choice(list(VERBS), "broken.verb", number)
    values: dict[str, object] = {
        "verb": verb,
        "api": draw.choice(
            sorted((IN_TRANSACTIONS if inside else PLAIN) - (READS if verb in HOLDS else frozenset())),
            "broken.api",
            number,
        ),
        "nth": draw.between(NTH, "broken.nth", number),
        "most": 1,
    }
    if verb in (*HOLDS, "delay answer"):
        soon = draw.chance(SOON, "broken.soon", number)
        waits_ms = (plan.consumer if inside else plan.client).request_timeout_ms
        late_ms = draw.between(SOON_MS if soon else LATE_MS, "broken.by", number)
        values["milliseconds"] = late_ms + (0 if soon else waits_ms)
    senders = transforming if inside else others
    if senders and draw.chance(OF_ONE_CLIENT, "broken.one", number):
        process = senders[draw.between((0, len(senders) - 1), "broken.client", number)]
        values["client"] = client_of(process)
    following = inside and draw.chance(FOLLOWING, "broken.following", number)
    least = plan.safety_ms // FROM_THE_START
    return Fault(
        fault_id=FIRST_BROKEN + number,
        kind=BROKEN_REQUEST,
        at_ms=draw.between((least, max(least, plan.safety_ms - LAST_MS)), "broken.at", number),
        duration_ms=draw.between(ARMED_MS, "broken.armed", number),
        target=str(checked(**values)),
        follows=Name.TRANSACTION_PHASE if following else "",
        delay_ms=draw.between(SOON_AFTER_MS, "broken.after", number) if following else 0,
    )
