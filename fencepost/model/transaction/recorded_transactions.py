"""Recorded runs of transactions, compared with the model: each event of a coordinator, and each marker, is a
step that the model allows. That each partition has its marker before a transaction is complete is a row of
liveness, which knows the topics that are gone.

Owns which event is which action, and one abstraction per transactional id and per partition. Must not know
verdicts, or which system recorded the events. Here ids and epochs are real and unbounded.

The real run is more concurrent than the model, so the guards accept each behaviour of a correct Kafka:

- A record of __transaction_state may be durable although its coordinator never learned it. So what the next
  coordinator loads is the last recorded state, or one that may follow it.
- InitProducerId may give out another producer id: the epochs are used up, or the id had expired.
- A marker may be written again. What a leader refuses is compared within one leader epoch of its partition,
  because the next leader's log may end earlier.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

import msgspec
from attrs import define, field, frozen

from fencepost.model.refinement.refinement_state import Mismatch
from fencepost.model.transaction.transaction_state import (
    BETWEEN,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ENDING,
    ONGOING,
    PHASES,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import plain

ACTIONS: Mapping[Name, tuple[str, ...]] = {
    Name.TRANSACTION_PHASE: ("replicate", "load"),
    Name.MARKER_WRITTEN: ("mark", "deliver"),
}
"""The possible actions of the model (transaction_system.py) for each event. Every other one is a stutter."""

LOADED = "loaded"


class PhaseDetail(msgspec.Struct, frozen=True):
    """The detail of a transaction_phase event."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: list[str]
    why: str = ""


