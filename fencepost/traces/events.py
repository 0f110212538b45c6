"""Protocol events, faults and marks: what happened inside the system under test.

One `Event` is one row of the `events` table. The names below are the whole list that today's judges and the
refinement map read; each says which columns it fills. -1 means "not said" in integer columns.
"""

from enum import StrEnum
from typing import TypedDict

from attrs import frozen

from fencepost.traces.making import maker_of

UNCLEAN_REQUESTED = "unclean_election_requested"
"""The cause of a mark: a client requested an unclean election of this topic by name, which its configuration
need not allow (KIP-460)."""
OFFSET_DELETED = "Deleted"
"""The cause of a group_offset_expired that a client requested, with OffsetDelete or DeleteGroups."""


DELETION_ANSWERED = "answered"
"""The cause of a topic_deletion that a client asked for, seen on its connection."""
APPENDS_UNKNOWN = "appends_unknown"
"""The cause of a mark: the brokers of this trace do not say what they append, so that nothing follows from
what is not in it."""
REPLICA_DELETED = "replica_deleted"
"""The cause of a mark: a broker deleted its replica. node; topic, partition."""
MEMBER_LEFT = "member_left"
"""The cause of a mark: a process left its group, because its run wanted it to. detail: JSON {process}."""
AUDIT_FOUND = "audit_found"
"""The cause of a mark: an audit of the brokers' files at the end found something wrong. topic,
partition, offset; detail: JSON {anomaly, expected, seen}."""
ASSERTED = "assertion_failed"
"""The cause of a mark: an assertion of a test on a service did not hold. topic, partition, offset of the last
record that it is about; detail: JSON {check: the assertion's name, expected, seen, operations: op ids,
places: [topic, partition, offset] of all records that it is about}."""
NOT_EVERYWHERE = "not_on_every_replica"
"""The cause of a mark: an acknowledged record that such files do not have on every replica at its offset.
topic, partition, offset; detail: JSON {says}. It convicts nobody."""


NO_ANSWER, NO_COORDINATOR, NO_ROOM = "NO_ANSWER", "NO_COORDINATOR", "NO_ROOM"
"""Errors of an ASKED that are no names of Kafka."""


