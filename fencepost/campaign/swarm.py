"""The swarm: a seed becomes a plan, with every knob random and many fully off.

Owns the distributions. Must not run anything. A knob that is sometimes exactly off finds bugs that a knob that is always a little on hides
(swarm testing: Groce et al., ISSTA 2012). Every draw is keyed by its purpose, so that a new knob does not reshuffle the others.
"""

from attrs import evolve, frozen

from fencepost.campaign.faults import FAULTS
from fencepost.sim.randomness import Randomness
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import (
    DAY_MS,
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

DISK = ("bit_rot", "clean_restart", "disk_full", "io_error", "lying_fsync", "slow_fsync")
"""Kinds of fault that the default profile leaves to the profile storage, so that its plans stay what they were."""
PROCESS_AND_NETWORK = tuple(sorted(set(FAULTS) - set(DISK)))


@frozen(kw_only=True)
class Profile:
    """Bounds of a swarm. safety_ms, operations, faults: (least, most). kinds: the kinds of fault, in the order of their draws. small_segments,
    retained, compacted, deletions, disks_lost: of how many plans in a hundred."""

    says: str
    safety_ms: tuple[int, int] = (20_000, 60_000)
    operations: tuple[int, int] = (30, 240)
    faults: tuple[int, int] = (0, 12)
    partitions: tuple[int, int] = (1, 4)
    clients: tuple[int, int] = (2, 5)
    kinds: tuple[str, ...] = PROCESS_AND_NETWORK
    small_segments: int = 20
    retained: int = 10
    compacted: int = 0
    deletions: int = 0
    disks_lost: int = 25


PROFILES: dict[str, Profile] = {
    "default": Profile(says="everything at random: the profile that a change must survive"),
    "storage": Profile(
        says="small segments, retention, compaction with keys, deleted records, clean and unclean restarts, disks that fail",
        operations=(60, 400),
        partitions=(1, 3),
        kinds=PROCESS_AND_NETWORK + DISK,
        small_segments=100,
        retained=70,
        compacted=45,
        deletions=30,
        disks_lost=50,
    ),
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
    topic = _topic(draw, bounds)
    return Plan(
        seed=seed,
        profile=profile,
        safety_ms=safety_ms,
        cluster=_cluster(draw, bounds, topic, bugs),
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
            auto_offset_reset="latest" if draw.chance(10, "reset") else "earliest",
        ),
        budget=BudgetOptions(
            brokers_down=draw.between((1, 3), "brokers_down"),
            isr_disks_lost=draw.between((1, 2), "disks_lost")
            if draw.chance(bounds.disks_lost, "disks_lost_on")
            else 0,
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


def _topic(draw: _Draws, bounds: Profile) -> TopicOptions:
    retained, compacted = draw.chance(bounds.retained, "retained"), draw.chance(bounds.compacted, "compacted")
    policies = ["compact", "compact,delete"] if compacted else ["delete"]
    topic = TopicOptions(
        name="t",
        partitions=draw.between(bounds.partitions, "partitions"),
        replication_factor=2 if draw.chance(35, "replication_factor") else 3,
        min_insync_replicas=2 if draw.chance(30, "min_insync") else 1,
        flush_messages=1 if draw.chance(30, "flush") else 0,
        cleanup_policy=draw.choice(policies, "cleanup_policy"),
        delete_retention_ms=draw.between((0, 20_000), "delete_retention"),
        min_cleanable_dirty_ppm=draw.between((0, 500_000), "dirty"),
    )
    if draw.chance(bounds.small_segments, "small_segments"):
        topic = evolve(topic, segment_bytes=draw.between((80, 3_000), "segment_bytes"))
    if draw.chance(bounds.small_segments * 3 // 10, "short_segments"):
        topic = evolve(topic, segment_ms=draw.between((500, 20_000), "segment_ms"))
    if retained and draw.chance(80, "retention_ms_on"):
        topic = evolve(topic, retention_ms=draw.between((300, 20_000), "retention_ms"))
    if retained and draw.chance(50, "retention_bytes_on"):
        topic = evolve(topic, retention_bytes=draw.between((100, 4_000), "retention_bytes"))
    return topic


def _cluster(draw: _Draws, bounds: Profile, topic: TopicOptions, bugs: tuple[str, ...]) -> ClusterOptions:
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
        log_retention_check_interval_ms=draw.between((200, 5_000), "retention_check")
        if bounds.retained > 50 or topic.retention_ms < DAY_MS or topic.retention_bytes >= 0
        else 300_000,
        log_cleaner_backoff_ms=draw.between((200, 5_000), "cleaner_backoff"),
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
    deletions = draw.chance(bounds.deletions, "delete_records_on")
    keys = draw.between((1, 12), "keys") if "compact" in topic.cleanup_policy else 0
    operations = []
    for number in range(1, count + 1):
        function = "append" if draw.between((0, 99), "function", number) < appends else "poll"
        if deletions and draw.chance(4, "delete_records", number):
            function = "delete_records"
        elif function == "poll" and draw.chance(20, "list_offsets", number):
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
                key=f"k{draw.between((1, keys), 'key', number)}" if keys and function == "append" else "",
                argument="tombstone"
                if keys and function == "append" and draw.chance(12, "tombstone", number)
                else "",
                records=draw.between((1, 4), "records", number) if batches else 1,
            )
        )
    return tuple(sorted(operations, key=lambda operation: (operation.at_ms, operation.op_id)))


def _faults(draw: _Draws, bounds: Profile, topic: TopicOptions, safety_ms: int) -> tuple[Fault, ...]:
    count = draw.between(bounds.faults, "faults")
    kinds = [kind for index, kind in enumerate(bounds.kinds) if draw.chance(50, "kind", index)] or ["crash"]
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
