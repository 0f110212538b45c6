"""The options of a plan that the bounds use. They are decoded without the rest of the JSON, because decoding
a whole plan costs as much as checking a trace.

Owns these few fields. Must not know rules.
"""

import msgspec
from msgspec import Struct, field

from fencepost.traces.decoding import from_json

MILLISECOND = 1_000_000


class Topic(Struct, frozen=True, kw_only=True):
    """The options of one topic."""

    name: str = "t"
    unclean_leader_election: bool = False
    cleanup_policy: str = "delete"
    retention_ms: int = 7 * 86_400_000
    retention_bytes: int = -1
    min_insync_replicas: int = 1
    replication_factor: int = 3


class Cluster(Struct, frozen=True, kw_only=True):
    """The options of the cluster, in milliseconds, with the defaults of traces/plan.py."""

    # The number of brokers.
    brokers: int = 3
    # The topics of the plan.
    topics: tuple[Topic, ...] = (Topic(),)
    # replica.lag.time.max.ms: how long a follower may lag before it leaves the ISR.
    replica_lag_time_max_ms: int = 10_000
    # replica.fetch.wait.max.ms: how long a leader may hold a follower's fetch.
    replica_fetch_wait_max_ms: int = 500
    # replica.fetch.backoff.ms: the wait after a failed fetch.
    replica_fetch_backoff_ms: int = 1_000
    # zookeeper.session.timeout.ms.
    zookeeper_session_timeout_ms: int = 6_000
    # How long the controller waits before it sends a request again.
    controller_request_timeout_ms: int = 1_000
    # How long a leader collects ISR changes before it notifies the controller.
    isr_change_propagation_ms: int = 2_500
    # replica.high.watermark.checkpoint.interval.ms.
    high_watermark_checkpoint_interval_ms: int = 5_000
    log_retention_check_interval_ms: int = 300_000


class Network(Struct, frozen=True, kw_only=True):
    """The network of the plan: microseconds, and rates per million messages."""

    latency_min_us: int = 200
    latency_tail_us: int = 300
    latency_max_us: int = 50_000
    loss_ppm: int = 0
    reorder_ppm: int = 0
    late_ppm: int = 0
    late_max_us: int = 0


class Consumer(Struct, frozen=True, kw_only=True):
    """Milliseconds. commit: when consumers commit, as in traces/plan.py."""

    commit: str = "auto"
    session_timeout_ms: int = 10_000
    # heartbeat.interval.ms.
    heartbeat_interval_ms: int = 3_000
    # max.poll.interval.ms.
    max_poll_interval_ms: int = 300_000
    auto_commit_interval_ms: int = 5_000
    # How long the consumer works on the result of one poll.
    processing_ms: int = 50
    # The longest duration of a poll without records.
    poll_timeout_ms: int = 500
    # request.timeout.ms.
    request_timeout_ms: int = 1_500


class Producer(Struct, frozen=True, kw_only=True):
    """Of the pipelined producers."""

    pipelined: bool = False


class Client(Struct, frozen=True, kw_only=True):
    """Milliseconds."""

    request_timeout_ms: int = 1_500
    delivery_timeout_ms: int = 6_000
    fetch_wait_max_ms: int = 100
    retry_backoff_ms: int = 100
    producer: Producer = field(default_factory=Producer)


class Disk(Struct, frozen=True, kw_only=True):
    """Microseconds."""

    fsync_us: int = 1_000


class Planned(Struct, frozen=True, kw_only=True):
    """An operation of the plan. records: of a pause, its length in units of PAUSE_MS; key: the group of a
    consumer."""

    function: str
    at_ms: int
    records: int = 1
    process: int = -1
    key: str | None = None


class Options(Struct, frozen=True, kw_only=True):
    """The part of a plan that is decoded."""

    cluster: Cluster = field(default_factory=Cluster)
    network: Network = field(default_factory=Network)
    client: Client = field(default_factory=Client)
    consumer: Consumer = field(default_factory=Consumer)
    disk: Disk = field(default_factory=Disk)
    operations: tuple[Planned, ...] = ()

    @property
    def compacted(self) -> frozenset[str]:
        """Topics that only compaction removes records from."""
        return frozenset(topic.name for topic in self.cluster.topics if topic.cleanup_policy == "compact")

    @property
    def lag_ns(self) -> int:
        """replica.lag.time.max.ms in nanoseconds."""
        return self.cluster.replica_lag_time_max_ms * MILLISECOND


def options_of(plan: str) -> Options | None:
    """The options of a trace's plan; None if there is no plan, or no valid one."""
    if not plan:
        return None
    try:
        options: Options = from_json(plan, Options)
    except msgspec.DecodeError:
        return None
    return options
