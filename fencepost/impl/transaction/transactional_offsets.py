"""Offsets that are committed by a transaction: they count when its marker says so (KIP-98, KIP-447).

Owns what waits for a marker. Must not know how transactions end. The offsets are in the log of their
partition like those of any commit; a coordinator that loads them finds the marker there, too.
"""

from functools import partial

from attrs import define

from fencepost.impl.coordinator.committed_offsets import COMMIT_ERRORS, GroupOffsets
from fencepost.impl.coordinator.consumer_group import Group, StoredOffset
from fencepost.impl.coordinator.group_log import GroupLog
from fencepost.impl.coordinator.group_records import offset_records
from fencepost.impl.coordinator.group_states import GroupPhase
from fencepost.impl.coordinator.group_table import GroupTable
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from fencepost.impl.transaction.transaction import LARGEST_EPOCH
from fencepost.impl.transaction.verification import Subject, TransactionVerification
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode


@define
class TransactionalOffsets:
    """Of all groups of this broker."""

    table: GroupTable
    log: GroupLog
    offsets: GroupOffsets
    verification: TransactionVerification

    def refusal(self, key: TopicPartition) -> ErrorCode:
        """Why no marker may be written into this partition now. A marker that came while the groups are
        loaded would come after what is read, and its offsets would wait for it for ever."""
        if key.topic != OFFSETS_TOPIC:
            return NO_ERROR
        return self.log.not_coordinator(key.partition)

    # ---- commit

    def commit(self, source: int, request: TxnOffsetCommitRequest) -> None:
        """Write offsets. The answer follows when every replica has them. They count when the transaction
        commits.

        Args:
            source: the node that asks.
            request: TxnOffsetCommit.
        """
        number = self.table.number_of(request.group_id)
        error = self.log.not_coordinator(number)
        partition = self.table.partitions.get(TopicPartition(OFFSETS_TOPIC, number))
        if error is not NO_ERROR or partition is None:
            self._reply(source, request, error)
            return
        adds = request.adds_partition
        if not self.verification.is_needed(partition, request.producer_id, request.producer_epoch, adds=adds):
            self._write(source, request, NO_ERROR)
            return
        subject = Subject(
            partition=partition.key,
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            adds=adds,
        )
        self.verification.ask(subject, partial(self._write, source, request))

    def _write(self, source: int, request: TxnOffsetCommitRequest, error: ErrorCode) -> None:
        if error is ErrorCode.NOT_ENOUGH_REPLICAS:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # to be asked again, as in Kafka
        group: Group | None = None
        if error is NO_ERROR:
            group, error = self._admit(request)
        if group is None or error is not NO_ERROR:
            self._reply(source, request, error)
            return
        values, records = offset_records(group.group_id, request.offsets, self.table.now_ms)
        if not records:
            self._reply(source, request, NO_ERROR)
            return
        producer = (request.producer_id, request.producer_epoch)
        done = partial(self._stored, source, request)
        epoch = self.table.epoch_of(group)
        base_offset = self.log.append(group.number, epoch, records, done, producer=producer)
        if base_offset >= 0:
            self.verification.begun(TopicPartition(OFFSETS_TOPIC, group.number), request.producer_id)
            waiting = group.open.setdefault(request.producer_id, {})
            for nth, (each, value) in enumerate(zip(request.offsets, values, strict=True)):
                waiting[each.partition] = StoredOffset(value, base_offset + nth)

    def _admit(self, request: TxnOffsetCommitRequest) -> tuple[Group | None, ErrorCode]:
        """The group, and whether the commit may be written (GroupCoordinator.validateOffsetCommit)."""
        error = self.log.not_coordinator(self.table.number_of(request.group_id))
        if error is NO_ERROR:
            error = self.offsets.storable(request)
        if not (request.producer_id >= 0 and 0 <= request.producer_epoch <= LARGEST_EPOCH):
            error = ErrorCode.INVALID_REQUEST  # no batch can carry it
        if error is not NO_ERROR:
            return None, error
        group = self.table.groups.get(request.group_id) or self.table.create(request.group_id)
        if group.phase is GroupPhase.DEAD:
            return group, ErrorCode.COORDINATOR_NOT_AVAILABLE
        return group, self.group_fencing(group, request)

    def group_fencing(self, group: Group, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Protection KIP-447: offsets of a consumer that is not a member of the present generation are
        refused; another member has its partitions. A request that names no member is believed, as before
        KIP-447.

        Args:
            group: as the coordinator knows it.
            request: TxnOffsetCommit.

        Returns:
            NONE if the offsets may be written.
        """
        named = request.member_id or request.group_instance_id is not None or request.generation_id >= 0
        if not named:
            return NO_ERROR
        error = group.identity_error(request.member_id, request.group_instance_id)
        if error is NO_ERROR and request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def _stored(
        self, source: int, request: TxnOffsetCommitRequest, error: ErrorCode, base_offset: int
    ) -> None:
        self._reply(source, request, COMMIT_ERRORS.get(error, error))

    def _reply(self, source: int, request: TxnOffsetCommitRequest, error: ErrorCode) -> None:
        epoch = self.table.place(self.table.number_of(request.group_id)).owned_epoch
        response = TxnOffsetCommitResponse(
            correlation_id=request.correlation_id, error=error, coordinator_epoch=epoch
        )
        self.table.broker_context.reply(source, response, request.correlation_id)

    # ---- the end

    def ended(self, key: TopicPartition, producer_id: int, commit: bool) -> None:
        """Every replica has the marker of a transaction: its offsets count from now on, or never will.

        Args:
            key: the partition of `__consumer_offsets`.
            producer_id: of the transaction.
            commit: whether it committed.
        """
        if key.topic != OFFSETS_TOPIC:
            return
        for group in self.table.of_place(key.partition):
            waiting = group.open.pop(producer_id, {})
            if commit:
                self.count(group, waiting)

    def count(self, group: Group, waiting: dict[TopicPartition, StoredOffset]) -> None:
        """Protection KIP-98: a fetch reads the offsets of a transaction that committed.

        Args:
            group: whose offsets they are.
            waiting: the offsets by partition.
        """
        for key, stored in waiting.items():
            self.offsets.materialise(group, key, stored)
