"""List-append: transactions that append to lists and read them whole, as Elle's workload of this name.

Owns: what each read says of the order of appends, and whom a transaction read from. Must not know how an
order of transactions is found (serial_order.py).

A list names every append before the last one that it shows, so that the versions of a list and their order
are known from the reads (Kingsbury and Alvaro, "Elle", VLDB 2020). Each list with the same last element is
the same version; a read is then one of a register that holds the last element, and the transactions of
elements next to each other have an order.
"""

from collections.abc import Iterator
from itertools import groupby, islice, pairwise
from typing import Any, ClassVar

from attrs import define, field

from fencepost.checkers.models.base import shown
from fencepost.checkers.models.workloads.base import MOST, happened, may_have_happened, wrong_value
from fencepost.checkers.models.workloads.serial_order import BEGINNING
from fencepost.checkers.models.workloads.serializable import Serializable
from fencepost.checkers.verdict import Finding
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Trace

Values = tuple[int, ...]


@define(eq=False)
class _Transaction:
    operation: Operation
    # What it did: key, and the values of a read, or the value of an append.
    steps: list[tuple[Any, Values | int]] = field(factory=list)

    def appends(self, key: Any) -> list[int]:
        """What it appends to a list, in order."""
        return [value for one, value in self.steps if one == key and isinstance(value, int)]

    def read_from_others(self) -> Iterator[tuple[Any, Values]]:
        """What its first read of each list shows of others: all before its own appends."""
        own: dict[Any, int] = {}
        read: set[Any] = set()
        for key, value in self.steps:
            if isinstance(value, int):
                own[key] = own.get(key, 0) + 1
            elif key not in read:
                read.add(key)
                yield key, value[: len(value) - own.get(key, 0)]


