"""The swarm: a seed becomes a plan, with every knob random and many fully off.

Owns the distributions. Must not run anything. A knob that is sometimes exactly off finds bugs that a knob
that is always a little on hides (swarm testing: Groce et al., ISSTA 2012). Every draw is keyed by its
purpose, so that a new knob does not reshuffle the others.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.chain_rows import with_chains, with_haste
from fencepost.campaign.swarm.draws import (
    Draws,
    faults_of,
    requests_of,
    requests_on,
    with_changes,
    with_late_messages,
)
from fencepost.campaign.swarm.file_steps import with_file_steps
from fencepost.campaign.swarm.group_draws import (
    with_cooperation,
    with_different_consumers,
    with_groups,
    with_managed_groups,
    with_subscriptions,
)
from fencepost.campaign.swarm.names_again import with_names_again
from fencepost.campaign.swarm.producer_draws import with_different_clients, with_limits, with_producers
from fencepost.campaign.swarm.profiles import PROFILES, profile_named
from fencepost.campaign.swarm.rests import with_rests
from fencepost.campaign.swarm.subset import subset_of
from fencepost.campaign.swarm.transaction_draws import with_transactions, with_transactions_left_open
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import (
    DAY_MS,
    BudgetOptions,
    ClientOptions,
    ClusterOptions,
    DiskOptions,
    NetworkOptions,
    Plan,
    PlannedOperation,
    TopicOptions,
)

__all__ = ["PROFILES", "swarm"]

LATER = "u"
"""The topic that comes, or goes, while the cluster works."""


def swarm(
    seed: int, profile: str = "default", bugs: tuple[str, ...] = (), faults: tuple[str, ...] = ()
) -> Plan:
    """The plan of this seed: the same on every machine. faults: kinds of fault and request to draw from, all
    of the profile's if empty. Raises FencepostError for an unknown profile or kind."""
    draw = Draws(Randomness(seed))
    bounds = subset_of(profile_named(profile, faults), draw)
    safety_ms = draw.between(bounds.safety_ms, "safety")
    administered = draw.chance(bounds.administered, "administered")
    kinds = requests_on(draw, bounds) if administered else []
    topics = _topics(draw, bounds, kinds)
    topic = topics[0]
    brokers = draw.between(bounds.brokers, "brokers")
    drawn = faults_of(draw, bounds, topic, safety_ms, brokers)
    plan = Plan(
        seed=seed,
        profile=profile,
        safety_ms=safety_ms,
        cluster=_cluster(draw, bounds, topics, kinds, brokers, bugs),
        network=_network(draw, bounds),
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
        operations=_operations(draw, bounds, topics, kinds, safety_ms),
        faults=(*drawn, *requests_of(draw, bounds, topics, kinds, drawn, safety_ms, brokers)),
    )
    plan = with_producers(plan, draw, bounds.producers)
    plan = with_haste(with_chains(plan, draw, bounds), draw, bounds)
    plan = with_transactions(with_groups(plan, draw, bounds), draw, bounds)
    if draw.chance(bounds.managed, "managed_on"):
        plan = with_managed_groups(plan, draw, bounds)
    plan = _patient(with_rests(with_file_steps(plan, draw, bounds), draw, bounds))
    plan = with_transactions_left_open(plan, draw)
    if draw.chance(bounds.limited, "limited"):
        plan = with_limits(plan, draw)
    if "alter_topic" in bounds.request_kinds and draw.chance(bounds.moved_settings, "moved_settings"):
        plan = with_changes(plan, draw)
    if draw.chance(bounds.subscriptions, "subscriptions_on"):
        plan = with_subscriptions(plan, draw)
    if draw.chance(bounds.cooperative, "cooperative"):
        plan = with_cooperation(plan)
    if draw.chance(bounds.different, "different"):
        plan = with_different_consumers(with_different_clients(plan, draw), draw)
    return with_names_again(plan, draw, bounds)


