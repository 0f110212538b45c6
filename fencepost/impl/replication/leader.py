"""The leader's side of the data path: produce, fetch, list offsets, epoch queries (R1, R3 to R7).

Owns the rules for the leader's responses. Must not know how a replica became leader. A request that must wait
is put into the purgatory. Every change of the log end or the high watermark completes the waiting requests in
the same step.
"""

from collections.abc import Callable
from operator import itemgetter

from attrs import define, field

from fencepost.impl.core.broker_context import MILLISECOND, BrokerContext
from fencepost.impl.log.batch.header import CorruptBatchError, Damage, read_header, read_headers
from fencepost.impl.log.producer.producer_state import (
    InvalidProducerEpochError,
    NotTransactionalError,
    OutOfOrderSequenceError,
)
from fencepost.impl.log.segmented_log import LogOfflineError
from fencepost.impl.log.validation import RefusedBatchError, validated
from fencepost.impl.log.values import values_of
from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.replication.high_watermark import HighWatermark
from fencepost.impl.replication.isr import InSyncReplicas
from fencepost.impl.replication.partition import Partition
from fencepost.impl.replication.purgatory import DelayedFetch, DelayedProduce, Purgatory
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_ALL, ACKS_NONE

CLIENT = -1
SPOILT = frozenset({Damage.CRC, Damage.MAGIC, Damage.LENGTH})
"""Damage that may have happened in transit, so that a retry may help: CORRUPT_MESSAGE. Batches that were
written so are INVALID_RECORD for ever (Kafka's DefaultRecordBatch.ensureValid, LogValidator,
ProduceRequest)."""
MOST_FETCHED_BYTES = 55 * 1024 * 1024
"""The most bytes of records in one response: fetch.max.bytes of a Kafka broker. Reason: a frame must hold the
response to any request. The last batch may exceed it."""