class Question(StrEnum):
    """The cause of an ASKED: what was asked, and which columns the answer fills. Names of topics are the
    trace's.

    Of every one: time: when the answer came, or when it was given up; node: the broker that was asked (-1:
    none could be found); detail: JSON {asked: nanoseconds at which the question was sent; error: of the
    answer, NO_ANSWER if none came in time, NO_COORDINATOR if nobody is known to be asked, left out if there
    is none; filtered: true where access rules may have left something out in silence, or refused it, so that
    nothing follows from what is missing}. With an error nothing else is filled but what was asked for. The
    error NO_ROOM, of node -1, ends a round early: detail.left_out names its parts that were not asked.
    `leader` is what the Metadata of the same round say, by the highest leader epoch, where the answer does
    not say it.
    """

    BROKERS = "brokers"
    """Metadata. replicas: the live brokers with the same listener, as this one knows them."""
    PARTITION = "partition"
    """Metadata of a partition. topic, partition, leader (-1: none), leader_epoch, isr, replicas. partition
    -1: of a topic that is not known; detail.error. detail.same: other brokers with the same answer in this
    round; asked and time then are those of the first question and the last answer, and each broker's own are
    in its BROKERS."""
    LOG = "log"
    """ListOffsets of one replica, with replica id -2: the ends of its own log. topic, partition, leader;
    log_start_offset, end_offset; leader_epoch: of the last answer, -1 if it says none. It is the replica's
    leader epoch here, and that of the log's last record in Kafka. The leader is first asked as a client, too:
    offset: the last stable offset; high_watermark: asked after it; then the log start, then the log end.
    detail: epochs: leader epochs of these answers by column, where they differ; errors: of these questions,
    by column; asked and time: of the first question and the last answer."""
    EPOCHS = "epochs"
    """OffsetForLeaderEpoch of the leader, in the leader epoch that this round's Metadata name. topic,
    partition, leader, leader_epoch: that one; detail.ends: [epoch asked for, epoch of the answer, end offset]
    of the leader epoch, and of the epoch before the one that was answered, at most four; -1, -1: it knows
    none. asked and time: of the first question and the last answer."""
    PRODUCERS = "producers"
    """DescribeProducers of any replica. topic, partition, leader; detail: {producers: [producer id, epoch,
    last sequence, coordinator epoch of the last marker, first offset of the open transaction] by producer
    id, -1 for none; same: other replicas with the same answer, as above}."""
    LOG_DIRECTORIES = "log_directories"
    """DescribeLogDirs. detail.logs: [topic, partition, bytes, lag], all that the broker holds of the topics
    of the run and of Kafka's own."""
    GROUP = "group"
    """DescribeGroups of the coordinator. topic, partition: of the group's records; detail: {group, state,
    protocol, members: [member id, group.instance.id or null, its [topic, partition]s, or null for another
    protocol than that of consumers]}. Kafka does not say the generation."""
    CONSUMER_GROUP = "consumer_group"
    """ConsumerGroupDescribe of the coordinator, of a broker that has it (KIP-848). topic, partition, group,
    state, protocol: as above; detail: epoch: the group's; a member's fourth value: its epoch."""
    COMMITTED = "committed"
    """OffsetFetch of the coordinator, unstable offsets included. topic, partition: as above; detail: {group,
    offsets: [topic, partition, offset, leader epoch of the last record before it or -1]}."""
    TRANSACTIONS = "transactions"
    """ListTransactions. detail.transactions: [transactional id, producer id, state], of the ids of the
    run."""
    TRANSACTION = "transaction"
    """DescribeTransactions of the coordinator. topic, partition: of the id's records; detail:
    {transactional_id, state, producer_id, producer_epoch, started_ms, timeout_ms, partitions: [topic,
    partition]}."""
    REASSIGNMENTS = "reassignments"
    """ListPartitionReassignments of a broker that is, or asks, the controller. detail.reassignments: [topic,
    partition, replicas, adding, removing]."""
    OFFSET_RECORDS = "offset_records"
    """The records of one key of a group of the run in __consumer_offsets, read from its leader. topic,
    partition, leader; offset: of the latest such record; log_start_offset, high_watermark: of the last
    answer; end_offset: up to where records were read; detail: {group, of: [topic, partition], or null for
    the group itself, records: the last 20, oldest first, cut: true if not everything was read}. A record is
    [offset, value, producer id of a record in a transaction or -1, committed: true, false, or null while it
    is not decided]. value: null for a tombstone; a committed offset; of the group itself {generation, leader,
    protocol, members: [member id, its [topic, partition]s]}; {version, bytes} of one that is not
    understood."""
    TRANSACTION_RECORDS = "transaction_records"
    """The same of a transactional id in __transaction_state. detail: {transactional_id, records: as above};
    value: {state, producer_id, producer_epoch, started_ms, updated_ms, timeout_ms, partitions}."""
    CONTENT = "content"
    """Records of one replica by Fetch, from the start of its log to its high watermark; in the last round
    only. topic, partition, leader, log_start_offset, high_watermark; end_offset: up to where records were
    read; detail: {ranges: [first offset, offset after it, digest of (offset, leader epoch, key, value) of
    its records], also cut where all replicas begin and the first one ends, so that ranges with the same
    bounds can be compared; keys: {digest of a key: [offset, digest of its
    last record]}, of records with a key; markers: [offset, producer id, epoch, committed]; cut: true if not
    everything was read}. Control records are in no range."""
    QUORUM = "quorum"
    """DescribeQuorum, of a cluster with KRaft. leader, leader_epoch, high_watermark: of the metadata log;
    replicas: the voters; detail.replicas: [id, log end, ms of its last fetch, ms when it was last caught
    up]."""
    SETTINGS = "settings"
    """DescribeConfigs of topics, which `fencepost doctor` asks. detail.settings: [topic, name, value]."""
    ELIGIBLE = "eligible"
    """DescribeTopicPartitions, of a broker that has it (KIP-966). topic, partition, leader, leader_epoch,
    isr, replicas; detail: {eligible, last_known}: replicas that may lead although they are not in the ISR."""


