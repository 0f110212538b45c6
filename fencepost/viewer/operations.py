"""The operations of a page: a row for each, in the page's own numbers.

Owns: which columns of an operation a page holds, and their words. Must not know drawing.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from fencepost.report.event_words import answer_in_words, printable, request_in_words
from fencepost.report.processes import operation_words
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.viewer.columns import Texts, columns, exact, values_as_run
from fencepost.viewer.moments import Moments
from fencepost.viewer.replica_logs import Partition
from fencepost.viewer.tracks import Window

OUTCOMES = (Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN)
COLUMNS = (
    *("id", "lane", "function", "invoke", "complete", "invoked", "answered", "outcome", "request"),
    *("answer", "partition", "offset", "node", "writes", "reads", "extras"),
)


@frozen(kw_only=True)
class OperationRows:
    """operations: of the trace. moments: their steps. partitions, lanes: numbers on the page, by name.
    origin: the time at which the page begins."""

    operations: tuple[Operation, ...]
    moments: Moments
    partitions: Mapping[Partition, int]
    lanes: Mapping[str, int]
    origin: int

    def within(self, window: Window, kept: list[int], texts: Texts) -> dict[str, list[Any]]:
        """The operations with these indices. window: the steps that are shown; kept: indices; texts: collects
        their words."""
        return columns(COLUMNS, [self._row(index, window, texts) for index in kept])

    def _row(self, index: int, window: Window, texts: Texts) -> tuple[Any, ...]:
        one, answer = self.operations[index], self.moments.answer[index]
        place = (one.topic or "", -1 if one.partition is None else one.partition)
        return (
            exact(one.op_id),
            self.lanes[f"c{one.process}"],
            one.function.value,
            one.invoke_time - self.origin,
            -1 if one.completion_time is None else one.completion_time - self.origin,
            window.inside(self.moments.invoke[index]),
            -2 if answer < 0 else window.inside(answer),
            OUTCOMES.index(one.outcome),
            texts.number(asked_in_words(one)),
            texts.number(answer_in_words(one)),
            self.partitions.get(place, -1),
            -1 if one.offset is None else one.offset,
            one.node,
            _writes(one),
            self._reads(one),
            _extras(one),
        )

    def _reads(self, operation: Operation) -> list[list[int]]:
        """[partition, first offset, end offset] of each run of offsets that was read."""
        found: list[list[int]] = []
        if operation.function is Function.APPEND:
            return found
        for record in operation.records:
            number = self.partitions.get((record.topic, record.partition), -1)
            if number < 0 or record.offset < 0:
                continue
            if found and found[-1][0] == number and found[-1][2] == record.offset:
                found[-1][2] += 1
            else:
                found.append([number, record.offset, record.offset + 1])
        return found


def _writes(operation: Operation) -> list[Any]:
    """The values that were sent."""
    if operation.function is not Function.APPEND or not operation.records:
        return []
    run: list[Any] = values_as_run([record.value for record in operation.records])
    return run


def asked_in_words(operation: Operation) -> str:
    """A client's request in words. A history without logs, such as a register's, names keys and arguments
    instead of partitions."""
    if operation.topic is None and operation.group is None and operation.function is not Function.TXN:
        return operation_words(operation).partition(" -> ")[0].removesuffix(" failed")
    return request_in_words(operation)


def _extras(operation: Operation) -> dict[str, Any]:
    """Columns that only some operations fill."""
    found: dict[str, Any] = {}
    if operation.producer_id is not None:
        found["producer"] = [exact(operation.producer_id), operation.producer_epoch, operation.sequence]
    if operation.function is Function.APPEND and operation.key is not None:
        found["key"] = printable(operation.key, 80)
    if operation.attempts > 1:
        found["attempts"] = operation.attempts
    if operation.acks is not None and operation.acks != -1:
        found["acks"] = operation.acks
    if operation.group is not None:
        found["group"] = printable(operation.group, 60)
        found["generation"] = operation.generation
    if operation.strong:
        found["strong"] = True
    return found
