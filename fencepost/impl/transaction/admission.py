"""Produced batches on their way to the leader: one that would begin a transaction in a log waits until the
coordinator says that it may (KIP-890).

Owns which batches wait. Must not know what the leader does with a batch.
"""

from functools import partial

from attrs import define
from msgspec import structs

from fencepost.impl.log.batch.header import CorruptBatchError, read_header
from fencepost.impl.messages.broker_api import ProduceRequest, ProduceResponse
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.transaction.verification import Subject, TransactionVerification
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_NONE


@define
class TransactionAdmission:
    """Hands batches over to the leader role."""

    leader: LeaderRole
    verification: TransactionVerification

    def produce(self, source: int, request: ProduceRequest) -> None:
        """Let a batch through, or ask the coordinator first.

        Args:
            source: the node that sends it.
            request: with the batch.
        """
        subject = self._subject(request) if request.transactional_id else None
        if subject is None:
            self.leader.produce(source, request)
        else:
            self.verification.ask(subject, partial(self._answered, source, request, subject))

    def _subject(self, request: ProduceRequest) -> Subject | None:
        """What the coordinator must be asked about; None if nothing."""
        partition = self.leader.partitions.get(request.partition)
        if partition is None or not partition.is_leader:
            return None  # the leader role refuses it
        try:
            header = read_header(request.records)
        except CorruptBatchError:
            return None
        adds = request.adds_partition
        if not header.is_transactional or not self.verification.is_needed(
            partition, header.producer_id, header.producer_epoch, adds=adds
        ):
            return None
        return Subject(
            partition=partition.key,
            transactional_id=request.transactional_id or "",
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            adds=adds,
        )

    def _answered(self, source: int, request: ProduceRequest, subject: Subject, error: ErrorCode) -> None:
        if error is NO_ERROR:
            partition = self.leader.partitions.get(subject.partition)
            self.leader.produce(source, structs.replace(request, transactional_id=None))
            if partition is not None and partition.log.producers.has_open_transaction(
                subject.producer_id, subject.producer_epoch
            ):
                self.verification.begun(subject.partition, subject.producer_id)
            return
        if request.acks != ACKS_NONE:
            response = ProduceResponse(correlation_id=request.correlation_id, error=error)
            self.leader.broker_context.reply(source, response, request.correlation_id)