@define
class LeaderRole:
    """Answers requests about the partitions that this broker leads."""

    # The context that all parts share.
    broker_context: BrokerContext
    # All partitions with a replica here.
    partitions: dict[kafka.TopicPartition, Partition]
    # The ISRs of the partitions that this broker leads.
    isr: InSyncReplicas
    # Moves high watermarks.
    high_watermark: HighWatermark
    # The requests that wait.
    purgatory: Purgatory
    # Called last, whenever a partition's role, end or high watermark may have moved.
    on_complete: list[Callable[[Partition], None]] = field(factory=list)

    # ---- fencing

    def fetch_fencing(self, partition: Partition, leader_epoch: int) -> ErrorCode:
        """Protection KIP-320: the leader epoch of the request must be this leader's, if it has one (a
        follower's request always does).

        Args:
            partition: the partition.
            leader_epoch: the epoch in the request; -1 if it has none.

        Returns:
            the error; NONE if the request may be served.
        """
        if leader_epoch < 0 or leader_epoch == partition.leader_epoch:
            return NO_ERROR
        if leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def _led(self, key: kafka.TopicPartition, leader_epoch: int = -1) -> tuple[Partition | None, ErrorCode]:
        partition = self.partitions.get(key)
        if partition is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = self.fetch_fencing(partition, leader_epoch)
        if error is NO_ERROR and partition.leader != self.broker_context.node:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return partition, error

    # ---- produce

    def produce(self, source: int, request: kafka.ProduceRequest) -> None:
        """Append, then answer at once or when the high watermark has passed the batch.

        Args:
            source: the sender.
            request: one batch.
        """
        partition, error = self._led(request.partition)
        if request.partition.topic in INTERNAL_TOPICS:
            error = (
                ErrorCode.INVALID_TOPIC_EXCEPTION
            )  # only their coordinator writes there, without a request
        if error is not NO_ERROR:
            self._produced(source, request, error)
            return
        assert partition is not None
        minimum = self.broker_context.topic_options(request.partition.topic).min_insync_replicas
        if request.acks == ACKS_ALL and not partition.enough_in_sync(minimum):
            self._produced(source, request, ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        try:
            records = validated(request.records, partition.log.options)
            appended = partition.log.append_as_leader(
                records, partition.leader_epoch, now_ms=self.broker_context.now // MILLISECOND
            )
        except CorruptBatchError as corrupt:
            error = ErrorCode.CORRUPT_MESSAGE if corrupt.damage in SPOILT else ErrorCode.INVALID_RECORD
            self._produced(source, request, error)
            return
        except RefusedBatchError as refused:
            self._produced(source, request, refused.error)
            return
        except OutOfOrderSequenceError:
            self._produced(source, request, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            return
        except InvalidProducerEpochError:
            self._produced(source, request, ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        except NotTransactionalError:
            self._produced(source, request, ErrorCode.INVALID_TXN_STATE)
            return
        except LogOfflineError:
            self._produced(source, request, ErrorCode.KAFKA_STORAGE_ERROR)
            raise
        if not appended.duplicate:
            self._record_append(partition, records, appended.base_offset)
        if request.acks == ACKS_ALL:
            delayed = DelayedProduce(
                self.purgatory.next_id(),
                source,
                request.correlation_id,
                partition.key,
                appended.base_offset,
                appended.last_offset + 1,
                partition.leader_epoch,
                appended.leader_epoch,
            )
            self.purgatory.park(delayed, (partition.key,), request.timeout)
        else:
            self._produced(source, request, NO_ERROR, appended.base_offset, appended.leader_epoch)
        self.high_watermark.advance(partition)
        self.complete(partition)

    def _record_append(self, partition: Partition, records: bytes, base_offset: int) -> None:
        self.broker_context.record(
            Name.APPENDED,
            partition.key,
            offset=base_offset,
            leader_epoch=partition.leader_epoch,
            values=values_of(records, read_header(records, check_crc=False)),
            cause="leader",
        )

    def _produced(
        self,
        source: int,
        request: kafka.ProduceRequest,
        error: ErrorCode,
        base_offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        if request.acks == ACKS_NONE:
            return
        response = kafka.ProduceResponse(
            correlation_id=request.correlation_id,
            error=error,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            log_start_offset=self._log_start(request.partition) if error is NO_ERROR else -1,
        )
        self.broker_context.reply(source, response, request.correlation_id)

    def _log_start(self, key: kafka.TopicPartition) -> int:
        partition = self.partitions.get(key)
        return -1 if partition is None else partition.log.log_start_offset

    # ---- fetch

    def fetch(self, source: int, request: kafka.FetchRequest) -> None:
        """Note the follower's position, then answer with the available records, or wait for more.

        Args:
            source: the sender.
            request: the partitions and offsets.
        """
        found = self._find(request)
        if request.replica_id != CLIENT:
            for wanted, partition, error in found:
                if error is NO_ERROR and partition is not None:
                    self._learn(partition, request.replica_id, wanted.offset)
        answers, worth_it = self._read(request, found)
        if worth_it or request.max_wait <= 0:
            self._fetched(source, request, answers)
            return
        delayed = DelayedFetch(self.purgatory.next_id(), source, request)
        self.purgatory.park(delayed, [wanted.partition for wanted in request.partitions], request.max_wait)

    def _learn(self, partition: Partition, replica: int, offset: int) -> None:
        follower = partition.followers.get(replica)
        if follower is None or offset > partition.log.log_end_offset:
            return
        self.isr.on_follower_fetch(partition, follower, offset)
        if replica not in partition.isr:
            self.isr.maybe_expand(partition, replica)
        if self.high_watermark.advance(partition):
            self.complete(partition)

    def _find(
        self, request: kafka.FetchRequest
    ) -> list[tuple[kafka.FetchPartition, Partition | None, ErrorCode]]:
        """Each requested partition, or the error for it. A client may be served by a follower (KIP-392)."""
        found = []
        for wanted in request.partitions:
            partition, error = self._led(wanted.partition, wanted.leader_epoch)
            follows = partition is not None and partition.leader not in (
                kafka.NO_LEADER,
                self.broker_context.node,
            )
            if request.from_follower and error is ErrorCode.NOT_LEADER_OR_FOLLOWER and follows:
                error = NO_ERROR
            found.append((wanted, partition, error))
        return found

    def _read(
        self,
        request: kafka.FetchRequest,
        found: list[tuple[kafka.FetchPartition, Partition | None, ErrorCode]],
    ) -> tuple[list[kafka.FetchedPartition], bool]:
        """The available records of each partition, and whether to answer before the time is up: there are
        enough records, or there is an error."""
        answers, size, failed = [], 0, False
        for wanted, partition, error in found:
            if error is not NO_ERROR or partition is None:
                answer = self._refused(wanted, error)
            else:
                answer = self._read_one(request, wanted, partition, size)
            answers.append(answer)
            size += len(answer.records)
            failed = failed or answer.error is not NO_ERROR
        return answers, failed or size >= request.min_bytes

    def _refused(self, wanted: kafka.FetchPartition, error: ErrorCode) -> kafka.FetchedPartition:
        self.broker_context.record(
            Name.FETCH_REFUSED, wanted.partition, leader_epoch=wanted.leader_epoch, detail=error.value
        )
        return kafka.FetchedPartition(partition=wanted.partition, error=error)

    def _read_one(
        self, request: kafka.FetchRequest, wanted: kafka.FetchPartition, partition: Partition, before: int
    ) -> kafka.FetchedPartition:
        """Read one partition. before: bytes of records in the response so far."""
        log, offset, follower = partition.log, wanted.offset, request.replica_id != CLIENT
        if follower and request.replica_id not in partition.followers:  # not assigned here (KAFKA-1097)
            return self._refused(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return self._refused(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        stable = -1 if follower else log.last_stable_offset(partition.high_watermark)
        end = log.log_end_offset if follower else self.readable_end(partition, request, stable)
        records = b""
        if offset < end or log.offline:
            total = min(request.total_max_bytes or MOST_FETCHED_BYTES, MOST_FETCHED_BYTES)
            limit = min(wanted.max_bytes or request.max_bytes, total - before)
            try:
                if limit > 0 or not before or log.offline:
                    records = log.read(offset, max_bytes=limit, end_offset=end)
            except CorruptBatchError:
                return kafka.FetchedPartition(partition=wanted.partition, error=ErrorCode.CORRUPT_MESSAGE)
            if request.total_max_bytes and before and len(records) > limit:
                # Only the first batch of a response may exceed the bounds, so that a reader always makes
                # progress (KIP-74).
                records = b""
        return kafka.FetchedPartition(
            partition=wanted.partition,
            error=NO_ERROR,
            leader_epoch=partition.leader_epoch,
            high_watermark=partition.high_watermark,
            log_start_offset=log.log_start_offset,
            records=records,
            last_stable_offset=stable,
            aborted=self._aborted(partition, offset, records) if request.read_committed and records else (),
        )

    def readable_end(self, partition: Partition, request: kafka.FetchRequest, stable: int) -> int:
        """Protection of what is not committed: a client reads below the high watermark, under read_committed
        below the last stable offset too.

        Args:
            partition: what is read.
            request: the fetch of a client.
            stable: the last stable offset.

        Returns:
            The first offset that it may not read.
        """
        committed = partition.high_watermark
        return min(committed, stable) if request.read_committed else committed

    def _aborted(self, partition: Partition, offset: int, records: bytes) -> tuple[tuple[int, int], ...]:
        """The aborted transactions that a reader of these records skips, sorted by first offset."""
        *_, last = read_headers(records, check_crc=False)
        found = partition.log.aborted_transactions(offset, last.next_offset)
        return tuple(sorted(((each.producer_id, each.first_offset) for each in found), key=itemgetter(1)))

    def _fetched(
        self, source: int, request: kafka.FetchRequest, answers: list[kafka.FetchedPartition]
    ) -> None:
        response = kafka.FetchResponse(correlation_id=request.correlation_id, partitions=tuple(answers))
        self.broker_context.reply(source, response, request.correlation_id)

    # ---- list offsets and epochs

    def list_offsets(self, source: int, request: kafka.ListOffsetsRequest) -> None:
        """Answer with the log start offset, the end that a client may see, or the first record with the
        requested timestamp or a later one. A debugger is answered by any replica, about its own log.

        Args:
            source: the sender.
            request: the partition and the timestamp.
        """
        partition, error = self._led(request.partition, request.leader_epoch)
        debugs = request.replica_id == kafka.DEBUGGER
        if debugs and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            error = NO_ERROR
        offset, epoch, timestamp = -1, -1, -1
        if error is NO_ERROR and partition is not None and request.timestamp == kafka.EARLIEST:
            offset, epoch = partition.log.log_start_offset, partition.leader_epoch
        elif error is NO_ERROR and partition is not None:
            end = partition.log.log_end_offset if debugs else partition.high_watermark
            if request.read_committed and not debugs:
                end = partition.log.last_stable_offset(end)
            if request.timestamp >= 0:
                error, offset, epoch, timestamp = self._at_time(partition, request.timestamp, end)
            if offset < 0 and error is NO_ERROR and not debugs:
                error = self.offset_not_available(partition)
            if error is NO_ERROR and request.timestamp < 0:
                offset, epoch = end, partition.leader_epoch
            elif error is not NO_ERROR:
                epoch = partition.leader_epoch
        response = kafka.ListOffsetsResponse(
            correlation_id=request.correlation_id,
            error=error,
            offset=offset,
            leader_epoch=epoch,
            timestamp=timestamp,
        )
        self.broker_context.reply(source, response, request.correlation_id)

    def _at_time(
        self, partition: Partition, timestamp_ms: int, end_offset: int
    ) -> tuple[ErrorCode, int, int, int]:
        """Offset, leader epoch and time of the first record with that timestamp or a later one; all -1 if
        there is none below the end."""
        try:
            found = partition.log.find_timestamp(timestamp_ms, end_offset=end_offset)
        except CorruptBatchError:
            return ErrorCode.CORRUPT_MESSAGE, -1, -1, -1
        if found is None:
            return NO_ERROR, -1, -1, -1
        epoch = partition.log.epochs.epoch_of(found.offset)
        return NO_ERROR, found.offset, epoch, found.timestamp_ms

    def offset_not_available(self, partition: Partition) -> ErrorCode:
        """Protection KIP-207: until a new leader's high watermark reaches the start of its own epoch, it lags
        behind what the old leader showed."""
        if partition.high_watermark < partition.epoch_start_offset:
            return ErrorCode.OFFSET_NOT_AVAILABLE
        return NO_ERROR

    def delete_records(self, source: int, request: kafka.DeleteRecordsRequest) -> None:
        """Move the log start to the requested offset. Followers get it with their next fetch; Kafka answers
        when all of them have it.

        Args:
            source: the sender.
            request: the partition and the offset.
        """
        partition, error = self._led(request.partition)
        if request.partition.topic in INTERNAL_TOPICS:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        low_watermark = -1
        if error is NO_ERROR and partition is not None:
            if request.offset > partition.high_watermark:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            else:
                partition.advance_log_start_offset(request.offset, cause="delete_records")
                low_watermark = partition.log.log_start_offset
        response = kafka.DeleteRecordsResponse(
            correlation_id=request.correlation_id, error=error, low_watermark=low_watermark
        )
        self.broker_context.reply(source, response, request.correlation_id)

    def offsets_for_leader_epoch(self, source: int, request: kafka.OffsetsForLeaderEpochRequest) -> None:
        """Answer where the requested epochs end in this leader's log.

        Args:
            source: the follower.
            request: one query per partition.
        """
        ends = tuple(self._epoch_end(query) for query in request.queries)
        response = kafka.OffsetsForLeaderEpochResponse(correlation_id=request.correlation_id, ends=ends)
        self.broker_context.reply(source, response, request.correlation_id)

    def _epoch_end(self, query: kafka.EpochQuery) -> kafka.EpochEnd:
        partition, error = self._led(query.partition, query.current_leader_epoch)
        if error is not NO_ERROR or partition is None:
            return kafka.EpochEnd(partition=query.partition, error=error)
        epoch, end_offset = partition.log.epochs.end_offset(query.asked_epoch, partition.log.log_end_offset)
        return kafka.EpochEnd(partition=query.partition, error=NO_ERROR, epoch=epoch, end_offset=end_offset)

    # ---- waiting requests

    def complete(self, partition: Partition) -> None:
        """Answer the requests for this partition that need not wait any longer."""
        for delayed in self.purgatory.waiting_for(partition.key):
            if isinstance(delayed, DelayedProduce):
                self._complete_produce(partition, delayed)
            else:
                self._complete_fetch(delayed)
        for moved in self.on_complete:
            moved(partition)

    def _complete_produce(self, partition: Partition, delayed: DelayedProduce) -> None:
        if not partition.is_leader or partition.leader_epoch != delayed.leader_epoch:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif partition.high_watermark < delayed.required_offset:
            return
        else:
            error = self.enough_after_append(partition)
        self.purgatory.remove(delayed)
        self._answer_produce(delayed, error)

    def enough_after_append(self, partition: Partition) -> ErrorCode:
        """Protection KAFKA-1555: the ISR may have shrunk since the append, so that the high watermark passed
        it with fewer replicas than min.insync.replicas."""
        minimum = self.broker_context.topic_options(partition.key.topic).min_insync_replicas
        enough = partition.enough_in_sync(minimum)
        return NO_ERROR if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _answer_produce(self, delayed: DelayedProduce, error: ErrorCode) -> None:
        response = kafka.ProduceResponse(
            correlation_id=delayed.correlation_id,
            error=error,
            base_offset=delayed.base_offset,
            leader_epoch=delayed.batch_epoch,
            log_start_offset=self._log_start(delayed.partition) if error is NO_ERROR else -1,
        )
        self.broker_context.reply(delayed.source, response, delayed.correlation_id)

    def _complete_fetch(self, delayed: DelayedFetch) -> None:
        answers, worth_it = self._read(delayed.request, self._find(delayed.request))
        if worth_it:
            self.purgatory.remove(delayed)
            self._fetched(delayed.source, delayed.request, answers)

    def expire(self, waiter_id: int) -> None:
        """The time of a waiting request is up: an append times out (its outcome is unknown), a fetch gets the
        available records."""
        delayed = self.purgatory.expire(waiter_id)
        if isinstance(delayed, DelayedProduce):
            self._answer_produce(delayed, ErrorCode.REQUEST_TIMED_OUT)
        elif isinstance(delayed, DelayedFetch):
            answers, _ = self._read(delayed.request, self._find(delayed.request))
            self._fetched(delayed.source, delayed.request, answers)
