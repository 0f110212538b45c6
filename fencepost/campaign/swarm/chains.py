"""Chains of faults: this, and after it that, within so long; again and again in one run.

Owns the generator. Must not know any chain: they are rows (chain_rows.py). A window between two steps of the
protocol is seldom hit by faults at random times. A chain hits the same few windows many times in a run, each
time with other delays: its links keep their kinds, roles and steps, and when they come is drawn anew.
"""

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from fencepost.campaign.swarm.draws import Draws, role_of
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan import Fault, Plan

TOGETHER = 10
"""Fault ids of what belongs together differ in the last digit."""
LOSSY = 100_000
"""Fault ids of what lasts for the whole plan begin here."""
ENDS, LATE = "expire_session", "slow_link"
Span = tuple[int, int]
"""The least and the most."""
RECOVERY_MS = 3_000
"""At the end of the safety phase no chain begins any more."""
DELETE = "delete_topic"
VICTIM = "victim"
"""In a role: the broker that was drawn for this run of the chain."""


@frozen(kw_only=True)
class Link:
    """A fault of a chain, or a request. Of several kinds, roles or steps one is drawn each time."""

    kinds: tuple[str, ...]
    # Roles as plans have them, with {key} for the partition and {victim} for a broker of the chain's own; a
    # request for a topic or a partition is of any.
    roles: tuple[str, ...] = ("leader of {key}",)
    # The second role of a fault between two; "": none.
    others: tuple[str, ...] = ("",)
    # Events that it waits for; "": it comes at its own time.
    steps: tuple[str, ...] = ("",)
    # Milliseconds from the event to the fault, and from the link before to this one's waiting.
    delay_ms: Span = (0, 0)
    gap_ms: Span = (0, 0)
    lasts_ms: Span = (1, 1)
    # The fault's parameter is one of these; (): what its kind allows.
    parameters: Sequence[int] = ()
    # How often in a row, and in how many runs of a hundred.
    times: Span = (1, 1)
    percent: int = 100
    # Another fault behind the same event, with the same role: its delay counts from this one.
    along: "Link | None" = None


@frozen(kw_only=True)
class Chain:
    """Links in their order."""

    # Of its draws.
    label: str
    links: tuple[Link, ...]
    # Milliseconds between two runs of it, until shortly before the end; None: it has its moments.
    gap_ms: Span | None = None
    # When it is run.
    moments: tuple[int, ...] = ()
    # The id of its first fault.
    first_id: int = 0
    # Whether the requests of one run are for one topic, or partition.
    one_subject: bool = False


def faults_of_chain(plan: Plan, draw: Draws, chain: Chain) -> list[Fault]:
    """The faults of a chain.

    Args:
        plan: of its first topic's first partition the chain is; the faults that it has do not count.
        draw: of its seed.
        chain: what is run.
    """
    found: list[Fault] = []
    number = 0
    for run, at_ms in enumerate(chain.moments if chain.gap_ms is None else _moments(plan, draw, chain)):
        moment = at_ms
        for place, link in enumerate(chain.links):
            cause = len(chain.links) * run + place
            times = draw.between(link.times, f"{chain.label}.times", cause)
            on = draw.chance(link.percent, f"{chain.label}.on", cause)
            for _ in range(times if on else 0):
                moment += draw.between(link.gap_ms, f"{chain.label}.next", number)
                found += _shot(plan, draw, chain, link, run, number, moment)
                number += 1
    return found


def _moments(plan: Plan, draw: Draws, chain: Chain) -> Iterator[int]:
    """A run of a chain begins a gap after the longest one of the run before would have ended."""
    assert chain.gap_ms is not None
    run, at_ms = 0, draw.between(chain.gap_ms, f"{chain.label}.gap", 0)
    longest = sum(link.times[1] * link.gap_ms[1] for link in chain.links)
    while at_ms < plan.safety_ms - RECOVERY_MS:
        yield at_ms
        run += 1
        at_ms += longest + draw.between(chain.gap_ms, f"{chain.label}.gap", run)


def _shot(
    plan: Plan, draw: Draws, chain: Chain, link: Link, run: int, number: int, at_ms: int
) -> list[Fault]:
    """A link's fault, and what comes along with it."""
    label, brokers = chain.label, plan.cluster.brokers
    victim = f"broker {draw.between((1, brokers), f'{label}.victim', run)}"
    if draw.chance(40, f"{label}.role_on", run):
        victim = role_of(draw, plan.cluster.topics[0], f"{label}.victim_role", run, brokers)
    names = {"key": f"{plan.cluster.topics[0].name}-0", VICTIM: victim}
    kind = draw.choice([*link.kinds], f"{label}.kind", number)
    role = draw.choice([*link.roles], f"{label}.role", number).format(**names)
    first = Fault(
        fault_id=chain.first_id + TOGETHER * number,
        kind=kind,
        at_ms=at_ms,
        duration_ms=0 if FAULTS[kind].ask else draw.between(link.lasts_ms, f"{label}.lasts", number),
        target=_asked_of(plan, draw, kind, f"{label}.of", run if chain.one_subject else number) or role,
        other=draw.choice([*link.others], f"{label}.other", number).format(**names),
        parameter=_parameter(draw, link, kind, f"{label}.parameter", number),
        follows=draw.choice([*link.steps], f"{label}.step", number),
        delay_ms=draw.between(link.delay_ms, f"{label}.delay", number),
    )
    along = link.along
    if along is None or not draw.chance(along.percent, f"{label}.along", number):
        return [first]
    kind = draw.choice([*along.kinds], f"{label}.along_kind", number)
    later = evolve(
        first,
        fault_id=first.fault_id + 1,
        kind=kind,
        duration_ms=draw.between(along.lasts_ms, f"{label}.along_lasts", number),
        parameter=_parameter(draw, along, kind, f"{label}.along_parameter", number),
        delay_ms=first.delay_ms + draw.between(along.delay_ms, f"{label}.along_delay", number),
    )
    return [first, later]


def _asked_of(plan: Plan, draw: Draws, kind: str, purpose: str, number: int) -> str:
    """The topic or partition of a request; "" for one of a broker. What clients use is not deleted, if there
    is another topic."""
    topics = plan.cluster.topics
    least = min(1, len(topics) - 1) if kind == DELETE else 0
    topic = topics[draw.between((least, len(topics) - 1), purpose, number)]
    if FAULTS[kind].on == "topic":
        return f"topic {topic.name}"
    if FAULTS[kind].on == "partition":
        partition = draw.between((0, topic.partitions - 1), f"{purpose}.partition", number)
        return f"partition {topic.name}-{partition}"
    return ""


def _parameter(draw: Draws, link: Link, kind: str, purpose: str, number: int) -> int:
    if link.parameters:
        return link.parameters[draw.between((0, len(link.parameters) - 1), purpose, number)]
    return draw.between(FAULTS[kind].parameter, purpose, number)
