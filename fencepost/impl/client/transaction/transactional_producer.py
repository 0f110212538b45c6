"""A transactional producer: init, begin, send, send offsets, commit, abort (KIP-98, KIP-360, KIP-447,
KIP-890).

Owns the order of requests, retries, and the producer's id, epoch and sequences. Must not know the
application. Each verb is a procedure: a generator that yields a question or a rest and is resumed with the
answer (None: there was none in time). A request is sent again until it is decided; errors.py says what each
error means.

    first version    init -> (AddPartitions -> Produce)* -> (AddOffsets -> TxnOffsetCommit)? -> EndTxn
    second version   init -> Produce* -> TxnOffsetCommit? -> EndTxn, which gives the next epoch
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from attrs import define, field, frozen

from fencepost.impl.client.consumer.requests import ConsumerDesk
from fencepost.impl.client.producer.producer import LATE_SEND_REFUSED
from fencepost.impl.client.transaction.errors import (
    FIND_AGAIN,
    AbortableError,
    FatalError,
    Gravity,
    gravity_of,
)
from fencepost.impl.core.broker_context import MILLISECOND
from fencepost.impl.core.core_interface import RecordEvent
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.messages import group_api
from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.broker_api import ProduceRequest, ProduceResponse
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.traces.operations import ACKS_ALL

NONE = -1
SEQUENCES = 1 << 31
REST_TIMER = "transaction_rest"
KEPT_BACK = 6
"""Of so many batches one is kept back, where that is wanted: few enough that most transactions commit."""
MOST_ATTEMPTS = 10_000
"""Of any other request: far more than a run takes. A coordinator that is away for good is not waited for."""


@frozen
class Ask:
    """A question for a broker."""

    node: int
    # Of the correlation id.
    make: Callable[[int], Any]


@frozen
class Rest:
    """Wait for so long; None: for the back-off."""

    milliseconds: int | None = None


@frozen
class Refresh:
    """Ask who leads; resumed with whether anybody answered."""


Procedure = Generator[Ask | Rest | Refresh, Any, Any]
Outcome = Callable[[Any, AbortableError | FatalError | None], None]
"""Called with what a verb returned, or why it ended."""


@frozen(kw_only=True)
class GroupMetadata:
    """Whose offsets a transaction commits (KIP-447)."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@define(eq=False, kw_only=True)