def _patient(plan: Plan) -> Plan:
    """A controller that waits for a usual answer: else it sends its first request for ever."""
    answered_ms = -(-2 * (plan.network.latency_min_us + plan.network.latency_tail_us) // 1_000)
    wait_ms = max(plan.cluster.controller_request_timeout_ms, answered_ms)
    return evolve(plan, cluster=evolve(plan.cluster, controller_request_timeout_ms=wait_ms))


def _topic(draw: Draws, bounds: Profile) -> TopicOptions:
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
        unclean_leader_election=draw.chance(bounds.unclean, "unclean"),
    )
    if draw.chance(bounds.small_segments, "small_segments"):
        topic = evolve(topic, segment_bytes=draw.between((80, 3_000), "segment_bytes"))
    if draw.chance(bounds.small_segments * 3 // 10, "short_segments"):
        topic = evolve(topic, segment_ms=draw.between((500, 20_000), "segment_ms"))
    if draw.chance(bounds.indexed, "indexed"):
        topic = evolve(topic, index_interval_bytes=draw.between((0, 400), "index_interval"))
    if retained and draw.chance(80, "retention_ms_on"):
        topic = evolve(topic, retention_ms=draw.between((300, 20_000), "retention_ms"))
    if retained and draw.chance(50, "retention_bytes_on"):
        topic = evolve(topic, retention_bytes=draw.between((100, 4_000), "retention_bytes"))
    return topic


def _topics(draw: Draws, bounds: Profile, kinds: list[str]) -> tuple[TopicOptions, ...]:
    """The topic of all profiles; where operators create or delete topics, another one."""
    topic = _topic(draw, bounds)
    if kinds and draw.chance(bounds.single, "single"):
        topic = evolve(topic, replication_factor=1, min_insync_replicas=1)
    if "create_topic" not in kinds and "delete_topic" not in kinds:
        return (topic,)
    later = "create_topic" in kinds and ("delete_topic" not in kinds or draw.chance(50, "created_later"))
    other = TopicOptions(
        name=LATER,
        partitions=draw.between((1, 3), "later.partitions"),
        replication_factor=draw.between((1, 3), "later.replication_factor"),
        created_later=later,
    )
    return (topic, other)


def _cluster(
    draw: Draws,
    bounds: Profile,
    topics: tuple[TopicOptions, ...],
    kinds: list[str],
    brokers: int,
    bugs: tuple[str, ...],
) -> ClusterOptions:
    topic = topics[0]
    return ClusterOptions(
        brokers=brokers,
        topics=topics,
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
        if bounds.retained > 50
        or topic.retention_ms < DAY_MS
        or topic.retention_bytes >= 0
        or "alter_topic" in kinds
        else 300_000,
        log_cleaner_backoff_ms=draw.between((200, 5_000), "cleaner_backoff"),
        controlled_shutdown_retry_backoff_ms=draw.between((200, 5_000), "shutdown_backoff")
        if kinds and draw.chance(60, "shutdown_backoff_on")
        else 5_000,
        bugs=bugs,
    )


def _network(draw: Draws, bounds: Profile) -> NetworkOptions:
    if draw.chance(bounds.stormy, "overtaking"):
        return NetworkOptions(
            latency_min_us=draw.between((50, 5_000), "overtaking.min"),
            latency_tail_us=draw.between((0, 5_000), "overtaking.tail"),
            latency_max_us=draw.between((500_000, 5_000_000), "overtaking.max"),
            reorder_ppm=draw.between((20_000, 250_000), "overtaking.reorder"),
        )
    if draw.chance(bounds.stormy, "stormy"):
        return NetworkOptions(
            latency_min_us=draw.between((50, 20_000), "stormy.min"),
            latency_tail_us=draw.between((20_000, 150_000), "stormy.tail"),
            latency_max_us=draw.between((500_000, 4_000_000), "stormy.max"),
            loss_ppm=draw.between((100, 50_000), "stormy.loss") if draw.chance(50, "loss_on") else 0,
            duplicate_ppm=draw.between((1_000, 100_000), "stormy.duplicate")
            if draw.chance(50, "duplicate_on")
            else 0,
        )
    far = draw.chance(35, "far")  # brokers far apart: every window between two messages is wide open
    latency_min_us = draw.between((10_000, 150_000) if far else (50, 2_000), "latency_min")
    network = NetworkOptions(
        latency_min_us=latency_min_us,
        latency_tail_us=draw.between((0, 50_000 if far else 5_000), "latency_tail"),
        latency_max_us=latency_min_us + draw.between((10_000, 400_000), "latency_max"),
        loss_ppm=draw.between((100, 20_000), "loss") if draw.chance(30, "loss_on") else 0,
        duplicate_ppm=draw.between((100, 20_000), "duplicate") if draw.chance(30, "duplicate_on") else 0,
        reorder_ppm=draw.between((100, 50_000), "reorder") if draw.chance(30, "reorder_on") else 0,
    )
    return with_late_messages(network, draw, "late", "late_by") if draw.chance(20, "late_on") else network


def _operations(
    draw: Draws, bounds: Profile, topics: tuple[TopicOptions, ...], kinds: list[str], safety_ms: int
) -> tuple[PlannedOperation, ...]:
    topic = topics[0]
    grown = int("add_partitions" in kinds)
    count = draw.between(bounds.operations, "operations")
    clients = draw.between(bounds.clients, "clients")
    appends = draw.between((30, 80), "append_share")
    weak_acks = draw.between((0, 40), "weak_acks") if draw.chance(25, "weak_acks_on") else 0
    batches = draw.chance(50, "batches")
    deletions = draw.chance(bounds.deletions, "delete_records_on")
    keyed = "compact" in topic.cleanup_policy or draw.chance(bounds.moved_settings * 4 // 10, "keyed")
    keys = draw.between((1, 12), "keys") if keyed else 0
    operations = []
    for number in range(1, count + 1):
        function = "append" if draw.between((0, 99), "function", number) < appends else "poll"
        if deletions and draw.chance(4, "delete_records", number):
            function = "delete_records"
        elif function == "poll" and draw.chance(20, "list_offsets", number):
            function = "list_offsets"
        asked = ""
        if function == "list_offsets" and draw.chance(bounds.other_ends, "other_end", number):
            asked = "earliest" if draw.chance(25, "earliest", number) else "by_time"
        where = topics[-1] if len(topics) > 1 and draw.chance(25, "elsewhere", number) else topic
        weak = function == "append" and draw.between((0, 99), "acks", number) < weak_acks
        operations.append(
            PlannedOperation(
                op_id=number,
                process=draw.between((0, clients - 1), "process", number),
                at_ms=draw.between((0, safety_ms - 1), "at", number),
                function=function,
                topic=where.name,
                partition=draw.between((0, where.partitions - 1 + grown), "partition", number),
                acks=draw.between((0, 1), "weak", number) if weak else -1,
                key=f"k{draw.between((1, keys), 'key', number)}"
                if keys and function == "append" and where is topic
                else "",
                argument="tombstone"
                if keys and function == "append" and where is topic and draw.chance(12, "tombstone", number)
                else asked,
                records=draw.between((1, 300), "since", number)
                if asked == "by_time"
                else draw.between((1, 4), "records", number)
                if batches
                else 1,
            )
        )
    return tuple(sorted(operations, key=lambda operation: (operation.at_ms, operation.op_id)))
