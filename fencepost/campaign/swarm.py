"""The swarm: a seed becomes a plan, with every knob random and many fully off.

Owns the distributions. Must not run anything. A knob that is sometimes exactly off finds bugs that a knob that is always a little on hides
(swarm testing: Groce et al., ISSTA 2012). Every draw is keyed by its purpose, so that a new knob does not reshuffle the others.
"""

from attrs import frozen

from fencepost.campaign.faults import FAULTS
from fencepost.sim.randomness import Randomness
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import (
    BudgetOptions,
    ClientOptions,
    ClusterOptions,
    DiskOptions,
    Fault,
    NetworkOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)


@frozen(kw_only=True)
class Profile:
    """Bounds of a swarm. safety_ms, operations, faults: (least, most)."""

    says: str
    safety_ms: tuple[int, int] = (20_000, 60_000)
    operations: tuple[int, int] = (30, 240)
    faults: tuple[int, int] = (0, 12)
    partitions: tuple[int, int] = (1, 4)
    clients: tuple[int, int] = (2, 5)


PROFILES: dict[str, Profile] = {
    "default": Profile(says="everything at random: the profile that a change must survive"),
    "calm": Profile(says="no faults at all: what the cluster does when nothing breaks", faults=(0, 0)),
}


def swarm(seed: int, profile: str = "default", bugs: tuple[str, ...] = ()) -> Plan:
    """The plan of this seed: the same on every machine. Raises FencepostError for an unknown profile."""
    bounds = PROFILES.get(profile)
    if bounds is None:
        raise FencepostError(
            expected=f"one of {', '.join(sorted(PROFILES))}",
            seen=profile,
            where="swarm profile",
            hint="docs/plans.md describes them",
        )
    draw = _Draws(Randomness(seed))
    safety_ms = draw.between(bounds.safety_ms, "safety")
    topic = TopicOptions(
        name="t",
        partitions=draw.between(bounds.partitions, "partitions"),
        replication_factor=2 if draw.chance(35, "replication_factor") else 3,
        min_insync_replicas=2 if draw.chance(30, "min_insync") else 1,
        flush_messages=1 if draw.chance(30, "flush") else 0,
    )
    return Plan(
        seed=seed,
        profile=profile,
        safety_ms=safety_ms,
        cluster=_cluster(draw, topic, bugs),
        network=_network(draw),
        disk=DiskOptions(
            write_us=draw.between((5, 100), "write"), fsync_us=draw.between((200, 20_000), "fsync")
        ),
        client=ClientOptions(
            request_timeout_ms=draw.between((800, 3_000), "request_timeout"),
            delivery_timeout_ms=draw.between((3_000, 12_000), "delivery_timeout"),
            retry_backoff_ms=draw.between((20, 300), "retry_backoff"),
            retry_unknown=draw.chance(15, "retry_unknown"),
            fetch_wait_max_ms=draw.between((0, 500), "fetch_wait"),
            max_poll_records=draw.between((1, 60), "max_poll"),
        ),
        budget=BudgetOptions(
            brokers_down=draw.between((1, 3), "brokers_down"),
            isr_disks_lost=draw.between((1, 2), "disks_lost") if draw.chance(25, "disks_lost_on") else 0,
            outside="allow" if draw.chance(10, "outside") else "skip",
        ),
        operations=_operations(draw, bounds, topic, safety_ms),
        faults=_faults(draw, bounds, topic, safety_ms),
    )


