"""What clients were answered, and how that relates to what was known: the relations of operations, as
event_steps.py has those of events.

Owns: these relations and their words. Must not know: findings, groups, bugs.

Events do not say what a reader gets, or who uses a producer id. So answers are compared with the latest fact
about the same thing, and each relation is a word:

    poll: a record of an open transaction                 a reader of committed ones got it before any marker
    poll: a record of an aborted transaction              it got it after the marker of the abort
    fetch_committed: an offset of an aborted transaction  no other commit of the group carries this offset
    fetch_committed: below a committed transaction        the latest acknowledged commit carries a higher one
    append: an id of two producers                        processes share producer id and epoch
    txn: of an older epoch                                it committed after one of a later epoch had begun

Where a trace has no markers, nothing is said of records.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from fencepost.checkers.sorting import packed
from fencepost.mining.triage.event_steps import CODE_OF, Flags, Ints, Steps
from fencepost.mining.triage.subjects import detail_of
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.tables import Tables

OPEN, ABORTED = "poll: a record of an open transaction", "poll: a record of an aborted transaction"
UNDONE = "fetch_committed: an offset of an aborted transaction"
BELOW = "fetch_committed: below a committed transaction"
SHARED = "append: an id of two producers"
OLDER = "txn: of an older epoch"
COMMITTED = "read_committed"
NEVER = np.iinfo(np.int64).max


def answers_of(tables: Tables, trace: Ints, steps: Steps) -> dict[str, Ints]:
    """The traces in which each relation occurs.

    Args:
        tables: the traces.
        trace: of each operation, the number of its trace.
        steps: of the events.

    Returns:
        numbers of traces by word.
    """
    operations = tables.operations
    function = operations.column("function")
    is_txn = _is(function, Function.TXN)
    found = {SHARED: _shared(operations, trace, _is(function, Function.APPEND))}
    if not is_txn.any():
        return found
    found |= _records(tables, trace, steps)
    about = is_txn | _is(function, Function.COMMIT) | _is(function, Function.FETCH_COMMITTED)
    about &= np.isin(trace, trace[is_txn])
    rows = np.flatnonzero(about)
    names = ("function", "outcome", "invoke_time", "completion_time", "process", "session", "argument",
             "key", "group", "producer_epoch", "positions")  # fmt: skip
    told = operations.select(list(names)).take(rows).to_pylist()
    by_trace: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for number, row in zip(trace[rows].tolist(), told, strict=True):
        by_trace[number].append(row)
    said: dict[str, list[int]] = {UNDONE: [], BELOW: [], OLDER: []}
    for number, of_trace in by_trace.items():
        for word in {*_offsets(of_trace), *_epochs(of_trace)}:
            said[word].append(number)
    return found | {word: np.array(numbers, np.int64) for word, numbers in said.items()}


def _is(column: Any, value: str) -> Flags:
    same: Any = pc.equal(column.cast(pa.string()), pa.scalar(str(value)))
    found: Flags = same.fill_null(False).to_numpy()
    return found


def _ints(table: pa.Table, name: str) -> Ints:
    column: Any = table.column(name)
    found: Ints = column.cast(pa.int64()).fill_null(-1).to_numpy()
    return found


def _shared(operations: pa.Table, trace: Ints, appends: Flags) -> Ints:
    """Traces in which two processes append with one producer id and epoch."""
    producer = _ints(operations, "producer_id")
    rows = appends & (producer >= 0)
    columns = (trace, producer, _ints(operations, "producer_epoch"), _ints(operations, "process"))
    users = np.unique(np.stack([column[rows] for column in columns], axis=1), axis=0)
    ids, count = np.unique(users[:, :3], axis=0, return_counts=True)
    return np.unique(ids[count > 1, 0])


# ---- records


@frozen(eq=False)
class _Values:
    """Values of records: the row of the operation that has each, and a key of trace and value."""

    rows: Ints
    values: Ints

    @classmethod
    def of(cls, operations: pa.Table, chosen: Flags) -> "_Values":
        """The values of the chosen operations."""
        rows = np.flatnonzero(chosen)
        lists: Any = operations.column("records").take(rows).combine_chunks()
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        return cls(np.repeat(rows, counts), lists.flatten().field("value").to_numpy().astype(np.int64))


def _records(tables: Tables, trace: Ints, steps: Steps) -> dict[str, Ints]:
    """Traces in which a reader of committed records got one of an open or an aborted transaction."""
    operations, producer = tables.operations, _ints(tables.operations, "producer_id")
    function = operations.column("function")
    written = _Values.of(operations, _is(function, Function.APPEND) & (producer >= 0) & _ends_in(operations))
    polls = _is(function, Function.POLL) & _is(operations.column("isolation"), COMMITTED)
    read = _Values.of(operations, polls & np.isin(trace, trace[written.rows]))
    values = np.concatenate((written.values, read.values))
    keys = packed((trace[np.concatenate((written.rows, read.rows))], values))
    first, second = keys[: len(written.rows)], keys[len(written.rows) :]
    order = np.argsort(first, kind="stable")
    place = np.searchsorted(first[order], second).clip(max=max(len(first) - 1, 0))
    if not len(first) or not len(second):
        return {}
    match = first[order][place] == second
    appends, readers = written.rows[order][place[match]], read.rows[match]
    ended, commits = _ends(tables, trace, steps, appends)
    answered = _ints(operations, "completion_time")[readers]
    is_open = (ended > answered) & (answered >= 0)
    is_undone = (ended <= answered) & ~commits
    return {OPEN: np.unique(trace[appends[is_open]]), ABORTED: np.unique(trace[appends[is_undone]])}


def _ends_in(operations: pa.Table) -> Flags:
    """Appends of a producer that has transactions in the trace."""
    keys = packed((_ints(operations, "trace_id"), _ints(operations, "producer_id")))
    txn = _is(operations.column("function"), Function.TXN) & (_ints(operations, "producer_id") >= 0)
    return np.isin(keys, keys[txn])


def _ends(tables: Tables, trace: Ints, steps: Steps, appends: Ints) -> tuple[Ints, Flags]:
    """Of each append the time of the first marker of its producer after it in the log (NEVER if there is
    none), and whether that is of a commit: a marker of the transaction before may be late. In a trace without
    markers everything had committed at once."""
    rows = np.flatnonzero(steps.name == CODE_OF[Name.MARKER_WRITTEN])
    details: Any = tables.events.column("detail").take(rows).to_pylist()
    marks: dict[tuple[int, str, int, int], list[tuple[int, int, bool]]] = defaultdict(list)
    offsets = _ints(tables.events, "offset")
    for row, text in zip(rows.tolist(), details, strict=True):
        detail = detail_of(text)
        where = (int(steps.trace[row]), steps.topics[steps.topic[row]], int(steps.number[row]))
        marks[*where, detail.producer_id].append(
            (int(steps.time[row]), int(offsets[row]), bool(detail.commit))
        )
    marked = set(steps.trace[rows].tolist())
    chosen, back = np.unique(appends, return_inverse=True)
    asked = tables.operations.select(["topic", "partition", "producer_id", "invoke_time", "offset"])
    ends = []
    for number, one in zip(trace[chosen].tolist(), asked.take(chosen).to_pylist(), strict=True):
        of = marks.get((number, one["topic"], one["partition"], one["producer_id"]), ())
        base = -1 if one["offset"] is None else one["offset"]
        after = [mark for mark in sorted(of) if mark[0] >= one["invoke_time"] and mark[1] > base]
        time, _, commit = after[0] if after else (NEVER, -1, True)
        ends.append((time, commit) if number in marked else (-1, True))
    times, commits = np.array([end[0] for end in ends], np.int64), np.array([end[1] for end in ends], bool)
    return times[back], commits[back]


# ---- offsets and epochs


def _offsets(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What fetches of committed offsets show of transactions. rows: of one trace."""
    outcome = {}
    for row in rows:
        if row["function"] == Function.TXN:
            outcome[row["process"], row["session"], row["completion_time"]] = row["outcome"]
    commits: dict[tuple[Any, ...], list[tuple[int, int, int, str]]] = defaultdict(list)
    for row in rows:
        if row["function"] == Function.COMMIT:
            of = outcome.get((row["process"], row["session"], row["completion_time"]))
            how = row["outcome"] if row["argument"] != Function.TXN or of is None else of
            in_txn = row["argument"] == Function.TXN
            end = NEVER if row["completion_time"] is None else row["completion_time"]
            for place in row["positions"] or ():
                key = (row["group"], place["topic"], place["partition"])
                commits[key].append((row["invoke_time"], end, place["offset"], f"{how} {in_txn}"))
    for row in rows:
        if row["function"] != Function.FETCH_COMMITTED or row["outcome"] != Outcome.OK:
            continue
        for place in row["positions"] or ():
            known = commits[row["group"], place["topic"], place["partition"]]
            carried = {how for start, _, offset, how in known
                       if offset == place["offset"] and start <= row["completion_time"]}  # fmt: skip
            if carried == {f"{Outcome.FAIL} True"}:
                yield UNDONE
            sure = [one for one in known if one[1] < row["invoke_time"] and one[3].startswith(Outcome.OK)]
            latest = max(sure, default=None)
            later = [one for one in known if latest and latest[0] < one[0] <= row["completion_time"]]
            if latest and latest[3].endswith("True") and not later and place["offset"] < latest[2]:
                yield BELOW


def _epochs(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Whether a transaction committed although one of a later epoch had begun. rows: of one trace."""
    begun: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        if row["function"] == Function.TXN and row["producer_epoch"] is not None:
            begun[row["key"]].append((row["invoke_time"], row["producer_epoch"]))
    for row in rows:
        if row["function"] == Function.TXN and row["outcome"] == Outcome.OK:
            own = row["producer_epoch"] if row["producer_epoch"] is not None else NEVER
            if any(time < row["invoke_time"] and epoch > own for time, epoch in begun[row["key"]]):
                yield OLDER
