"""What the workloads of transactions have in common: they can have run one after another.

Owns the verdict once reads and writes are known, the order of time, and how a circle is said. Must not know
how an order is found (serial_order.py), or what a transaction reads and writes.

Asked is that the transactions can have run one after another. In which order is free, unless `sessions` or
`realtime` say that the order of each process, or of time, has to be kept.
"""

from abc import ABC
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, evolve, field

from fencepost.checkers.models.base import shown
from fencepost.checkers.models.workloads.base import Workload, ended, happened
from fencepost.checkers.models.workloads.serial_order import (
    BEGINNING,
    OVERWROTE,
    READ,
    STEPS,
    WROTE_EARLIER,
    SerialOrder,
)
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace

ORDER = "an order of whole transactions in which each reads what was written last"


@define
class Serializable(Workload, ABC):
    """Transactions."""

    # Whether the order of time, or of each process, has to be kept.
    realtime: bool = False
    sessions: bool = False
    _order: SerialOrder | None = field(default=None, init=False)

    def judge(self, trace: Trace) -> Verdict:
        """As every workload; unknown where the search for an order is given up."""
        self._order = None
        verdict = super().judge(trace)
        found = self._found() if verdict.decision is Decision.OK else True
        if found:
            return verdict
        if found is None:
            reason = f"no circle is known, and none of the first {STEPS:,} tries found an order"
            return evolve(verdict, decision=Decision.UNKNOWN, reason=reason)
        finding = self.found("not_serializable", ORDER, "every order was tried", *trace.operations)
        return evolve(verdict, decision=Decision.ILLEGAL, findings=(finding,))

    def _found(self) -> bool | None:
        """Whether there is an order; None if it was not found out."""
        return self._order is None or self._order.found()

    def ordered(
        self,
        operations: list[Operation],
        read: dict[tuple[int, Any], int],
        writers: dict[Any, list[int]],
        uncertain: int,
        known: Sequence[tuple[int, int]] = (),
    ) -> Iterator[Finding]:
        """A circle, if one is known; otherwise `judge` searches an order.

        Args:
            operations: of the transactions 1, 2, ...
            read: the writer of what each of them read of a key.
            writers: of each key.
            uncertain: nanoseconds by which clocks may differ.
            known: transactions of which the first is known to be before the second.
        """
        time, nodes = self._time(operations, uncertain)
        order = SerialOrder(len(operations) + 1, read, writers, [*time, *known], nodes)
        circle = order.circle()
        if circle:
            yield self._circle(operations, circle)
        else:
            self._order = order

    def _time(self, operations: list[Operation], uncertain: int) -> tuple[list[tuple[int, int]], int]:
        """Who ended before whom began, of all or of each process, through moments; and the number after the
        last moment."""
        pairs, moment = [], len(operations) + 1
        groups: dict[Any, list[tuple[int, bool, int]]] = {}
        if self.realtime or self.sessions:
            for number, one in enumerate(operations, 1):
                group = groups.setdefault(None if self.realtime else one.process, [])
                group.append((one.invoke_time, False, number))
                if happened(one):  # at equal times beginnings come first: equal times are concurrent
                    group.append((ended(one) + 2 * uncertain, True, number))
        for group in groups.values():
            last = None
            for _, is_end, number in sorted(group):
                if is_end:
                    pairs.append((number, moment))
                    if last is not None:
                        pairs.append((last, moment))
                    last, moment = moment, moment + 1
                elif last is not None:
                    pairs.append((last, number))
        return pairs, moment

    def _circle(self, operations: list[Operation], circle: list[tuple[int, int, tuple[str, Any]]]) -> Finding:
        words = []
        for one, other, (kind, key) in circle:
            first, then = (
                "the beginning" if node == BEGINNING else f"operation {operations[node - 1].op_id}"
                for node in (one, other)
            )
            in_key = f"key {shown(key)}"
            words.append(
                {
                    READ: f"{then} read what {first} wrote to {in_key}",
                    OVERWROTE: f"{then} wrote over what {first} read in {in_key}",
                    WROTE_EARLIER: f"{first} wrote {in_key} before {then} did",
                }.get(kind, f"{first} ended before {then} began")
            )
        proof = [operations[one - 1] for one, _, _ in circle if one != BEGINNING]
        return self.found("not_serializable", ORDER, "; ".join(words), *proof)
