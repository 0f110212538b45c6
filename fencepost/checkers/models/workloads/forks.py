"""Long fork: two writes that two readers see in opposite orders.

Each key is written at most once. A reader that has one key's value and not another's, and a second reader
that has it the other way round, cannot both read a snapshot of one course of events: parallel snapshot
isolation allows it, snapshot isolation does not.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, ClassVar

from attrs import define

from fencepost.checkers.models.base import shown
from fencepost.checkers.models.workloads.base import MOST, Workload, answer, argument, happened, wrong_value
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace


@define
class LongFork(Workload):
    """Jepsen's long-fork: transactions of one write, and of reads of a group of keys."""

    name: ClassVar[str] = "long-fork"
    says: ClassVar[str] = "no two readers see two writes in opposite orders; each key is written once"
    functions: ClassVar[dict[str, str]] = dict.fromkeys(
        ("txn", "read", "write"), "a transaction: [[f key value] ...], with f w or r"
    )

    def findings(self, trace: Trace) -> Iterator[Finding]:
        """Pairs of reads of the same keys that fork."""
        groups: dict[frozenset[Any], list[tuple[Operation, frozenset[Any]]]] = {}
        written: dict[Any, Operation] = {}
        for operation in trace.operations:
            for kind, key, _ in steps_of(operation, argument(operation)):
                if kind == "w" and written.setdefault(key, operation) is not operation:
                    raise wrong_value(operation, "each key to be written once", key)
            if not happened(operation):
                continue
            read = {key: value for kind, key, value in steps_of(operation, answer(operation)) if kind == "r"}
            if len(read) > 1:
                seen = frozenset(key for key, value in read.items() if value is not None)
                groups.setdefault(frozenset(read), []).append((operation, seen))
        for reads in groups.values():
            yield from (self._fork(*pair) for pair in islice(_forks(reads), MOST))

    def _fork(self, first: "Seen", second: "Seen") -> Finding:
        one, other = (shown(min(has, key=str)) for has in (first[1] - second[1], second[1] - first[1]))
        return self.found(
            "long_fork",
            f"readers that agree which of the writes of {one} and {other} came first",
            f"operation {first[0].op_id} has {one} without {other}, operation {second[0].op_id} the "
            "other way round",
            first[0],
            second[0],
        )


Seen = tuple[Operation, frozenset[Any]]
"""A read, and the keys whose write it saw."""


def _forks(reads: list[Seen]) -> Iterator[tuple[Seen, Seen]]:
    """Pairs of which neither saw a part of what the other did. What legal readers saw is a chain: each
    contains the one before, so that neighbours by size suffice to find whether there is a fork."""
    for before, after in pairwise(sorted(reads, key=lambda each: len(each[1]))):
        if not before[1] <= after[1]:
            yield before, after


def steps_of(operation: Operation, value: Any) -> tuple[tuple[Any, Any, Any], ...]:
    """The micro-operations.

    Args:
        operation: a transaction.
        value: its argument or its answer.

    Returns:
        (r or w, key, value) of each.

    Raises:
        TraceError: for anything else.
    """
    if value is None:
        return ()
    if not isinstance(value, tuple) or not all(
        isinstance(step, tuple) and len(step) == 3 and step[0] in ("r", "w") for step in value
    ):
        raise wrong_value(operation, "[[f key value] ...] with f r or w", value)
    return value
