"""The operations of one trace that later findings may need, judged while the trace runs.

Owns what is remembered, when it is judged and what is forgotten. Must not know the rules: it asks those of
the checks of whole traces, about what it remembers.

What has arrived is judged as if transactions under way were to abort and other operations under way were not
there. That only takes evidence away: a cycle of reads, or a record that is visible, stays whatever comes. The
rules that later rows may excuse wait for the end (`found_at_the_end`).

Something is forgotten after each `horizon` completions: the number depends on no cut of the trace into files.
The oldest transactions go as wholes. One that may be in a later cycle (closed.py), or that a later output or
reader comes back to (accounts.py), cannot be judged any more: the check ends unknown, unless it found
something. Nothing is convicted by what is forgotten.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from attrs import Factory, define, evolve

from fencepost.checkers.exactly_once import CHECK as EXACTLY_ONCE
from fencepost.checkers.exactly_once.exactly_once_judge import found_at_the_end, found_meanwhile
from fencepost.checkers.exactly_once.relations import Relations, details_of_traces, relations_of
from fencepost.checkers.kafka.relations import POLL, TXN
from fencepost.checkers.operation_columns import Array, OperationColumns, columns_of_traces, incarnations
from fencepost.checkers.transactions.graph import Graph, awaiting, graph_of
from fencepost.checkers.transactions.streaming.accounts import Accounts
from fencepost.checkers.transactions.streaming.closed import reached
from fencepost.checkers.transactions.transactions_judge import CHECK as TRANSACTIONS
from fencepost.checkers.transactions.transactions_judge import findings_of
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

CHECKS = (TRANSACTIONS, EXACTLY_ONCE)
JUDGED = frozenset({Function.APPEND, Function.COMMIT, Function.POLL, Function.TXN})
"""Functions that the checks read."""
Log = tuple[str, int]


@define(kw_only=True)
class TransactionWindow:
    """One trace while it runs."""

    # The trace without operations: its claims.
    trace: Trace
    # Operations that are remembered at least, if there are as many. At most four times as many are
    # remembered: three times as many that completed, and as many under way.
    horizon: int
    # By op id, in the order of time.
    under_way: dict[int, Operation] = Factory(dict)
    completed: dict[int, Operation] = Factory(dict)
    # Op ids that completed since it was judged last.
    fresh: set[int] = Factory(set)
    # Completions since something was forgotten last.
    since: int = 0
    # Op ids that are remembered though they are older than the horizon.
    kept: set[int] = Factory(set)
    # Operations begun in all.
    operations: int = 0
    # Whether more was under way than is remembered: nothing is judged any more.
    lost: bool = False
    # Whether a transaction has begun.
    transactional: bool = False
    # Logs to which something was appended, and logs of forgotten readers to which nothing was.
    appended: set[Log] = Factory(set)
    foreign: set[Log] = Factory(set)
    # Forgotten records are below this offset of their log.
    below: dict[Log, int] = Factory(dict)
    accounts: Accounts = Factory(Accounts)
    # By check, how many operations could not be judged.
    beyond: dict[str, int] = Factory(lambda: dict.fromkeys(CHECKS, 0))
    # By check, the anomalies that were reported.
    reported: dict[str, list[str]] = Factory(lambda: {check: [] for check in CHECKS})
    # Findings that were not reported yet.
    found: list[Finding] = Factory(list)

    def invoke(self, operation: Operation) -> None:
        """An operation begins. What it says of its end is not looked at."""
        if operation.function not in JUDGED:
            return
        self.operations += 1
        self.transactional |= operation.function == Function.TXN
        if self.lost:
            return
        if operation.function == Function.APPEND:  # from now on it may be read
            for record in operation.records:
                self._appended((record.topic, record.partition))
        self.under_way[operation.op_id] = operation
        if len(self.under_way) > self.horizon:
            self._lose()

    def complete(self, operation: Operation) -> None:
        """An operation has ended."""
        if operation.function not in JUDGED or self.under_way.pop(operation.op_id, None) is None:
            return
        self.completed[operation.op_id] = operation
        self.fresh.add(operation.op_id)
        self.since += 1
        if self.since >= self.horizon:
            self._forget()

    def _appended(self, log: Log) -> None:
        if log in self.foreign:  # a forgotten reader may have read this record
            self.foreign.discard(log)
            self._give_up(TRANSACTIONS)
        self.appended.add(log)

    def news(self) -> Iterator[Finding]:
        """Findings that are certain whatever comes later; each anomaly of a check once."""
        if self.transactional and self.fresh:
            self._judge(self._rows(ended=False))
        found, self.found = self.found, []
        yield from found

    def end(self) -> Iterator[Verdict]:
        """Nothing more comes: the verdict of each check, with the findings that were not reported yet. A
        trace without transactions is Ok."""
        if self.transactional:
            now = self._judge(self._rows(ended=True))
            for _, finding in found_at_the_end(now.relations) if self._exact else ():
                self._add(finding)
            if self._exact and (owing := self.accounts.owing(now.relations)):
                self._give_up(EXACTLY_ONCE, number=owing)
        for check in CHECKS:
            decision, reason = Decision.OK, ""
            if self.beyond[check]:
                decision = Decision.UNKNOWN
                reason = f"{self.beyond[check]} operations lay beyond the horizon of {self.horizon}"
            if self.reported[check]:
                decision = Decision.ILLEGAL
            found = tuple(finding for finding in self.found if finding.check == check)
            yield Verdict(decision=decision, check=check, reason=reason, findings=found)
        self.found = []

    @property
    def _exact(self) -> bool:
        """Loss that the claims allow excuses everything from the exactly-once check."""
        return not self.trace.claims.loss

    def _lose(self) -> None:
        """So much is under way, or kept, that memory has no room for it. Nothing is judged any more, because
        transactions without some of their parts mean something else."""
        self.lost = True
        self.under_way, self.completed, self.fresh, self.kept = {}, {}, set(), set()
        self._give_up(*CHECKS)

    def _give_up(self, *checks: str, number: int = 1) -> None:
        for check in checks:
            self.beyond[check] += number

    def _add(self, finding: Finding) -> None:
        if finding.anomaly not in self.reported[finding.check]:
            self.reported[finding.check].append(finding.anomaly)
            self.found.append(finding)

    def _rows(self, *, ended: bool) -> tuple[Operation, ...]:
        """What is judged, in the order of time. ended: nothing more comes, so that what is under way has no
        end."""
        waiting = self.under_way.values()
        open_ones = waiting if ended else [_aborted(one) for one in waiting if one.function == Function.TXN]
        rows = [*self.completed.values(), *open_ones]
        return tuple(sorted(rows, key=lambda row: (row.invoke_time, row.op_id)))

    def _judge(self, rows: tuple[Operation, ...]) -> "_Now":
        now = _Now.of(evolve(self.trace, operations=rows), self.accounts)
        fresh = np.isin(now.columns.op_id, list(self.fresh))
        for _, finding in findings_of(now.graph, {0}):
            self._add(finding)
        sent = now.graph.columns.sent
        low = fresh[sent.row] & (sent.offset_sent >= 0)  # a forgotten reader may have read it
        low &= sent.offset_sent < np.array([self.below.get(name, 0) for name in now.logs], np.int64)[sent.log]
        self._give_up(TRANSACTIONS, number=int(low.sum()))
        if self._exact:
            for _, finding in found_meanwhile(now.relations):
                self._add(finding)
            self._give_up(EXACTLY_ONCE, number=self.accounts.behind(now.relations, fresh))
        self.fresh = set()
        return now

    # ---- forgetting

    def _forget(self) -> None:
        """Judge what is remembered, then forget the oldest."""
        now = self._judge(self._rows(ended=False))
        if len(now.columns.op_id):
            going, opened = self._going(now)
            self._give_up(TRANSACTIONS, number=int((opened & going & now.is_node).sum()))
            stays = self.accounts.kept(now.relations) | self._bounds(now)
            stays[now.graph.node[stays & (now.columns.function == POLL)]] = True
            self.kept = set(now.columns.op_id[going & stays].tolist())
            self._note(now, going)
            again = self.accounts.forget(now.relations, going & ~stays)
            self._give_up(EXACTLY_ONCE, number=again)
            for op_id in now.columns.op_id[going & ~stays].tolist():
                del self.completed[op_id]
        self.since = 0
        if len(self.completed) > 2 * self.horizon:
            self._lose()

    def _going(self, now: "_Now") -> tuple[Array, Array]:
        """Which rows are old enough to be forgotten, and which of all may be in a later cycle."""
        graph, count = now.graph, len(now.columns.op_id)
        last = np.full(count, -1)
        np.maximum.at(last, graph.node, np.arange(count))
        held = np.zeros(count, np.bool_)  # by node
        busy = now.heads_of([one for one in self.under_way.values() if one.function != Function.TXN])
        held[busy] = True
        pending = np.isin(now.columns.op_id, list(self.under_way))
        held[pending] = True
        opened = reached(graph, np.concatenate((busy, self._waiting(now, pending))))[graph.node]
        going = (last < count - self.horizon)[graph.node] & ~held[graph.node]
        held[graph.node[_reading_on(now.relations, going)]] = True
        going &= ~held[graph.node]
        return going, opened

    def _waiting(self, now: "_Now", pending: Array) -> Array:
        """Nodes that read what somebody may yet turn out to have written."""
        shown, graph = now.graph.columns.shown, now.graph
        some = awaiting(graph, pending)
        names = now.logs
        logs, rows, offsets = (column[some].tolist() for column in (shown.log, shown.row, shown.offset))
        kept = [
            one
            for one, log, row, offset in zip(some.tolist(), logs, rows, offsets, strict=True)
            if names[log] in self.appended
            and offset >= self.below.get(names[log], 0)
            and int(now.columns.op_id[row]) not in self.kept
        ]
        found: Array = graph.node[shown.row[np.array(kept, np.int64)]]
        return found

    def _bounds(self, now: "_Now") -> Array:
        """Transactions that end the reach of one before them that never ends: each that is next after one in
        its process."""
        columns = now.columns
        process = incarnations(columns)
        heads = np.flatnonzero(columns.function == TXN)
        order = heads[np.argsort(process[heads], kind="stable")]
        endless = np.isin(columns.op_id, list(self.under_way))
        stays = np.zeros(len(process), np.bool_)
        after = (process[order[1:]] == process[order[:-1]]) & endless[order[:-1]]
        stays[order[1:][after]] = True
        return stays

    def _note(self, now: "_Now", going: Array) -> None:
        """Note the places of records that are forgotten, as far as they are known, and the logs of which
        nobody is known to write."""
        graph, names = now.graph, now.logs
        sent, shown, wr = graph.columns.sent, graph.columns.shown, graph.wr
        for log, offset, gone in (
            (sent.log, sent.offset_sent, going[sent.row]),
            (wr.log, wr.offset, going[wr.source]),
        ):
            for each in np.unique(log[gone]).tolist():
                end = int(offset[gone & (log == each)].max()) + 1
                self.below[names[each]] = max(end, self.below.get(names[each], 0))
        read = np.unique(shown.log[going[shown.row]]).tolist()
        self.foreign |= {names[each] for each in read} - self.appended


@define(kw_only=True)
class _Now:
    """What is remembered, as columns."""

    columns: OperationColumns
    graph: Graph
    relations: Relations
    # Topic and partition of each log of the graph.
    logs: list[Log]

    @classmethod
    def of(cls, trace: Trace, accounts: Accounts) -> "_Now":
        columns = columns_of_traces((trace,))
        graph = graph_of(columns)
        relations = relations_of(columns, details_of_traces((trace,)), np.ones(1, np.bool_))
        topics = [columns.topics[topic] for topic in graph.columns.log_topic.tolist()]
        logs = list(zip(topics, graph.columns.log_partition.tolist(), strict=True))
        return cls(
            columns=columns, graph=graph, relations=evolve(relations, settled=accounts.settled), logs=logs
        )

    @property
    def is_node(self) -> Array:
        """Rows that are transactions, or parts of none."""
        whole: Array = self.graph.node == np.arange(self.graph.rows)
        return whole

    def heads_of(self, parts: list[Operation]) -> Array:
        """The transactions during which these operations began."""
        columns = self.columns
        heads = np.flatnonzero(columns.function == TXN)
        latest: dict[tuple[int, int], list[int]] = {}
        names = zip(columns.process[heads].tolist(), columns.session[heads].tolist(), strict=True)
        for head, name in zip(heads.tolist(), names, strict=True):
            latest.setdefault(name, []).append(head)
        found = []
        for part in parts:
            begun = [
                head
                for head in latest.get((part.process, part.session), ())
                if columns.invoke_time[head] <= part.invoke_time <= columns.completion_time[head]
            ]
            found += begun[-1:]
        return np.array(found, np.int64)


def _reading_on(relations: Relations, going: Array) -> Array:
    """Reads that reach records of transactions that are still remembered: they say what was visible of
    them."""
    sent, operations = relations.sent, relations.operations
    stays = np.zeros(len(going), np.bool_)
    polls = operations.function == POLL
    staying = ~going[sent.row] & (sent.place.log >= 0) & (sent.place.offset >= 0)
    rows = np.repeat(np.arange(len(going)), np.diff(operations.records.start))
    for log in np.unique(sent.place.log[staying]).tolist():
        _, topic, partition = relations.logs.named(log)
        lowest = int(sent.place.offset[staying & (sent.place.log == log)].min())
        records = operations.records
        high = (records.topic == operations.topics.index(topic)) & (records.partition == partition)
        stays[rows[high & (records.offset >= lowest)]] = True
    stays &= polls
    return stays


def _aborted(transaction: Operation) -> Operation:
    """A transaction under way, as if it were to abort at some time."""
    changes: dict[str, Any] = {"outcome": Outcome.FAIL, "completion_time": None}
    if isinstance(transaction, msgspec.Struct):
        return msgspec.structs.replace(transaction, **changes)
    return evolve(transaction, **changes)
