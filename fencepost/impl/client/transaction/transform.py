"""The application of a process that consumes, transforms and produces: each poll is one transaction (KIP-98,
KIP-447).

Owns the loop, and the rows of the trace that tell of transactions. Must not know how a producer or a consumer
does any of it. Each record that it reads becomes one record of the output topic; a header says where it came
from (LINEAGE), as does the column `result` of the append. Rows of a transaction's parts are complete when it
is: only then is it known whether they count.
"""

from typing import Any

from attrs import define, evolve, field

from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.consumer.fetch import ConsumedRecord
from fencepost.impl.client.consumer.requests import positions_of
from fencepost.impl.client.transaction.errors import AbortableError, FatalError
from fencepost.impl.client.transaction.transactional_producer import (
    REST_TIMER,
    GroupMetadata,
    Procedure,
    Refresh,
    Rest,
    TransactionalProducer,
)
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.log.batch.record_batch import Header, Record
from fencepost.impl.log.values import VALUE_ID, value_of
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.operations import Record as Row
from fencepost.traces.plan import MILLION, TransformOptions

LINEAGE = "lineage"
RESTART_MS = 1_000
"""Until a process that has given up is started again."""
VALUES_PER_OPERATION = 1_000
FIRST_SESSION, PRODUCERS_PER_SESSION = 1_000_000, 1_000
"""Sessions of the rows of transactions: each producer of a process has its own, and its consumer another
one."""
SPREAD = 2_654_435_761
"""Knuth's multiplicative hash: which transactions the application aborts, and which partition a record goes
to."""


@define
class Parts:
    """Rows of the transaction under way."""

    txn: Operation
    # With the answer, None while there is none.
    appends: list[Operation] = field(factory=list)
    # The row of TxnOffsetCommit.
    offsets: Operation | None = None
    # Whether an EndTxn that commits was sent. While it was not, nothing of the transaction may ever be
    # visible, whatever the answer is: Kafka answers INVALID_TXN_STATE to an abort that comes after the late
    # EndTxn of an earlier transaction (KAFKA-17754).
    commit_asked: bool = False


