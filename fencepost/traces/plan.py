"""The plan: everything that a run is a function of, as plain frozen data. Written as JSON (traces/plan_json.py).

Units are in the field names; times of a plan are virtual and start at 0 with the safety phase. Integers only: a float would tie a plan to a
machine's libm. Targets of faults are roles, resolved when the fault begins.
"""

from attrs import Factory, field, frozen
from attrs.validators import ge, in_, instance_of, le

PLAN_VERSION = 1
MILLION = 1_000_000
GIBIBYTE = 1 << 30
DAY_MS = 86_400_000
CENTURY_MS = 36_500 * DAY_MS
UNLIMITED = -1


def _bounded(low: int, high: int, default: int) -> int:
    """A field that is an integer within [low, high]."""
    return field(default=default, validator=[instance_of(int), ge(low), le(high)])


@frozen(kw_only=True)
class TopicOptions:
    """One topic. Placement is round robin from broker 1 with the partition as shift, as Kafka does without racks."""

    name: str = "t"
    partitions: int = _bounded(1, 64, 1)
    replication_factor: int = _bounded(1, 16, 3)
    min_insync_replicas: int = _bounded(1, 16, 1)
    unclean_leader_election: bool = False
    flush_messages: int = _bounded(0, MILLION, 0)
    """fsync after so many messages; 0 = never on its own, as Kafka's default."""
    segment_bytes: int = _bounded(1, GIBIBYTE, GIBIBYTE)
    segment_ms: int = _bounded(1, CENTURY_MS, 7 * DAY_MS)
    """A segment is rolled when the batch that comes is so much later than its first one."""
    retention_ms: int = _bounded(UNLIMITED, CENTURY_MS, 7 * DAY_MS)
    retention_bytes: int = _bounded(UNLIMITED, GIBIBYTE, UNLIMITED)
    cleanup_policy: str = field(default="delete", validator=in_(("delete", "compact", "compact,delete")))
    delete_retention_ms: int = _bounded(0, CENTURY_MS, DAY_MS)
    """How long a compacted topic keeps a tombstone."""
    min_cleanable_dirty_ppm: int = _bounded(0, MILLION, 500_000)
    """min.cleanable.dirty.ratio, per million."""


@frozen(kw_only=True)
class ClusterOptions:
    """The cluster under test. Broker ids are 1..brokers. bugs: planted bugs, by id (campaign/bugs)."""

    brokers: int = _bounded(1, 16, 3)
    topics: tuple[TopicOptions, ...] = (TopicOptions(),)
    replica_lag_time_max_ms: int = _bounded(100, MILLION, 10_000)
    replica_fetch_wait_max_ms: int = _bounded(1, 60_000, 500)
    replica_fetch_backoff_ms: int = _bounded(1, 60_000, 1_000)
    high_watermark_checkpoint_interval_ms: int = _bounded(1, MILLION, 5_000)
    zookeeper_session_timeout_ms: int = _bounded(100, MILLION, 6_000)
    controller_request_timeout_ms: int = _bounded(10, MILLION, 1_000)
    isr_change_propagation_ms: int = _bounded(1, MILLION, 2_500)
    leader_imbalance_check_ms: int = _bounded(0, MILLION, 5_000)
    """First run of the preferred leader balance after an election; 0 switches it off."""
    leader_imbalance_interval_ms: int = _bounded(1, MILLION, 300_000)
    """Between later runs."""
    log_retention_check_interval_ms: int = _bounded(1, 10 * MILLION, 300_000)
    log_cleaner_backoff_ms: int = _bounded(1, 10 * MILLION, 15_000)
    """How long the cleaner rests when no log is dirty enough."""
    bugs: tuple[str, ...] = ()


@frozen(kw_only=True)
class NetworkOptions:
    """Latency is minimum + an exponential-like tail of the given mean, cut at the maximum. Rates are per million messages.

    Produce requests are never duplicated by the network: TCP does not; retries do.
    """

    latency_min_us: int = _bounded(1, 10 * MILLION, 200)
    latency_tail_us: int = _bounded(0, 10 * MILLION, 300)
    latency_max_us: int = _bounded(1, 60 * MILLION, 50_000)
    loss_ppm: int = _bounded(0, MILLION, 0)
    duplicate_ppm: int = _bounded(0, MILLION, 0)
    reorder_ppm: int = _bounded(0, MILLION, 0)
    """Of messages that are held back long enough for later ones of the same link to pass."""


