"""TXN-STEP: each state of a transaction, and each marker of one in a log, is a step of the transaction model.

Owns unexplained_transaction. model/transaction/recorded.py has the rules: a marker belongs to a decision that
its coordinator had made or loaded, for that partition, with the same producer epoch and end; in one leader
epoch of a log no marker of an earlier coordinator, or of an earlier epoch of the producer, follows a later one;
a transaction is complete only after each of its partitions has its marker. What a trace's events do not say in
the form of these rules says nothing.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import Factory, define

from fencepost.checkers.invariants.findings import Findings
from fencepost.model.transaction.recorded import TransactionRefinement
from fencepost.traces.events import Event, Name


@define
class TransactionSteps:
    """The state of the invariant. refinement: what was recorded so far."""

    findings: Findings
    refinement: TransactionRefinement = Factory(TransactionRefinement)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Durable states of transactions, and markers."""
        return dict.fromkeys((Name.TRANSACTION_PHASE, Name.MARKER_WRITTEN), self._step)

    def _step(self, position: int, event: Event) -> None:
        try:
            mismatch = self.refinement.step(position, event)
        except msgspec.DecodeError:  # a trace may come from any tool
            return
        if mismatch is not None:
            earlier = (mismatch.because,) if mismatch.because >= 0 else ()
            self.findings.add(
                "unexplained_transaction",
                expected=mismatch.expected,
                seen=f"{mismatch.action}: {mismatch.seen}",
                topic=event.topic,
                partition=event.partition,
                offset=mismatch.offset,
                events=(*earlier, position),
            )