class Name(StrEnum):
    """What an event is. Later work adds values, never columns."""

    # --- facts of ZooKeeper, in commit order (recorded where the write commits)
    CONTROLLER_EPOCH = "controller_epoch"
    """/controller_epoch was written. node: the writer; controller_epoch: the new value."""
    CONTROLLER_ZNODE = "controller_znode"
    """/controller was created (leader: the broker named in it) or removed (leader -1)."""
    PARTITION_STATE = "partition_state"
    """A partition's state znode was written. node: the writer; leader, leader_epoch, controller_epoch, isr:
    the content; zk_version."""
    BROKER_ZNODE = "broker_znode"
    """/brokers/ids/N was created (broker_epoch: its czxid) or removed (broker_epoch -1). node: N."""
    ASSIGNMENT = "assignment"
    """A partition's replicas were written into its topic's node, or are gone with it (replicas empty). node:
    the writer, -1 for an operator; replicas."""
    REASSIGNMENT = "reassignment"
    """An entry of /admin/reassign_partitions was written, or taken out (replicas empty). node: the writer, -1
    for an operator; replicas: the target."""
    TOPIC_DELETION = "topic_deletion"
    """/admin/delete_topics/T was created or removed. topic; partition -1; node: the writer; cause: requested,
    done; or a broker answered a client that the topic is deleted (cause: answered; detail: JSON {since: when
    it was asked, nanoseconds})."""
    # --- brokers
    BROKER_STARTED = "broker_started"
    """The process is up, its logs are not yet recovered. node."""
    BROKER_REGISTERED = "broker_registered"
    """/brokers/ids/N was created. node; broker_epoch: its czxid."""
    BROKER_STATE = "broker_state"
    """The broker is about something else now. cause: Kafka's name of it, such as
    RecoveringFromUncleanShutdown."""
    LOG_DIRECTORY_FAILED = "log_directory_failed"
    """A file call failed, so that the broker halts: it has only one log directory. detail: why."""
    IMPLEMENTATION_ERROR = "implementation_error"
    """A process ended by an assertion or an exception of its own: a mistake of the implementation. node: its
    broker, -1 for a client; cause: the exception's type; detail: JSON {says, during, at: innermost first,
    process: of a client}."""
    SESSION_EXPIRED = "session_expired"
    """The broker learned that its ZooKeeper session is gone. node."""
    LOG_RECOVERED = "log_recovered"
    """A replica's log was opened at start-up. offset: log end offset; high_watermark: from the checkpoint;
    log_start_offset; leader_epoch: of its last record."""
    DURABLE = "durable"
    """What a host's disk holds of a replica's log, said by the disk when the power failed or a bit rotted.
    end_offset: the end of what no power loss takes; cause: power_loss, bit_rot; detail: JSON {asked: the end
    of what the broker had asked to sync, written: of what it had written, recovery_point: its checkpoint's,
    rolled: the first offset of its newest segment, each -1 if not known; clean: whether it had left the
    marker of a clean stop}. A name that the broker never asked to sync counts as durable, one that the disk
    refused does not."""
    TOPIC_CONFIGURED = "topic_configured"
    """A broker applied a changed configuration of a topic. node; topic; partition -1; detail: JSON of the
    overrides, {} when they are gone."""
    # --- controllers
    CONTROLLER_ELECTED = "controller_elected"
    """A broker believes that it is the controller. node, controller_epoch."""
    CONTROLLER_RESIGNED = "controller_resigned"
    """It no longer does. node, controller_epoch; cause: why."""
    CONTROLLER_WRITE_REFUSED = "controller_write_refused"
    """ZooKeeper refused a fenced write of a controller that moved. node, controller_epoch."""
    CONTROL_REQUEST_APPLIED = "control_request_applied"
    """A broker acted on LeaderAndIsr, UpdateMetadata or StopReplica. node; controller_epoch and broker_epoch
    of the request; cause: its kind."""
    CONTROL_REQUEST_REFUSED = "control_request_refused"
    """A broker refused one. As above; detail: the error."""
    LIVE_BROKERS = "live_brokers"
    """A broker learned from an UpdateMetadata that other brokers are alive than it knew; a broker that starts
    knows none. node; replicas: the live brokers."""
    # --- replicas (node, topic, partition always)
    BECAME_LEADER = "became_leader"
    """leader_epoch; offset: log end offset (the epoch's start); high_watermark; isr."""
    BECAME_FOLLOWER = "became_follower"
    """leader, leader_epoch; offset: log end offset; high_watermark."""
    APPENDED = "appended"
    """Records were appended to the log. offset: base offset; leader_epoch: of the batch; values; end_offset:
    the log end after it, if compaction left a gap after the values; cause: leader or follower."""
    TRUNCATED = "truncated"
    """The log was cut. offset: the new log end offset; end_offset: the old one; high_watermark: before the
    cut; leader_epoch: the replica's; leader; cause: leader_epoch, high_watermark, full."""
    HIGH_WATERMARK = "high_watermark"
    """The replica's high watermark moved. high_watermark; leader_epoch: the replica's; cause: leader or
    follower."""
    ISR_PROPOSED = "isr_proposed"
    """A leader asks ZooKeeper for another ISR. leader_epoch; isr; cause: shrink or expand."""
    ISR_UPDATED = "isr_updated"
    """A leader's ISR change was accepted by ZooKeeper. leader_epoch, isr, zk_version; cause: shrink or
    expand."""
    ISR_REFUSED = "isr_refused"
    """A leader's ISR change met a bad version. leader_epoch; isr: what it proposed."""
    LOG_START = "log_start"
    """The replica's log start offset moved. log_start_offset; high_watermark and end_offset: the replica's
    then; leader_epoch; cause: retention, delete_records, leader (a follower took over its leader's),
    truncated; bounds: it did not move, an assertion about the three follows."""
    COMPACTED = "compacted"
    """The cleaner made a pass. offset: all below it is clean; detail: JSON {records_dropped, bytes_before,
    bytes_after}."""
    FETCH_REFUSED = "fetch_refused"
    """A leader refused a fetch by its leader epoch. node, leader_epoch: of the request; detail: the error."""
    FOLLOWER_FAILED = "follower_failed"
    """A follower could not append what its leader sent and stopped fetching the partition. leader; detail:
    why."""
    REPLICA_LOG = "replica_log"
    """Final dump of a replica's log, one row per run of records of one epoch. offset: base; leader_epoch;
    values; end_offset; high_watermark; log_start_offset."""
    ASKED = "asked"
    """A client of the run's own asked a broker about state that no other client sees. cause: what it asked,
    and what the columns mean (Question)."""
    # --- consumer groups (node, topic __consumer_offsets and its partition always; leader_epoch: the
    # coordinator epoch)
    GROUPS_LOADED = "groups_loaded"
    """A broker coordinates the groups of this offsets partition. offset: end of what it read."""
    GROUPS_UNLOADED = "groups_unloaded"
    """It does so no more."""
    GROUP_PHASE = "group_phase"
    """A group came into another state, or was loaded in it. cause: Kafka's name of it; detail: JSON {group,
    generation, members, leader, why}."""
    GROUP_OFFSET_EXPIRED = "group_offset_expired"
    """Its coordinator removes a committed offset. cause: the group's state, or OFFSET_DELETED; detail: JSON
    {group, topic, partition}."""
    GROUP_REMOVED = "group_removed"
    """Nothing was left of a group, and its tombstone is durable; recorded again by a coordinator that finds
    the tombstone. detail: its name."""
    # --- transactions
    TRANSACTIONS_LOADED = "transactions_loaded"
    """A broker coordinates the transactions of this partition of __transaction_state. leader_epoch: the
    coordinator epoch; offset: end of what it read."""
    TRANSACTIONS_UNLOADED = "transactions_unloaded"
    """It does so no more."""
    TRANSACTION_PHASE = "transaction_phase"
    """A transaction came into another state, or was loaded in it; the record of it has every replica in sync.
    node, topic, partition and leader_epoch as above; cause: Kafka's name of the state; detail: JSON
    {transactional_id, producer_id, producer_epoch, partitions, why}."""
    MARKER_WRITTEN = "marker_written"
    """A leader appended the end of a transaction to its log. offset; leader_epoch; detail: JSON {producer_id,
    producer_epoch, coordinator_epoch, commit}."""
    MARKER_REFUSED = "marker_refused"
    """A leader refused one for good. detail: as above, and the error."""
    # --- what a proxy saw between clients and brokers
    REQUEST = "request"
    """A request and its result. time: of its arrival; node: its broker; cause: its API; detail: JSON
    {connection, correlation, version, client, us (until its answer, null: none came), operations (op ids),
    error, says}. Of a commit at an embedded cluster: time: of its answer; topic, partition, offset; detail:
    {process, group, error}."""
    CONNECTION = "connection"
    """A client connected (cause: opened) or its connection ended (cause: closed). node: its broker; detail:
    JSON {connection, client, reason, process (of its operations)}."""
    RECORD_TEXTS = "record_texts"
    """What records say, for people. values: their value ids; detail: JSON, [key, value] of each, as texts
    that may be cut, null for none. At the end of a trace."""
    # --- what an application wrote of itself
    APPLICATION = "application"
    """It did something with a record. cause: its own word (docs/reference/events.md), or run, life,
    unanswered; topic, partition, offset; detail: JSON (checkers/application/recorded.py)."""
    # --- the run
    SETTINGS = "settings"
    """What a real cluster and its clients were configured with, as far as bounds follow from it. detail: JSON
    with the fields of a plan (record/settings.py)."""
    BUSY = "busy"
    """A process had no time for anything else: steps of a simulated one that waited for its disk, or no
    processor on a real machine. node: its broker, -1 for every process of the machine; time: when that ended;
    detail: JSON {since: nanoseconds}."""
    PHASE = "phase"
    """A phase of the run began. cause: safety, heal, liveness, final, end."""
    FAULT_BEGAN = "fault_began"
    """node: the host hit (-1: none); cause: the kind of fault; detail: JSON {fault, target, nodes, ...}."""
    FAULT_ENDED = "fault_ended"
    """As above."""
    FAULT_SKIPPED = "fault_skipped"
    """The fault budget refused it, or its target did not exist. cause: kind; detail: JSON {fault, reason}."""
    LIVENESS_FAILED = "liveness_failed"
    """A wait of the liveness phase never ended. cause: which one; detail: JSON of what stood then
    (diagnosis.py)."""
    MARK = "mark"
    """A 'sometimes' event. cause: its name."""


