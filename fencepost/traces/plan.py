"""The plan: everything that a run is a function of, as plain frozen data. Written as JSON
(traces/plan_json.py).

Units are in the field names; times of a plan are virtual and start at 0 with the safety phase. Integers only:
a float would tie a plan to a machine's libm. Targets of faults are roles, resolved when the fault begins.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import Factory, field, frozen
from attrs.validators import ge, in_, instance_of, le

from fencepost.traces.kafka_names.internal_topics import STATE_TOPIC

PLAN_VERSION = 1
MILLION = 1_000_000
MEBIBYTE = 1 << 20
GIBIBYTE = 1 << 30
PEBIBYTE = 1 << 50
MOST_ID = 9 * 10**12
"""Of operations, processes and faults. Reason: value ids are op_id * 1000 + index, and JSON readers of other
languages keep integers up to 2^53."""
OWN_IDS = MILLION
"""So many ids above those of a plan are for the run's own operations and processes, such as final reads."""
LONGEST_PHASE_MS = 100 * MILLION
"""Of virtual time, more than a day."""
MOST_SEED = (1 << 63) - 1
DAY_MS = 86_400_000
CENTURY_MS = 36_500 * DAY_MS
UNLIMITED = -1
FOLLOWED = (
    *("appended", "assignment", "became_follower", "became_leader", "broker_registered", "broker_started"),
    *("compacted", "controller_elected", "group_phase", "groups_loaded", "high_watermark", "isr_proposed"),
    *("isr_updated", "log_recovered", "log_start", "marker_written", "partition_state", "reassignment"),
    *("session_expired", "topic_configured", "topic_deletion", "transaction_phase", "transactions_loaded"),
    "truncated",
)
"""Protocol events that a fault can follow (traces/events.py says what they are)."""


STEP_START, STEP_STOP = "start", "stop"
INSIDE = ("checkpoint", "deletion", "roll", STEP_START, STEP_STOP, "swap", "truncation")
"""Steps of a broker's work on its files that a fault can strike inside of (sim/disk_faults.py has their
calls)."""
INSIDE_KINDS = ("crash", "io_error", "power_loss")
"""The kinds of fault that can."""


ASK_ALWAYS, ASK_HEALED, ASK_NEVER = ASKING = ("always", "healed", "never")
"""When the run's own client asks: in its safety phase too, once faults are over, or never."""
LATER = {"left_out": True}
"""Metadata of a field that plans did not have at first: JSON leaves it out while it has its default, so
that older plans and digests stay the same."""


LONGEST_TOPIC = 249
"""The longest topic name in characters, as in Kafka. Reason: the name of a directory has at most 255 bytes,
and a hyphen and the partition number follow the topic."""
_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{LONGEST_TOPIC}}}")


def is_legal_topic(name: str) -> bool:
    """Whether a topic name is valid: 1 to 249 letters, digits, dots, underscores and hyphens, and neither "."
    nor ".." (Kafka's Topic.validate)."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")


Options = TypeVar("Options")


def _required(high: int) -> int:
    """A field without default that is an integer within [0, high]."""
    return field(validator=[instance_of(int), ge(0), le(high)])


@frozen
class _Within:
    """Validators in one call where they agree: a seed's plan has thousands of numbers."""

    low: int
    high: int
    _validators: tuple[Callable[[Any, Any, Any], None], ...]

    def __call__(self, instance: Any, attribute: Any, value: Any) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            for validator in self._validators:
                validator(instance, attribute, value)


def _bounded(low: int, high: int, default: int, metadata: Mapping[str, bool] | None = None) -> int:
    """A field that is an integer within [low, high]."""
    parts = (instance_of(int), ge(low), le(high))
    return field(default=default, validator=_Within(low, high, parts), metadata=metadata)