class _Draws:
    """Draws of one plan."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness

    def between(self, bounds: tuple[int, int], purpose: str, *cause: int) -> int:
        """An integer from `bounds`, both ends included."""
        low, high = bounds
        return low + self._randomness.below(high - low + 1, f"swarm.{purpose}", *cause)

    def chance(self, percent: int, purpose: str, *cause: int) -> bool:
        """True in so many of a hundred."""
        return self._randomness.chance(percent * 10_000, f"swarm.{purpose}", *cause)

    def choice(self, items: list[str], purpose: str, *cause: int) -> str:
        """One of the items."""
        return self._randomness.choice(items, f"swarm.{purpose}", *cause)


def _cluster(draw: _Draws, topic: TopicOptions, bugs: tuple[str, ...]) -> ClusterOptions:
    return ClusterOptions(
        brokers=3,
        topics=(topic,),
        replica_lag_time_max_ms=draw.between((1_500, 10_000), "lag"),
        replica_fetch_wait_max_ms=draw.between((50, 1_000), "replica_wait"),
        replica_fetch_backoff_ms=draw.between((100, 1_500), "replica_backoff"),
        high_watermark_checkpoint_interval_ms=draw.between((500, 5_000), "checkpoint"),
        zookeeper_session_timeout_ms=draw.between((1_500, 8_000), "session"),
        controller_request_timeout_ms=draw.between((300, 2_000), "control_timeout"),
        isr_change_propagation_ms=draw.between((100, 2_500), "propagation"),
        leader_imbalance_check_ms=draw.between((500, 10_000), "balance")
        if draw.chance(60, "balance_on")
        else 0,
        bugs=bugs,
    )


def _network(draw: _Draws) -> NetworkOptions:
    far = draw.chance(35, "far")  # brokers far apart: every window between two messages is wide open
    latency_min_us = draw.between((10_000, 150_000) if far else (50, 2_000), "latency_min")
    return NetworkOptions(
        latency_min_us=latency_min_us,
        latency_tail_us=draw.between((0, 50_000 if far else 5_000), "latency_tail"),
        latency_max_us=latency_min_us + draw.between((10_000, 400_000), "latency_max"),
        loss_ppm=draw.between((100, 20_000), "loss") if draw.chance(30, "loss_on") else 0,
        duplicate_ppm=draw.between((100, 20_000), "duplicate") if draw.chance(30, "duplicate_on") else 0,
        reorder_ppm=draw.between((100, 50_000), "reorder") if draw.chance(30, "reorder_on") else 0,
    )


def _operations(
    draw: _Draws, bounds: Profile, topic: TopicOptions, safety_ms: int
) -> tuple[PlannedOperation, ...]:
    count = draw.between(bounds.operations, "operations")
    clients = draw.between(bounds.clients, "clients")
    appends = draw.between((30, 80), "append_share")
    weak_acks = draw.between((0, 40), "weak_acks") if draw.chance(25, "weak_acks_on") else 0
    batches = draw.chance(50, "batches")
    operations = []
    for number in range(1, count + 1):
        function = "append" if draw.between((0, 99), "function", number) < appends else "poll"
        if function == "poll" and draw.chance(20, "list_offsets", number):
            function = "list_offsets"
        weak = function == "append" and draw.between((0, 99), "acks", number) < weak_acks
        operations.append(
            PlannedOperation(
                op_id=number,
                process=draw.between((0, clients - 1), "process", number),
                at_ms=draw.between((0, safety_ms - 1), "at", number),
                function=function,
                topic=topic.name,
                partition=draw.between((0, topic.partitions - 1), "partition", number),
                acks=draw.between((0, 1), "weak", number) if weak else -1,
                records=draw.between((1, 4), "records", number) if batches else 1,
            )
        )
    return tuple(sorted(operations, key=lambda operation: (operation.at_ms, operation.op_id)))


def _faults(draw: _Draws, bounds: Profile, topic: TopicOptions, safety_ms: int) -> tuple[Fault, ...]:
    count = draw.between(bounds.faults, "faults")
    kinds = [kind for index, kind in enumerate(sorted(FAULTS)) if draw.chance(50, "kind", index)] or ["crash"]
    longest = draw.between((500, 20_000), "longest")
    together = draw.chance(60, "together")
    focus = _role(draw, topic, "focus", 0) if draw.chance(50, "focus_on") else ""
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
                else _role(draw, topic, "target", number),
                other=_role(draw, topic, "other", number) if draw.chance(30, "pair", number) else "",
                parameter=draw.between(FAULTS[kind].parameter, "parameter", number),
            )
        )
    return tuple(sorted(faults, key=lambda fault: (fault.at_ms, fault.fault_id)))


def _role(draw: _Draws, topic: TopicOptions, purpose: str, number: int) -> str:
    partition = draw.between((0, topic.partitions - 1), f"{purpose}.partition", number)
    key = f"{topic.name}-{partition}"
    roles = ["controller", f"leader of {key}", f"follower 1 of {key}", f"follower 2 of {key}"]
    roles.append(f"broker {draw.between((1, 3), f'{purpose}.broker', number)}")
    return draw.choice(roles, purpose, number)
