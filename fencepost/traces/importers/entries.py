"""Lines of a Jepsen history in any notation: invocations and completions, paired into
operations.

Owns the known fields of an entry, the pairing, and what an entry's value means for each
function. Must not know files.

Times are positions in the order of the history (order.py). A process has one operation in flight. `info`
leaves the outcome unknown, as does a missing completion. `fail` proves that the operation had no effect. By
a convention of few histories a failed cas, without an error, proves also that another value was there.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from attrs import define, evolve, field, frozen

from fencepost.traces.errors import TraceError
from fencepost.traces.importers.edn import readable
from fencepost.traces.importers.entry_places import Entry, Process, place_of
from fencepost.traces.importers.order import Ordered
from fencepost.traces.operations import Function, Operation, Outcome

ANSWERS = frozenset(
    {Function.READ, Function.GET, Function.DEQUEUE, Function.CONTAINS, Function.REMOVE, Function.ACQUIRE}
)
"""Functions with a result in the completion's value. The others repeat their argument there."""
ASKS_NOTHING = frozenset({Function.READ, Function.GET, Function.DEQUEUE})


@frozen(kw_only=True)
class HistoryEntry(Entry):
    """One line of a history."""

    # JSON values.
    value: Any = None
    key: Any = None
    error: Any = None


def entry_of(row: Any, *, line: int, where: str) -> HistoryEntry | None:
    """The entry in a map of JSON values; None if it is not a client's (the nemesis). row: the map; line,
    where: its place. Raises TraceError."""
    place = place_of(row, line, where)
    if place is None:
        return None
    return HistoryEntry(**place, value=row.get("value"), key=row.get("key"), error=readable(row.get("error")))


@define
class Pairing:
    """Pairs entries into operations."""

    # The file, for errors.
    where: str
    # The number of each process.
    numbers: dict[Process, int]
    # Whether a failed cas is an observation.
    failed_cas_observes: bool = False
    # What each process has in flight: the position, the invocation and its function.
    open: dict[Process, tuple[int, HistoryEntry, Function]] = field(factory=dict)
    # Complete operations by op id.
    done: dict[int, Operation] = field(factory=dict)
    # Invocations so far; the next op id.
    invoked: int = 0
    # Failed cas, without an error, that were not taken as observations.
    failed_cas: int = 0
    # What to add to an error.
    hint: str = ""

    def all(self, ordered: Ordered[HistoryEntry]) -> tuple[Operation, ...]:
        """The operations of a history, in the order of their invocations; what never completed is unknown.
        Raises TraceError for entries that cannot be paired."""
        self.hint = ordered.hint
        for entry, position in ordered.entries:
            if entry.type == "invoke":
                self._invoke(entry, position)
            else:
                self._complete(entry, position)
        return tuple(self.done.values())

    def _refuse(self, expected: str, seen: str, entry: HistoryEntry) -> TraceError:
        return TraceError(expected=expected, seen=seen, where=f"{self.where}:{entry.line}", hint=self.hint)

    def _invoke(self, entry: HistoryEntry, position: int) -> None:
        if entry.process in self.open:
            before = self.open[entry.process][1].line
            raise self._refuse(
                f"the completion of what process {entry.process} invoked in line {before}",
                "another invocation",
                entry,
            )
        try:
            function = Function(entry.function)
        except ValueError:
            raise self._refuse("the name of a function", repr(entry.function), entry) from None
        operation = Operation(
            op_id=self.invoked,
            process=self.numbers[entry.process],
            function=function,
            invoke_time=position,
            outcome=Outcome.UNKNOWN,
            key=key_text(entry.key),
            argument=None if function in ASKS_NOTHING or entry.value is None else _json(entry.value),
        )
        self.open[entry.process] = (self.invoked, entry, function)
        self.done[self.invoked] = operation
        self.invoked += 1

    def _complete(self, entry: HistoryEntry, position: int) -> None:
        if entry.process not in self.open:
            raise self._refuse(f"an invocation of process {entry.process} first", entry.type, entry)
        op_id, invocation, function = self.open.pop(entry.process)
        without_key = entry.key is None and entry.type in ("fail", "info")
        if entry.function != invocation.function or not (without_key or entry.key == invocation.key):
            raise self._refuse(
                f"the completion of {invocation.function}, invoked in line {invocation.line}",
                entry.function if entry.function != invocation.function else f"key {entry.key!r}",
                entry,
            )
        operation = self.done[op_id]
        outcome = {"ok": Outcome.OK, "fail": Outcome.FAIL, "info": Outcome.UNKNOWN}[entry.type]
        result: str | None = None
        if entry.type == "ok" and function is Function.CAS:
            result = "true"
        elif entry.type == "ok" and (function in ANSWERS or entry.value != invocation.value):
            result = _json(entry.value)
        elif entry.type == "fail" and function is Function.CAS and self._observed(entry, invocation):
            outcome, result = Outcome.OK, "false"
        error = entry.error
        if error is None and entry.type in ("fail", "info") and entry.value != invocation.value:
            error = entry.value
        self.done[op_id] = evolve(
            operation,
            outcome=outcome,
            completion_time=position,
            result=result,
            error=None if error is None else error if isinstance(error, str) else _json(error),
        )

    def _observed(self, entry: HistoryEntry, invocation: HistoryEntry) -> bool:
        """Whether a failed cas is an observation."""
        may_be = entry.error is None and entry.value in (None, invocation.value)
        self.failed_cas += may_be and not self.failed_cas_observes
        return may_be and self.failed_cas_observes


def unique_values(operations: Iterable[Operation]) -> bool:
    """Whether nothing was written (put, added, appended, enqueued) twice under one key."""
    seen: set[tuple[str | None, str | None]] = set()
    for operation in operations:
        if operation.argument is None or operation.function in ANSWERS:
            continue
        argument: str | None = operation.argument
        if operation.function is Function.CAS:
            pair = msgspec.json.decode(operation.argument)
            argument = _json(pair[1]) if isinstance(pair, list) and len(pair) == 2 else argument
        if (operation.key, argument) in seen:
            return False
        seen.add((operation.key, argument))
    return True


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def key_text(value: Any) -> str | None:
    """A key as the text that stands for it in a trace. value: its JSON value."""
    return value if value is None or isinstance(value, str) else _json(value)
