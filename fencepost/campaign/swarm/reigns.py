"""Leaders that follow one another quickly: the options of a plan whose leaders go in rows (chain_rows.py).

Owns these options. Must not know when leaders go.
"""

from attrs import evolve, frozen

from fencepost.campaign.swarm.chains import LOSSY
from fencepost.campaign.swarm.draws import FIRST_REQUEST, Draws
from fencepost.traces.plan import Fault, NetworkOptions, Plan, TopicOptions


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
    longest_us = reigns.latency_us + drawn(10_000, 30_000, "latency_max")
    committed_ms = 50 + 4 * longest_us // 1_000  # a request, two fetches of a follower, and the answer
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
            latency_max_us=longest_us,
        ),
        client=evolve(
            plan.client,
            request_timeout_ms=max(committed_ms, 50 + reigns.trip_ms * drawn(4, 8, "patience")),
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
