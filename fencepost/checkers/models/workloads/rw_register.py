"""Rw-register: transactions of reads and writes of registers, each of which is written its values once.

Owns: what a transaction read from others and left behind. Must not know how an order is found
(serial_order.py).
"""

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import Any, ClassVar, Final

from attrs import define, frozen

from fencepost.checkers.models.base import frozen_value, shown
from fencepost.checkers.models.workloads.base import (
    MOST,
    answer,
    argument,
    happened,
    may_have_happened,
    wrong_value,
)
from fencepost.checkers.models.workloads.forks import steps_of
from fencepost.checkers.models.workloads.serial_order import BEGINNING
from fencepost.checkers.models.workloads.serializable import Serializable
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace


class _Unset(Enum):
    UNSET = "unset"


UNSET: Final = _Unset.UNSET
Place = tuple[Any, Any]
"""Key and value."""


@frozen(eq=False)
class Transaction:
    """One that happened."""

    operation: Operation
    # What it read by key before it wrote that key itself.
    reads: dict[Any, Any]
    # What it left in each key.
    left: dict[Any, Any]


@define
class RwRegister(Serializable):
    """Elle's rw-register: transactions of reads and writes."""

    name: ClassVar[str] = "rw-register"
    says: ClassVar[str] = "transactions can have run one after another; each value of a key is written once"
    functions: ClassVar[dict[str, str]] = {"txn": "a transaction: [[f key value] ...], with f w or r"}

    # What each register holds at first; without it, null, and another value from nowhere is no finding.
    initial: Any = UNSET

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Reads that no order explains; if there are none, a circle."""
        writes = self._writes(trace)
        found = [*islice(self._alone(trace, writes), MOST)]
        yield from found
        if found:
            return
        chosen = self._chosen(trace, writes)
        numbers = {one.operation.op_id: number for number, one in enumerate(chosen, 1)}
        read, writers = {}, dict[Any, list[int]]()
        for one in chosen:
            mine = numbers[one.operation.op_id]
            for key, value in one.reads.items():
                writer = writes.get((key, value))
                read[mine, key] = BEGINNING if writer is None else numbers[writer[0].op_id]
            for key in one.left:
                writers.setdefault(key, []).append(mine)
        operations = [one.operation for one in chosen]
        yield from self.ordered(operations, read, writers, trace.claims.clock_uncertainty_ns)

    def _writes(self, trace: Trace) -> dict[Place, tuple[Operation, bool]]:
        """Who wrote each value, and whether the transaction left it there. Raises TraceError for a value that
        two writes may have written: a read of it would not say whose it is."""
        found: dict[Place, tuple[Operation, bool]] = {}
        for operation in trace.operations:
            asked = steps_of(operation, argument(operation) or answer(operation))
            told = steps_of(operation, answer(operation)) if happened(operation) else asked
            if [(kind, key, value if kind == "w" else None) for kind, key, value in told] != [
                (kind, key, value if kind == "w" else None) for kind, key, value in asked
            ]:
                raise wrong_value(operation, "an answer with the reads and writes of the invocation", told)
            last = {key: at for at, (kind, key, _) in enumerate(asked) if kind == "w"}
            for at, (kind, key, value) in enumerate(asked):
                if kind != "w":
                    continue
                if (key, value) in found or value == self._at_first():
                    other = found.get((key, value))
                    who = f"operation {other[0].op_id}" if other else "nobody: a key holds it at first"
                    expected = f"each value of a key to be written once (key {shown(key)}: by {who})"
                    raise wrong_value(operation, expected, value)
                found[key, value] = operation, last[key] == at
        return found

    def _at_first(self) -> Any:
        return None if self.initial is UNSET else frozen_value(self.initial)

    def _alone(self, trace: Trace, writes: dict[Place, tuple[Operation, bool]]) -> Iterator[Finding]:
        """Reads that are wrong whatever the order is. Raises TraceError for a value that nobody wrote."""
        for operation in trace.operations:
            known: dict[Any, Any] = {}
            for kind, key, value in steps_of(operation, answer(operation)) if happened(operation) else ():
                if kind == "r" and key in known and known[key] != value:
                    expected = f"{shown(known[key])} again in key {shown(key)}"
                    seen = f"operation {operation.op_id} read {shown(value)}"
                    yield self.found("own_write_missed", expected, seen, operation)
                elif kind == "r" and key not in known and value != self._at_first():
                    yield from self._from_another(operation, key, value, writes.get((key, value)))
                known[key] = value

    def _from_another(
        self, operation: Operation, key: Any, value: Any, writer: tuple[Operation, bool] | None
    ) -> Iterator[Finding]:
        seen = f"operation {operation.op_id} read {shown(value)} from key {shown(key)}"
        if writer is None:
            if self.initial is UNSET:
                expected = f"a value that a transaction writes to key {shown(key)}, or --parameter initial="
                raise wrong_value(operation, expected, value)
            yield self.found("element_from_nowhere", "a value that somebody wrote", seen, operation)
        elif writer[0] is operation:
            yield self.found("own_write_missed", "no value that it writes later", seen, operation)
        elif not may_have_happened(writer[0]):
            seen += f", which operation {writer[0].op_id} wrote, and it failed"
            expected = "no value of a failed transaction"
            yield self.found("failed_write_read", expected, seen, operation, writer[0])
        elif not writer[1]:
            seen += f", which operation {writer[0].op_id} then wrote over"
            yield self.found("intermediate_read", "what a transaction leaves", seen, operation, writer[0])

    def _chosen(self, trace: Trace, writes: dict[Place, tuple[Operation, bool]]) -> list[Transaction]:
        """The transactions that happened: by their answer, or because somebody read what they wrote. A
        further one would explain nothing."""
        read: set[int] = set()
        found = []
        for operation in trace.operations:
            if not happened(operation):
                continue
            reads: dict[Any, Any] = {}
            left: dict[Any, Any] = {}
            for kind, key, value in steps_of(operation, answer(operation)):
                if kind == "w":
                    left[key] = value
                elif key not in left:
                    reads[key] = value
                    if (key, value) in writes:
                        read.add(writes[key, value][0].op_id)
            found.append(Transaction(operation, reads, left))
        for operation in trace.operations:
            if operation.op_id in read and not happened(operation):
                steps = steps_of(operation, argument(operation))
                found.append(
                    Transaction(operation, {}, {key: value for kind, key, value in steps if kind == "w"})
                )
        return sorted(found, key=lambda one: (one.operation.invoke_time, one.operation.op_id))