class MarkerDetail(msgspec.Struct, frozen=True):
    """The detail of a marker_written event."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool


@frozen(kw_only=True)
class RecordedValue:
    """A record of __transaction_state, as an event tells it."""

    # Index into PHASES; -1 is Dead.
    phase: int
    producer_id: int
    producer_epoch: int
    partitions: frozenset[str]
    # The coordinator epoch of the event.
    coordinator_epoch: int
    # The position of the event.
    position: int

    @property
    def producer(self) -> tuple[int, int]:
        """The producer id and its epoch."""
        return self.producer_id, self.producer_epoch

    def same_as(self, other: "RecordedValue") -> bool:
        """Whether both are the same record."""
        mine, its = ((one.phase, one.producer, one.partitions) for one in (self, other))
        return mine == its

    @property
    def words(self) -> str:
        """The record in words."""
        return (
            f"{PHASES[self.phase]} of producer {self.producer_id} in epoch {self.producer_epoch} with "
            f"{sorted(self.partitions)}"
        )


def follows(before: RecordedValue, after: RecordedValue) -> bool:
    """Whether the model's coordinator may write one record after the other (transaction_rules.py, without
    bounds).

    Args:
        before: the record.
        after: the next one.

    Returns:
        whether it may.
    """
    epoch = after.producer_epoch - before.producer_epoch
    same = after.producer_id == before.producer_id
    if after.phase == EMPTY:
        renewed = epoch in (0, 1) if same else after.producer_epoch == 0
        return before.phase in BETWEEN and renewed and not after.partitions
    if after.phase == ONGOING:
        grows = before.partitions <= after.partitions if before.phase == ONGOING else bool(after.partitions)
        return before.phase in {ONGOING, *BETWEEN} and after.producer == before.producer and grows
    if after.phase == PREPARE_ABORT and before.phase in BETWEEN:
        return same and epoch == 1 and not after.partitions  # KIP-890: there was nothing to abort
    if after.phase in ENDING:
        return before.phase == ONGOING and same and epoch in (0, 1) and after.partitions == before.partitions
    prepared = {COMPLETE_COMMIT: PREPARE_COMMIT, COMPLETE_ABORT: PREPARE_ABORT}[after.phase]
    rotated = not same and after.producer_epoch == 0
    return before.phase == prepared and not after.partitions and (rotated or (same and epoch == 0))


@define
class MarkersSeen:
    """Of one partition and producer id: the last marker."""

    # Of the partition.
    leader_epoch: int
    producer_epoch: int
    coordinator_epoch: int
    position: int

    def is_after(self, detail: MarkerDetail) -> bool:
        """check_marker (KAFKA-5231), coordinator_fencing (T16): whether a leader with this marker refuses
        that one."""
        older = detail.producer_epoch < self.producer_epoch
        return older or detail.coordinator_epoch < self.coordinator_epoch


@define
class TransactionRefinement:
    """Replays one trace's events."""

    # The last record of each transactional id, as recorded.
    values: dict[str, RecordedValue] = field(factory=dict)
    # (producer id, epoch, commit) -> coordinator epoch -> the end that it knew to be decided.
    decisions: dict[tuple[int, int, bool], dict[int, RecordedValue]] = field(
        factory=lambda: defaultdict(dict)
    )
    # The last marker of each (partition, producer id).
    last: dict[tuple[str, int], MarkersSeen] = field(factory=dict)
    # Explained events by action.
    steps: dict[str, int] = field(factory=lambda: defaultdict(int))

    def step(self, position: int, event: Event) -> Mismatch | None:
        """Process the event at `position` of the trace; returns the mismatch if no action explains it."""
        take = TOLD_OF_TRANSACTIONS.get(event.name)
        return None if take is None else take(self, position, event)

    def _phase(self, position: int, event: Event) -> Mismatch | None:
        detail = msgspec.json.decode(event.detail, type=PhaseDetail)
        if event.cause not in PHASES:
            self.values.pop(detail.transactional_id, None)
            return None
        value = RecordedValue(
            phase=PHASES.index(event.cause),
            producer_id=detail.producer_id,
            producer_epoch=detail.producer_epoch,
            partitions=frozenset(detail.partitions),
            coordinator_epoch=event.leader_epoch,
            position=position,
        )
        if value.phase in ENDING:
            key = (*value.producer, value.phase == PREPARE_COMMIT)
            self.decisions[key][value.coordinator_epoch] = value
        loads = detail.why == LOADED
        before = self.values.get(detail.transactional_id)
        if before is not None and value.coordinator_epoch < before.coordinator_epoch:
            return None  # a coordinator that was deposed, and learns late what is durable
        mismatch = self._unexplained(before, value, loads=loads)
        self.values[detail.transactional_id] = value
        if mismatch is None:
            self.steps["load" if loads else "replicate"] += 1
        return mismatch

    def _unexplained(
        self, before: RecordedValue | None, value: RecordedValue, *, loads: bool
    ) -> Mismatch | None:
        action = "load" if loads else "replicate"
        if before is None:
            return None
        if loads and value.same_as(before):
            return None
        expired = value.phase == EMPTY and value.producer_epoch == 0 and not loads
        if not follows(before, value) and not expired:
            return Mismatch(
                position=value.position,
                action=action,
                expected=f"{'that, or ' if loads else ''}what may follow {before.words}",
                seen=value.words,
                because=before.position,
            )
        return None

    def _marker(self, position: int, event: Event) -> Mismatch | None:
        detail = msgspec.json.decode(event.detail, type=MarkerDetail)
        partition = f"{plain(event.topic or '')}-{event.partition}"
        key = detail.producer_id, detail.producer_epoch, detail.commit
        place = partition, detail.producer_id
        earlier = self.last.get(place)
        self.last[place] = MarkersSeen(
            event.leader_epoch, detail.producer_epoch, detail.coordinator_epoch, position
        )
        decided = self.decisions.get(key, {}).get(detail.coordinator_epoch)
        word = "commit" if detail.commit else "abort"
        if decided is None or partition not in decided.partitions:
            return Mismatch(
                position=position,
                action="mark",
                expected=f"a decision of coordinator epoch {detail.coordinator_epoch} to {word} in "
                f"{partition} in epoch {detail.producer_epoch} of producer {detail.producer_id}",
                seen="none" if decided is None else f"one for {sorted(decided.partitions)}",
                because=-1 if decided is None else decided.position,
                offset=event.offset,
            )
        if earlier is not None and earlier.leader_epoch == event.leader_epoch and earlier.is_after(detail):
            return Mismatch(
                position=position,
                action="mark",
                expected=f"producer epoch {earlier.producer_epoch} and coordinator epoch "
                f"{earlier.coordinator_epoch} or later",
                seen=f"{detail.producer_epoch} and {detail.coordinator_epoch}",
                because=earlier.position,
                offset=event.offset,
            )
        self.steps["mark"] += 1
        return None


TOLD_OF_TRANSACTIONS: Mapping[Name, Callable[[TransactionRefinement, int, Event], Mismatch | None]] = {
    Name.TRANSACTION_PHASE: TransactionRefinement._phase,
    Name.MARKER_WRITTEN: TransactionRefinement._marker,
}


def unexplained(events: tuple[Event, ...]) -> tuple[Mismatch, ...]:
    """The events of a trace that no action of the transaction model explains, in order."""
    refinement = TransactionRefinement()
    found = (refinement.step(position, event) for position, event in enumerate(events))
    return tuple(mismatch for mismatch in found if mismatch is not None)
