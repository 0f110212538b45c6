"""The numbers of a cluster and its clients that bounds follow from: of a plan, or as a real run recorded
them.

Owns which settings are read, and their defaults. They are decoded without the rest of a plan's JSON, because
decoding a whole plan costs as much as judging a trace. Must not know rules.
"""

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import plain

MILLISECOND = 1_000_000
"""In nanoseconds, as all times of a trace."""
MIN_IN_SYNC = "min.insync.replicas"
"""The setting of a topic that bounds appends with acks=all."""
SLOWEST = 3
"""This many messages of a sequence may take the longest time that the network allows. The others take its
latency plus twice its tail."""
FAR_US = 600_000
"""In microseconds. If the slowest message of a network takes longer than this, some messages are held back
for seconds and others overtake them."""


class Topic(Struct, frozen=True, kw_only=True):
    """One topic, as it was created."""

    name: str = "t"
    replication_factor: int = 3
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    flush_messages: int = 0
    cleanup_policy: str = "delete"
    retention_ms: int = 7 * 86_400_000
    retention_bytes: int = -1
    max_message_bytes: int = (1 << 20) + 12
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 86_400_000
    index_interval_bytes: int = 4_096
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ppm: int = 500_000


class Groups(Struct, frozen=True, kw_only=True):
    """The coordinators of groups; milliseconds."""

    initial_rebalance_delay_ms: int = 3_000
    # Pauses of a simulated coordinator: before it forgets a partition, and after each buffer that it reads.
    unload_ms: int = 0
    load_step_ms: int = 0


class Transactions(Struct, frozen=True, kw_only=True):
    """The coordinators of transactions; milliseconds."""

    append_timeout_ms: int = 5_000
    marker_backoff_ms: int = 100
    # How often it looks for transactions whose time is over.
    abort_check_ms: int = 10_000
    # As for groups.
    unload_ms: int = 0
    load_step_ms: int = 0


class Cluster(Struct, frozen=True, kw_only=True):
    """The brokers; milliseconds."""

    # Number of brokers, with ids from 1 on.
    brokers: int = 3
    topics: tuple[Topic, ...] = (Topic(),)
    # A broker that is silent for so long loses its registration.
    zookeeper_session_timeout_ms: int = 6_000
    # A follower that has not caught up for so long leaves the ISR.
    replica_lag_time_max_ms: int = 10_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_backoff_ms: int = 1_000
    # How long one broker waits for the answer of another.
    controller_request_timeout_ms: int = 1_000
    isr_change_propagation_ms: int = 2_500
    # The first balance of preferred leaders after an election of the controller, and the time between later
    # ones; 0: there are none.
    leader_imbalance_check_ms: int = 5_000
    leader_imbalance_interval_ms: int = 300_000
    controlled_shutdown_retry_backoff_ms: int = 5_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    log_retention_check_interval_ms: int = 300_000
    groups: Groups = field(default_factory=Groups)
    transactions: Transactions = field(default_factory=Transactions)


class Network(Struct, frozen=True, kw_only=True):
    """The network: microseconds, and rates per million messages."""

    latency_min_us: int = 200
    latency_tail_us: int = 300
    latency_max_us: int = 50_000
    loss_ppm: int = 0
    duplicate_ppm: int = 0
    reorder_ppm: int = 0
    late_ppm: int = 0
    late_max_us: int = 0


class Producer(Struct, frozen=True, kw_only=True):
    """The pipelined producers."""

    pipelined: bool = False
    idempotent: bool = False


class Client(Struct, frozen=True, kw_only=True):
    """The clients; milliseconds."""

    request_timeout_ms: int = 1_500
    delivery_timeout_ms: int = 6_000
    fetch_wait_max_ms: int = 100
    retry_backoff_ms: int = 100
    producer: Producer = field(default_factory=Producer)


class Consumer(Struct, frozen=True, kw_only=True):
    """The members of groups; milliseconds."""

    commit: str = "auto"
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    auto_commit_interval_ms: int = 5_000
    processing_ms: int = 50
    poll_timeout_ms: int = 500
    request_timeout_ms: int = 1_500
    retry_backoff_ms: int = 100
    assignor: str = "range"
    second_assignor: str = ""


class Transform(Struct, frozen=True, kw_only=True):
    """The processes that write in transactions; milliseconds."""

    transaction_timeout_ms: int = 60_000
    output: str = "out"


class Disk(Struct, frozen=True, kw_only=True):
    """What calls of the disk cost; microseconds."""

    fsync_us: int = 1_000


class Real(Struct, frozen=True, kw_only=True):
    """What only a real cluster has; milliseconds."""

    # From the start of a process to its registration, at most.
    start_ms: int = 30_000
    # With KRaft, the election time-out of the quorum with its back-off; 0: ZooKeeper.
    quorum_ms: int = 0
    # What scheduling on the machine may add to each step of a reaction.
    slack_ms: int = 1_000


class Planned(Struct, frozen=True, kw_only=True):
    """What a client does, of a plan."""

    function: str
    at_ms: int
    process: int = -1
    # Of a consumer all of its topics, with commas.
    topic: str = "t"
    # The group of a consumer.
    key: str | None = None
    # Of a pause, its length in units of PAUSE_MS.
    records: int = 1
    argument: str = ""


