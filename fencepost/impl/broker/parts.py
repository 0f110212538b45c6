"""The table of parts that a broker is assembled from. A planted bug swaps one entry for a small subclass
(campaign/bugs); nothing else changes."""

from attrs import frozen

from fencepost.impl.broker.control_gate import ControlGate
from fencepost.impl.broker.producer_ids import ProducerIds
from fencepost.impl.broker.registration import Registration
from fencepost.impl.client.consumer.coordinator import ConsumerCoordinator
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.controller.channels import Channels
from fencepost.impl.controller.elector import ControllerElector
from fencepost.impl.controller.guards import ControllerGuards
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.coordinator.group_log import GroupLog
from fencepost.impl.coordinator.loading import GroupLoading
from fencepost.impl.coordinator.membership import GroupMembership
from fencepost.impl.coordinator.offsets import GroupOffsets
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.log.checkpoint.epochs import LeaderEpochCache
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.retention import Retention
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.replication.fetcher import ReplicaFetcher
from fencepost.impl.replication.high_watermark import HighWatermark
from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.log_manager import LogManager
from fencepost.impl.replication.manager import ReplicaManager
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.truncation import FollowerTruncation
from fencepost.impl.transaction.coordinator import TransactionCoordinator
from fencepost.impl.transaction.loading import TransactionLoading
from fencepost.impl.transaction.marker_writer import MarkerWriter
from fencepost.impl.transaction.markers import TransactionMarkers
from fencepost.impl.transaction.transaction_log import TransactionLog
from fencepost.impl.transaction.transactional_offsets import TransactionalOffsets
from fencepost.impl.transaction.verification import TransactionVerification


@frozen(kw_only=True)
class Parts:
    """One class per role. The default table is the correct broker."""

    log: type[SegmentedLog] = SegmentedLog
    log_recovery: type[LogRecovery] = LogRecovery
    log_directory: type[LogDirectory] = LogDirectory
    retention: type[Retention] = Retention
    cleaner: type[Cleaner] = Cleaner
    log_manager: type[LogManager] = LogManager
    partition: type[Partition] = Partition
    epoch_cache: type[LeaderEpochCache] = LeaderEpochCache
    control_gate: type[ControlGate] = ControlGate
    metadata_cache: type[MetadataCache] = MetadataCache
    high_watermark: type[HighWatermark] = HighWatermark
    in_sync_replicas: type[InSyncReplicas] = InSyncReplicas
    leader: type[LeaderRole] = LeaderRole
    truncation: type[FollowerTruncation] = FollowerTruncation
    fetcher: type[ReplicaFetcher] = ReplicaFetcher
    replica_manager: type[ReplicaManager] = ReplicaManager
    leader_election: type[LeaderElection] = LeaderElection
    controller_writer: type[ControllerWriter] = ControllerWriter
    controller_elector: type[ControllerElector] = ControllerElector
    controller_state: type[ControllerState] = ControllerState
    controller_guards: type[ControllerGuards] = ControllerGuards
    channels: type[Channels] = Channels
    registration: type[Registration] = Registration
    group_log: type[GroupLog] = GroupLog
    group_loading: type[GroupLoading] = GroupLoading
    group_membership: type[GroupMembership] = GroupMembership
    group_offsets: type[GroupOffsets] = GroupOffsets
    consumer_coordinator: type[ConsumerCoordinator] = ConsumerCoordinator
    transaction_log: type[TransactionLog] = TransactionLog
    transaction_loading: type[TransactionLoading] = TransactionLoading
    transaction_markers: type[TransactionMarkers] = TransactionMarkers
    transaction_coordinator: type[TransactionCoordinator] = TransactionCoordinator
    transaction_verification: type[TransactionVerification] = TransactionVerification
    transactional_offsets: type[TransactionalOffsets] = TransactionalOffsets
    marker_writer: type[MarkerWriter] = MarkerWriter
    producer_ids: type[ProducerIds] = ProducerIds
    producer_sequences: type[Sequences] = Sequences
    transform_loop: type[TransformLoop] = TransformLoop
