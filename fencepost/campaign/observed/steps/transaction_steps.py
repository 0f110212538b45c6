"""The transaction coordinator of a broker, step by step: each record that it writes must follow from what it
knew and from the request, and what it knows after an append is what the record says (KIP-98, KIP-360,
KIP-890).

Owns what is known of each transactional id between two steps. It only reads. Not compared: a step in which
the broker begins or ceases to coordinate, and appends that the log refused. Which requests are refused is
compared with the answers (transactional.py).
"""

from collections.abc import Iterator
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.campaign.observed.justified import Reason
from fencepost.campaign.observed.steps.written import batches_from
from fencepost.campaign.observed.transactional import COMPLETE, ENDING, ONGOING, PREPARED, STATE_TOPIC
from fencepost.checkers.meantime.placement import place_of
from fencepost.impl.core.core_interface import Halt, MessageArrived, TimerFired
from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.records import TransactionValue, decode_key, decode_value
from fencepost.traces.outcomes import ErrorCode

MILLISECOND = 1_000_000
NONE = -1
"""No id, no epoch, no time."""
EMPTY = "Empty"
LAST_EPOCH = (1 << 15) - 2
"""The last epoch that a producer may have: the one after it fences."""
MESSAGES = frozenset(
    {
        kafka.InitProducerIdRequest,
        kafka.AddPartitionsToTxnRequest,
        kafka.AddOffsetsToTxnRequest,
        kafka.EndTxnRequest,
        kafka.WriteTxnMarkersResponse,
    }
)
OVERDUE, EXPIRY = "transaction_timeouts", "transaction_expiry"
TIMERS = frozenset(
    {OVERDUE, EXPIRY, "marker_request", "marker_again", "transaction_completion", "transaction_append"}
)
FOR_GOOD = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""Answers after which a coordinator sends no marker again."""
OF_VERSION_1 = ("previous_producer_id", "next_producer_id", "client_version")
"""Fields that records of version 0 do not have."""


@frozen(kw_only=True)
class Known:
    """What a coordinator knows of an id."""

    value: TransactionValue
    # The epoch before the last one, if the producer asked for that itself.
    last_epoch: int
    pending: bool
    fence_failed: bool


@frozen
class End:
    """What is left of the end of a transaction: its partitions without an acknowledged marker."""

    ending: Any
    left: frozenset[TopicPartition]


@define
class Append:
    """An append that is not finished."""

    key: TopicPartition
    base: int
    required: int
    leader_epoch: int


@define(eq=False)
class TransactionSteps:
    """The transactions of one broker's process."""

    appends: dict[int, Append] = field(factory=dict)

    def watches(self, core: Any, input: Any) -> "StepOfTransactions | None":
        """Before a step: whether it may change what is known of transactions.

        Args:
            core: the broker.
            input: of the step.

        Returns:
            the step; None if it can change nothing.
        """
        coordinator = core.transactions.coordinator
        if core.broker_context.broker_epoch < 0:
            return None
        watched = bool(coordinator.log.pending)
        if type(input) is MessageArrived:
            watched = watched or type(input.message) in MESSAGES
        elif type(input) is TimerFired:
            watched = watched or input.key[0] in TIMERS
        return StepOfTransactions(self, core, input) if watched else None

    def forget(self) -> None:
        """The process ends."""
        self.appends.clear()