@define
class ListAppend(Serializable):
    """Elle's list-append."""

    name: ClassVar[str] = "list-append"
    says: ClassVar[str] = "transactions can have run one after another; a read shows a whole list"
    functions: ClassVar[dict[str, str]] = {
        "txn": "a transaction; what it did follows",
        "append": "adds a value at the end of a list, once in a history",
        "poll": "all values of a list",
    }

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Reads that no order explains; if there are none, a circle."""
        transactions = list(_transactions(trace))
        writers = self._writers(transactions)
        found = [*islice(self._alone(transactions, writers), MOST)]
        yield from found
        if found:
            return
        longest: dict[Any, tuple[Values, Operation]] = {}
        for one in transactions:
            for key, values in one.steps:
                if isinstance(values, tuple) and happened(one.operation):
                    self._keep_longest(longest, key, values, one.operation)
        yield from (found := [*islice(self._forks(transactions, longest), MOST)])
        if not found:
            yield from self._in_order(transactions, writers, longest, trace.claims.clock_uncertainty_ns)

    def _keep_longest(
        self, longest: dict[Any, tuple[Values, Operation]], key: Any, values: Values, operation: Operation
    ) -> None:
        if key not in longest or len(values) > len(longest[key][0]):
            longest[key] = values, operation

    def _writers(self, transactions: list[_Transaction]) -> dict[tuple[Any, int], _Transaction]:
        """Who appends each value. Raises TraceError for one that two appends may have written."""
        found: dict[tuple[Any, int], _Transaction] = {}
        for one in transactions:
            for key, value in one.steps:
                if not isinstance(value, int):
                    continue
                if (key, value) in found:
                    other = found[key, value].operation.op_id
                    where = f"list {shown(key)}: by operation {other}"
                    expected = f"each value of a list to be appended once ({where})"
                    raise wrong_value(one.operation, expected, value)
                found[key, value] = one
        return found

    def _alone(
        self, transactions: list[_Transaction], writers: dict[tuple[Any, int], _Transaction]
    ) -> Iterator[Finding]:
        """Reads that are wrong whatever the order is."""
        for one in transactions:
            # Of each list, what the transaction knows of it: all of it once it was read, before that the end.
            read: set[Any] = set()
            known: dict[Any, Values] = {}
            for key, value in one.steps if happened(one.operation) else ():
                mine = known.get(key, ())
                if isinstance(value, int):
                    known[key] = (*mine, value)
                    continue
                others = value[: len(value) - len(mine)]
                if (*others, *mine) != value or (key in read and others):
                    where = f"{'in' if key in read else 'at the end of'} list {shown(key)}"
                    seen = f"operation {one.operation.op_id} read {shown(list(value))}"
                    yield self.found("own_write_missed", f"{shown(list(mine))} {where}", seen, one.operation)
                elif key not in read:
                    yield from self._from_others(one, key, others, writers)
                read.add(key)
                known[key] = value

    def _from_others(
        self, one: _Transaction, key: Any, values: Values, writers: dict[tuple[Any, int], _Transaction]
    ) -> Iterator[Finding]:
        seen = f"operation {one.operation.op_id} read {shown(list(values))} from list {shown(key)}"
        if len(set(values)) < len(values):
            yield self.found("element_repeated", "each value once", seen, one.operation)
            return
        for value in values:
            writer = writers.get((key, value))
            if writer is None:
                expected = "only values that somebody appended"
                yield self.found("element_from_nowhere", expected, f"{seen}, with {value}", one.operation)
            elif not may_have_happened(writer.operation):
                seen += f"; operation {writer.operation.op_id} appended {value}, and it failed"
                expected = "no value of a failed transaction"
                yield self.found("failed_write_read", expected, seen, one.operation, writer.operation)
            else:
                continue
            return
        last = writers[key, values[-1]] if values else one
        if last is not one and last.appends(key)[-1] != values[-1]:
            seen += f"; operation {last.operation.op_id} appended more to it after {values[-1]}"
            expected = "what a transaction leaves"
            yield self.found("intermediate_read", expected, seen, one.operation, last.operation)

    def _forks(
        self, transactions: list[_Transaction], longest: dict[Any, tuple[Values, Operation]]
    ) -> Iterator[Finding]:
        """Two reads of a list of which neither is the beginning of the other."""
        for one in transactions:
            for key, values in one.steps if happened(one.operation) else ():
                if isinstance(values, int) or key not in longest:
                    continue
                whole, other = longest[key]
                if whole[: len(values)] != values:
                    seen = (
                        f"operation {one.operation.op_id} read {shown(list(values))} from list {shown(key)}"
                    )
                    seen += f", operation {other.op_id} {shown(list(whole))}"
                    expected = "of two reads of a list one to be the beginning of the other"
                    yield self.found("not_serializable", expected, seen, one.operation, other)

    def _in_order(
        self,
        transactions: list[_Transaction],
        writers: dict[tuple[Any, int], _Transaction],
        longest: dict[Any, tuple[Values, Operation]],
        uncertain: int,
    ) -> Iterator[Finding]:
        seen = {id(writers[key, value]) for key, (values, _) in longest.items() for value in values}
        chosen = [one for one in transactions if happened(one.operation) or id(one) in seen]
        chosen.sort(key=lambda one: (one.operation.invoke_time, one.operation.op_id))
        numbers = {id(one): number for number, one in enumerate(chosen, 1)}
        read: dict[tuple[int, Any], int] = {}
        wrote: dict[Any, list[int]] = {}
        for one in chosen:
            mine = numbers[id(one)]
            for key in {key for key, value in one.steps if isinstance(value, int)}:
                wrote.setdefault(key, []).append(mine)
            for key, others in one.read_from_others() if happened(one.operation) else ():
                last = writers[key, others[-1]] if others else None
                read[mine, key] = BEGINNING if last is None else numbers[id(last)]
        known: list[tuple[int, int]] = []
        for key, (values, operation) in longest.items():
            order = [one for one, _ in groupby((writers[key, value] for value in values), key=id)]
            authors = [numbers[one] for one in order]
            if not self._whole(key, values, operation, writers):
                expected = "the appends of a transaction to a list to be next to each other, in its order"
                says = f"operation {operation.op_id} read {shown(list(values))} from list {shown(key)}"
                yield self.found("not_serializable", expected, says, operation)
                return
            known += pairwise(authors)
            # an append that the longest list does not show comes after everybody who read that
            unseen = set(wrote.get(key, ())) - set(authors)
            readers = {
                numbers[id(one)] for one in chosen if (key, values) in one.steps and happened(one.operation)
            }
            known += [(one, other) for one in sorted(readers) for other in sorted(unseen) if one != other]
        yield from self.ordered([one.operation for one in chosen], read, wrote, uncertain, known)

    def _whole(
        self, key: Any, values: Values, operation: Operation, writers: dict[tuple[Any, int], _Transaction]
    ) -> bool:
        """Whether a list has the appends of each transaction together and in its order. A transaction may
        show a list to itself before its last append."""
        authors = {id(one): one for one in (writers[key, value] for value in values)}
        whole = [value for one in authors.values() for value in one.appends(key)]
        own = values and writers[key, values[-1]].operation is operation
        return whole[: len(values)] == list(values) and (len(whole) == len(values) or bool(own))


def _transactions(trace: Trace) -> Iterator[_Transaction]:
    """The transactions of a history, with what each did: its rows follow it. Raises TraceError for rows that
    belong to none."""
    present: _Transaction | None = None
    for operation in sorted(trace.operations, key=lambda one: one.op_id):
        if operation.function is Function.TXN:
            if present is not None:
                yield present
            present = _Transaction(operation)
        elif present is None:
            raise TraceError(
                expected="appends and reads of a transaction", seen="none before it",
                where=f"operation {operation.op_id}",
            )  # fmt: skip
        else:
            key = f"{operation.topic or ''}-{operation.partition}"
            values = tuple(record.value for record in operation.records)
            appends = operation.function is Function.APPEND
            present.steps += [(key, value) for value in values] if appends else [(key, values)]
    if present is not None:
        yield present