@frozen(kw_only=True)
class TopicOptions:
    """One topic. Placement is round robin from broker 1 with the partition as shift, as Kafka does without
    racks."""

    name: str = "t"
    partitions: int = _bounded(1, 64, 1)
    replication_factor: int = _bounded(1, 16, 3)
    min_insync_replicas: int = _bounded(1, 16, 1)
    unclean_leader_election: bool = False
    # fsync after so many messages; 0 = no fsync per message, as Kafka's default.
    flush_messages: int = _bounded(0, MILLION, 0)
    # A segment is rolled when it would become larger than this.
    segment_bytes: int = _bounded(1, GIBIBYTE, GIBIBYTE)
    # A segment is rolled when the new batch is so much later than its first one.
    segment_ms: int = _bounded(1, CENTURY_MS, 7 * DAY_MS)
    # Segments older than this are deleted; -1: never.
    retention_ms: int = _bounded(UNLIMITED, CENTURY_MS, 7 * DAY_MS)
    # The oldest segments are deleted while the log is larger than this; -1: never.
    retention_bytes: int = _bounded(UNLIMITED, PEBIBYTE, UNLIMITED)
    # cleanup.policy.
    cleanup_policy: str = field(default="delete", validator=in_(("delete", "compact", "compact,delete")))
    # How long a compacted topic keeps a tombstone.
    delete_retention_ms: int = _bounded(0, CENTURY_MS, DAY_MS)
    # min.cleanable.dirty.ratio, per million.
    min_cleanable_dirty_ppm: int = _bounded(0, MILLION, 500_000)
    # index.interval.bytes: an index has an entry for about so many bytes.
    index_interval_bytes: int = _bounded(0, GIBIBYTE, 4_096, LATER)
    # max.message.bytes: the largest batch that a producer may send.
    max_message_bytes: int = _bounded(1, GIBIBYTE, MEBIBYTE + 12, LATER)
    # Whether a create_topic fault of the plan creates the topic, instead of the set-up of the cluster.
    created_later: bool = False
    # Whether a create_topic fault of the plan may create a topic of this name again once it was deleted.
    used_again: bool = field(default=False, metadata=LATER)


@frozen(kw_only=True)
class GroupOptions:
    """The group coordinators. Consumer groups exist where a topic __consumer_offsets does, or may be
    created."""

    # Partitions of __consumer_offsets if it must be created when a client first looks for a coordinator; 0:
    # never.
    offsets_topic_partitions: int = _bounded(0, 64, 0)
    # A member with a session timeout outside these two bounds is refused.
    min_session_timeout_ms: int = _bounded(1, MILLION, 100)
    max_session_timeout_ms: int = _bounded(1, 10 * MILLION, 1_800_000)
    # How long the first rebalance of an empty group waits for further members.
    initial_rebalance_delay_ms: int = _bounded(0, MILLION, 3_000)
    # Offsets of an empty group expire after this time.
    offsets_retention_ms: int = _bounded(1, CENTURY_MS, 7 * DAY_MS)
    # Time between two searches for expired offsets.
    offsets_retention_check_ms: int = _bounded(1, 10 * MILLION, 600_000)
    # How long an append to __consumer_offsets waits for the other replicas.
    offsets_commit_timeout_ms: int = _bounded(1, MILLION, 5_000)
    # Bytes per read while groups are loaded.
    offsets_load_buffer_bytes: int = _bounded(1, GIBIBYTE, 5_242_880)
    # Duration of each step of a load.
    load_step_ms: int = _bounded(0, 60_000, 0)
    # How long an unload waits for its turn.
    unload_ms: int = _bounded(0, 60_000, 0)
    # Replicas of __consumer_offsets; fewer if fewer brokers are alive when it is created.
    offsets_topic_replication_factor: int = _bounded(1, 16, 3, LATER)


