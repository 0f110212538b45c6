"""A set that only grows and is read at the end; and ids of which none is given twice."""

from collections.abc import Iterator
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import shown
from fencepost.checkers.models.workloads.base import (
    MOST,
    Workload,
    answer,
    argument,
    elements,
    ended,
    happened,
    may_have_happened,
    wrong_value,
)
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace


@define
class FinalSet(Workload):
    """Jepsen's set."""

    name: ClassVar[str] = "final-set"
    says: ClassVar[str] = (
        "the last read has all that was acknowledged before it, and no read has what nobody added"
    )
    functions: ClassVar[dict[str, str]] = {
        "add": "adds one element",
        "read": "returns all elements as a list",
    }

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Elements that are lost or from nowhere."""
        added: dict[Any, list[Operation]] = {}
        for operation in trace.operations:
            if operation.function == "add":
                added.setdefault(argument(operation), []).append(operation)
        reads = [one for one in trace.operations if one.function == "read" and happened(one)]
        if not reads:
            return
        last = max(reads, key=lambda one: one.invoke_time)
        there = set(_list(last))
        lost = [
            one
            for element, operations in added.items()
            if element not in there
            for one in operations
            if happened(one) and ended(one) < last.invoke_time
        ]
        for one in lost[:MOST]:
            more = f"; {len(lost) - 1} more are lost" if len(lost) > 1 else ""
            element = shown(argument(one))
            yield self.found(
                "element_lost",
                f"{element}, which was acknowledged, in the last read",
                f"it is not there{more}",
                one,
                last,
            )
        yield from self._strange(added, reads)

    def _strange(self, added: dict[Any, list[Operation]], reads: list[Operation]) -> Iterator[Finding]:
        seen: set[Any] = set()
        for read in reads:
            for element in _list(read):
                attempts = [one for one in added.get(element, ()) if may_have_happened(one)]
                if element in seen or any(one.invoke_time <= ended(read) for one in attempts):
                    continue
                seen.add(element)
                if len(seen) <= MOST:
                    yield self.found(
                        "element_from_nowhere",
                        "only elements that may have been added by then",
                        f"{shown(element)} is in a read",
                        read,
                        *added.get(element, ())[:1],
                    )


def _list(read: Operation) -> tuple[Any, ...]:
    found = elements(read)
    if found is None:
        raise wrong_value(read, "a list of elements", answer(read))
    return found


@define
class UniqueIds(Workload):
    """Ids that a system generates."""

    name: ClassVar[str] = "unique-ids"
    says: ClassVar[str] = "no id is given out twice"
    functions: ClassVar[dict[str, str]] = {
        "generate": "returns a new id",
        "generate_id": "the same",
        "next_id": "the same",
    }

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Ids that were given out twice."""
        given: dict[Any, Operation] = {}
        count = 0
        for operation in trace.operations:
            if not happened(operation):
                continue
            value = answer(operation)
            if value is None:
                raise wrong_value(operation, "an id", value)
            if value in given and count < MOST:
                count += 1
                seen = f"{shown(value)} was given out twice"
                yield self.found("id_repeated", "each id once", seen, given[value], operation)
            given.setdefault(value, operation)
