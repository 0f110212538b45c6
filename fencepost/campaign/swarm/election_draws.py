"""Leadership that moves faster than replicas can follow: what the swarm draws for it.

Owns the draws. Must not know bugs: nothing here is a scenario, only knobs that make elections frequent and
the windows between messages wide.

Most of what went wrong with logs that part (KIP-279, KIP-320, KAFKA-7128, KAFKA-7415) needs a second election
before everybody has heard of the first. At random times that is rare: a session must end, a leader be
elected, write, and be gone again, all within a few round trips. So here sessions are short, brokers are far
apart, sessions also end at once, faults come within round trips of each other and mostly hit leaders,
sessions of one leader after another end in volleys, and the preferred leader takes over often.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import FIRST_REQUEST, Draws
from fencepost.campaign.swarm.races import ENDS, LOSSY, TOGETHER, raced
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan import Fault, NetworkOptions, Plan, TopicOptions

KEPT_TRIPS = 40
LONG = ("crash", "isolate_zookeeper", "pause")
"""Kinds that cost a broker its session if they last; often it ends with them at once, so that nobody waits
for the time-out."""


def with_quick_elections(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with quick elections, in as many plans of a hundred as the profile says; in the others the
    plan as it is."""
    if not bounds.quick or not draw.chance(bounds.quick, "quick"):
        return plan
    far = draw.chance(75, "quick.far")
    latency_us = draw.between((20_000, 350_000) if far else (50, 2_000), "quick.latency")
    session_ms = draw.between((1_500, 4_000), "quick.session")
    balances = draw.chance(75, "quick.balance_on")
    cluster = evolve(
        plan.cluster,
        topics=tuple(
            _kept(_replicated(topic, draw, plan.cluster.brokers), latency_us) for topic in plan.cluster.topics
        ),
        zookeeper_session_timeout_ms=session_ms,
        controller_request_timeout_ms=draw.between((1_000, 3_000), "quick.control_timeout"),
        leader_imbalance_check_ms=draw.between((200, 1_500), "quick.balance") if balances else 0,
        leader_imbalance_interval_ms=draw.between((200, 1_500), "quick.balance_interval"),
    )
    network: NetworkOptions = evolve(
        plan.network,
        latency_min_us=latency_us,
        latency_tail_us=draw.between((0, 50_000 if far else 5_000), "quick.tail"),
        latency_max_us=latency_us + draw.between((10_000, 300_000), "quick.latency_max"),
    )
    requests = tuple(fault for fault in plan.faults if fault.fault_id >= FIRST_REQUEST)
    return evolve(
        plan,
        cluster=cluster,
        network=network,
        client=evolve(
            plan.client,
            request_timeout_ms=draw.between((2_500, 5_000), "quick.request_timeout"),
            delivery_timeout_ms=draw.between((6_000, 15_000), "quick.delivery_timeout"),
        ),
        budget=evolve(plan.budget, brokers_down=plan.cluster.brokers - 1),
        faults=(
            *raced(
                _faults(plan, draw, bounds, session_ms, 1 + latency_us // 500), plan, draw, bounds, latency_us
            ),
            *requests,
        ),
    )


def _replicated(topic: TopicOptions, draw: Draws, brokers: int) -> TopicOptions:
    """By all brokers in many plans: a new leader that is alone in its ISR commits at once, so that nothing
    lags any more."""
    minimum = 2 if draw.chance(15, "quick.min_insync") else 1
    factor = brokers if draw.chance(70, "quick.replicas") else 3
    return evolve(topic, replication_factor=factor, min_insync_replicas=minimum)


def _kept(topic: TopicOptions, latency_us: int) -> TopicOptions:
    """With a retention that outlasts the trips from an append to the poll that reads it: a run in which no
    read ever returned a record proves nothing."""
    least_ms = KEPT_TRIPS * latency_us // 1_000
    return evolve(topic, retention_ms=least_ms) if 0 <= topic.retention_ms < least_ms else topic


def _faults(
    plan: Plan, draw: Draws, bounds: Profile, session_ms: int, round_trip_ms: int
) -> tuple[Fault, ...]:
    ends = ENDS in bounds.kinds and not draw.chance(15, "quick.sessions_off")
    kinds = _kinds(draw, bounds, ends=ends)
    at_once = draw.between((0, 100), "quick.at_once_share") if ends else 0
    volleys = draw.between((0, 90), "quick.volleys") if ends else 0
    longest = session_ms + draw.between((200, 4_000), "quick.longest")
    quick, burst_ms = draw.between((20, 90), "quick.share"), draw.between((100, 900), "quick.burst_ms")
    faults = _lossy(plan, draw, bounds)
    at_ms = 0
    for number in range(draw.between(bounds.faults, "quick.faults") if kinds else 0):
        most = burst_ms if draw.chance(quick, "quick.burst", number) else 2 * session_ms
        at_ms += draw.between((0, most), "quick.gap", number)
        if at_ms >= plan.safety_ms:
            break
        kind = draw.choice(kinds, "quick.kind", number)
        target = _role(plan, draw, "quick.target", number)
        if kind in LONG and draw.chance(at_once, "quick.at_once", number):
            faults.append(_ends(TOGETHER * number, at_ms, target))
        faults.append(
            Fault(
                fault_id=TOGETHER * number + 1,
                kind=kind,
                at_ms=at_ms,
                duration_ms=draw.between((10, longest), "quick.duration", number),
                target=target,
                other=_role(plan, draw, "quick.other", number)
                if draw.chance(40, "quick.pair", number)
                else "",
                parameter=draw.between(FAULTS[kind].parameter, "quick.parameter", number),
            )
        )
        if draw.chance(volleys, "quick.volley", number):
            for shot in range(draw.between((1, 3), "quick.shots", number)):
                at_ms += draw.between((round_trip_ms // 2, 4 * round_trip_ms), "quick.shot", number, shot)
                faults.append(_ends(TOGETHER * number + 2 + shot, at_ms, _leader(plan)))
    return tuple(faults)


def _ends(fault_id: int, at_ms: int, target: str) -> Fault:
    return Fault(fault_id=fault_id, kind=ENDS, at_ms=at_ms, duration_ms=1, target=target)


def _leader(plan: Plan) -> str:
    return f"leader of {plan.cluster.topics[0].name}-0"


def _lossy(plan: Plan, draw: Draws, bounds: Profile) -> list[Fault]:
    """Messages between brokers are lost all the time, in some plans: what waits for an answer then waits for
    a time-out."""
    if "loss" not in bounds.kinds or not draw.chance(60, "quick.lossy"):
        return []
    lost_ppm = draw.between((10_000, 500_000), "quick.lost")
    return [
        Fault(
            fault_id=LOSSY + broker,
            kind="loss",
            at_ms=0,
            duration_ms=plan.safety_ms,
            target=f"broker {broker}",
            parameter=lost_ppm,
        )
        for broker in range(1, plan.cluster.brokers + 1)
    ]


def _kinds(draw: Draws, bounds: Profile, *, ends: bool) -> list[str]:
    """Those of the profile, each off in some plans, and three of them in the hat several times in others."""
    kinds = [kind for kind in bounds.kinds if draw.chance(60, f"quick.{kind}")] or list(bounds.kinds[:1])
    for kind, most, purpose in (
        ("crash", 1, "crashes"),
        (ENDS, 3, "sessions"),
        ("partition", 3, "partitions"),
    ):
        kinds += [kind] * draw.between((0, most), f"quick.{purpose}") * (kind in bounds.kinds)
    return [kind for kind in kinds if ends or kind != ENDS] or list(bounds.kinds[:1])


def _role(plan: Plan, draw: Draws, purpose: str, number: int) -> str:
    topic = plan.cluster.topics[0]
    key = f"{topic.name}-{draw.between((0, topic.partitions - 1), f'{purpose}.partition', number)}"
    roles = [*[f"leader of {key}"] * 6, *[f"follower 1 of {key}"] * 2, *[f"follower 2 of {key}"] * 2]
    return draw.choice([*roles, "controller"], purpose, number)
