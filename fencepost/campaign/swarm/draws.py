"""The swarm's draws, and what it draws of faults and of operators' requests.

Owns the keys of the draws. Must not know clusters or clients: a fault's target is a role.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import REQUESTS, Profile
from fencepost.run.faults.configuration_change import CHANGES, FIRST_POLICY
from fencepost.run.faults.table import FAULTS
from fencepost.sim.randomness import Randomness
from fencepost.traces.kafka_names.inherited_settings import EVERY_BROKER
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.plan import Fault, NetworkOptions, Plan, TopicOptions

FIRST_REQUEST, FIRST_CHANGE, FIRST_MOVE = 1_000, 7_000, 7_100
"""Fault ids of requests, and of those that change settings, begin here."""
LATE_MESSAGE_US = (2_000_000, 6_000_000)
"""A late message, or the second of two, comes at most so much later: up to several request time-outs."""
LATE_PPM = (3_000, 40_000)
"""How many messages are late. Reason: a run has some hundred Produce requests of transactions, and still
most of its transactions shall commit."""


class Draws:
    """Draws of one plan."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness

    def between(self, bounds: tuple[int, int], purpose: str, *cause: int) -> int:
        """An integer from `bounds`, both ends included."""
        low, high = bounds
        return low + self._randomness.below(high - low + 1, f"swarm.{purpose}", *cause)

    def chance(self, percent: int, purpose: str, *cause: int) -> bool:
        """True in some cases of a hundred.

        Args:
            percent: in how many.
            purpose: what is drawn; equal purposes and causes draw the same.
            cause: numbers that tell draws of one purpose apart.
        """
        return self._randomness.chance(percent * 10_000, f"swarm.{purpose}", *cause)

    def choice(self, items: list[str], purpose: str, *cause: int) -> str:
        """One of the items."""
        return self._randomness.choice(items, f"swarm.{purpose}", *cause)


def with_late_messages(network: NetworkOptions, draw: Draws, share: str, by: str) -> NetworkOptions:
    """Some messages come after their sender gave them up, and after what was sent later. share, by: what is
    drawn: how many of a million, and by how much at most."""
    late_us = draw.between(LATE_MESSAGE_US, by)
    return evolve(network, late_ppm=draw.between(LATE_PPM, share), late_max_us=late_us)


def faults_of(
    draw: Draws, bounds: Profile, topic: TopicOptions, safety_ms: int, brokers: int
) -> tuple[Fault, ...]:
    """The faults of a plan.

    Args:
        draw: the seed's draws.
        bounds: the profile.
        topic: names the roles.
        safety_ms: how long faults may begin, in virtual milliseconds.
        brokers: how many there are.
    """
    count = draw.between(bounds.faults, "faults")
    kinds = [kind for index, kind in enumerate(bounds.kinds) if draw.chance(50, "kind", index)]
    kinds = kinds or ["crash" if "crash" in bounds.kinds else kind for kind in bounds.kinds[:1]]
    longest = draw.between((500, 20_000), "longest")
    together = draw.chance(60, "together")
    focus = role_of(draw, topic, "focus", 0, brokers) if draw.chance(50, "focus_on") else ""
    faults, at_ms = [], 0
    for number in range(count):
        near = together and number > 0 and draw.chance(75, "near", number)
        at_ms = (
            min(safety_ms, at_ms + draw.between((0, 3_000), "gap", number))
            if near
            else draw.between((0, safety_ms), "fault_at", number)
        )
        kind = draw.choice(kinds, "fault_kind", number)
        faults.append(
            Fault(
                fault_id=number,
                kind=kind,
                at_ms=at_ms,
                duration_ms=draw.between((10, longest), "duration", number),
                target=focus
                if focus and draw.chance(50, "focused", number)
                else role_of(draw, topic, "target", number, brokers),
                other=role_of(draw, topic, "other", number, brokers)
                if draw.chance(30, "pair", number)
                else "",
                parameter=draw.between(FAULTS[kind].parameter, "parameter", number),
            )
        )
    return tuple(sorted(faults, key=lambda fault: (fault.at_ms, fault.fault_id)))


def requests_on(draw: Draws, bounds: Profile) -> list[str]:
    """The kinds of request of an administered plan; a profile that was cut down to a few kinds has one at
    least.

    Args:
        draw: the seed's draws.
        bounds: the profile.
    """
    kinds = [kind for kind in bounds.request_kinds if draw.chance(50, f"request.{kind}")]
    return kinds if kinds or bounds.request_kinds == REQUESTS else list(bounds.request_kinds)


