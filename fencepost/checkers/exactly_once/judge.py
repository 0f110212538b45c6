"""The exactly-once judge: which traces of transactions are violations, and one verdict per trace.

Owns the rules. Must not know how a history is made (history.py). What Kafka promises (KIP-98, KIP-447):

- all of a transaction is visible or nothing of it (torn_transaction)
- after InitProducerId has returned an epoch, nothing that an earlier epoch of the id sends later becomes
visible
  (zombie_write); a transaction that begins with an epoch proves that it was returned before
- where each record consumed in a transaction becomes one record of output: it is committed if and only if its
output
  is visible, once (output_twice, output_missing, output_without_commit)

Loss that the claims allow in any log excuses everything: what is lost may be an input, an output or an
offset.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa

from fencepost.checkers.arrow_arrays import arrow, table_column
from fencepost.checkers.decoded import judge_decoded
from fencepost.checkers.exactly_once.history import History, Log, Sent, history_of, source_of
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Claims, Trace

CHECK = "exactly_once"
COLUMNS = (
    *("trace_id", "op_id", "process", "session", "function", "outcome", "invoke_time", "completion_time"),
    *("topic", "partition", "offset", "argument", "result", "isolation", "strong", "records", "positions"),
    *("key", "group", "producer_id", "producer_epoch"),
)
"""Columns of the `operations` table that the judge reads."""


def judge_trace(trace: Trace) -> Verdict:
    """What the check says of one trace."""
    if trace.claims.assumption_broken:
        reason = trace.claims.assumption_broken
        return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason)
    if not any(row.function is Function.TXN for row in trace.operations) or trace.claims.loss:
        return Verdict(decision=Decision.OK, check=CHECK)
    history = history_of(trace)
    findings = (*_torn(history), *_zombies(history), *_bijection(history, trace.claims))
    decision = Decision.ILLEGAL if findings else Decision.OK
    return Verdict(decision=decision, check=CHECK, findings=findings)


def judge_table(table: pa.Table, traces: Sequence[Trace]) -> dict[int, Verdict]:
    """The verdicts that are not Ok.

    Args:
        table: of operations.
        traces: the traces that it holds.

    Returns:
        Verdicts by trace id.

    Raises:
        TraceError: if a column is missing.
    """
    of_txn = arrow.equal(table_column(table, "function").cast(pa.string()), Function.TXN.value)
    return judge_decoded(table, traces, of_txn, COLUMNS, judge_trace)


# ---- the rules


def _finding(
    anomaly: str, log: Log, offset: int, rows: Sequence[Operation], expected: str, seen: str
) -> Finding:
    return Finding(
        anomaly=anomaly,
        check=CHECK,
        expected=expected,
        seen=seen,
        topic=log[0],
        partition=log[1],
        offset=offset,
        operations=tuple(dict.fromkeys(row.op_id for row in rows)),
    )


def _torn(history: History) -> Iterator[Finding]:
    """At most one finding for each transaction."""
    visible: dict[int, tuple[Sent, Operation]] = {}
    passed: dict[int, Sent] = {}
    for sent in history.sent:
        if sent.offset < 0:
            continue
        poll = history.visible(sent)
        if poll is not None:
            visible.setdefault(sent.txn.op_id, (sent, poll))
        elif history.was_passed(sent.log, sent.offset):
            passed.setdefault(sent.txn.op_id, sent)
    for txn, hidden in sorted(passed.items()):
        if txn not in visible:
            continue
        shown, poll = visible[txn]
        yield _finding(
            "torn_transaction",
            hidden.log,
            hidden.offset,
            (hidden.txn, hidden.append, shown.append, poll),
            f"all of transaction {txn} or nothing of it for readers of committed records",
            f"operation {poll.op_id} was shown value {shown.value} of {shown.log[0]}-{shown.log[1]}; value "
            f"{hidden.value} of {hidden.log[0]}-{hidden.log[1]} was passed over",
        )


def _zombies(history: History) -> Iterator[Finding]:
    """At most one finding for each epoch of a producer."""
    begun: dict[int, list[Operation]] = defaultdict(list)
    for txn in history.transactions:
        if txn.producer_id is not None and txn.producer_epoch is not None:
            begun[txn.producer_id].append(txn)
    successor: dict[tuple[int, int], Operation] = {}
    for producer, rows in begun.items():
        first: Operation | None = None
        for row in sorted(rows, key=lambda each: (-(each.producer_epoch or 0), each.invoke_time)):
            epoch = row.producer_epoch or 0
            if first is not None and (first.producer_epoch or 0) > epoch:
                successor.setdefault((producer, epoch), first)
            if first is None or row.invoke_time < first.invoke_time:
                first = row
    done: set[tuple[int, int]] = set()
    for sent in history.sent:
        mine = (sent.append.producer_id or 0, sent.append.producer_epoch or 0)
        later = successor.get(mine)
        if later is None or mine in done or sent.append.invoke_time <= later.invoke_time:
            continue
        poll = history.visible(sent)
        if poll is not None:
            done.add(mine)
            yield _finding(
                "zombie_write",
                sent.log,
                sent.offset,
                (sent.append, later, poll),
                f"nothing visible that producer {mine[0]} sent in epoch {mine[1]} after transaction "
                f"{later.op_id} had begun in epoch {later.producer_epoch}",
                f"operation {poll.op_id} was shown value {sent.value} of append {sent.append.op_id}, which "
                f"began later",
            )


def _bijection(history: History, claims: Claims) -> Iterator[Finding]:
    """At most one finding of a kind for each input."""
    outputs: dict[tuple[Log, int], list[tuple[Sent, Operation]]] = defaultdict(list)
    possible_outputs: set[tuple[Log, int]] = set()
    for sent in history.sent:
        source = source_of(sent.source)
        if source is None:
            continue
        place = (source[0], source[1]), source[2]
        poll = history.visible(sent)
        if poll is not None:
            outputs[place].append((sent, poll))
        hidden = sent.offset >= 0 and history.was_passed(sent.log, sent.offset)
        if sent.append.outcome is not Outcome.FAIL and not hidden:
            possible_outputs.add(place)
    done, possible = _committed(history)
    told: set[tuple[str, Log]] = set()
    for (log, offset), visible in sorted(outputs.items(), key=lambda each: each[0]):
        if len(visible) > 1 and ("twice", log) not in told:
            told.add(("twice", log))
            (first, shown), (second, again) = visible[:2]
            yield _finding(
                "output_twice",
                log,
                offset,
                (first.append, second.append, shown, again),
                f"one visible record of output for {log[0]}-{log[1]}@{offset}",
                f"{len(visible)}: of appends {first.append.op_id} and {second.append.op_id}",
            )
        if offset >= possible.get(log, 0) and ("without", log) not in told:
            told.add(("without", log))
            first, shown = visible[0]
            yield _finding(
                "output_without_commit",
                log,
                offset,
                (first.append, shown),
                f"the offset after {log[0]}-{log[1]}@{offset} committed by some transaction, as its "
                f"output is visible",
                f"offsets below {possible.get(log, 0)} only",
            )
    if claims.retention:
        return  # an input may have been gone before anybody consumed it
    inputs = {(source[0], source[1]) for each in history.sent if (source := source_of(each.source))}
    for log, (end, commit) in sorted(done.items()):
        if log not in inputs or log[0] in claims.compacted:
            continue
        for offset in sorted(history.shown.get(log, {})):
            if offset < end and (log, offset) not in outputs and (log, offset) not in possible_outputs:
                yield _finding(
                    "output_missing",
                    log,
                    offset,
                    (commit,),
                    f"a record of output for {log[0]}-{log[1]}@{offset} in a transaction that did not "
                    f"abort, as commit {commit.op_id} of offset {end} counts",
                    "none, or one that readers of committed records passed over",
                )
                break


def _committed(history: History) -> tuple[dict[Log, tuple[int, Operation]], dict[Log, int]]:
    """By input: the highest offset that a committed transaction committed, with its row, and the highest that
    any may have."""
    done: dict[Log, tuple[int, Operation]] = {}
    possible: dict[Log, int] = {}
    for row in history.commits:
        for each in row.positions:
            log = (each.topic, each.partition)
            if row.outcome is Outcome.OK and each.offset > done.get(log, (-1, row))[0]:
                done[log] = (each.offset, row)
            if row.outcome is not Outcome.FAIL:
                possible[log] = max(possible.get(log, 0), each.offset)
    return done, possible
