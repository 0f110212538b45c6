"""The table of parts of a broker. A planted bug replaces one entry by a small subclass (bugs) and
changes nothing else."""

from attrs import frozen

from fencepost.impl.broker.control_gate import ControlGate
from fencepost.impl.broker.dynamic_config import DynamicConfig
from fencepost.impl.broker.producer_ids import ProducerIds
from fencepost.impl.broker.registration import Registration
from fencepost.impl.client.consumer.coordinator_requests import ConsumerCoordinator
from fencepost.impl.client.consumer.fetch import ConsumerFetcher
from fencepost.impl.client.producer.sequences import Sequences
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.controller.channels import Channels
from fencepost.impl.controller.elector import ControllerElector
from fencepost.impl.controller.guards import ControllerGuards
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.coordinator.committed_offsets import GroupOffsets
from fencepost.impl.coordinator.group_loading import GroupLoading
from fencepost.impl.coordinator.group_log import GroupLog
from fencepost.impl.coordinator.member_requests import GroupMembership
from fencepost.impl.core.metadata_cache import MetadataCache
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
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
from fencepost.impl.transaction.marker_writer import MarkerWriter
from fencepost.impl.transaction.markers import TransactionMarkers
from fencepost.impl.transaction.transaction_coordinator import TransactionCoordinator
from fencepost.impl.transaction.transaction_loading import TransactionLoading
from fencepost.impl.transaction.transaction_log import TransactionLog
from fencepost.impl.transaction.transactional_offsets import TransactionalOffsets
from fencepost.impl.transaction.verification import TransactionVerification


@frozen(kw_only=True)
class Parts:
    """One class per role. The default values give the correct broker."""

    # The log of one replica.
    log: type[SegmentedLog] = SegmentedLog
    # Recovers a log at start.
    log_recovery: type[LogRecovery] = LogRecovery
    # The replicas' directories and the checkpoints.
    log_directory: type[LogDirectory] = LogDirectory
    # Deletes old segments.
    retention: type[Retention] = Retention
    # Compacts logs.
    cleaner: type[Cleaner] = Cleaner
    # Opens, checkpoints and deletes logs.
    log_manager: type[LogManager] = LogManager
    # The replica of one partition.
    partition: type[Partition] = Partition
    # The start offset of each leader epoch of a log.
    epoch_cache: type[LeaderEpochCache] = LeaderEpochCache
    # Configuration that changes while the broker runs.
    dynamic_config: type[DynamicConfig] = DynamicConfig
    # Checks the epochs of control requests.
    control_gate: type[ControlGate] = ControlGate
    # The metadata for clients.
    metadata_cache: type[MetadataCache] = MetadataCache
    # Moves the high watermark.
    high_watermark: type[HighWatermark] = HighWatermark
    # The ISR of a leader.
    in_sync_replicas: type[InSyncReplicas] = InSyncReplicas
    # The leader role.
    leader: type[LeaderRole] = LeaderRole
    # Truncates a follower's log.
    truncation: type[FollowerTruncation] = FollowerTruncation
    # Fetches from leaders.
    fetcher: type[ReplicaFetcher] = ReplicaFetcher
    # The replicas of a broker.
    replica_manager: type[ReplicaManager] = ReplicaManager
    # Elects leaders of partitions.
    leader_election: type[LeaderElection] = LeaderElection
    # The controller's writes to ZooKeeper.
    controller_writer: type[ControllerWriter] = ControllerWriter
    # Elects the controller.
    controller_elector: type[ControllerElector] = ControllerElector
    # The state of the controller.
    controller_state: type[ControllerState] = ControllerState
    # The checks of the controller before it acts.
    controller_guards: type[ControllerGuards] = ControllerGuards
    # The controller's requests to brokers.
    channels: type[Channels] = Channels
    # The broker's ephemeral node.
    registration: type[Registration] = Registration
    # The records of groups in __consumer_offsets.
    group_log: type[GroupLog] = GroupLog
    # Loads groups from the log.
    group_loading: type[GroupLoading] = GroupLoading
    # Members and generations of groups.
    group_membership: type[GroupMembership] = GroupMembership
    # Committed offsets of groups.
    group_offsets: type[GroupOffsets] = GroupOffsets
    # The client's side of a group.
    consumer_coordinator: type[ConsumerCoordinator] = ConsumerCoordinator
    # Of a consumer: positions and fetches.
    consumer_fetcher: type[ConsumerFetcher] = ConsumerFetcher
    transaction_log: type[TransactionLog] = TransactionLog
    transaction_loading: type[TransactionLoading] = TransactionLoading
    transaction_markers: type[TransactionMarkers] = TransactionMarkers
    transaction_coordinator: type[TransactionCoordinator] = TransactionCoordinator
    transaction_verification: type[TransactionVerification] = TransactionVerification
    transactional_offsets: type[TransactionalOffsets] = TransactionalOffsets
    marker_writer: type[MarkerWriter] = MarkerWriter
    producer_ids: type[ProducerIds] = ProducerIds
    # Checks the sequence numbers of producers.
    producer_sequences: type[Sequences] = Sequences
    transform_loop: type[TransformLoop] = TransformLoop