@frozen(kw_only=True)
class TransactionOptions:
    """The transaction coordinators. Transactions exist where a topic __transaction_state does, or may be
    created. Defaults are Kafka's but for the number of partitions."""

    # Of __transaction_state if it must be created when somebody first looks for a coordinator; 0: never.
    state_topic_partitions: int = _bounded(0, 64, 0)
    state_topic_replication_factor: int = _bounded(1, 16, 3)
    # transaction.version: 2 bumps the epoch of a producer with every transaction (KIP-890).
    version: int = _bounded(1, 2, 1)
    # transaction.partition.verification.enable: a leader asks the coordinator whether its partition is part
    # of the transaction before it writes the first batch (KIP-890).
    verification: bool = True
    max_timeout_ms: int = _bounded(1, 100 * MILLION, 900_000)
    # How often open transactions are looked through for those whose time is over.
    abort_check_ms: int = _bounded(1, 10 * MILLION, 10_000)
    # Of a transactional id that is not used.
    expiration_ms: int = _bounded(1, CENTURY_MS, 7 * DAY_MS)
    expiration_check_ms: int = _bounded(1, 100 * MILLION, 3_600_000)
    # The producer epoch of a transactional id's first producer. Kafka begins with 0. Near the largest one,
    # 32,766, the epochs are soon used up, as they are of an id that was used 32,766 times.
    first_epoch: int = _bounded(0, (1 << 15) - 2, 0)
    # How long a record of a coordinator, or a marker, may wait for its replicas.
    append_timeout_ms: int = _bounded(1, MILLION, 5_000)
    # Before a marker is sent again.
    marker_backoff_ms: int = _bounded(1, 60_000, 100)
    load_buffer_bytes: int = _bounded(1, GIBIBYTE, 5_242_880)
    load_step_ms: int = _bounded(0, 60_000, 0)
    unload_ms: int = _bounded(0, 60_000, 0)


def _check_topics(_: Any, __: Any, topics: Any) -> None:
    if not isinstance(topics, tuple) or not all(isinstance(one, TopicOptions) for one in topics):
        raise ValueError(f"'topics' must be a tuple of TopicOptions: {str(topics)[:80]!r}")
    for topic in topics:
        if not isinstance(topic.name, str) or not is_legal_topic(topic.name):
            raise ValueError(
                f"the name of a topic must be 1 to {LONGEST_TOPIC} letters, digits, dots, underscores and "
                f"hyphens: {str(topic.name)[:40]!r}"
            )


@frozen(kw_only=True)
class ClusterOptions:
    """The cluster under test. Broker ids are 1..brokers."""

    # Number of brokers.
    brokers: int = _bounded(1, 16, 3)
    # Topics that exist from the start, except those with created_later.
    topics: tuple[TopicOptions, ...] = field(default=(TopicOptions(),), validator=_check_topics)
    # A follower that has not caught up for so long leaves the ISR.
    replica_lag_time_max_ms: int = _bounded(100, MILLION, 10_000)
    # How long a leader holds a follower's fetch that has no new records.
    replica_fetch_wait_max_ms: int = _bounded(1, 60_000, 500)
    # How long a follower waits after a fetch that failed before the next one.
    replica_fetch_backoff_ms: int = _bounded(1, 60_000, 1_000)
    # Time between two writes of a broker's high watermarks to its checkpoint file.
    high_watermark_checkpoint_interval_ms: int = _bounded(1, MILLION, 5_000)
    # A broker that ZooKeeper has not heard from for so long loses its registration.
    zookeeper_session_timeout_ms: int = _bounded(100, MILLION, 6_000)
    # How long the controller waits for a broker's answer. A follower waits for its leader so much longer than
    # the fetch may take.
    controller_request_timeout_ms: int = _bounded(10, MILLION, 1_000)
    # How long a leader collects ISR changes before it notifies the controller.
    isr_change_propagation_ms: int = _bounded(1, MILLION, 2_500)
    # Time of the first preferred leader balance after an election; 0 switches it off.
    leader_imbalance_check_ms: int = _bounded(0, MILLION, 5_000)
    # Time between later balances.
    leader_imbalance_interval_ms: int = _bounded(1, MILLION, 300_000)
    # Time between two searches for segments to delete.
    log_retention_check_interval_ms: int = _bounded(1, 10 * MILLION, 300_000)
    # How long the cleaner pauses when no log is dirty enough.
    log_cleaner_backoff_ms: int = _bounded(1, 10 * MILLION, 15_000)
    # Time between a broker's requests for a controlled shutdown.
    controlled_shutdown_retry_backoff_ms: int = _bounded(1, MILLION, 5_000)
    # Options of the group coordinators.
    groups: GroupOptions = GroupOptions()
    # Planted bugs, by id (bugs).
    bugs: tuple[str, ...] = ()
    # Whether a request for the metadata of an unknown topic creates it. Only clients of Kafka's own protocol
    # send one.
    auto_create_topics_enable: bool = field(default=True, metadata=LATER)
    # Partitions of a topic that is created without a number of partitions.
    num_partitions: int = _bounded(1, 10_000, 1, LATER)
    # Of a topic whose creator names none, or as many as brokers are alive. Kafka's own default is 1.
    default_replication_factor: int = _bounded(1, 16, 3, LATER)
    transactions: TransactionOptions = field(default=TransactionOptions(), metadata=LATER)

    @property
    def has_transactions(self) -> bool:
        """Whether there is a topic __transaction_state, or may be one."""
        named = any(topic.name == STATE_TOPIC for topic in self.topics)
        return named or self.transactions.state_topic_partitions > 0