PAUSE_MS = 100
COOPERATIVE = "cooperative_sticky"


Alike = TypeVar("Alike", bound=Client | Consumer)


class Settings(Struct, frozen=True, kw_only=True, dict=True):
    """The part of a plan from which bounds follow. `real` is None in virtual time. Where clients or consumers
    differ, `client` and `consumer` have the longest of each time: a bound holds for all of them."""

    cluster: Cluster = field(default_factory=Cluster)
    network: Network = field(default_factory=Network)
    disk: Disk = field(default_factory=Disk)
    client: Client = field(default_factory=Client)
    consumer: Consumer = field(default_factory=Consumer)
    transform: Transform = field(default_factory=Transform)
    # Other options than the first ones, of some clients and consumers.
    clients: tuple[Client, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    real: Real | None = None
    operations: tuple[Planned, ...] = ()

    @property
    def noisy(self) -> bool:
        """Whether messages are lost, doubled or held back by chance, so that no number of them has a
        bound."""
        net = self.network
        by_chance = net.loss_ppm or net.duplicate_ppm or net.reorder_ppm or net.late_ppm
        return bool(by_chance) or net.latency_max_us > FAR_US

    @property
    def hurried(self) -> bool:
        """Whether the controller gives a request up before a usual answer can be there: it sends the first
        one for ever, as Kafka's does."""
        answer_us = 2 * (self.network.latency_min_us + self.network.latency_tail_us)
        return self.cluster.controller_request_timeout_ms * 1_000 < min(
            answer_us, 2 * self.network.latency_max_us
        )

    @property
    def has_quorum(self) -> bool:
        """Whether brokers elect the controller among themselves: KRaft."""
        return self.real is not None and self.real.quorum_ms > 0

    @property
    def hasty(self) -> bool:
        """Whether members of groups have less patience than a step of theirs takes: with a commit that is
        answered, or with a rebalance that they hear of after their work."""
        consumer = self.consumer
        wait_ms = consumer.heartbeat_interval_ms + consumer.poll_timeout_ms + consumer.processing_ms
        step_ms = (self.trips(12) + self.syncs(10)) // MILLISECOND
        return any(
            one.request_timeout_ms < step_ms + 200 or one.max_poll_interval_ms < wait_ms + 2 * step_ms
            for one in self.consumers or (consumer,)
        )

    @cached_property
    def assignors(self) -> frozenset[str]:
        """Those that all consumers name: a group of them may have no other."""
        names = [{one.assignor, one.second_assignor} - {""} for one in self.consumers or (self.consumer,)]
        return frozenset(set.intersection(*names))

    @cached_property
    def cooperative(self) -> bool:
        """Whether members give partitions up in one rebalance and join at once in another one (KIP-429)."""
        return any(one.assignor == COOPERATIVE for one in self.consumers or (self.consumer,))

    def trips(self, messages: int) -> int:
        """How long a sequence of so many messages takes if each waits for the one before, nanoseconds."""
        net = self.network
        usual = min(net.latency_max_us, net.latency_min_us + 2 * net.latency_tail_us)
        return 1_000 * (messages * usual + SLOWEST * (net.latency_max_us - usual))

    def syncs(self, count: int) -> int:
        """How long so many syncs of a disk take, nanoseconds."""
        return count * self.disk.fsync_us * 1_000

    @property
    def unclean(self) -> frozenset[str]:
        """Topics that allow a leader outside of the ISR."""
        return frozenset(topic.name for topic in self.cluster.topics if topic.unclean_leader_election)

    def topic(self, name: str | None) -> Topic:
        """The settings of a topic; those of Kafka for one that the plan does not name."""
        known = self._topics.get(name or "")
        if known is None:
            known = self._topics.setdefault(
                name or "", self._topics.get(plain(name or ""), Topic(name=plain(name or "")))
            )
        return known

    @cached_property
    def _topics(self) -> dict[str, Topic]:
        """By name, also by those that a later topic of a name has."""
        return {topic.name: topic for topic in reversed(self.cluster.topics)}


def settings_of(plan: str, events: Iterable[Event]) -> Settings | None:
    """The settings of a run.

    Args:
        plan: the JSON of its plan; empty for a run against a real system.
        events: of the run; a real one begins with its settings.

    Returns:
        The settings; None where nothing says them.
    """
    text = plan or next((event.detail for event in events if event.name is Name.SETTINGS), "")
    return _decoded(text) if text else None


@lru_cache(maxsize=4)
def _decoded(text: str) -> Settings | None:
    """Several checks ask for those of the same trace."""
    try:
        found: Settings = from_json(text, Settings)
    except msgspec.DecodeError:
        return None
    clients, consumers = (found.client, *found.clients), (found.consumer, *found.consumers)
    return msgspec.structs.replace(
        found, client=_longest(clients), clients=clients, consumer=_longest(consumers), consumers=consumers
    )


def _longest(options: tuple[Alike, ...]) -> Alike:
    """The longest of each time of these; what has no order is empty where they differ."""
    found: dict[str, Any] = {}
    for name in options[0].__struct_fields__:
        values = {getattr(one, name) for one in options}
        texts = str in map(type, values)
        found[name] = values.pop() if len(values) == 1 else "" if texts else max(values)
    return type(options[0])(**found)
