"""Operators in haste: requests that come within a round trip or two of each other, and the brokers that they
concern goes meanwhile. What the swarm draws for it.

Owns the draws. Must not know bugs, only that a second request comes while the
first one is still being carried out.

A controller carries out one event at a time, but what it sent for the last one is under way, or waits for its
turn, when the next one begins. A request drawn at a random time seldom meets that. Here a broker is asked to
stop, or a partition to move; the next request follows a step of the first (Fault.follows), mostly the
controller's own next write. In many volleys the link between the controller and the broker is lossy or slow,
so that answers come late, and the broker dies a few round trips later.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws, role_of
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan import Fault, Plan, TopicOptions

FIRST = 200_000
"""Fault ids of volleys begin here; ten for each."""
EACH = 10
STOP = "clean_restart"
DELETE = "delete_topic"
ENDS = ("crash", "bounce", "power_loss", "pause", "expire_session")
LOSS = "loss"
TROUBLES = (LOSS, "slow_link")
MORE = ("v", "w", "x", "y")
"""Topics besides those that clients use."""
STEPS = ("partition_state", "isr_updated", "became_follower")
"""What the second request follows: what the first one leads to."""


def with_haste(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with volleys of requests added, in as many plans of a hundred as the profile says; in the
    others the plan as it is."""
    if not bounds.hasty or not draw.chance(bounds.hasty, "haste"):
        return plan
    kinds = [kind for kind in bounds.request_kinds if draw.chance(60, f"haste.{kind}")] or list(
        bounds.request_kinds
    )
    if not kinds:
        return plan
    topics = (*plan.cluster.topics, *_more_topics(draw, plan.cluster.brokers))
    plan = evolve(plan, cluster=evolve(plan.cluster, topics=topics))
    trip_ms = 1 + 2 * (plan.network.latency_min_us + plan.network.latency_tail_us) // 1_000
    found: list[Fault] = []
    for number in range(draw.between((2, 6), "haste.volleys")):
        at_ms = draw.between((0, plan.safety_ms * 4 // 5), "haste.at", number)
        found += _volley(plan, draw, bounds, kinds, number, at_ms, trip_ms)
    faults = sorted((*plan.faults, *found), key=lambda fault: (fault.at_ms, fault.fault_id))
    return evolve(plan, faults=tuple(faults))


def _more_topics(draw: Draws, brokers: int) -> list[TopicOptions]:
    """Topics that nobody writes to, to be deleted: a name is used once."""
    return [
        TopicOptions(
            name=name,
            partitions=draw.between((1, 2), "haste.partitions", number),
            replication_factor=draw.between((2, min(3, brokers)), "haste.replicas", number),
        )
        for number, name in enumerate(MORE)
    ]


def _volley(
    plan: Plan, draw: Draws, bounds: Profile, kinds: list[str], number: int, at_ms: int, trip_ms: int
) -> list[Fault]:
    """A request, one or two that follow it, trouble on the way, and the end of the broker that the first one
    was for."""
    topic, brokers = plan.cluster.topics[0], plan.cluster.brokers
    victim = f"broker {draw.between((1, brokers), 'haste.broker', number)}"
    if draw.chance(40, "haste.role_on", number):
        victim = role_of(draw, topic, "haste.role", number, brokers)
    first = FIRST + EACH * number
    stop = STOP in bounds.request_kinds and draw.chance(60, "haste.stop", number)
    kind = STOP if stop else draw.choice(kinds, "haste.first", number)
    found = [_request(plan, draw, first, kind, at_ms, victim)]
    for place in range(1, 1 + draw.between((1, 2), "haste.more", number)):
        kind = draw.choice(kinds, "haste.kind", number, place)
        if stop and DELETE in bounds.request_kinds and draw.chance(80, "haste.delete", number, place):
            kind = DELETE
        request = _request(plan, draw, first + place, kind, at_ms + place, victim)
        follows = (
            draw.choice(list(STEPS), "haste.step", number, place)
            if draw.chance(75, "haste.follow", number, place)
            else ""
        )
        late = draw.chance(40, "haste.late", number, place)  # what was lost is sent again after that time
        longest_ms = plan.cluster.controller_request_timeout_ms if late else 2 * trip_ms
        delay_ms = draw.between((0, longest_ms), "haste.delay", number, place)
        found.append(
            evolve(request, follows=follows, delay_ms=delay_ms)
            if follows
            else evolve(request, at_ms=at_ms + delay_ms)
        )
    trouble = [kind for kind in TROUBLES if kind in bounds.kinds]
    if trouble and draw.chance(85, "haste.trouble", number):
        kind = (
            LOSS
            if LOSS in trouble and draw.chance(75, "haste.loss", number)
            else draw.choice(trouble, "haste.trouble_kind", number)
        )
        strength = (400_000, 850_000) if kind == LOSS else (1_000, 4_000 * trip_ms)
        found.append(
            Fault(
                fault_id=first + 5,
                kind=kind,
                at_ms=at_ms,
                duration_ms=draw.between((trip_ms, 12_000 + 20 * trip_ms), "haste.trouble_for", number),
                target="controller",
                other=victim,
                parameter=draw.between(strength, "haste.strength", number),
            )
        )
    ends = [kind for kind in ENDS if kind in bounds.kinds]
    if ends and draw.chance(30 if stop else 60, "haste.end", number):
        kind = draw.choice(ends, "haste.end_kind", number)
        found.append(
            Fault(
                fault_id=first + 6,
                kind=kind,
                at_ms=at_ms + 2,
                duration_ms=draw.between((500, 8_000), "haste.end_for", number),
                target=victim,
                parameter=draw.between(FAULTS[kind].parameter, "haste.end_parameter", number),
                follows=draw.choice(list(STEPS), "haste.end_step", number),
                delay_ms=draw.between((0, 8 * trip_ms), "haste.end_delay", number),
            )
        )
    return found


def _request(plan: Plan, draw: Draws, fault_id: int, kind: str, at_ms: int, victim: str) -> Fault:
    """One request, of the broker or of any partition or topic."""
    topics = plan.cluster.topics
    topic = topics[draw.between((0, len(topics) - 1), "haste.topic", fault_id)]
    if kind == DELETE:
        places = (min(1, len(topics) - 1), len(topics) - 1)
        target = f"topic {topics[draw.between(places, 'haste.deleted', fault_id)].name}"
    elif FAULTS[kind].on == "topic":
        target = f"topic {topic.name}"
    elif FAULTS[kind].on == "partition":
        target = (
            f"partition {topic.name}-{draw.between((0, topic.partitions - 1), 'haste.partition', fault_id)}"
        )
    else:
        target = victim
    return Fault(
        fault_id=fault_id,
        kind=kind,
        at_ms=at_ms,
        duration_ms=0 if FAULTS[kind].ask else 1_000,
        target=target,
        parameter=draw.between(FAULTS[kind].parameter, "haste.parameter", fault_id),
    )
