"""Rests: stretches of calm in which everything that is owed must come true. What the swarm draws for them.

Owns the draws. Must not know bugs or rules. Where faults overlap all the time, nearly everything that happens
has an excuse, and a cluster that never gets over anything is not found out. So most plans are bursts of
faults with calm between them, or have no fault at all; then time-outs are short, brokers near, and no message
is lost by chance. In a third of the rests one broker stays away (degraded): the others owe the same.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.campaign.swarm.subset import SCHEDULES
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan import Fault, NetworkOptions, Plan

REST_MS = (10_000, 15_000)
"""Longer than any bound of the table of record/bounds.py with these time-outs."""
BURST_MS = (1_500, 6_000)
QUIET, DEGRADED, OUTSIDE = 33, 33, 60
"""Of a hundred plans with rests: how many have no fault. Of a hundred rests: in how many a broker is away. Of
a hundred plans with unclean elections: in how many the whole ISR is, and nothing else breaks."""
LEFT_MS, BACK_MS = 4_000, 1_500
"""Until a broker that is gone is out of each ISR; and from the end of that ISR to its return."""
AWAY = ("crash", "pause", "partition")
STOPS = ("clean_restart",)


def with_rests(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with calm in it, in as many plans of a hundred as the profile says; in the others, and where a
    schedule has drawn the faults, the plan as it is."""
    if not draw.chance(bounds.rests, "rests"):
        return plan
    topic = plan.cluster.topics[0]
    available = topic.unclean_leader_election and topic.replication_factor > 1 and "crash" in bounds.kinds
    if available and draw.chance(OUTSIDE, "rests.outside"):
        plan = evolve(plan, budget=evolve(plan.budget, brokers_down=plan.cluster.brokers))
        return _bursts(_quiet(_quick(plan, draw)), draw, bounds, outside=True)
    if any(getattr(bounds, name) for name in SCHEDULES):
        return plan
    plan = _quick(plan, draw)
    return _quiet(plan) if draw.chance(QUIET, "rests.quiet") else _bursts(plan, draw, bounds)


def _quick(plan: Plan, draw: Draws) -> Plan:
    """Time-outs whose sums are short, and a network without chance."""
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            zookeeper_session_timeout_ms=draw.between((1_000, 1_500), "rests.session"),
            replica_lag_time_max_ms=draw.between((1_000, 1_500), "rests.lag"),
            replica_fetch_wait_max_ms=draw.between((50, 200), "rests.fetch_wait"),
            replica_fetch_backoff_ms=draw.between((50, 100), "rests.backoff"),
            controller_request_timeout_ms=draw.between((150, 300), "rests.control_timeout"),
            controlled_shutdown_retry_backoff_ms=draw.between((100, 400), "rests.stop_backoff"),
            isr_change_propagation_ms=draw.between((100, 500), "rests.propagation"),
            leader_imbalance_check_ms=draw.between((500, 2_000), "rests.balance")
            if plan.cluster.leader_imbalance_check_ms
            else 0,
            leader_imbalance_interval_ms=draw.between((1_000, 3_000), "rests.balances"),
            log_retention_check_interval_ms=min(plan.cluster.log_retention_check_interval_ms, 2_000),
            transactions=evolve(
                plan.cluster.transactions,
                append_timeout_ms=min(plan.cluster.transactions.append_timeout_ms, 500),
                marker_backoff_ms=min(plan.cluster.transactions.marker_backoff_ms, 100),
                abort_check_ms=min(plan.cluster.transactions.abort_check_ms, 1_000),
                unload_ms=min(plan.cluster.transactions.unload_ms, 200),
                load_step_ms=min(plan.cluster.transactions.load_step_ms, 5),
            ),
            groups=evolve(
                plan.cluster.groups,
                offsets_commit_timeout_ms=min(plan.cluster.groups.offsets_commit_timeout_ms, 1_000),
                initial_rebalance_delay_ms=min(plan.cluster.groups.initial_rebalance_delay_ms, 300),
                unload_ms=min(plan.cluster.groups.unload_ms, 200),
                load_step_ms=min(plan.cluster.groups.load_step_ms, 5),
            ),
        ),
        network=NetworkOptions(
            latency_min_us=draw.between((50, 2_000), "rests.latency"),
            latency_tail_us=draw.between((0, 1_000), "rests.tail"),
            latency_max_us=draw.between((5_000, 25_000), "rests.latency_max"),
        ),
        disk=evolve(plan.disk, fsync_us=min(plan.disk.fsync_us, 2_000)),
        client=evolve(
            plan.client,
            fetch_wait_max_ms=min(plan.client.fetch_wait_max_ms, 300),
            retry_backoff_ms=min(plan.client.retry_backoff_ms, 100),
        ),
        consumer=evolve(
            plan.consumer,
            session_timeout_ms=draw.between((1_000, 1_500), "rests.group_session"),
            heartbeat_interval_ms=draw.between((100, 300), "rests.heartbeat"),
            max_poll_interval_ms=draw.between((1_500, 2_500), "rests.poll_interval"),
            auto_commit_interval_ms=min(plan.consumer.auto_commit_interval_ms, 1_000),
            poll_timeout_ms=min(plan.consumer.poll_timeout_ms, 200),
            processing_ms=min(plan.consumer.processing_ms, 100),
            request_timeout_ms=min(plan.consumer.request_timeout_ms, 1_000),
            retry_backoff_ms=min(plan.consumer.retry_backoff_ms, 100),
        ),
    )


