"""The end of a transaction as a leader writes it: a control batch in each of its partitions
(WriteTxnMarkers).

Owns the answer. Must not know why the transaction ends, nor what offsets are. A marker is written again if it
is asked for again; the partition's log decides whether it comes too late.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import msgspec
from attrs import define, field

from fencepost.impl.coordinator.durable import Done, DurableAppends
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.log.batch.control_records import EndTransaction
from fencepost.impl.log.producer.producer_state import CoordinatorFencedError, InvalidProducerEpochError
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.messages.transaction_api import TxnMarker, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from fencepost.impl.replication.partition import Partition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode

Notify = Callable[[TopicPartition, int, bool], None]
"""Called with the partition, the producer id, and whether it commits."""
NONE_OF_MINE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)


@define
class Marking:
    """A request under way."""

    source: int
    request: WriteTxnMarkersRequest
    # Of the partitions that are done.
    errors: dict[TopicPartition, ErrorCode] = field(factory=dict)


@define
class MarkerWriter(DurableAppends):
    """refusals: further reasons why a partition takes no marker now. on_written: called when a marker is in
    the log, before anybody else may write; on_durable: when every replica has it."""

    TIMER: ClassVar[str] = "marker_append"
    refusals: list[Callable[[TopicPartition], ErrorCode]] = field(factory=list)
    on_written: list[Notify] = field(factory=list)
    on_durable: list[Notify] = field(factory=list)

    def write_markers(self, source: int, request: WriteTxnMarkersRequest) -> None:
        """Append markers to their partitions. The answer follows when every replica has each one, or never
        will.

        Args:
            source: the node that asks.
            request: WriteTxnMarkers.
        """
        marking = Marking(source, request)
        if not _has_place(request.marker):
            marking.errors = dict.fromkeys(request.marker.partitions, ErrorCode.INVALID_REQUEST)
            self._reply(marking)
            return
        for key in request.marker.partitions:
            self._mark(marking, key)
        if not request.marker.partitions:
            self._reply(marking)

    def _mark(self, marking: Marking, key: TopicPartition) -> None:
        partition = self.leader.partitions.get(key)
        error = self._refusal(key, partition)
        if error is not NO_ERROR or partition is None:
            self._done(marking, key, error, -1)
            return
        marker = marking.request.marker
        try:
            appended = partition.log.append_marker(
                EndTransaction(commit=marker.commit, coordinator_epoch=marker.coordinator_epoch),
                marker.producer_id,
                marker.producer_epoch,
                partition.leader_epoch,
                now_ms=self.broker_context.now // MILLISECOND,
                version=marker.version,
            )
        except InvalidProducerEpochError:
            self._refused(marking, partition, ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        except CoordinatorFencedError:
            self._refused(marking, partition, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
            return
        self.appended(partition, appended.base_offset, 1)
        self._tell(Name.MARKER_WRITTEN, partition, marker, appended.base_offset)
        for callback in self.on_written:
            callback(key, marker.producer_id, marker.commit)
        self.answer_when_durable(partition, appended.base_offset, partial(self._done, marking, key))

    def answer_when_durable(self, partition: Partition, base_offset: int, done: Done) -> None:
        """Protection KIP-98: a coordinator forgets a marker that was answered, so that the next leader must
        have it.

        Args:
            partition: that has the marker.
            base_offset: of the marker.
            done: called when every replica has it.
        """
        timeout_ms = self.broker_context.options.transactions.append_timeout_ms
        self.wait(partition, base_offset, done, timeout_ms)

    def _refusal(self, key: TopicPartition, partition: Partition | None) -> ErrorCode:
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        for refusal in self.refusals:
            error = refusal(key)
            if error is not NO_ERROR:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in NONE_OF_MINE else error
        return NO_ERROR if self.in_sync(partition) else ErrorCode.NOT_ENOUGH_REPLICAS

    def _refused(self, marking: Marking, partition: Partition, error: ErrorCode) -> None:
        self._tell(Name.MARKER_REFUSED, partition, marking.request.marker, -1, error)
        self._done(marking, partition.key, error, -1)

    def _done(self, marking: Marking, key: TopicPartition, error: ErrorCode, base_offset: int) -> None:
        marker = marking.request.marker
        if error is NO_ERROR:
            for callback in self.on_durable:
                callback(key, marker.producer_id, marker.commit)
        marking.errors[key] = error
        if len(marking.errors) == len(set(marker.partitions)):
            self._reply(marking)

    def _reply(self, marking: Marking) -> None:
        response = WriteTxnMarkersResponse(
            correlation_id=marking.request.correlation_id, errors=tuple(sorted(marking.errors.items()))
        )
        self.broker_context.reply(marking.source, response, marking.request.correlation_id)

    def _tell(
        self, name: Name, partition: Partition, marker: TxnMarker, offset: int, error: ErrorCode = NO_ERROR
    ) -> None:
        callback: dict[str, object] = {
            "producer_id": marker.producer_id,
            "producer_epoch": marker.producer_epoch,
            "coordinator_epoch": marker.coordinator_epoch,
            "commit": marker.commit,
        }
        if error is not NO_ERROR:
            callback["error"] = error.value
        self.broker_context.record(
            name,
            partition.key,
            offset=offset,
            leader_epoch=partition.leader_epoch,
            detail=msgspec.json.encode(callback).decode(),
        )


def _has_place(marker: TxnMarker) -> bool:
    """Whether its numbers fit the fields of a batch (int64, int16) and of a marker's value (int32)."""
    return (
        0 <= marker.producer_id < 1 << 63
        and 0 <= marker.producer_epoch < 1 << 15
        and -(1 << 31) <= marker.coordinator_epoch < 1 << 31
    )