@frozen(kw_only=True)
class NetworkOptions:
    """Latency is minimum + an exponential-like tail of the given mean, cut at the maximum. Rates are per
    million messages.

    Produce requests are never duplicated by the network: TCP does not; retries do.
    """

    latency_min_us: int = _bounded(1, 10 * MILLION, 200)
    latency_tail_us: int = _bounded(0, 10 * MILLION, 300)
    latency_max_us: int = _bounded(1, 60 * MILLION, 50_000)
    loss_ppm: int = _bounded(0, MILLION, 0)
    duplicate_ppm: int = _bounded(0, MILLION, 0)
    # Messages that are delayed until later ones of the same link have passed.
    reorder_ppm: int = _bounded(0, MILLION, 0)
    # Messages that come up to `late_max_us` later, mostly when their sender has given them up. Requests that
    # version 1 of transactions assumes to come in time are never late.
    late_ppm: int = _bounded(0, MILLION, 0, LATER)
    late_max_us: int = _bounded(0, 60 * MILLION, 0, LATER)


@frozen(kw_only=True)
class DiskOptions:
    """Costs in virtual time that keep the host busy, and what a power loss leaves of the unsynced tail."""

    write_us: int = _bounded(0, MILLION, 20)
    fsync_us: int = _bounded(0, 10 * MILLION, 1_000)
    # The last unsynced write of a file may be cut anywhere inside.
    torn_write: bool = True
    # Unsynced appends may keep their length without their data: zeros, also before later ones that are whole.
    keeps_lengths: bool = field(default=False, metadata=LATER)


@frozen(kw_only=True)
class ProducerOptions:
    """How clients append. Without `pipelined` each append is one batch and its process waits for it;
    the other options are for pipelined ones."""

    # Appends wait in an accumulator for others of their partition, and several batches are in flight.
    pipelined: bool = False
    # Batches carry a producer id and a sequence: a retry is no duplicate, and retries are free. Only appends
    # with acks=all.
    idempotent: bool = False
    linger_ms: int = _bounded(0, 60_000, 0)
    batch_bytes: int = _bounded(1, 10 * MILLION, 16_384)
    # Batches in flight to one broker (max.in.flight.requests.per.connection).
    max_in_flight: int = _bounded(1, 5, 5)
    # How the partition is chosen; empty: by the plan.
    partitioner: str = field(default="", validator=in_(("", "key_hash", "sticky", "round_robin", "random")))
    compression: str = field(default="none", validator=in_(("none", "gzip", "snappy", "lz4", "zstd")))
    # An acknowledged batch is sent once more, some batches or a leader later: no log may take it.
    late_sends: bool = field(default=False, metadata=LATER)