@frozen(kw_only=True)
class DiskOptions:
    """Costs in virtual time that keep the host busy, and what a power loss leaves of the unsynced tail."""

    write_us: int = _bounded(0, MILLION, 20)
    fsync_us: int = _bounded(0, 10 * MILLION, 1_000)
    torn_write: bool = True
    """The last unsynced write of a file may be cut anywhere inside."""


@frozen(kw_only=True)
class ClientOptions:
    """The clients of the workload."""

    request_timeout_ms: int = _bounded(10, MILLION, 1_500)
    delivery_timeout_ms: int = _bounded(10, MILLION, 6_000)
    retry_backoff_ms: int = _bounded(1, MILLION, 100)
    retry_unknown: bool = False
    """Retry an append whose outcome is unknown. Not idempotent: a record may then stand twice, and the claims say so."""
    fetch_wait_max_ms: int = _bounded(0, MILLION, 100)
    max_poll_records: int = _bounded(1, 10_000, 50)
    auto_offset_reset: str = field(default="earliest", validator=in_(("earliest", "latest")))
    """Where a client goes on whose position is out of range."""


@frozen(kw_only=True)
class PlannedOperation:
    """One operation that a client will invoke at `at_ms`, or as soon as its process is free after that.

    records: how many records an append carries. Value ids are op_id * 1000 + index: removing an operation renames no other. key: of all records of
    an append; a compacted topic refuses an append without one. argument: "tombstone" for an append that deletes its key. A delete_records deletes what
    lies more than `records` below the highest end that its process was shown.
    """

    op_id: int = field(validator=[instance_of(int), ge(0)])
    process: int = field(validator=[instance_of(int), ge(0)])
    at_ms: int = field(validator=[instance_of(int), ge(0)])
    function: str = field(validator=in_(("append", "poll", "list_offsets", "delete_records")))
    topic: str = "t"
    partition: int = _bounded(0, 63, 0)
    acks: int = field(default=-1, validator=in_((-1, 0, 1)))
    records: int = _bounded(1, 999, 1)
    key: str = ""
    argument: str = field(default="", validator=in_(("", "tombstone")))


@frozen(kw_only=True)
class Fault:
    """One fault: its kind, onset, duration and target. kinds and targets: docs/plans.md.

    target: a role ("controller", "leader of t-0", "follower 1 of t-0", "broker 2"), resolved at onset.
    parameter: kind's own number (how many file calls until the power fails; per-million loss; microseconds of delay).
    """

    fault_id: int = field(validator=[instance_of(int), ge(0)])
    kind: str = field(validator=instance_of(str))
    at_ms: int = field(validator=[instance_of(int), ge(0)])
    duration_ms: int = _bounded(0, 10 * MILLION, 1_000)
    target: str = "controller"
    other: str = ""
    parameter: int = _bounded(0, 10 * MILLION, 0)


@frozen(kw_only=True)
class BudgetOptions:
    """What the faults may cost at most. A fault outside the budget is skipped, or allowed and recorded, as `outside` says."""

    brokers_down: int = _bounded(0, 16, 2)
    """Most brokers that are crashed or paused at once."""
    isr_disks_lost: int = _bounded(0, 16, 0)
    """Most ISR members of one partition that may lose unsynced data at once."""
    outside: str = field(default="skip", validator=in_(("skip", "allow")))


@frozen(kw_only=True)
class Plan:
    """A whole run, before it happened. seed keys every random choice of the run, together with its cause."""

    seed: int = field(validator=[instance_of(int), ge(0)])
    version: int = field(default=PLAN_VERSION, validator=in_((PLAN_VERSION,)))
    profile: str = "default"
    safety_ms: int = _bounded(1, 100 * MILLION, 60_000)
    liveness_ms: int = _bounded(1, 100 * MILLION, 60_000)
    """Bound on the virtual time that the healed cluster gets for progress and for the final reads."""
    cluster: ClusterOptions = Factory(ClusterOptions)
    network: NetworkOptions = Factory(NetworkOptions)
    disk: DiskOptions = Factory(DiskOptions)
    client: ClientOptions = Factory(ClientOptions)
    budget: BudgetOptions = Factory(BudgetOptions)
    operations: tuple[PlannedOperation, ...] = ()
    faults: tuple[Fault, ...] = ()
