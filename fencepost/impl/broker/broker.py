"""The broker core: `step(input, now) -> effects`, assembled from a table of parts.

Owns the wiring and the dispatch. Must not know any rule of the protocol.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field
from msgspec import structs

from fencepost.impl.admin.requests.broker_administration import Administration, make_administration
from fencepost.impl.broker.broker_transactions import Transactions, make_transactions
from fencepost.impl.broker.control_gate import ControlGate
from fencepost.impl.broker.controlled_shutdown import TIMER as SHUTDOWN_TIMER
from fencepost.impl.broker.controlled_shutdown import ControlledShutdown
from fencepost.impl.broker.dynamic_config import DynamicConfig
from fencepost.impl.broker.parts import Parts
from fencepost.impl.broker.registration import RETRY_TIMER, Registration
from fencepost.impl.controller.controller import BALANCE_TIMER, CONTROL_TIMER, Controller
from fencepost.impl.coordinator.group_coordinator import GroupCoordinator
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.coordinator.internal_topic import InternalTopic
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.broker_states import BrokerState, enter
from fencepost.impl.core.core_interface import (
    Effect,
    Halt,
    Input,
    MessageArrived,
    Started,
    StopRequested,
    TimerFired,
    TimerKey,
    ZooKeeperConnected,
    ZooKeeperDisconnected,
    ZooKeeperReplied,
    ZooKeeperSessionExpired,
    ZooKeeperWatchFired,
)
from fencepost.impl.core.failures import EndInCall, StepFailedError
from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.core.procedures import Procedures
from fencepost.impl.log.segmented_log import LogOfflineError
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.messages.names import name_of
from fencepost.impl.replication.fetcher import BACKOFF_TIMER, TIMEOUT_TIMER
from fencepost.impl.replication.isr import NOTIFY_TIMER, SHRINK_TIMER, InSyncReplicas
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.log_manager import CLEANER_TIMER, RETENTION_TIMER, LogManager
from fencepost.impl.replication.manager import CHECKPOINT_TIMER, ReplicaManager
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.purgatory import TIMER as PURGATORY_TIMER
from fencepost.impl.replication.purgatory import Purgatory
from fencepost.impl.zookeeper.grouping import GROUPED, Grouping
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.plan import ClusterOptions

ACCEPTED_WHILE_STOPPING = frozenset((kafka.ControlResponse, kafka.ControlledShutdownRequest))
"""Messages that a broker still handles while it stops: it may be the controller until /controller is
removed."""


@define(kw_only=True)
class Broker:
    """A broker of one incarnation: created when its process starts, dropped when it dies."""

    # The context that all parts share.
    broker_context: BrokerContext
    # Runs sequences of ZooKeeper requests.
    procedures: Procedures
    # The partitions with a replica here.
    replicas: ReplicaManager
    # The logs.
    log_manager: LogManager
    # The metadata from UpdateMetadata.
    metadata: MetadataCache
    # Checks the epochs of control requests.
    gate: ControlGate
    # The controller, active if this broker was elected.
    controller: Controller
    # The broker's ephemeral node.
    registration: Registration
    # The controlled shutdown.
    shutdown: ControlledShutdown
    # The coordinator of consumer groups.
    groups: GroupCoordinator
    transactions: Transactions
    config: DynamicConfig
    # Requests of administration.
    administration: Administration
    # The handler of each class of messages.
    _handlers: dict[type, Callable[[int, Any], None]] = field(factory=dict)
    # The handler of each class of inputs.
    _inputs: dict[type, Callable[[Any], None]] = field(factory=dict)
    # The handler of each timer, by the first element of its key.
    _timers: dict[str | int, Callable[..., None]] = field(factory=dict)

    def step(self, input: Input, now: int) -> list[Effect]:
        """Apply one input at host time `now`; returns the effects, in the order in which they must be
        released. Raises StepFailedError."""
        broker_context = self.broker_context
        broker_context.now, broker_context.outbox = now, []
        try:
            self._inputs[type(input)](input)
            controller = self.controller
            if controller.queue or controller.beside is not None:
                controller.pump()
            if self.administration.desk.looking:
                self.administration.desk.look()
        except (LogOfflineError, OSError) as error:
            self._log_directory_failed(error)
        except Exception as error:
            raise StepFailedError(broker_context.outbox) from error
        except EndInCall as end:
            end.after(broker_context.outbox)
            raise
        return broker_context.outbox

    def _log_directory_failed(self, error: Exception) -> None:
        """The only log directory has failed, so the broker halts, as in Kafka. Events recorded earlier in the
        step remain valid, because their file calls had returned."""
        self.broker_context.record(Name.LOG_DIRECTORY_FAILED, detail=str(error))
        enter(self.broker_context, BrokerState.NOT_RUNNING)
        self.broker_context.outbox.append(Halt(f"the log directory failed: {error}"))

    # ---- inputs

    def _on_started(self, _: Started) -> None:
        self.broker_context.record(Name.BROKER_STARTED)
        enter(self.broker_context, BrokerState.STARTING)
        self.replicas.start()
        self.log_manager.start()

    def _on_message(self, arrived: MessageArrived) -> None:
        if self.broker_context.broker_epoch < 0:
            # A broker serves requests only after it is registered: without a broker epoch it cannot know
            # which requests are for this incarnation.
            return
        message = arrived.message
        kind = type(message)
        if self.shutdown.shutting_down and kind not in ACCEPTED_WHILE_STOPPING:
            return
        self._handlers[kind](arrived.source, message)

    def _on_timer(self, fired: TimerFired) -> None:
        key: TimerKey = fired.key
        kind = key[0]
        if self.shutdown.shutting_down and key != SHUTDOWN_TIMER and kind != CONTROL_TIMER:
            return
        self._timers[kind](*key[1:])

    def _on_connected(self, connected: ZooKeeperConnected) -> None:
        self.broker_context.session_id = connected.session_id
        self.procedures.on_connected()
        self.config.procedures.on_connected()
        if connected.new:
            self.registration.on_session()
            self.config.on_session()

    def _on_replied(self, replied: ZooKeeperReplied) -> None:
        self.procedures.on_reply(replied)
        self.config.procedures.on_reply(replied)

    def _on_disconnected(self, _: ZooKeeperDisconnected) -> None:
        self._disconnected()

    def _disconnected(self) -> None:
        self.procedures.on_disconnected()
        self.config.procedures.on_disconnected()

    def _on_expired(self, _: ZooKeeperSessionExpired) -> None:
        self._disconnected()
        self.broker_context.record(Name.SESSION_EXPIRED)
        self.controller.on_session_expired()

    def _on_watch(self, fired: ZooKeeperWatchFired) -> None:
        if not self.config.on_watch(fired.watch):
            self.controller.on_watch(fired.watch)

    # ---- control requests

    def _on_control(self, source: int, request: Any) -> None:
        error = self.gate.admit(request)
        partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
        if error is NO_ERROR:
            if isinstance(request, kafka.LeaderAndIsrRequest):
                self.replicas.apply(request)
            elif isinstance(request, kafka.UpdateMetadataRequest):
                self._update_metadata(request)
            else:
                partition_errors = self.replicas.stop_replicas(request)
        response = kafka.ControlResponse(
            correlation_id=request.correlation_id,
            kind=name_of(request),
            error=error,
            controller_epoch=self.gate.controller_epoch,
            partition_errors=partition_errors,
        )
        self.broker_context.send_periodic(source, response)

    def _update_metadata(self, request: kafka.UpdateMetadataRequest) -> None:
        known = self.metadata.live_brokers
        self.metadata.update(request)
        if self.metadata.live_brokers != known:
            self.broker_context.record(Name.LIVE_BROKERS, replicas=self.metadata.live_brokers)

    def _on_metadata(self, source: int, request: kafka.MetadataRequest) -> None:
        answer = self.metadata.answer(request)
        if request.allow_auto_topic_creation and answer.errors:
            created = self.administration.topics.auto_create([name for name, _ in answer.errors])
            answer = structs.replace(answer, errors=tuple(created.items()))
        self.broker_context.reply(source, answer, request.correlation_id)


def make_broker(
    broker_id: int,
    options: ClusterOptions,
    files: FileSystem,
    parts: Parts,
    now: int = 0,
    grouping: Grouping = GROUPED,
) -> Broker:
    """Assemble a broker from its parts.

    Correlation ids begin at the time of the start. So a late response to an earlier process of this broker is
    never taken for a response to this one. (TCP would not deliver it at all.)

    Args:
        broker_id: the id of the broker.
        options: the options of the cluster.
        files: its log directory.
        parts: the table of parts.
        now: host time at which its process begins, in nanoseconds.
        grouping: how ZooKeeper requests are grouped.

    Returns:
        the broker, before its first step.
    """
    broker_context = BrokerContext(broker_id, options, files, correlation_id=now, grouping=grouping)
    procedures = Procedures(broker_context)
    metadata = parts.metadata_cache()
    isr = parts.in_sync_replicas(broker_context, procedures, metadata)
    partitions: dict[TopicPartition, Partition] = {}
    leader = parts.leader(
        broker_context=broker_context,
        partitions=partitions,
        isr=isr,
        high_watermark=parts.high_watermark(),
        purgatory=Purgatory(broker_context),
    )
    replicas, log_manager = _replicas(broker_context, parts, partitions, leader, isr, metadata)
    controller = _controller(broker_context, procedures, parts)
    registration = parts.registration(broker_context, procedures, controller.on_session)

    shutdown = ControlledShutdown(broker_context, procedures, replicas, controller.state)

    def settled(partition: Partition) -> None:
        if shutdown.shutting_down:
            return
        leader.high_watermark.advance(partition)
        leader.complete(partition)

    isr.on_settled.append(settled)
    groups = make_groups(parts, leader, metadata, procedures)
    ids = parts.producer_ids(broker_context, procedures)
    transactions = make_transactions(parts, groups, leader, ids, procedures)
    broker = Broker(
        broker_context=broker_context,
        procedures=procedures,
        replicas=replicas,
        log_manager=log_manager,
        metadata=metadata,
        gate=parts.control_gate(broker_context),
        controller=controller,
        registration=registration,
        shutdown=shutdown,
        groups=groups,
        transactions=transactions,
        config=_dynamic_config(broker_context, parts, replicas, log_manager, controller),
        administration=make_administration(
            broker_context=broker_context,
            procedures=procedures,
            controller=controller,
            metadata=metadata,
            partitions=partitions,
            internal_topics={topic.name: topic for topic in (groups.topic, transactions.topic)},
        ),
    )
    _connect(broker)
    return broker


def _replicas(
    broker_context: BrokerContext,
    parts: Parts,
    partitions: dict[TopicPartition, Partition],
    leader: LeaderRole,
    isr: InSyncReplicas,
    metadata: MetadataCache,
) -> tuple[ReplicaManager, LogManager]:
    """The partitions with a replica here, and their logs."""
    logs = parts.log_directory(broker_context.files, parts.log, parts.log_recovery, parts.epoch_cache)
    replicas = parts.replica_manager(
        broker_context=broker_context,
        partitions=partitions,
        leader=leader,
        fetcher=parts.fetcher(broker_context, parts.truncation()),
        isr=isr,
        logs=logs,
        metadata=metadata,
        partition_type=parts.partition,
    )
    log_manager = parts.log_manager(
        broker_context=broker_context,
        partitions=partitions,
        logs=logs,
        retention=parts.retention,
        cleaner=parts.cleaner,
    )
    return replicas, log_manager


def _dynamic_config(
    broker_context: BrokerContext,
    parts: Parts,
    replicas: ReplicaManager,
    log_manager: LogManager,
    controller: Controller,
) -> DynamicConfig:
    """Changes of topic configuration reach the replicas, the cleaner and the controller."""

    def configured(topic: str) -> None:
        replicas.configure(topic)
        if "compact" in broker_context.topic_options(topic).cleanup_policy:
            log_manager.begin_cleaning()

    return parts.dynamic_config(
        broker_context=broker_context,
        procedures=Procedures(broker_context),
        known_topics=lambda: {*replicas.metadata.topics, *(key.topic for key in replicas.partitions)},
        on_options=configured,
        on_all_read=replicas.all_configured,
        on_unclean_enabled=controller.on_unclean_enabled,
    )


def _controller(broker_context: BrokerContext, procedures: Procedures, parts: Parts) -> Controller:
    """Every broker has a controller, which is active only if it was elected."""
    state = parts.controller_state(
        broker_context,
        parts.controller_writer(broker_context),
        parts.channels(broker_context),
        parts.leader_election(),
        parts.controller_guards(),
    )
    return Controller(broker_context, procedures, parts.controller_elector(broker_context), state)


def _connect(broker: Broker) -> None:
    """Register the handlers of inputs, messages and timers. A timer's handler gets the rest of the timer's
    key."""
    replicas, shutdown, controller = broker.replicas, broker.shutdown, broker.controller
    leader, fetcher = replicas.leader, replicas.fetcher
    broker._inputs = {
        Started: broker._on_started,
        StopRequested: lambda _: shutdown.on_stop_requested(),
        MessageArrived: broker._on_message,
        TimerFired: broker._on_timer,
        ZooKeeperReplied: broker._on_replied,
        ZooKeeperWatchFired: broker._on_watch,
        ZooKeeperConnected: broker._on_connected,
        ZooKeeperDisconnected: broker._on_disconnected,
        ZooKeeperSessionExpired: broker._on_expired,
    }
    broker._handlers = {
        kafka.FetchRequest: leader.fetch,
        kafka.FetchResponse: fetcher.on_fetched,
        kafka.ProduceRequest: leader.produce,
        kafka.ListOffsetsRequest: leader.list_offsets,
        kafka.ListOffsetsResponse: fetcher.on_start_listed,
        kafka.DeleteRecordsRequest: leader.delete_records,
        kafka.OffsetsForLeaderEpochRequest: leader.offsets_for_leader_epoch,
        kafka.OffsetsForLeaderEpochResponse: fetcher.on_epoch_ends,
        kafka.MetadataRequest: broker._on_metadata,
        kafka.LeaderAndIsrRequest: broker._on_control,
        kafka.UpdateMetadataRequest: broker._on_control,
        kafka.StopReplicaRequest: broker._on_control,
        kafka.ControlResponse: controller.on_response,
        kafka.ControlledShutdownRequest: controller.on_controlled_shutdown,
        kafka.ControlledShutdownResponse: shutdown.on_response,
    }
    broker._handlers.update(broker.groups.handlers)
    broker._handlers.update(broker.transactions.handlers)
    broker._handlers.update(broker.administration.handlers)
    broker._timers = {
        PURGATORY_TIMER: leader.expire,
        TIMEOUT_TIMER: partial(fetcher.on_timer, TIMEOUT_TIMER),
        BACKOFF_TIMER: partial(fetcher.on_timer, BACKOFF_TIMER),
        CONTROL_TIMER: controller.on_control_timer,
        CHECKPOINT_TIMER[0]: replicas.checkpoint,
        SHRINK_TIMER[0]: replicas.shrink,
        RETENTION_TIMER[0]: broker.log_manager.retain,
        CLEANER_TIMER[0]: broker.log_manager.clean,
        NOTIFY_TIMER[0]: replicas.isr.notify,
        RETRY_TIMER[0]: broker.registration.try_again,
        SHUTDOWN_TIMER[0]: shutdown.on_timer,
        BALANCE_TIMER[0]: controller.on_balance_timer,
        **broker.groups.timers,
        **broker.transactions.timers,
        **broker.administration.timers,
    }


def make_groups(
    parts: Parts, leader: LeaderRole, metadata: MetadataCache, procedures: Procedures
) -> GroupCoordinator:
    """The coordinator of consumer groups. It is notified of every replica that changes its role.

    Args:
        parts: the table of parts.
        leader: the leader role; it notifies the coordinator.
        metadata: the metadata from UpdateMetadata.
        procedures: runs sequences of ZooKeeper requests.

    Returns:
        the coordinator.
    """
    table = GroupTable(leader.broker_context, leader.partitions)
    log = parts.group_log(leader, table=table)
    loading = parts.group_loading(table)
    membership = parts.group_membership(table, log)
    offsets = parts.group_offsets(table, log, membership)
    factor = leader.broker_context.options.groups.offsets_topic_replication_factor
    topic = InternalTopic(
        OFFSETS_TOPIC, leader.broker_context, metadata, procedures, lambda: table.count, factor
    )
    groups = GroupCoordinator(
        table=table,
        log=log,
        loading=loading,
        membership=membership,
        offsets=offsets,
        metadata=metadata,
        topic=topic,
    )
    leader.on_complete.append(groups.moved)
    return groups