@frozen(kw_only=True, weakref_slot=False)
class Event:
    """One protocol event, fault or mark. Which fields an event has follows from its name (Name); -1, "" and
    () mean that it has none."""

    # Virtual nanoseconds; the order of rows breaks ties.
    time: int
    name: Name
    # The broker or host.
    node: int = -1
    # The partition.
    topic: str | None = None
    partition: int = -1
    controller_epoch: int = -1
    # ZooKeeper's transaction id of a broker's registration.
    broker_epoch: int = -1
    # Broker id of the leader.
    leader: int = -1
    leader_epoch: int = -1
    # Version of a partition's state in ZooKeeper.
    zk_version: int = -1
    # Log offsets; their meaning follows from the name.
    offset: int = -1
    end_offset: int = -1
    high_watermark: int = -1
    log_start_offset: int = -1
    # Ids of brokers.
    isr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    # Value ids of records, in offset order.
    values: tuple[int, ...] = ()
    # A word that distinguishes events of one name.
    cause: str = ""
    # Further facts as text or JSON.
    detail: str = ""


class EventColumns(TypedDict, total=False):
    """The columns of an event but time, name and node, for who passes them on. Each is as of Event."""

    topic: str | None
    partition: int
    controller_epoch: int
    broker_epoch: int
    leader: int
    leader_epoch: int
    zk_version: int
    offset: int
    end_offset: int
    high_watermark: int
    log_start_offset: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    values: tuple[int, ...]
    cause: str
    detail: str


OF_A_TOPIC = (
    *(Name.PARTITION_STATE, Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.APPENDED, Name.TRUNCATED),
    *(Name.HIGH_WATERMARK, Name.ISR_UPDATED, Name.LOG_RECOVERED, Name.LOG_START, Name.REPLICA_LOG),
    *(Name.TOPIC_DELETION, Name.ASSIGNMENT, Name.DURABLE),
)
"""Events that mean nothing without a topic; a mark of REPLICA_DELETED is one, too."""


def lacks_topic(event: Event) -> bool:
    """Whether it is about a topic and names none."""
    of_a_topic = event.name in OF_A_TOPIC or (event.name is Name.MARK and event.cause == REPLICA_DELETED)
    return event.topic is None and of_a_topic


make_event = maker_of(Event)
"""A faster constructor, for code that makes thousands."""