@define(eq=False)
class StepOfTransactions:
    """One step."""

    steps: TransactionSteps
    core: Any
    input: Any
    owned: dict[int, int] = field(init=False)
    # By id: the coordinator's own object and what it knows, before the step; `known` follows what it writes.
    before: dict[str, tuple[Any, Known]] = field(init=False)
    known: dict[str, tuple[Any, Known]] = field(init=False)
    ends: dict[str, End] = field(init=False)
    log_ends: dict[TopicPartition, int] = field(init=False)
    now_ms: int = 0

    def __attrs_post_init__(self) -> None:
        self.owned, self.before, self.ends = self._owned(), self._known(), self._ends()
        self.known = dict(self.before)
        partitions = self.core.replicas.partitions
        keys = (TopicPartition(STATE_TOPIC, number) for number in self.owned)
        self.log_ends = {key: partitions[key].log.log_end_offset for key in keys}

    @property
    def _table(self) -> Any:
        return self.core.transactions.coordinator.table

    def _owned(self) -> dict[int, int]:
        found = {}
        for number, place in self._table.places.items():
            partition = self.core.replicas.partitions.get(TopicPartition(STATE_TOPIC, number))
            leads = partition is not None and partition.leader == self.core.broker_context.node
            if leads and place.owned_epoch == partition.leader_epoch >= 0:
                found[number] = place.owned_epoch
        return found

    def _known(self) -> dict[str, tuple[Any, Known]]:
        return {
            name: (
                one,
                Known(
                    value=one.value,
                    last_epoch=one.last_epoch,
                    pending=one.pending is not None,
                    fence_failed=one.fence_failed,
                ),
            )
            for name, one in self._table.transactions.items()
        }

    def _ends(self) -> dict[str, End]:
        return {
            name: End(one, frozenset(one.waiting).union(*one.asked.values()))
            for name, one in self.core.transactions.coordinator.markers.ends.items()
        }

    def _number(self, name: str) -> int:
        return place_of(name, max(1, self._table.count))

    # ---- after the step

    def judged(self, effects: list[Any]) -> Iterator[Reason]:
        """What is wrong with the step.

        Args:
            effects: of the step.

        Yields:
            of what, expected, seen.
        """
        if any(type(one) is Halt for one in effects):
            return
        self.now_ms = self.core.broker_context.now // MILLISECOND
        if self._owned() == self.owned:
            yield from self._finished()
            for key, end in self.log_ends.items():
                log = self.core.replicas.partitions[key].log
                if log.log_end_offset > end:
                    yield from self._new_records(key, end)
            yield from self._marked()
            if type(self.input) is TimerFired and self.input.key[0] in (OVERDUE, EXPIRY):
                yield from self._due(self.input.key[0])
        self._remember()

    def _remember(self) -> None:
        pending = self.core.transactions.coordinator.log.pending
        self.steps.appends = {
            number: Append(one.partition, one.base_offset, one.required_offset, one.leader_epoch)
            for number, one in pending.items()
        }

    # ---- appends that end

    def _finished(self) -> Iterator[Reason]:
        """Once a record is durable it is what the coordinator knows; otherwise nothing has changed."""
        pending = self.core.transactions.coordinator.log.pending
        for number, one in self.steps.appends.items():
            partition = self.core.replicas.partitions.get(one.key)
            if number in pending or partition is None or partition.leader_epoch != one.leader_epoch:
                continue
            batch = next(batches_from(partition.log, one.base, one.required), None)
            if batch is None or batch.base != one.base:
                continue
            name = decode_key(batch.records[0].key) or ""
            durable = partition.high_watermark >= one.required and self._in_sync(partition)
            yield from self._counted(name, batch.records[0].value, durable=durable)
            if durable:
                self._goes_on(name, batch.records[0].value)

    def _in_sync(self, partition: Any) -> bool:
        minimum = self.core.broker_context.topic_options(STATE_TOPIC).min_insync_replicas
        return bool(len(partition.isr) >= min(minimum, len(partition.replicas) or 1))

    def _counted(self, name: str, data: bytes | None, *, durable: bool) -> Iterator[Reason]:
        now, before = self._table.transactions.get(name), self.known.get(name)
        if data is None or before is None:
            if durable and before is not None and now is before[0]:
                yield f"transactional id {name}", "forgotten: its end is durable", "known"
            return
        if now is None or now is not before[0]:
            return
        value = decode_value(data)
        if durable and value is not None:
            written = self._is_written_since(name)
            if not written and not self._same(value, now.value):
                yield f"transaction of {name} after its record is durable", value, now.value
        elif not durable and now.value != before[1].value:
            yield f"transaction of {name} whose record is not durable", before[1].value, now.value

    def _is_written_since(self, name: str) -> bool:
        """Whether this step wrote another record of it."""
        key = TopicPartition(STATE_TOPIC, self._number(name))
        log, end = self.core.replicas.partitions[key].log, self.log_ends.get(key, 0)
        later = batches_from(log, end) if log.log_end_offset > end else ()
        return any(decode_key(batch.records[0].key) == name for batch in later)

    def _same(self, one: Any, other: Any) -> bool:
        return bool(self._comparable(one) == self._comparable(other))

    def _comparable(self, value: Any) -> Any:
        if value.phase.value == EMPTY:
            value = evolve(value, partitions=())
        if self._table.options.version >= 2:
            return value
        return evolve(value, previous_producer_id=NONE, next_producer_id=NONE, client_version=0)

    # ---- records

    def _new_records(self, key: TopicPartition, end: int) -> Iterator[Reason]:
        partition = self.core.replicas.partitions[key]
        for batch in batches_from(partition.log, end):
            record = batch.records[0]
            yield from self._written(record)
            if partition.high_watermark > batch.last and self._in_sync(partition):
                self._goes_on(decode_key(record.key) or "", record.value)

    def _goes_on(self, name: str, data: bytes | None) -> None:
        """A later record of this step follows from this one, which is durable."""
        before, value = self.known.get(name), None if data is None else decode_value(data)
        if before is not None and value is not None:
            if self._table.options.version < 2:
                value = evolve(value, **{one: getattr(before[0].value, one) for one in OF_VERSION_1})
            self.known[name] = before[0], evolve(before[1], value=value, pending=False)

    def _written(self, record: Any) -> Iterator[Reason]:
        """A record follows from the state before it."""
        name = decode_key(record.key) or ""
        before = self.known.get(name)
        value = None if record.value is None else decode_value(record.value)
        if value is None:
            if before is not None and record.value is None:
                yield from self._expired(name, before[1])
            return
        known = None if before is None else before[1]
        if known is not None and known.pending and value.phase.value not in COMPLETE.values():
            yield f"record of {name}", "none: another transition is under way", value
            return
        for expected in self._expected(name, known, value):
            if not self._same(expected, value):
                yield f"record of {name} after {None if known is None else known.value}", expected, value

    def _expected(self, name: str, known: Known | None, value: Any) -> Iterator[Any]:
        """What the record must say, as far as it is known."""
        phase = value.phase.value
        if phase == EMPTY:
            yield from self._initialised(name, known, value)
        elif known is None:
            return
        elif phase == ONGOING:
            yield from self._added(name, known, value)
        elif phase in ENDING:
            yield from self._ended(name, known, value)
        else:
            yield self._completed(known, value)

    def _request(self, name: str, *kinds: type) -> Any:
        """The request of this step, if it is one of these kinds about the id."""
        message: Any = self.input.message if type(self.input) is MessageArrived else None
        return message if type(message) in kinds and message.transactional_id == name else None

    def _initialised(self, name: str, known: Known | None, value: Any) -> Iterator[Any]:
        """InitProducerId: an epoch that nobody has, but for a producer that repeats its own request."""
        request = self._request(name, kafka.InitProducerIdRequest)
        named = None if request is None or request.producer_epoch == NONE else request.producer_epoch
        expected = evolve(
            value,
            partitions=(),
            started_ms=NONE,
            updated_ms=self.now_ms,
            next_producer_id=NONE,
            client_version=0,
        )
        if request is not None:
            expected = evolve(expected, timeout_ms=request.transaction_timeout_ms)
        if known is None:
            if named is None:
                expected = evolve(expected, producer_epoch=self._table.options.first_epoch)
            yield evolve(expected, previous_producer_id=value.previous_producer_id)
            return
        before = known.value
        expected = evolve(expected, previous_producer_id=before.producer_id)
        if before.producer_epoch >= LAST_EPOCH and named in (None, before.producer_epoch):
            others = [one.value.producer_id for _, one in self.known.values()]
            fresh = NONE if value.producer_id in others else value.producer_id
            yield evolve(expected, producer_id=fresh, producer_epoch=0)
            return
        again = named is not None and named != before.producer_epoch and before.producer_epoch != NONE
        epoch = before.producer_epoch + (not (again and named == known.last_epoch))
        yield evolve(expected, producer_id=before.producer_id, producer_epoch=epoch)

    def _added(self, name: str, known: Known, value: Any) -> Iterator[Any]:
        """AddPartitionsToTxn and AddOffsetsToTxn: the first one begins the transaction."""
        before = known.value
        request = self._request(name, kafka.AddPartitionsToTxnRequest, kafka.AddOffsetsToTxnRequest)
        partitions = value.partitions
        if type(request) is kafka.AddPartitionsToTxnRequest:
            partitions = tuple(sorted({*before.partitions, *request.partitions}))
        elif request is not None:
            number = place_of(request.group_id, max(1, self.core.groups.table.count))
            added = TopicPartition("__consumer_offsets", number)
            partitions = tuple(sorted({*before.partitions, added}))
        yield evolve(
            before,
            phase=value.phase,
            partitions=partitions,
            previous_producer_id=before.producer_id,
            started_ms=before.started_ms if before.phase.value == ONGOING else self.now_ms,
            updated_ms=self.now_ms,
        )

    def _ended(self, name: str, known: Known, value: Any) -> Iterator[Any]:
        """EndTxn, or a fence: somebody else asks for the id, or the time is up. In the second version the
        epoch goes up with the end; a fence always raises it, unless an earlier one may not be in the log."""
        before = known.value
        request = self._request(name, kafka.EndTxnRequest)
        expected = evolve(
            before,
            phase=value.phase,
            previous_producer_id=before.producer_id,
            next_producer_id=value.next_producer_id,
            started_ms=before.started_ms if before.phase.value == ONGOING else self.now_ms,
            updated_ms=self.now_ms,
            client_version=0,
        )
        fences = request is None and (
            type(self.input) is TimerFired or self._request(name, kafka.InitProducerIdRequest) is not None
        )
        if fences:
            epoch = before.producer_epoch + (not known.fence_failed)
            if value.phase.value != PREPARED[False]:
                return
            yield evolve(expected, producer_epoch=epoch, next_producer_id=NONE)
        elif request is not None:
            second = request.version >= 2
            expected = evolve(
                expected,
                producer_epoch=before.producer_epoch + second,
                client_version=request.version if second else 0,
            )
            yield expected
            if value.phase.value != PREPARED[request.commit]:
                yield evolve(value, phase=type(value.phase)(PREPARED[request.commit]))

    def _completed(self, known: Known, value: Any) -> Any:
        """Every partition has its marker."""
        before = known.value
        rotates = before.client_version >= 2 and before.next_producer_id != NONE
        return evolve(
            before,
            phase=value.phase
            if value.phase.value == COMPLETE[before.phase.value == PREPARED[True]]
            else before.phase,
            producer_id=before.next_producer_id if rotates else before.producer_id,
            producer_epoch=0 if rotates else before.producer_epoch,
            previous_producer_id=before.producer_id,
            next_producer_id=NONE,
            partitions=(),
            updated_ms=value.updated_ms,
        )

    # ---- time

    def _due(self, timer: str) -> Iterator[Reason]:
        """What is overdue is aborted, what nobody used is forgotten."""
        options = self._table.options
        for name, (one, known) in self.before.items():
            value, number = known.value, self._number(name)
            if known.pending or number not in self.owned or self._table.transactions.get(name) is not one:
                continue
            if not self._in_sync(self.core.replicas.partitions[TopicPartition(STATE_TOPIC, number)]):
                continue
            phase, acted = value.phase.value, one.pending is not None or one.value != value
            if timer == OVERDUE:
                due = phase == ONGOING and value.started_ms + value.timeout_ms < self.now_ms
            else:
                idle = phase not in (ONGOING, *ENDING)
                due = idle and value.updated_ms + options.expiration_ms <= self.now_ms
            if due != acted:
                yield f"{timer} of {name} in {phase}", f"it {'ends' if due else 'goes on'}", acted

    def _expired(self, name: str, known: Known) -> Iterator[Reason]:
        idle = known.value.phase.value not in (ONGOING, *ENDING)
        if not idle or known.pending:
            yield f"end of transactional id {name}", "none: it is in use", known.value.phase.value

    # ---- markers

    def _marked(self) -> Iterator[Reason]:
        """What is left to be marked becomes less by acknowledged markers only."""
        acknowledged: set[TopicPartition] = set()
        if type(self.input) is MessageArrived and type(self.input.message) is kafka.WriteTxnMarkersResponse:
            errors = dict(self.input.message.errors)
            if any(error in FOR_GOOD for error in errors.values()):
                return
            acknowledged = {key for key, error in errors.items() if error is ErrorCode.NONE}
        now = self._ends()
        for name, end in now.items():
            known = self.ends.get(name)
            partitions = set(end.ending.transaction.value.partitions)
            new = known is None or known.ending is not end.ending
            if new and not end.ending.unknown and end.left != partitions:
                yield f"partitions of {name} that get a marker", sorted(partitions), sorted(end.left)
        for name, before in self.ends.items():
            later = now.get(name)
            left = later.left if later is not None and later.ending is before.ending else frozenset()
            lost = before.left - left - acknowledged - set(before.ending.unknown)
            if lost:
                yield f"partitions of {name} without a marker", sorted(before.left), sorted(left)
