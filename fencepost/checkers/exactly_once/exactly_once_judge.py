"""The exactly-once judge: which traces of transactions are violations, and one verdict per trace.

Owns the rules. Must not know how relations are made (relations.py). What Kafka promises (KIP-98, KIP-447):

- all of a transaction is visible or nothing of it (torn_transaction)
- after InitProducerId has returned an epoch, nothing that an earlier epoch of the id sends later becomes
  visible (zombie_write); a transaction that begins with an epoch proves that it was returned before
- where each record consumed in a transaction becomes one record of output: it is committed if and only if its
  output is visible, once (output_twice, output_missing, output_without_commit)

Loss that the claims allow in any log excuses everything: what is lost may be an input, an output or an
offset. Each rule is one pass over sorted arrays, for all traces together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from fencepost.checkers.arrow_arrays import arrow, table_column
from fencepost.checkers.columns_read import LOG_COLUMNS
from fencepost.checkers.exactly_once.relations import (
    Details,
    Relations,
    compacted,
    details_of_table,
    details_of_traces,
    relations_of,
)
from fencepost.checkers.operation_columns import (
    FUNCTIONS,
    NONE,
    OUTCOMES,
    Array,
    OperationColumns,
    columns_of_table,
    columns_of_traces,
)
from fencepost.checkers.sorting import first_of_each, is_among, numbered, order_by, stable_order
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace

CHECK = "exactly_once"
COLUMNS = (*LOG_COLUMNS, "producer_id", "producer_epoch", "result")
"""Columns of the `operations` table that this check reads."""
TXN = FUNCTIONS.index(Function.TXN)
OK, FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)
Found = tuple[int, Finding]
"""The index of a trace, and what is wrong with it."""


def judge_trace(trace: Trace) -> Verdict:
    """The verdict of the check on one trace."""
    verdicts = judge_traces((trace,))
    return verdicts[0][1] if verdicts else Verdict(decision=Decision.OK, check=CHECK)


def judge_traces(traces: Sequence[Trace]) -> list[tuple[int, Verdict]]:
    """(trace id, verdict) of each trace that is not Ok, in order; all others are Ok."""
    return judge_columns(columns_of_traces(traces), traces)


def judge_columns(operations: OperationColumns, traces: Sequence[Trace]) -> list[tuple[int, Verdict]]:
    """As `judge_traces`, for operations that are already columns.

    Args:
        operations: the rows of the traces.
        traces: the traces.

    Returns:
        (trace id, verdict) of each trace that is not Ok, in order.
    """
    return _judge(operations, lambda: details_of_traces(traces))


def judge_table(table: pa.Table, traces: Sequence[Trace] = ()) -> list[tuple[int, Verdict]]:
    """As `judge_traces`, for the rows of an `operations` table.

    Args:
        table: the rows.
        traces: the headers of their traces.

    Returns:
        (trace id, verdict) of each trace that is not Ok, in order. Traces without a transaction cost nothing.

    Raises:
        TraceError: if a column is missing.
    """
    begins = arrow.equal(table_column(table, "function").cast(pa.string()), Function.TXN.value)
    ids = table_column(table, "trace_id")
    concerned = arrow.unique(ids.filter(begins))
    if len(concerned) and len(concerned) < len(arrow.unique(ids)):
        table = table.filter(arrow.is_in(ids, value_set=concerned))
    some: dict[int, Verdict] = {}
    if len(concerned):
        some = dict(_judge(columns_of_table(table, traces), lambda: details_of_table(table)))
    some |= {one.trace_id: verdict for one in traces if (verdict := _broken(one)) is not None}
    order = {one.trace_id: number for number, one in enumerate(traces)}
    return sorted(some.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))


def _broken(trace: Trace) -> Verdict | None:
    reason = trace.claims.assumption_broken
    return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason) if reason else None


def _judge(operations: OperationColumns, details: Callable[[], Details]) -> list[tuple[int, Verdict]]:
    asked = np.array([not trace.claims.loss for trace in operations.traces], np.bool_)
    concerned = np.zeros(len(asked), np.bool_)
    concerned[operations.trace[operations.function == TXN]] = True
    findings: dict[int, list[Finding]] = defaultdict(list)
    if (asked & concerned).any():
        relations = relations_of(operations, details(), asked & concerned)
        for rule in (_torn, _zombies, _twice, _without_commit, _missing):
            for of, finding in rule(relations):
                findings[of].append(finding)
    verdicts = []
    for index, trace in enumerate(operations.traces):
        verdict = _broken(trace)
        if verdict is None and index in findings:
            verdict = Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=tuple(findings[index]))
        if verdict is not None:
            verdicts.append((trace.trace_id, verdict))
    return verdicts


# ---- the rules


def _found(
    relations: Relations, anomaly: str, log: int, offset: int, rows: Sequence[int], expected: str, seen: str
) -> Found:
    trace, topic, partition = relations.logs.named(log)
    return trace, Finding(
        anomaly=anomaly,
        check=CHECK,
        expected=expected,
        seen=seen,
        topic=topic,
        partition=partition,
        offset=offset,
        operations=tuple(int(relations.operations.op_id[row]) for row in dict.fromkeys(rows)),
    )


def _where(relations: Relations, log: int) -> str:
    _, topic, partition = relations.logs.named(log)
    return f"{topic}-{partition}"


def _first(of: Array, among: Array) -> tuple[Array, Array]:
    """The distinct numbers in `of` among these indices, and the first index of each."""
    numbers, first = first_of_each(of[among])
    return numbers, among[first]


def _torn(relations: Relations) -> Iterator[Found]:
    """At most one finding for each transaction."""
    sent, op_id = relations.sent, relations.operations.op_id
    seen, shown = _first(sent.txn, np.flatnonzero(sent.poll >= 0))
    missed, hidden = _first(sent.txn, np.flatnonzero(sent.passed))
    _, some, others = np.intersect1d(seen, missed, assume_unique=True, return_indices=True)
    for one, other in zip(shown[some].tolist(), hidden[others].tolist(), strict=True):
        poll, txn = sent.poll[one], sent.txn[one]
        log = int(sent.place.log[other])
        yield _found(
            relations,
            "torn_transaction",
            log,
            int(sent.place.offset[other]),
            (txn, sent.row[other], sent.row[one], poll),
            f"all of transaction {op_id[txn]} or nothing of it for readers of committed records",
            f"operation {op_id[poll]} was shown value {sent.value[one]} of "
            f"{_where(relations, int(sent.place.log[one]))}; value {sent.value[other]} of "
            f"{_where(relations, log)} was passed over",
        )


def _zombies(relations: Relations) -> Iterator[Found]:
    """At most one finding for each epoch of a producer."""
    sent, details, operations = relations.sent, relations.details, relations.operations
    epoch_of, successor = _successors(relations)
    mine, later = epoch_of[sent.row], successor[sent.row]
    guilty = (later >= 0) & (sent.poll >= 0)
    guilty &= operations.invoke_time[sent.row] > operations.invoke_time[later]
    _, first = _first(mine, np.flatnonzero(guilty))
    for one in np.sort(first).tolist():
        row, poll, other = sent.row[one], sent.poll[one], later[one]
        yield _found(
            relations,
            "zombie_write",
            int(sent.place.log[one]),
            int(sent.place.offset[one]),
            (row, other, poll),
            f"nothing visible that producer {details.producer_id[row]} sent in epoch "
            f"{details.producer_epoch[row]} after transaction {operations.op_id[other]} had begun in epoch "
            f"{details.producer_epoch[other]}",
            f"operation {operations.op_id[poll]} was shown value {sent.value[one]} of append "
            f"{operations.op_id[row]}, which began later",
        )


def _successors(relations: Relations) -> tuple[Array, Array]:
    """For each row the number of its producer epoch, and the first transaction of a later epoch of its
    producer; -1 if there is none."""
    details, operations = relations.details, relations.operations
    epoch_of, successor = (np.full(len(operations.op_id), NONE) for _ in range(2))
    known = np.flatnonzero((details.producer_id >= 0) & (details.producer_epoch >= 0))
    # producers number (trace, producer id), epochs number (producer, epoch downwards)
    ids, of_id = numbered(details.producer_id[known])
    _, producer = numbered(operations.trace[known].astype(np.int64) * len(ids) + of_id)
    epochs, epoch = numbered(details.producer_epoch[known])
    width = max(len(epochs), 1)
    number = producer * width + (width - 1 - epoch)
    epoch_of[known] = number
    begins = np.flatnonzero(operations.function[known] == TXN)
    begins = begins[order_by((operations.invoke_time[known[begins]], number[begins]))]
    epochs, head = first_of_each(number[begins])
    if not len(epochs):
        return epoch_of, successor
    first = known[begins[head]]
    of_producer = epochs // width
    # by time, the higher epoch first; later producers have lower numbers, so that each starts anew
    order = np.lexsort((np.arange(len(first)), operations.invoke_time[first]))
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    lowest = np.minimum.accumulate(rank - of_producer * len(first))
    earliest = first[order[lowest + of_producer * len(first)]]
    before = np.searchsorted(epochs, number) - 1
    later = (before >= 0) & (of_producer[before] == number // width)
    successor[known[later]] = earliest[before[later]]
    return epoch_of, successor


def _outputs(relations: Relations) -> Array:
    """Visible records of output by the place that they were made from; of one place in the order in which
    they were sent."""
    sent = relations.sent
    visible = np.flatnonzero((sent.source.log >= 0) & (sent.poll >= 0))
    return visible[stable_order(sent.source.key[visible])]


def _twice(relations: Relations) -> Iterator[Found]:
    """At most one finding for each log of input."""
    sent, op_id, outputs = relations.sent, relations.operations.op_id, _outputs(relations)
    key = sent.source.key[outputs]
    same = np.flatnonzero(key[1:] == key[:-1])
    _, first = _first(sent.source.log[outputs], same)
    for at in first.tolist():
        one, other = outputs[at], outputs[at + 1]
        log, offset = int(sent.source.log[one]), int(sent.source.offset[one])
        yield _found(
            relations,
            "output_twice",
            log,
            offset,
            (sent.row[one], sent.row[other], sent.poll[one], sent.poll[other]),
            f"one visible record of output for {_where(relations, log)}@{offset}",
            f"{int((key == key[at]).sum())}: of appends {op_id[sent.row[one]]} and {op_id[sent.row[other]]}",
        )


def _ends(relations: Relations, counting: Array) -> tuple[Array, Array]:
    """The logs of input in which these commits committed anything, and for each the first commit of the
    highest offset, as an index of `commits`."""
    place = relations.commits.place
    order = np.flatnonzero(counting & (place.log >= 0))
    order = order[::-1]  # of equal ones the first commit shall be the last
    order = order[stable_order(place.key[order])][::-1]
    logs, last = first_of_each(place.log[order])
    return logs, order[last]


def _without_commit(relations: Relations) -> Iterator[Found]:
    """At most one finding for each log of input."""
    sent, commits, outputs = relations.sent, relations.commits, _outputs(relations)
    logs, commit = _ends(relations, relations.operations.outcome[commits.row] != FAIL)
    log, offset = sent.source.log[outputs], sent.source.offset[outputs]
    end = np.zeros(len(outputs), np.int64)
    if len(logs):
        at = np.minimum(np.searchsorted(logs, log), len(logs) - 1)
        end = np.where(logs[at] == log, np.maximum(commits.place.offset[commit[at]], 0), 0)
    _, first = _first(log, np.flatnonzero(offset >= end))
    for at in first.tolist():
        one, of = outputs[at], _where(relations, int(log[at]))
        yield _found(
            relations,
            "output_without_commit",
            int(log[at]),
            int(offset[at]),
            (sent.row[one], sent.poll[one]),
            f"the offset after {of}@{offset[at]} committed by some transaction, as its output is visible",
            f"offsets below {end[at]} only",
        )


def _missing(relations: Relations) -> Iterator[Found]:
    """At most one finding for each log of input. Not asked where an input may have been gone before anybody
    consumed it."""
    sent, shown, commits = relations.sent, relations.shown, relations.commits
    outcome, traces = relations.operations.outcome, relations.operations.traces
    logs, commit = _ends(relations, outcome[commits.row] == OK)
    names = [relations.logs.named(log)[1:] for log in logs.tolist()]
    settled = np.array([relations.settled.get(name, NONE) for name in names], np.int64)
    kept = (np.isin(logs, sent.source.log) | (settled >= 0)) & ~compacted(relations.logs, traces, logs)
    owners = [relations.logs.named(log)[0] for log in logs.tolist()]
    kept &= np.array([not traces[owner].claims.retention for owner in owners], np.bool_)
    logs, commit, settled = logs[kept], commit[kept], settled[kept]
    if not len(logs):
        return
    at = np.minimum(np.searchsorted(logs, shown.place.log), len(logs) - 1)
    consumed = (logs[at] == shown.place.log) & (shown.place.offset < commits.place.offset[commit[at]])
    consumed &= shown.place.offset >= settled[at]
    consumed &= ~is_among(shown.place.key, sent.source.key[relations.excusing])
    _, first = _first(shown.place.log, np.flatnonzero(consumed))
    for one in first.tolist():
        log, offset = int(shown.place.log[one]), int(shown.place.offset[one])
        last = commit[at[one]]
        row, end = commits.row[last], commits.place.offset[last]
        yield _found(
            relations,
            "output_missing",
            log,
            offset,
            (shown.row[one], row),
            f"a record of output for {_where(relations, log)}@{offset} in a transaction that did not abort, "
            f"as commit {relations.operations.op_id[row]} of offset {end} counts",
            "none, or one that readers of committed records passed over",
        )