@define(eq=False)
class TransformLoop:
    """transactional_id, version: of its producer. producers: how many it has had. parts: of the transaction
    under way."""

    transactional_id: str
    options: TransformOptions
    version: int
    producer: TransactionalProducer | None = None
    producers: int = 0
    parts: Parts | None = None

    # ---- the application's calls

    def started(self, consumer: Consumer) -> None:
        """Fence the process that had the id before, then begin."""
        consumer.on_other_timer = self._on_timer
        self._begin(consumer)

    def go_on_with(self, options: TransformOptions) -> None:
        """Do from now on as these options say, also in the transaction under way."""
        self.options = options
        if self.producer is not None:
            self.producer.attempts, self.producer.late_sends = options.attempts, options.late_sends

    def _on_timer(self, key: tuple[Any, ...]) -> None:
        if key == (REST_TIMER,) and self.producer is not None:
            self.producer.on_timer()

    def _begin(self, consumer: Consumer) -> None:
        self.producers += 1
        self.producer = TransactionalProducer(
            desk=consumer.desk,
            transactional_id=self.transactional_id,
            version=self.version,
            timeout_ms=self.options.transaction_timeout_ms,
            attempts=self.options.attempts,
            late_sends=self.options.late_sends,
        )

        def initialised(_: Any, error: AbortableError | FatalError | None) -> None:
            if error is not None:
                self._failed(consumer)
            elif consumer.dead:
                consumer.start_over()
            else:
                consumer.poll()

        self.producer.run(self.producer.init(), initialised)

    def polled(self, consumer: Consumer, records: list[ConsumedRecord]) -> None:
        """Transform what came, in one transaction.

        Args:
            consumer: whose poll ended.
            records: what it returned.
        """
        if not records or not self.still_member(consumer):
            consumer.poll()
            return
        assert self.producer is not None
        coordinator = consumer.coordinator
        group = GroupMetadata(
            group_id=consumer.identity.group,
            generation_id=coordinator.held,
            member_id=coordinator.member_id,
            group_instance_id=consumer.identity.instance_id,
        )
        session = FIRST_SESSION + consumer.identity.session * PRODUCERS_PER_SESSION + self.producers
        txn = consumer.desk.begin(
            Function.TXN,
            group=None,
            session=session,
            key=self.transactional_id,
            isolation="read_committed",
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
        )
        self.parts = Parts(txn)

        def ended(committed: Any, error: AbortableError | FatalError | None) -> None:
            if error is not None:
                asked = self.parts is not None and self.parts.commit_asked
                self._close_rows(consumer, Outcome.UNKNOWN if asked else Outcome.FAIL, error.error)
                self._failed(consumer)
            elif not consumer.dead:
                if not committed:
                    self._seek_back(consumer, records)
                consumer.poll()

        self.producer.run(self._transaction(consumer, group, records), ended)

    def still_member(self, consumer: Consumer) -> bool:
        """Protection T11: a consumer that has lost its membership has nothing to name in TxnOffsetCommit, and
        a coordinator believes a request that names nothing (as before KIP-447). What it was reading is
        somebody else's."""
        return consumer.coordinator.held >= 0

    def woken(self, consumer: Consumer) -> None:
        """It is time to begin again."""
        self._begin(consumer)

    def committed(self, consumer: Consumer, error: ErrorCode) -> None:
        """Never called: offsets are committed in transactions only.

        Args:
            consumer: whose commit ended.
            error: of the coordinator.
        """

    def assigned(self, consumer: Consumer, partitions: tuple[TopicPartition, ...]) -> None:
        """Nothing has to be prepared.

        Args:
            consumer: which has new partitions.
            partitions: all that it has now.
        """

    def revoked(self, consumer: Consumer, partitions: tuple[TopicPartition, ...]) -> None:
        """No transaction is open while a poll is under way.

        Args:
            consumer: which gives partitions up.
            partitions: those.
        """

    def failed(self, consumer: Consumer, error: ErrorCode) -> None:
        """The consumer cannot go on: begin anew after a while."""
        consumer.sleep(RESTART_MS)

    def _failed(self, consumer: Consumer) -> None:
        """The producer can do nothing any more: another one begins after a while."""
        self.leave(consumer)
        consumer.sleep(RESTART_MS)

    def leave(self, consumer: Consumer) -> None:
        """Protection T17: nobody knows what became of the last transaction, so that the consumer must go on
        from what is committed. It joins its group anew before it asks. A coordinator that was deposed, and
        does not know, still answers OffsetFetch, here and in Kafka; but it completes no rebalance, because
        the group's record needs every replica.

            1. coordinator A is deposed, B takes over: both know generation 1
            2. a transaction commits offset 12 at B; its producer is fenced before it hears of that
            3. the consumer asks A, which knows 11, and transforms the record again
            4. B takes the offsets of generation 1
        """
        consumer.close()

    @staticmethod
    def _seek(consumer: Consumer, offsets: dict[TopicPartition, int]) -> None:
        """Read these partitions again, from these offsets."""
        consumer.record_seek(offsets)
        for key, offset in offsets.items():
            if key in consumer.fetcher.assigned:
                consumer.seek(key, offset)

    @classmethod
    def _seek_back(cls, consumer: Consumer, records: list[ConsumedRecord]) -> None:
        """The transaction did not commit: read its records again."""
        first: dict[TopicPartition, int] = {}
        for each in records:
            first.setdefault(each.partition, each.record.offset)
        cls._seek(consumer, first)

    # ---- one transaction

    def _transaction(
        self, consumer: Consumer, group: GroupMetadata, records: list[ConsumedRecord]
    ) -> Procedure:
        """Returns whether it committed."""
        producer, parts = self.producer, self.parts
        assert producer is not None and parts is not None
        error = NO_ERROR
        try:
            yield from self._outputs(consumer, records)
            positions = {each.partition: each.record.offset + 1 for each in records}
            parts.offsets = consumer.desk.begin(
                Function.COMMIT,
                session=parts.txn.session,
                argument="txn",
                member=consumer.coordinator.known_as,
                generation=group.generation_id,
                positions=positions_of(positions),
            )
            answer = yield from producer.send_offsets(group, positions)
            parts.offsets = evolve(parts.offsets, leader_epoch=answer.coordinator_epoch)
            if self.options.pause_ms:
                yield Rest(self.options.pause_ms)
            wanted = parts.txn.op_id * SPREAD % MILLION >= self.options.aborts_ppm
        except AbortableError as abortable:
            wanted, error = False, abortable.error
        parts.commit_asked = wanted
        yield from producer.decide(commit=wanted)
        self._close_rows(consumer, Outcome.OK if wanted else Outcome.FAIL, error)
        yield from producer.settle()
        return wanted

    def _outputs(self, consumer: Consumer, records: list[ConsumedRecord]) -> Procedure:
        producer, parts = self.producer, self.parts
        assert producer is not None and parts is not None
        count = 0
        while not count:
            count = consumer.desk.partitions((self.options.output,))[self.options.output]
            if not count:
                yield Rest()
                yield Refresh()
        outputs: dict[int, list[ConsumedRecord]] = {}
        for each in records:
            place = value_of(each.record) * SPREAD // MILLION % count
            outputs.setdefault(place, []).append(each)
        for number, sources in sorted(outputs.items()):
            for start in range(0, len(sources), VALUES_PER_OPERATION):
                yield from self._output(consumer, number, sources[start : start + VALUES_PER_OPERATION])

    def _output(self, consumer: Consumer, number: int, sources: list[ConsumedRecord]) -> Procedure:
        producer, parts = self.producer, self.parts
        assert producer is not None and parts is not None
        key = TopicPartition(self.options.output, number)
        lineage = [f"{each.partition}@{each.record.offset}" for each in sources]
        base = consumer.desk.next_operation() * VALUES_PER_OPERATION
        row = consumer.desk.begin(
            Function.APPEND,
            group=None,
            session=parts.txn.session,
            topic=key.topic,
            partition=number,
            acks=ACKS_ALL,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            sequence=producer.sequences.get(key, 0),
            result=" ".join(lineage),
            records=tuple(
                Row(topic=key.topic, partition=number, offset=-1, value=base + nth)
                for nth in range(len(sources))
            ),
        )
        parts.appends.append(row)
        now_ms = consumer.desk.now // MILLISECOND
        made = [
            Record(
                nth,
                now_ms,
                each.record.key,
                b"%d" % (base + nth),
                (Header(VALUE_ID, b"%d" % (base + nth)), Header(LINEAGE, source.encode())),
            )
            for nth, (each, source) in enumerate(zip(sources, lineage, strict=True))
        ]
        answer = yield from producer.send(key, made)
        parts.appends[-1] = evolve(
            row,
            offset=answer.base_offset,
            leader_epoch=answer.leader_epoch,
            log_start_offset=answer.log_start_offset,
            records=tuple(
                evolve(each, offset=answer.base_offset + nth, leader_epoch=answer.leader_epoch)
                for nth, each in enumerate(row.records)
            ),
        )
        consumer.desk.heard(parts.appends[-1])

    def _close_rows(self, consumer: Consumer, outcome: Outcome, error: ErrorCode) -> None:
        parts, self.parts = self.parts, None
        if parts is None:
            return
        for row in parts.appends:
            consumer.desk.end(row, outcome, error if outcome is not Outcome.OK else NO_ERROR)
        if parts.offsets is not None:
            consumer.desk.end(parts.offsets, outcome, error if outcome is not Outcome.OK else NO_ERROR)
        consumer.desk.end(parts.txn, outcome, error)
