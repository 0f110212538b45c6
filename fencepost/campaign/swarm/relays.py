"""Leadership that is handed on before everybody has heard of it: what the swarm draws for it.

Owns the draws. Must not know bugs, only that several reigns in a row are short,
with time to recover between the rows.

Quick elections (election_draws.py) at random times seldom catch a leader that has written something which
some have copied and others have not: most of their leaders never write. Here reigns come in relays: each
leader goes within two round trips of a first append, so that it has written; the last one of many relays
within two round trips of a log that was cut. One broker is always late, and who waits for a dead leader's
answer gives up after a few round trips.
"""

from attrs import evolve, frozen

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import FIRST_REQUEST, Draws
from fencepost.campaign.swarm.races import ENDS, LATE, LOSSY, TOGETHER
from fencepost.traces.plan import Fault, NetworkOptions, Plan, TopicOptions

STOPS = "crash"
RECOVERY_MS = 3_000
"""At the end of the safety phase no relay begins any more."""


def with_relays(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with relays of leaders instead of its faults, in as many plans of a hundred as the profile
    says; in the others the plan as it is."""
    if not bounds.relayed or not draw.chance(bounds.relayed, "relay") or ENDS not in bounds.kinds:
        return plan
    latency_us = draw.between((10_000, 60_000), "relay.latency")
    late_us = latency_us * draw.between((3, 10), "relay.late_trips")
    row = Reigns(
        label="relay", latency_us=latency_us, slowest_us=late_us, balanced=70, balance_ms=(500, 2_000)
    )
    plan = with_short_reigns(plan, draw, row, lag_ms=draw.between((4_000, 10_000), "relay.lag"))
    late = [_late(plan, draw, late_us)] if LATE in bounds.kinds else []
    return evolve(plan, faults=(*late, *_relays(plan, draw, bounds, row.trip_ms), *requests_in(plan)))


@frozen(kw_only=True)
class Reigns:
    """What a profile of short reigns draws from."""

    # Of its draws.
    label: str
    # Of its network, slowest_us: more on its slowest links.
    latency_us: int
    slowest_us: int
    # Clusters in a hundred that look for preferred leaders, every balance_ms.
    balanced: int
    balance_ms: tuple[int, int]

    @property
    def trip_ms(self) -> int:
        """A round trip, rounded up."""
        return 1 + self.latency_us // 500


def with_short_reigns(plan: Plan, draw: Draws, reigns: Reigns, *, lag_ms: int) -> Plan:
    """The plan with options under which leaders follow one another quickly: everybody has a replica, sessions
    are short, and who waits for a dead leader gives up after a few round trips. lag_ms: after which a
    follower leaves the ISR."""

    def drawn(low: int, high: int, what: str) -> int:
        return draw.between((low, high), f"{reigns.label}.{what}")

    balances = draw.chance(reigns.balanced, f"{reigns.label}.balance_on")
    answered_ms = (reigns.latency_us + reigns.slowest_us) * 3 // 1_000
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            topics=tuple(everywhere(topic, plan.cluster.brokers) for topic in plan.cluster.topics),
            zookeeper_session_timeout_ms=drawn(2_000, 5_000, "session"),
            controller_request_timeout_ms=max(600, answered_ms),
            replica_lag_time_max_ms=lag_ms,
            replica_fetch_backoff_ms=drawn(50, 300, "backoff"),
            replica_fetch_wait_max_ms=drawn(50, 500, "wait"),
            leader_imbalance_check_ms=drawn(*reigns.balance_ms, "balance") if balances else 0,
            leader_imbalance_interval_ms=drawn(*reigns.balance_ms, "balance_interval"),
        ),
        network=NetworkOptions(
            latency_min_us=reigns.latency_us,
            latency_tail_us=drawn(0, 5_000, "tail"),
            latency_max_us=reigns.latency_us + drawn(10_000, 30_000, "latency_max"),
        ),
        client=evolve(
            plan.client,
            request_timeout_ms=50 + reigns.trip_ms * drawn(4, 8, "patience"),
            retry_backoff_ms=drawn(20, 100, "retry"),
            fetch_wait_max_ms=min(
                plan.client.fetch_wait_max_ms, reigns.trip_ms
            ),  # a wait of nothing to read must end before the client's patience
            delivery_timeout_ms=drawn(2_000, 8_000, "delivery"),
        ),
        budget=evolve(plan.budget, brokers_down=plan.cluster.brokers - 1),
    )


def requests_in(plan: Plan) -> list[Fault]:
    """What operators ask for, which stays."""
    return [fault for fault in plan.faults if FIRST_REQUEST <= fault.fault_id < LOSSY]


def everywhere(topic: TopicOptions, brokers: int) -> TopicOptions:
    """A topic with a replica on each broker: the last member of an ISR leads.

    Args:
        topic: as it was drawn.
        brokers: how many there are.
    """
    return evolve(topic, replication_factor=brokers, min_insync_replicas=1)


def _late(plan: Plan, draw: Draws, late_us: int) -> Fault:
    return Fault(
        fault_id=LOSSY - 1,
        kind=LATE,
        at_ms=0,
        duration_ms=plan.safety_ms,
        target=f"broker {draw.between((1, plan.cluster.brokers), 'relay.late')}",
        parameter=late_us,
    )


def _relays(plan: Plan, draw: Draws, bounds: Profile, trip_ms: int) -> list[Fault]:
    """Rows of two to four ends of a leader; seconds between the rows, round trips within."""
    stopped = draw.choice(["0", "20", "40"], "relay.stopped") if STOPS in bounds.kinds else "0"
    found: list[Fault] = []
    number = row = at_ms = 0
    while True:
        at_ms += draw.between((2_000, 8_000), "relay.gap", row)
        if at_ms >= plan.safety_ms - RECOVERY_MS:
            return found
        reigns = draw.between((2, 4), "relay.reigns", row)
        for place in range(reigns):
            cut = place == reigns - 1 and draw.chance(80, "relay.cut", row)
            quick = 0 < place < reigns - 1 and draw.chance(20, "relay.at_once", number)
            follows = "truncated" if cut else "became_leader" if quick else "appended"
            delay_ms = draw.between((0, 2 * trip_ms), "relay.delay", number)
            end = Fault(
                fault_id=TOGETHER * number,
                kind=ENDS,
                at_ms=at_ms,
                duration_ms=1,
                target=f"leader of {plan.cluster.topics[0].name}-0",
                follows=follows,
                delay_ms=delay_ms,
            )
            found.append(end)
            if draw.chance(int(stopped), "relay.stop", number):
                down_ms = draw.between((3_000, 8_000), "relay.down", number)
                found.append(evolve(end, fault_id=end.fault_id + 1, kind=STOPS, duration_ms=down_ms))
            at_ms += delay_ms + draw.between((2 * trip_ms, 8 * trip_ms), "relay.shot", number)
            number += 1
        row += 1