@frozen(kw_only=True)
class ClientOptions:
    """The clients of the workload."""

    # How long a client waits for one answer.
    request_timeout_ms: int = _bounded(10, MILLION, 1_500)
    # How long one append may take with all its retries.
    delivery_timeout_ms: int = _bounded(10, MILLION, 6_000)
    # How long a client waits before a retry.
    retry_backoff_ms: int = _bounded(1, MILLION, 100)
    # Retry an append of unknown outcome. Not idempotent: a record may then be in the log twice, and the
    # claims say so.
    retry_unknown: bool = False
    # How long a leader holds a fetch that has no new records.
    fetch_wait_max_ms: int = _bounded(0, MILLION, 100)
    # Most records of one poll.
    max_poll_records: int = _bounded(1, 10_000, 50)
    # Where a client continues if its position is out of range.
    auto_offset_reset: str = field(default="earliest", validator=in_(("earliest", "latest")))
    producer: ProducerOptions = Factory(ProducerOptions)


ASSIGNORS = ("range", "round_robin", "sticky", "cooperative_sticky")
"""What divides the partitions of a group; only the last one is for cooperative rebalances (KIP-429)."""


@frozen(kw_only=True)
class ConsumerOptions:
    """The consumers in groups."""

    # The coordinator removes a member without heartbeats for so long.
    session_timeout_ms: int = _bounded(10, MILLION, 10_000)
    # Time between two heartbeats.
    heartbeat_interval_ms: int = _bounded(1, MILLION, 3_000)
    # A consumer that has not polled for so long leaves its group.
    max_poll_interval_ms: int = _bounded(10, 10 * MILLION, 300_000)
    # How a group's leader divides the partitions.
    assignor: str = field(default="range", validator=in_(ASSIGNORS))
    # The one that members name second in partition.assignment.strategy; empty: none.
    second_assignor: str = field(default="", validator=in_(("", *ASSIGNORS)), metadata=LATER)
    # Each process names a group.instance.id (KIP-345).
    static_members: bool = False
    # auto: every auto_commit_interval_ms; sync, async: after processing what a poll returned; before:
    # synchronously, before processing.
    commit: str = field(default="auto", validator=in_(("auto", "sync", "async", "before", "none")))
    # Time between two commits of `auto`.
    auto_commit_interval_ms: int = _bounded(1, MILLION, 5_000)
    # How long a consumer processes the records of a poll.
    processing_ms: int = _bounded(0, MILLION, 50)
    # Most records of one poll.
    max_poll_records: int = _bounded(1, 10_000, 500)
    # How long one poll waits for records.
    poll_timeout_ms: int = _bounded(1, MILLION, 500)
    # How long a consumer waits for one answer.
    request_timeout_ms: int = _bounded(10, MILLION, 1_500)
    # How long a consumer waits before a retry.
    retry_backoff_ms: int = _bounded(1, MILLION, 100)
    # Attempts of one commitSync.
    commit_attempts: int = _bounded(1, 1_000, 20)
    # Where a consumer begins without a committed offset, or if its position is out of range.
    auto_offset_reset: str = field(default="earliest", validator=in_(("earliest", "latest", "none")))
    isolation: str = field(
        default="read_uncommitted", validator=in_(("read_uncommitted", "read_committed")), metadata=LATER
    )
    # How old a consumer's metadata gets: so long a group may not see a new partition.
    metadata_max_age_ms: int = _bounded(1, MILLION, 300_000, LATER)
    # A member sends the last commit of the generation before once more, which its coordinator must refuse.
    late_commits: bool = field(default=False, metadata=LATER)


@frozen(kw_only=True)
class TransformOptions:
    """Processes that consume, transform and produce, one transaction for each poll (KIP-447)."""

    # The topic that they write to.
    output: str = "out"
    transaction_timeout_ms: int = _bounded(1, 100 * MILLION, 60_000)
    # Of transactions that the application itself aborts.
    aborts_ppm: int = _bounded(0, MILLION, 0)
    # Requests of one batch, or of one TxnOffsetCommit; then the transaction is aborted.
    attempts: int = _bounded(1, 1_000, 20, LATER)
    # How long the application works on a transaction before it ends it.
    pause_ms: int = _bounded(0, MILLION, 0)
    # The last batch of a transaction is sent once more when that has ended: no log may take it.
    late_sends: bool = field(default=False, metadata=LATER)


