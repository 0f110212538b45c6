"""The kafka check as its definitions read: quadratic, object by object, without columns. It answers which anomalies stand in which partitions.

Written from docs/anomalies.md, not from the checker: consumers look back over their own rows, occupied offsets are sets.
"""

from collections import defaultdict
from itertools import pairwise

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

OK, FAIL = Outcome.OK, Outcome.FAIL
MOVES = (Function.ASSIGN, Function.SUBSCRIBE, Function.JOIN, Function.CRASH)


class Naive:
    """One trace; everything is looked up again and again."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.rows = trace, trace.operations
        self.txn = {o.op_id: self.txn_of(o) for o in self.rows}
        self.shown = [
            (o, r.partition, r.offset, r.value) for o in self.rows if self.answered(o) for r in o.records
        ]
        self.sent = [
            (o, r.partition, r.value, None if o.offset is None else o.offset + nth)
            for o in self.rows
            if o.function is Function.APPEND
            for nth, r in enumerate(o.records)
        ]
        self.firm = [self.is_firm(o) and told is not None for o, _, _, told in self.sent]
        self.place = [
            told if firm else self.seen_at(p, v)
            for (o, p, v, told), firm in zip(self.sent, self.firm, strict=True)
        ]

    def answered(self, o: Operation) -> bool:
        return o.function is Function.POLL and o.outcome is OK and o.completion_time is not None

    def txn_of(self, o: Operation) -> Operation | None:
        for t in reversed([t for t in self.rows if t.function is Function.TXN and t.process == o.process]):
            if t is not o and t.invoke_time <= o.invoke_time and self.ends(o) <= self.ends(t):
                return t
        return None

    @staticmethod
    def ends(o: Operation) -> float:
        return float("inf") if o.completion_time is None else o.completion_time

    def lossy(self, p: int, offset: int) -> bool:
        return any(r.partition == p and r.start <= offset < r.end for r in self.trace.claims.loss)

    def seen_at(self, p: int, value: int) -> int | None:
        return min((o for _, q, o, v in self.shown if (q, v) == (p, value)), default=None)

    def is_firm(self, o: Operation) -> bool:
        """Acknowledged with acks=all, or of an unknown transaction of which another operation than its own showed something."""
        if o.outcome is OK and o.acks == -1:
            return True
        t = self.txn[o.op_id]
        if t is None or o.outcome is FAIL or t.outcome is not Outcome.UNKNOWN:
            return False
        mine = {
            (r.partition, r.value)
            for other in self.rows
            if other.function is Function.APPEND and self.txn[other.op_id] is t and other.outcome is not FAIL
            for r in other.records
        }
        return any((p, v) in mine for poll, p, _, v in self.shown if self.txn[poll.op_id] is not t)

    def occupied(self, p: int) -> set[int]:
        told = {
            s[3]
            for s, firm in zip(self.sent, self.firm, strict=True)
            if firm and s[1] == p and s[3] is not None
        }
        return {o for o in told | {o for _, q, o, _ in self.shown if q == p} if not self.lossy(p, o)}

    def anomalies(self) -> set[tuple[str, int]]:
        """(anomaly, partition)."""
        return self.lost() | self.unseen() | self.consumers() | self.producers() | self.transactions()

    @staticmethod
    def chooses(o: Operation) -> bool:
        return o.offset is not None or any(p.offset >= 0 for p in o.positions)

    def missing(self, p: int) -> list[tuple[Operation, int]]:
        """Firm records that nobody was shown, nor another one in their place."""
        there = {(q, o) for _, q, o, _ in self.shown}
        values = {(q, v) for _, q, _, v in self.shown}
        return [
            (o, told)
            for (o, q, v, told), firm in zip(self.sent, self.firm, strict=True)
            if firm and q == p and (p, v) not in values and (p, told) not in there and not self.lossy(p, told)
        ]

    def highest(self, p: int) -> int:
        return max((o for poll, q, o, _ in self.shown if q == p and not self.chooses(poll)), default=-1)

    def partitions(self) -> set[int]:
        return {p for _, p, _, _ in self.sent} | {p for _, p, _, _ in self.shown}

    def lost(self) -> set[tuple[str, int]]:
        return {
            ("lost_write", p)
            for p in self.partitions()
            if any(told < self.highest(p) for _, told in self.missing(p))
        }

    def unseen(self) -> set[tuple[str, int]]:
        found = set()
        for p in self.partitions():
            for append, told in self.missing(p):
                if told < self.highest(p):
                    continue
                for process in {o.process for o in self.rows}:
                    mine = [o for o in self.rows if o.process == process and o.outcome is OK]
                    assigns = [o for o in mine if o.function is Function.ASSIGN]
                    polls = [o for o in mine if o.function is Function.POLL]
                    if not assigns or not polls:
                        continue
                    began, last = assigns[-1], polls[-1]
                    if began.argument != "seek_to_beginning" or p not in {
                        x.partition for x in began.positions
                    }:
                        continue
                    late = last.invoke_time >= self.ends(began) and self.ends(append) < began.invoke_time
                    if late and p not in {r.partition for r in last.records}:
                        found.add(("unseen", p))
        return found

    def before(
        self, o: Operation, p: int, mine: list[Operation], consumer: bool
    ) -> tuple[str, Operation] | None:
        """What a poll follows: a poll of the same transaction, or the last one that counted; None where it was forgotten."""
        for earlier in reversed(mine[: mine.index(o)]):
            if earlier.function in (Function.JOIN, Function.CRASH):
                if earlier.outcome is not FAIL or earlier.function is Function.CRASH:
                    return None
            elif earlier.function in (Function.ASSIGN, Function.SUBSCRIBE):
                kept = p in {x.partition for x in earlier.positions} and earlier.argument is None
                if earlier.outcome is not FAIL and not kept:
                    return None
            elif self.chooses(earlier) and not consumer:
                continue
            elif self.answered(earlier) and p in {r.partition for r in earlier.records}:
                t, same = self.txn[earlier.op_id], self.txn[o.op_id]
                if t is not None and t is same:
                    return "within", earlier
                if t is None or t.outcome is OK:
                    if self.trace.concurrent_processes and self.ends(earlier) >= o.invoke_time:
                        return None
                    return "next", earlier
        return None

    def consumers(self) -> set[tuple[str, int]]:
        found = set()
        for process in {o.process for o in self.rows}:
            mine = sorted((o for o in self.rows if o.process == process), key=lambda o: o.invoke_time)
            consumer = any(
                o.function in MOVES and (o.outcome is not FAIL or o.function is Function.CRASH) for o in mine
            )
            for o in mine:
                if not self.answered(o) or (self.chooses(o) and not consumer):
                    continue
                for p in {r.partition for r in o.records}:
                    follows = self.before(o, p, mine, consumer)
                    if follows is None:
                        continue
                    how, earlier = follows
                    modes = [
                        m.function
                        for m in mine[: mine.index(o)]
                        if m.function in (Function.ASSIGN, Function.SUBSCRIBE) and m.outcome is not FAIL
                    ]
                    if how == "next" and modes[-1:] == [Function.SUBSCRIBE]:
                        continue
                    t = self.txn[o.op_id]
                    rebalanced = [
                        {x.partition for x in j.positions}
                        for j in mine
                        if j.function is Function.JOIN and t is not None and self.txn[j.op_id] is t
                    ]
                    if how == "within" and any(p in named or not named for named in rebalanced):
                        continue
                    last = [r.offset for r in earlier.records if r.partition == p][-1]
                    first = next(r.offset for r in o.records if r.partition == p)
                    if any(last < x < first for x in self.occupied(p)):
                        found.add(("poll_skip" if how == "next" else "skipped_offset", p))
                    if first <= last:
                        found.add(("position_regressed" if how == "next" else "unordered_read", p))
        return found

    def producers(self) -> set[tuple[str, int]]:
        found = set()
        spans = defaultdict(list)
        for i, (o, p, v, _) in enumerate(self.sent):
            spans[o.op_id].append((o, p, self.place[i], self.firm[i], self.seen_at(p, v)))
        usable = []
        for records in spans.values():
            ends = (records[0], records[-1])
            o, p = records[0][0], records[0][1]
            good = o.acks != 0 and o.outcome is not FAIL
            good &= o.producer_id is not None or not self.trace.claims.duplicates
            good &= all(
                at is not None and (firm or seen == at) and not self.lossy(p, at)
                for _, _, at, firm, seen in ends
            )
            if good:
                bounded = o.outcome is OK and o.acks == -1 and o.offset is not None
                usable.append((o, p, ends[0][2], ends[1][2], bounded))
        for a, p, _, a_last, bounded in usable:
            for b, q, b_first, _, _ in usable:
                same = (a.process, p, a.producer_id, a.producer_epoch) == (
                    b.process,
                    q,
                    b.producer_id,
                    b.producer_epoch,
                )
                if a is b or not same or bounded:
                    continue
                if self.trace.concurrent_processes:
                    earlier = self.ends(a) < b.invoke_time
                else:
                    earlier = (a.invoke_time, self.rows.index(a)) < (b.invoke_time, self.rows.index(b))
                settled = a.outcome is OK or a.producer_id is not None
                if earlier and settled and b_first <= a_last:
                    found.add(("nonmonotonic_send", p))
        return found

    def transactions(self) -> set[tuple[str, int]]:
        found = set()
        for t in self.rows:
            if t.function is not Function.TXN:
                continue
            own = {
                (r.partition, r.value)
                for o in self.rows
                if self.txn[o.op_id] is t and o.function is Function.APPEND
                for r in o.records
            }
            found |= {
                ("precommitted_read", p)
                for o, p, _, v in self.shown
                if self.txn[o.op_id] is t and (p, v) in own
            }
            for p in self.partitions():
                placed = []
                for i, (o, q, v, _) in enumerate(self.sent):
                    at = self.place[i]
                    trusted = self.firm[i] or (at is not None and at == self.seen_at(p, v))
                    if (
                        self.txn[o.op_id] is t
                        and q == p
                        and o.outcome is not FAIL
                        and at is not None
                        and trusted
                    ):
                        placed += [] if self.lossy(p, at) else [(o, at)]
                for (a, x), (b, y) in pairwise(placed):
                    if a is not b and y <= x:
                        found.add(("int_nonmonotonic_send", p))
        return found