def requests_of(
    draw: Draws,
    bounds: Profile,
    topics: tuple[TopicOptions, ...],
    kinds: list[str],
    faults: tuple[Fault, ...],
    safety_ms: int,
    brokers: int,
) -> tuple[Fault, ...]:
    """What operators ask for. Most of it is near a fault: a request that nothing interrupts is seldom
    interesting.

    Args:
        draw: the seed's draws.
        bounds: the profile.
        topics: of the plan; the first one names the roles.
        kinds: of requests.
        faults: of the plan.
        safety_ms: how long requests may begin, in virtual milliseconds.
        brokers: how many there are.
    """
    topic = topics[0]
    near = draw.chance(70, "request.together")
    requests: list[Fault] = []
    busy = draw.chance(bounds.restless, "restless")
    count = draw.between((15, 40) if busy else bounds.requests, "requests") if kinds else 0
    for number in range(count):
        kind = draw.choice(kinds, "request_kind", number)
        at_ms = draw.between((0, safety_ms), "request_at", number)
        if requests and draw.chance(70 if busy else 35, "request.next", number):
            before = requests[-1]
            at_ms = min(safety_ms, before.at_ms + draw.between((0, 5_000), "request.gap", number))
            undone = before.kind.startswith("reassign") and "reassign_back" in bounds.request_kinds
            if undone and draw.chance(50, "request.undo", number):
                requests.append(
                    evolve(before, fault_id=FIRST_REQUEST + number, kind="reassign_back", at_ms=at_ms)
                )
                continue
        elif near and faults and draw.chance(75, "request.near", number):
            beside = faults[draw.between((0, len(faults) - 1), "request.beside", number)]
            begins = beside.at_ms + (beside.duration_ms if draw.chance(40, "request.after", number) else 0)
            at_ms = max(0, min(safety_ms, begins + draw.between((-2_000, 2_000), "request.gap", number)))
        if FAULTS[kind].on == "partition":
            target = (
                f"partition "
                f"{topic.name}-{draw.between((0, topic.partitions - 1), 'request.partition', number)}"
            )
        elif kind in ("create_topic", "delete_topic"):
            target = f"topic {topics[-1].name}"
        elif FAULTS[kind].on == "topic":
            target = f"topic {topic.name}"
        else:
            target = role_of(draw, topic, "request.role", number, brokers)
        requests.append(
            Fault(
                fault_id=FIRST_REQUEST + number,
                kind=kind,
                at_ms=at_ms,
                duration_ms=0 if FAULTS[kind].ask else 1_000,
                target=target,
                parameter=draw.between(_soon(draw, kind, number), "request.parameter", number),
            )
        )
    return tuple(sorted(requests, key=lambda fault: (fault.at_ms, fault.fault_id)))


def with_changes(plan: Plan, draw: Draws) -> Plan:
    """The plan with operators who move a topic's settings, or what all topics inherit, up and down, at any
    time and right after it was made. What transactions write stays as it is: a batch that is too large would
    end each of them."""
    made = [
        fault.at_ms + draw.between((0, 400), "changes.made", fault.fault_id)
        for fault in plan.faults
        if fault.kind == "create_topic"
    ]
    names = [
        topic.name
        for topic in plan.cluster.topics
        if topic.name not in (*INTERNAL_TOPICS, plan.transform.output)
    ]
    names += [EVERY_BROKER] * len(names)
    some = draw.chance(60, "changes.some")
    kinds = [
        draw.between((0, FIRST_POLICY - 1), "changes.kind", number)
        for number in range(draw.between((2, 4), "changes.kinds"))
    ]
    count = draw.between((2, 15), "changes")
    at_ms = [*made, *(_moment(plan, draw, number) for number in range(count))]
    changes = tuple(
        Fault(
            fault_id=FIRST_CHANGE + number,
            kind="alter_topic",
            at_ms=moment,
            duration_ms=0,
            target=f"topic {draw.choice(names, 'changes.topic', number)}",
            parameter=kinds[draw.between((0, len(kinds) - 1), "changes.parameter", number)]
            if some
            else draw.between((0, FIRST_POLICY - 1), "changes.parameter", number),
        )
        for number, moment in enumerate(at_ms)
    )
    keyed = sorted({one.topic for one in plan.operations if one.key and one.function == "append"})
    changes += tuple(
        Fault(
            fault_id=FIRST_MOVE + number,
            kind="alter_topic",
            at_ms=_moment(plan, draw, FIRST_MOVE + number),
            duration_ms=0,
            target=f"topic {keyed[0]}",
            parameter=draw.between((FIRST_POLICY, len(CHANGES) - 1), "changes.policy", number),
        )
        for number in range(draw.between((1, 6), "changes.policies") if keyed else 0)
    )
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            log_retention_check_interval_ms=min(
                plan.cluster.log_retention_check_interval_ms,
                draw.between((200, 5_000), "changes.retention_check"),
            ),
        ),
        faults=(*plan.faults, *changes),
    )


def _moment(plan: Plan, draw: Draws, number: int) -> int:
    """Any time, mostly near a fault."""
    at_ms = draw.between((0, plan.safety_ms), "changes.at", number)
    if plan.faults and draw.chance(60, "changes.near", number):
        fault = plan.faults[draw.between((0, len(plan.faults) - 1), "changes.beside", number)]
        at_ms = fault.at_ms + draw.between((0, 2_000), "changes.after", number)
    return min(at_ms, plan.safety_ms)


def _soon(draw: Draws, kind: str, number: int) -> tuple[int, int]:
    """A broker that stopped cleanly is as often back at once as later."""
    return (1, 200) if kind == "clean_restart" and draw.chance(50, "soon", number) else FAULTS[kind].parameter


def role_of(draw: Draws, topic: TopicOptions, purpose: str, number: int, brokers: int) -> str:
    """A role or a broker, as plans name them.

    Args:
        draw: the seed's draws.
        topic: names the roles.
        purpose: what is drawn.
        number: tells draws of one purpose apart.
        brokers: how many there are.
    """
    partition = draw.between((0, topic.partitions - 1), f"{purpose}.partition", number)
    key = f"{topic.name}-{partition}"
    roles = ["controller", f"leader of {key}", f"follower 1 of {key}", f"follower 2 of {key}"]
    roles.append(f"broker {draw.between((1, brokers), f'{purpose}.broker', number)}")
    return draw.choice(roles, purpose, number)