ARGUMENTS = ("tombstone", "read_committed", "earliest", "by_time", "latest", "in_order", "changed", "working")
"""Of a planned operation."""
IN_ORDER, CLOSING_MS = "in_order", 5_000
"""An unsubscribe that commits first, and how long it may take before its process ends."""


@frozen(kw_only=True)
class PlannedOperation:
    """One operation that a client will invoke at `at_ms`, or as soon as its process is free after that.

    records: how many records an append carries. Value ids are op_id * 1000 + index: removing an operation
    renames no other. key: of all records of an append; a compacted topic refuses an append without one.
    argument: "tombstone" for an append that deletes its key. A delete_records deletes what lies more than
    `records` below the highest end that its process was shown. argument "read_committed": for a poll or
    list_offsets that wants committed records only; "earliest" for a list_offsets of the log start;
    "by_time" for one of the first record of the last `records` tenths of a second.

    By "subscribe" a consumer of `topic` (several: with commas) begins in the group `key`; it works by itself
    until its process is to unsubscribe (it leaves the group; "in_order": it commits first) or crash (it is
    gone). By "pause" it stops for `records` tenths of a second ("working": its application does, within
    its work on records), by "resubscribe" it leaves its group and
    joins it again with these topics ("changed": it joins again without leaving), by "seek" it
    goes to the "earliest" or "latest" offset of `partition`, to that of a time ("by_time", as above), or
    `records` back. "assign" is as subscribe, but it takes all partitions of the topic and only commits in the
    group. "transform" is as subscribe, and it writes what it makes of each record in transactions of the id
    `key`-`partition`; two processes of one id fence each other.
    """

    op_id: int = _required(MOST_ID)
    process: int = _required(MOST_ID)
    # When it is invoked, or as soon as its process is free after that.
    at_ms: int = _required(LONGEST_PHASE_MS)
    # subscribe: a consumer of `topic` begins in the group `key`; it works by itself until unsubscribe (it
    # leaves the group) or crash (it is gone). pause: the consumer stops for `records` tenths of a second.
    # delete_records: deletes what is more than `records` below the highest end that its process was shown.
    function: str = field(
        validator=in_(
            (
                "append",
                "poll",
                "list_offsets",
                "delete_records",
                "subscribe",
                "unsubscribe",
                "crash",
                "pause",
                "transform",
                "assign",
                "resubscribe",
                "seek",
            )
        )
    )
    topic: str = "t"
    partition: int = _bounded(0, 63, 0)
    acks: int = field(default=-1, validator=in_((-1, 0, 1)))
    # Number of records in an append. A value id is op_id * 1000 + index, so removing an operation does not
    # change the ids of others.
    records: int = _bounded(1, 999, 1)
    # The key of all records of an append; a compacted topic refuses an append without one.
    key: str = ""
    argument: str = field(default="", validator=in_(("", *ARGUMENTS)))

    @property
    def topics(self) -> tuple[str, ...]:
        """Those that a consumer subscribes to."""
        return tuple(self.topic.split(","))


@frozen(kw_only=True)
class Fault:
    """One fault: its kind, onset, duration and target. kinds and targets: docs/reference/plans.md."""

    fault_id: int = _required(MOST_ID)
    kind: str = field(validator=instance_of(str))
    at_ms: int = _required(LONGEST_PHASE_MS)
    duration_ms: int = _bounded(0, 10 * MILLION, 1_000)
    # A role ("controller", "leader of t-0", "follower 1 of t-0", "broker 2"), resolved at onset; for an
    # operator's request "partition t-0" or "topic t".
    target: str = "controller"
    # A second role, for faults between two.
    other: str = ""
    # A number that the kind defines: file calls until the power fails, loss per million, or microseconds of
    # delay.
    parameter: int = _bounded(0, 10 * MILLION, 0)
    # The name of a protocol event; "": none. The onset waits for the next such event after at_ms (of the
    # target's partition, if it names one) that no fault of an earlier at_ms took.
    follows: str = field(default="", validator=in_(("", *FOLLOWED)), metadata=LATER)
    # Milliseconds from that event to the onset.
    delay_ms: int = _bounded(0, 10 * MILLION, 0, LATER)
    # The step of the broker's work on its files that it strikes inside of, in the `parameter`-th call; "":
    # none. Inside "start" or "stop" it waits for the target's next one.
    inside: str = field(default="", validator=in_(("", *INSIDE)), metadata=LATER)

    @inside.validator
    def _strikes_files(self, _: Any, inside: str) -> None:
        if inside and self.kind not in INSIDE_KINDS:
            raise ValueError(f"only {', '.join(INSIDE_KINDS)} strike inside a step, not {self.kind}")


