"""What a trace says of transactions and of readers of committed records.

Owns which append is part of which transaction, what is visible, and what was passed over. Must not know the
rules. A record is visible once any reader of committed records was shown it. It is passed over if one poll of
such a reader began at or below its offset and showed a later one without it: readers of committed records
stop at the last stable offset, so that what they pass is decided. What lies between two polls proves nothing:
a reader may seek. Everything here is linear in the rows but for sorting.
"""

from bisect import bisect_right
from collections import defaultdict

from attrs import define, field, frozen

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

READ_COMMITTED = "read_committed"
IN_TRANSACTION = "txn"
"""The argument of a commit that a transaction makes."""
SOURCE = "@"
Log = tuple[str, int]
Place = tuple[str, int, int]


@frozen
class Sent:
    """A record that a transaction appended. offset: -1 if nobody was told. source: where it was made from, ""
    if the row does not say."""

    value: int
    log: Log
    offset: int
    source: str
    append: Operation
    txn: Operation


@define
class History:
    """sent: every record of a transaction. shown: by log, offset -> (value, the first poll that showed it) to
    readers of committed records. passed: by log, disjoint ranges of offsets, ascending. commits: of
    transactions."""

    sent: list[Sent] = field(factory=list)
    shown: dict[Log, dict[int, tuple[int, Operation]]] = field(factory=lambda: defaultdict(dict))
    passed: dict[Log, list[tuple[int, int]]] = field(factory=dict)
    commits: list[Operation] = field(factory=list)
    transactions: list[Operation] = field(factory=list)

    def visible(self, sent: Sent) -> Operation | None:
        """The poll that showed it, at the offset that its producer was told; None if none did."""
        found = self.shown.get(sent.log, {}).get(sent.offset)
        return found[1] if found is not None and found[0] == sent.value else None

    def was_passed(self, log: Log, offset: int) -> bool:
        """Whether a reader of committed records went past this offset."""
        ranges = self.passed.get(log, [])
        at = bisect_right(ranges, (offset, 1 << 62)) - 1
        return at >= 0 and ranges[at][0] <= offset < ranges[at][1]


def history_of(trace: Trace) -> History:
    """The history of one trace, whatever the order of its rows."""
    history = History()
    rows = sorted(trace.operations, key=lambda row: (row.invoke_time, row.op_id))
    open_since: dict[tuple[int, int], Operation] = {}
    ranges: dict[Log, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        mine = (row.process, row.session)
        if row.function is Function.TXN:
            open_since[mine] = row
            history.transactions.append(row)
        elif row.function is Function.APPEND and _within(row, open_since.get(mine)):
            history.sent += _sent(row, open_since[mine])
        elif row.function is Function.COMMIT and row.argument == IN_TRANSACTION:
            history.commits.append(row)
        elif row.function is Function.POLL and row.outcome is Outcome.OK and row.isolation == READ_COMMITTED:
            _poll(history, row, ranges)
    history.passed = {log: _merged(found) for log, found in ranges.items()}
    return history


def _within(row: Operation, txn: Operation | None) -> bool:
    if txn is None or row.invoke_time < txn.invoke_time:
        return False
    if txn.completion_time is None:
        return True
    return row.invoke_time <= txn.completion_time


def _sent(row: Operation, txn: Operation) -> list[Sent]:
    sources = (row.result or "").split(" ") if row.result else [""] * len(row.records)
    if len(sources) != len(row.records):
        sources = [""] * len(row.records)
    return [
        Sent(record.value, (record.topic, record.partition), record.offset, source, row, txn)
        for record, source in zip(row.records, sources, strict=True)
    ]


def _poll(history: History, row: Operation, ranges: dict[Log, list[tuple[int, int]]]) -> None:
    last: dict[Log, int] = {}
    for record in row.records:
        log = (record.topic, record.partition)
        history.shown[log].setdefault(record.offset, (record.value, row))
        last[log] = record.offset + 1
    began = {(each.topic, each.partition): each.offset for each in row.positions}
    if row.offset is not None and row.topic is not None:
        began[row.topic, row.partition or 0] = row.offset
    for log, first in began.items():
        if 0 <= first < last.get(log, first):
            ranges[log].append((first, last[log]))


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def source_of(text: str) -> Place | None:
    """The topic, partition and offset that a source names; None if it names none."""
    name, at, offset = text.rpartition(SOURCE)
    topic, dash, partition = name.rpartition("-")
    if not (at and dash and partition.isdigit() and offset.isdigit()):
        return None
    return topic, int(partition), int(offset)