def _quiet(plan: Plan) -> Plan:
    """Operators and clients, and nothing breaks."""
    kept = [fault for fault in plan.faults if FAULTS[fault.kind].ask is not None or fault.kind in STOPS]
    return evolve(plan, faults=tuple(kept))


def _bursts(plan: Plan, draw: Draws, bounds: Profile, *, outside: bool = False) -> Plan:
    """outside: at the end of each burst only a replica outside the ISR is left."""
    away = [kind for kind in AWAY if kind in bounds.kinds]
    count = draw.between((1, 3), "rests.bursts")
    lengths = [draw.between(BURST_MS, "rests.burst", number) for number in range(count)]
    rests = [draw.between(REST_MS, "rests.rest", number) for number in range(count)]
    begins = [sum(lengths[:number]) + sum(rests[:number]) for number in range(count)]
    total = sum(lengths)

    def moved(at_ms: int) -> tuple[int, int]:
        """Where a moment of the plan is now: the burst, and the time."""
        left = min(at_ms * total // plan.safety_ms, total - 1)
        for number, length in enumerate(lengths):
            if left < length:
                return number, begins[number] + left
            left -= length
        return count - 1, begins[-1] + lengths[-1] - 1

    faults: list[Fault] = []
    for fault in plan.faults:
        number, at_ms = moved(fault.at_ms)
        left = begins[number] + lengths[number] - at_ms
        faults.append(evolve(fault, at_ms=at_ms, duration_ms=min(fault.duration_ms, left)))
    for number in range(count):
        if away and not outside and draw.chance(DEGRADED, "rests.degraded", number):
            faults.append(_away(plan, draw, away, number, begins[number] + lengths[number], rests[number]))
        if outside:
            faults += _only_outside(plan, draw, number, begins[number] + lengths[number], rests[number])
    safety_ms = begins[-1] + lengths[-1] + rests[-1]
    operations = tuple(evolve(one, at_ms=one.at_ms * safety_ms // plan.safety_ms) for one in plan.operations)
    ordered = sorted(faults, key=lambda fault: (fault.at_ms, fault.fault_id))
    return evolve(plan, safety_ms=safety_ms, faults=tuple(ordered), operations=operations)


AWAY_IDS, OUTSIDE_IDS = 3_000, 3_100


def _away(plan: Plan, draw: Draws, kinds: list[str], number: int, end_ms: int, rest_ms: int) -> Fault:
    """A broker that stays away for the whole rest: it goes at the end of the burst."""
    kind = draw.choice(kinds, "rests.away", number)
    broker = draw.between((1, plan.cluster.brokers), "rests.who", number)
    return Fault(
        fault_id=AWAY_IDS + number,
        kind=kind,
        at_ms=max(0, end_ms - 1),
        duration_ms=rest_ms,
        target=f"broker {broker}",
        parameter=0,
    )


def _only_outside(plan: Plan, draw: Draws, number: int, end_ms: int, rest_ms: int) -> list[Fault]:
    """One replica leaves the ISR, then all others of its partition go and stay away for the rest. It comes
    back, and is the only one that can lead."""
    topic = plan.cluster.topics[0]
    key = f"{topic.name}-{draw.between((0, topic.partitions - 1), 'rests.outside_of', number)}"
    begin_ms, gone_ms = max(0, end_ms - LEFT_MS), max(0, end_ms - LEFT_MS) + LEFT_MS
    others = [f"follower 1 of {key}"] * (topic.replication_factor - 2) + [f"leader of {key}"]
    steps = [(begin_ms, LEFT_MS + BACK_MS, f"follower 1 of {key}")]
    steps += [(gone_ms + place, end_ms + rest_ms - gone_ms, role) for place, role in enumerate(others)]
    return [
        Fault(
            fault_id=OUTSIDE_IDS + number * 10 + place,
            kind="crash",
            at_ms=at_ms,
            duration_ms=length_ms,
            target=role,
        )
        for place, (at_ms, length_ms, role) in enumerate(steps)
    ]