@frozen(kw_only=True)
class BudgetOptions:
    """What the faults may cost at most. A fault outside the budget is skipped, or allowed and recorded, as
    `outside` says."""

    # Most brokers that are crashed or paused at once.
    brokers_down: int = _bounded(0, 16, 2)
    # Most ISR members of one partition that may lose unsynced data at once.
    isr_disks_lost: int = _bounded(0, 16, 0)
    # Whether no fault may cost a record that was acknowledged with acks=all (run/faults/keeping.py); then it,
    # and not `isr_disks_lost`, decides about lost data.
    keep_acknowledged: bool = field(default=False, metadata=LATER)
    outside: str = field(default="skip", validator=in_(("skip", "allow")))


def in_turn(first: Options, others: tuple[Options, ...], turn: int) -> Options:
    """The options whose turn it is, out of the first and the others."""
    return (first, *others)[turn % (1 + len(others))]


@frozen(kw_only=True)
class Plan:
    """A whole run, before it happened. seed keys every random choice of the run, together with its cause."""

    seed: int = _required(MOST_SEED)
    # Version of the format.
    version: int = field(default=PLAN_VERSION, validator=in_((PLAN_VERSION,)))
    # The campaign profile that the plan was drawn from.
    profile: str = "default"
    # Virtual time of the part with operations and faults, before the cluster is healed.
    safety_ms: int = _bounded(1, LONGEST_PHASE_MS, 60_000)
    # Bound on the virtual time that the healed cluster gets for progress and for the final reads.
    liveness_ms: int = _bounded(1, LONGEST_PHASE_MS, 60_000)
    # When a client of the run's own asks brokers about state that no other client sees (fencepost/asked).
    asking: str = field(default=ASK_ALWAYS, validator=in_(ASKING), metadata=LATER)
    cluster: ClusterOptions = Factory(ClusterOptions)
    network: NetworkOptions = Factory(NetworkOptions)
    disk: DiskOptions = Factory(DiskOptions)
    client: ClientOptions = Factory(ClientOptions)
    consumer: ConsumerOptions = Factory(ConsumerOptions)
    transform: TransformOptions = field(default=TransformOptions(), metadata=LATER)
    # Other options of clients. Process p has the p-th ones, in turn; those of `client` are the first.
    clients: tuple[ClientOptions, ...] = field(default=(), metadata=LATER)
    # Other options of consumers, as of clients; a process that comes back has the next ones.
    consumers: tuple[ConsumerOptions, ...] = field(default=(), metadata=LATER)
    budget: BudgetOptions = Factory(BudgetOptions)
    # What the clients do. No op id or process is above MOST_ID - OWN_IDS.
    operations: tuple[PlannedOperation, ...] = field(default=())
    # Faults, each with its time.
    faults: tuple[Fault, ...] = ()

    def client_of(self, process: int) -> ClientOptions:
        """The options of a client's process."""
        return in_turn(self.client, self.clients, process)

    def consumer_of(self, process: int, session: int) -> ConsumerOptions:
        """The options of a consumer's process that was started `session` times before."""
        return in_turn(self.consumer, self.consumers, process + session)

    @operations.validator
    def _leave_room(self, _: Any, operations: tuple[PlannedOperation, ...]) -> None:
        highest = max((max(one.op_id, one.process) for one in operations), default=0)
        if highest > MOST_ID - OWN_IDS:
            raise ValueError(
                f"an op_id or process is {highest}, above {MOST_ID - OWN_IDS}; higher ones are the run's own"
            )
