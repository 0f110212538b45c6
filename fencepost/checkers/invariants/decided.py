"""TXN-ATOM: what a transaction's coordinator has said of it, the next coordinator knows.

Owns transaction_forgotten. A coordinator says where a transaction is when its log's replicas have that, so
that whoever leads the log next loads the same, or what came later. Where the claims allow loss in that log,
nothing is judged.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec
from attrs import define, field, frozen

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.model.transaction.recorded_transactions import LOADED, PhaseDetail
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import LossRange

ONGOING = "Ongoing"
PREPARED = ("PrepareCommit", "PrepareAbort")
COMPLETE = ("CompleteCommit", "CompleteAbort")


@frozen
class Said:
    """What a coordinator said of a transactional id."""

    phase: str
    detail: PhaseDetail
    # The coordinator's epoch.
    epoch: int
    # Of the event.
    position: int

    def is_before(self, other: "Said") -> bool:
        """Whether this is of a time before the other, whatever the client asks for in between: from one
        transaction to the next the epoch may stay, so that an end may be of the earlier one."""
        mine, its = self.detail, other.detail
        if mine.producer_id != its.producer_id:
            return False
        if mine.producer_epoch != its.producer_epoch:
            return mine.producer_epoch < its.producer_epoch
        if other.phase == ONGOING:
            fewer = self.phase == ONGOING and not {*its.partitions} <= {*mine.partitions}
            return fewer or self.phase in ("Empty", *COMPLETE)
        if other.phase in PREPARED:
            return self.phase == ONGOING
        return other.phase in COMPLETE and self.phase in PREPARED

    @property
    def words(self) -> str:
        """What was said."""
        its = self.detail
        places = ", ".join(sorted(its.partitions)) or "no partition"
        return f"{self.phase} of producer {its.producer_id} in epoch {its.producer_epoch} with {places}"


@define
class Decided:
    """The state of the rule."""

    findings: Findings
    # The loss that the claims allow.
    allowed: Collection[LossRange]
    # The last that was said of each transactional id.
    said: dict[str, Said] = field(factory=dict)
    # The newest epoch of each partition of the coordinators' log.
    epochs: dict[Key, int] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What coordinators say."""
        return {Name.TRANSACTION_PHASE: self._phase}

    def _phase(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        if event.leader_epoch < self.epochs.setdefault(key, event.leader_epoch):
            return  # one that was deposed, and learns late what is durable
        self.epochs[key] = event.leader_epoch
        try:
            detail = from_json(event.detail, PhaseDetail)
        except msgspec.DecodeError:
            return  # a trace may come from any tool
        now = Said(event.cause, detail, event.leader_epoch, position)
        before, self.said[detail.transactional_id] = self.said.get(detail.transactional_id), now
        if before is None or before.epoch == now.epoch or detail.why != LOADED or not now.is_before(before):
            return
        if any((loss.topic, loss.partition) == key for loss in self.allowed):
            return
        self.findings.add(
            "transaction_forgotten",
            expected=f"{before.words}, or what follows, when broker {event.node} loads "
            f"{detail.transactional_id} in epoch {now.epoch}, as its coordinator had said so in epoch "
            f"{before.epoch}",
            seen=now.words,
            topic=event.topic,
            partition=event.partition,
            events=(before.position, position),
        )