class TransactionalProducer:
    """A producer with a transactional id."""

    desk: ConsumerDesk
    transactional_id: str
    # transaction.version: 1 or 2 (KIP-890).
    version: int = 1
    # transaction.timeout.ms.
    timeout_ms: int = 60_000
    # Attempts of one batch, or of one TxnOffsetCommit; then the transaction must be aborted
    # (delivery.timeout.ms).
    attempts: int = 20
    # Node id of the transaction coordinator, NONE if it is not known.
    coordinator: int = NONE
    # Node id of the coordinator of each group.
    group_coordinators: dict[str, int] = field(factory=dict)
    # NONE before InitProducerId was answered.
    producer_id: int = NONE
    producer_epoch: int = NONE
    # Partitions of the open transaction that the coordinator knows of.
    added: dict[TopicPartition, None] = field(factory=dict)
    # Sequence number of the next batch in this epoch, by partition.
    sequences: dict[TopicPartition, int] = field(factory=dict)
    # Whether the leaders must be asked for again.
    stale: bool = False
    # Whether a batch of this epoch was given up: the next transaction takes another epoch.
    unresolved: bool = False
    # Whether anything was added.
    open: bool = False
    # Whether the last batch is sent once more, on purpose, when its transaction has ended; each KEPT_BACK-th
    # only then, as one that a network kept for so long.
    late_sends: bool = False
    # How many were made.
    batches: int = 0
    # The last of them: where to, and the request without its number.
    last: tuple[int, Callable[[int], Any]] | None = None
    running: Procedure | None = None
    _outcome: Outcome | None = None

    # ---- running a verb

    def run(self, verb: Procedure, outcome: Outcome) -> None:
        """Carry a verb out; one at a time."""
        assert self.running is None, "one thing at a time"
        self.running, self._outcome = verb, outcome
        self._resume(None)

    def _resume(self, answer: Any) -> None:
        verb, outcome = self.running, self._outcome
        assert verb is not None and outcome is not None
        try:
            wanted = verb.send(answer)
        except StopIteration as end:
            self.running = self._outcome = None
            outcome(end.value, None)
            return
        except (AbortableError, FatalError) as error:
            self.running = self._outcome = None
            outcome(None, error)
            return
        go_on = partial(self._resume_if, verb)
        if isinstance(wanted, Ask):
            self.desk.ask(wanted.node, wanted.make, go_on)
        elif isinstance(wanted, Refresh):
            if self.desk.asking_metadata:
                self.desk.set_timer((REST_TIMER,), self.desk.options.retry_backoff_ms)
            else:
                self.desk.refresh_metadata(go_on)
        else:
            backoff_ms = self.desk.options.retry_backoff_ms
            self.desk.set_timer((REST_TIMER,), wanted.milliseconds or backoff_ms)

    def _resume_if(self, verb: Procedure, answer: Any) -> None:
        if self.running is verb:
            self._resume(answer)

    def on_timer(self) -> None:
        """The back-off is over."""
        if self.running is not None:
            self._resume(None)

    def stop(self) -> None:
        """Forget what is under way: the process goes on otherwise."""
        self.running = self._outcome = None

    # ---- verbs

    def init(self) -> Procedure:
        """Get an epoch of one's own; the process that had the transactional id before is fenced."""
        asked = self._request(kafka.InitProducerIdRequest, transaction_timeout_ms=self.timeout_ms)
        answer = yield from self._ask_coordinator(asked, "InitProducerId")
        self._begin_epoch(answer.producer_id, answer.producer_epoch)

    def _begin_epoch(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self.sequences.clear()
        self.producer_id, self.producer_epoch, self.unresolved = producer_id, producer_epoch, False

    def send(self, key: TopicPartition, records: list[Record]) -> Procedure:
        """Append one batch.

        Args:
            key: the partition.
            records: with offsets that count from 0.

        Returns:
            The leader's answer, by the procedure.
        """
        if self.version < 2 and key not in self.added:
            self.open = True
            asked = self._request(kafka.AddPartitionsToTxnRequest, partitions=(key,))
            yield from self._ask_coordinator(asked, "AddPartitionsToTxn")
            self.added[key] = None
        sequence = self.sequences.get(key, 0)
        self.sequences[key] = (sequence + len(records)) % SEQUENCES
        data = encode_batch(
            records,
            base_offset=0,
            leader_epoch=-1,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        self.open = True
        return (yield from self._produce(key, data))

    def _produce(self, key: TopicPartition, data: bytes) -> Procedure:
        def make(number: int) -> ProduceRequest:
            return ProduceRequest(
                correlation_id=number,
                partition=key,
                acks=ACKS_ALL,
                records=data,
                timeout=self.desk.options.request_timeout_ms * MILLISECOND,
                transactional_id=self.transactional_id,
                adds_partition=self.version >= 2,
            )

        error = ErrorCode.REQUEST_TIMED_OUT
        for attempt in range(self.attempts):
            leader = self.desk.metadata.leader(key)
            if attempt:
                yield Rest()
            if leader is None or self.stale:
                self.stale = not (yield Refresh())
                leader = self.desk.metadata.leader(key)
            if leader is None:
                continue
            self.last = leader[0], make
            self.batches += 1
            if self.late_sends and self.batches % KEPT_BACK == 0:
                break
            answer: ProduceResponse | None = yield Ask(leader[0], make)
            error = ErrorCode.NETWORK_EXCEPTION if answer is None else answer.error
            if answer is not None and error is NO_ERROR:
                return answer
            self.stale = True  # also for the next transaction, if this one ends here
            gravity = gravity_of(error, batch=True)
            if gravity is Gravity.FATAL:
                raise FatalError(error, f"Produce to {key}")
            if gravity is Gravity.ABORTABLE:
                break
        self.unresolved = True
        raise AbortableError(error, f"Produce to {key}")

    def send_offsets(self, group: GroupMetadata, offsets: dict[TopicPartition, int]) -> Procedure:
        """The offsets count when the transaction commits. Returns the group coordinator's answer."""
        self.open = True
        if self.version < 2:
            asked = self._request(kafka.AddOffsetsToTxnRequest, group_id=group.group_id)
            yield from self._ask_coordinator(asked, "AddOffsetsToTxn")
        return (yield from self._commit_offsets(group, offsets))

    def _commit_offsets(self, group: GroupMetadata, offsets: dict[TopicPartition, int]) -> Procedure:
        committed = (
            group_api.CommittedOffset(partition=key, offset=offset) for key, offset in sorted(offsets.items())
        )
        make = self._request(
            kafka.TxnOffsetCommitRequest,
            group_id=group.group_id,
            offsets=tuple(committed),
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            adds_partition=self.version >= 2,
        )
        error = ErrorCode.REQUEST_TIMED_OUT
        for _ in range(self.attempts):
            node = self.group_coordinators.get(group.group_id, NONE)
            if node == NONE:
                node = yield from self._find(group.group_id, transactional=False)
                self.group_coordinators[group.group_id] = node
            answer = yield Ask(node, make)
            error = ErrorCode.NETWORK_EXCEPTION if answer is None else answer.error
            if error is NO_ERROR:
                return answer
            gravity = gravity_of(error)
            if gravity is Gravity.FATAL:
                raise FatalError(error, "TxnOffsetCommit")
            if gravity is Gravity.ABORTABLE:
                break
            if answer is None or error in FIND_AGAIN:
                self.group_coordinators.pop(group.group_id, None)
            yield Rest()
        raise AbortableError(error, "TxnOffsetCommit")

    def end(self, *, commit: bool) -> Procedure:
        """Commit or abort; returns when the producer may begin the next transaction."""
        yield from self.decide(commit=commit)
        yield from self.settle()

    def decide(self, *, commit: bool) -> Procedure:
        """Commit or abort; returns when the coordinator has decided. `settle` must follow."""
        answer = None
        if self.open:
            answer = yield from self._ask_coordinator(
                self._request(kafka.EndTxnRequest, commit=commit, version=self.version),
                "EndTxn",
                nothing_to_abort=self.version < 2 and not commit and not self.added,
            )
        self.open = False
        self.added.clear()
        if answer is not None and self.version >= 2 and answer.error is NO_ERROR:
            self._begin_epoch(answer.producer_id, answer.producer_epoch)

    def _late_answered(self, answer: ProduceResponse | None) -> None:
        if answer is not None and answer.error is not NO_ERROR:
            self.desk.outbox.append(RecordEvent(Name.MARK, {"cause": LATE_SEND_REFUSED}))

    def settle(self) -> Procedure:
        """Protection KIP-360: after a batch that may still be on its way the next transaction has another
        epoch, so that the log refuses it."""
        if self.unresolved:
            yield from self.init()
        if self.late_sends and self.last is not None:
            self.desk.ask(*self.last, self._late_answered)
        self.last = None

    # ---- coordinators

    def _request(self, kind: type[Any], **columns: Any) -> Callable[[int], Any]:
        """A request of this kind, of the producer as it is when it is sent."""
        return lambda number: kind(
            correlation_id=number,
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            **columns,
        )

    def _ask_coordinator(
        self, make: Callable[[int], Any], what: str, *, nothing_to_abort: bool = False
    ) -> Procedure:
        """Ask the transaction coordinator until it decides. nothing_to_abort: INVALID_TXN_STATE says that
        there is no transaction, which an abort may find."""
        for _ in range(MOST_ATTEMPTS):
            if self.coordinator == NONE:
                self.coordinator = yield from self._find(self.transactional_id, transactional=True)
            answer = yield Ask(self.coordinator, make)
            error = ErrorCode.NETWORK_EXCEPTION if answer is None else answer.error
            if error is NO_ERROR or (nothing_to_abort and error is ErrorCode.INVALID_TXN_STATE):
                return answer
            gravity = gravity_of(error)
            if gravity is Gravity.FATAL:
                raise FatalError(error, what)
            if gravity is Gravity.ABORTABLE:
                raise AbortableError(error, what)
            if answer is None or error in FIND_AGAIN:
                self.coordinator = NONE
            yield Rest()
        raise FatalError(ErrorCode.REQUEST_TIMED_OUT, what)

    def _find(self, name: str, *, transactional: bool) -> Procedure:
        for _ in range(MOST_ATTEMPTS):
            answer = yield Ask(
                self.desk.whom_to_ask(),
                lambda number: group_api.FindCoordinatorRequest(
                    correlation_id=number, group_id=name, transactional=transactional
                ),
            )
            if answer is not None and answer.error is NO_ERROR:
                return answer.node
            yield Rest()
        raise FatalError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"FindCoordinator of {name}")
