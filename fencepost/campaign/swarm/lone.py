"""One thing breaks, and then another: what the swarm draws for it.

Owns the draws. Must not know bugs: nothing here is a scenario. Where faults overlap, nearly everything that
happens has an excuse. Here each fault comes when the cluster has got over the last one, and lasts longer than
a session and a lag: what the others do meanwhile, and how soon, is theirs alone to answer for
(checkers/liveness). Messages are not lost by chance, and brokers are near.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws, role_of
from fencepost.campaign.swarm.reigns import requests_in
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan import Fault, NetworkOptions, Plan

ENDS = ("crash", "crash", "crash", "bounce", "expire_session")
"""Kinds after which only the others act."""


def with_lone_faults(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with faults one after another instead of its own, in as many plans of a hundred as the profile
    says; in the others the plan as it is."""
    if not bounds.lone or not draw.chance(bounds.lone, "lone"):
        return plan
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            zookeeper_session_timeout_ms=draw.between((1_000, 3_000), "lone.session"),
            replica_lag_time_max_ms=draw.between((1_000, 4_000), "lone.lag"),
            controller_request_timeout_ms=draw.between((300, 1_000), "lone.control_timeout"),
            replica_fetch_backoff_ms=draw.between((50, 500), "lone.backoff"),
        ),
        network=NetworkOptions(
            latency_min_us=draw.between((50, 10_000), "lone.latency"),
            latency_tail_us=draw.between((0, 2_000), "lone.tail"),
            latency_max_us=draw.between((12_000, 50_000), "lone.latency_max"),
        ),
        faults=(*_faults(plan, draw, bounds), *requests_in(plan)),
    )


def _faults(plan: Plan, draw: Draws, bounds: Profile) -> list[Fault]:
    topic, brokers = plan.cluster.topics[0], plan.cluster.brokers
    ends = [kind for kind in ENDS if kind in bounds.kinds]
    kinds = [kind for kind in bounds.kinds if draw.chance(30, f"lone.{kind}")] or list(bounds.kinds[:1])
    found: list[Fault] = []
    number, at_ms = 0, draw.between((500, 5_000), "lone.begin")
    while at_ms < plan.safety_ms and kinds:
        kind = draw.choice(
            ends if ends and draw.chance(60, "lone.ends", number) else kinds, "lone.kind", number
        )
        duration_ms = draw.between((3_000, 15_000), "lone.duration", number)
        found.append(
            Fault(
                fault_id=number,
                kind=kind,
                at_ms=at_ms,
                duration_ms=duration_ms,
                target=role_of(draw, topic, "lone.target", number, brokers),
                parameter=draw.between(FAULTS[kind].parameter, "lone.parameter", number),
            )
        )
        at_ms += duration_ms + draw.between((3_000, 15_000), "lone.gap", number)
        number += 1
    return found
