"""The kafka check as its definitions read: quadratic, object by object, without columns. It answers which
anomalies stand in which logs.

Written from the definitions of traces/anomalies, not from the checker: consumers look back over their own
rows, occupied offsets are sets.
"""

from collections import defaultdict
from itertools import combinations

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

OK, FAIL = Outcome.OK, Outcome.FAIL
MOVES = (Function.ASSIGN, Function.SUBSCRIBE, Function.JOIN, Function.CRASH)
SEEKS = "seek_to_beginning"
Log = tuple[str, int]
"""A topic and a partition."""
Found = set[tuple[str, str, int]]
"""(anomaly, topic, partition)."""


class Naive:
    """One trace; everything is looked up again and again."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.rows = trace, trace.operations
        self.txn = {o.op_id: self.txn_of(o) for o in self.rows}
        self.shown = [
            (o, (r.topic, r.partition), r.offset, r.value)
            for o in self.rows
            if self.answered(o)
            for r in o.records
            if r.offset >= 0
        ]
        self.sent = [
            (o, (r.topic, r.partition), r.value, None if o.offset is None else o.offset + nth)
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

    @staticmethod
    def incarnation(o: Operation) -> tuple[int, int]:
        return o.process, o.session

    def txn_of(self, o: Operation) -> Operation | None:
        """The last transaction of the process that began before the operation, if it ended after it."""
        began = [
            (t.invoke_time, at, t)
            for at, t in enumerate(self.rows)
            if t.function is Function.TXN and self.incarnation(t) == self.incarnation(o)
        ]
        here = (o.invoke_time, self.rows.index(o))
        last = max((one for one in began if one[:2] < here), default=None)
        if last is None or o.function is Function.TXN or self.ends(o) > self.ends(last[2]):
            return None
        return last[2]

    @staticmethod
    def ends(o: Operation) -> float:
        return float("inf") if o.completion_time is None else o.completion_time

    def lossy(self, p: Log, offset: int) -> bool:
        claims = self.trace.claims
        return claims.content_by_epoch or any(
            (r.topic, r.partition) == p and r.start <= offset < r.end for r in claims.loss
        )

    def seen_at(self, p: Log, value: int) -> int | None:
        if not self.trace.unique_values:
            return None
        return min((o for _, q, o, v in self.shown if (q, v) == (p, value)), default=None)

    def excused(self, p: Log, offset: int) -> bool:
        """Below a log start that was claimed, or at all if none was; or its key may have a later record."""
        claims = self.trace.claims
        starts = [o.log_start_offset for o in self.rows if (o.topic, o.partition) == p]
        starts += [x.log_start_offset for o in self.rows for x in o.positions if (x.topic, x.partition) == p]
        known = [start for start in starts if start is not None]
        if claims.retention and (not known or offset < max(known)):
            return True
        return p[0] in claims.compacted and self.compacted(p, offset)

    def compacted(self, p: Log, offset: int) -> bool:
        there = [i for i, (o, q, _, _) in enumerate(self.sent) if q == p and o.outcome is not FAIL]
        here = next((i for i in there if self.place[i] == offset), None)
        if here is None or self.sent[here][0].argument == "tombstone":
            return True
        key = self.sent[here][0].key
        later = [i for i in there if i != here and (at := self.place[i], at is None or at > offset)[1]]
        return key is not None and any(self.sent[i][0].key == key for i in later)

    def is_firm(self, o: Operation) -> bool:
        """Acknowledged with acks=all, or of an unknown transaction that has committed as far as anybody
        knows."""
        if o.outcome is OK and o.acks == -1:
            return True
        t = self.txn[o.op_id]
        if t is None or o.outcome is FAIL or t.outcome is not Outcome.UNKNOWN or not self.trace.unique_values:
            return False
        mine = {
            ((r.topic, r.partition), r.value)
            for other in self.rows
            if other.function is Function.APPEND and self.txn[other.op_id] is t and other.outcome is not FAIL
            for r in other.records
        }
        return any(
            (p, v) in mine
            for poll, p, _, v in self.shown
            if poll.isolation == "read_committed"
            or (poll.isolation is None and self.txn[poll.op_id] is not t)
        )

    def occupied(self, p: Log) -> set[int]:
        told = {
            s[3]
            for s, firm in zip(self.sent, self.firm, strict=True)
            if firm and s[1] == p and s[3] is not None
        }
        return {o for o in told | {o for _, q, o, _ in self.shown if q == p} if not self.lossy(p, o)}

    def anomalies(self) -> Found:
        """All of them."""
        found = self.lost() | self.unseen() | self.consumers() | self.producers() | self.transactions()
        return {(anomaly, *p) for anomaly, p in found}

    @staticmethod
    def chooses(o: Operation) -> bool:
        return o.offset is not None or any(p.offset >= 0 for p in o.positions)

    def passes(self, o: Operation) -> bool:
        """Whether the poll is taken to go on from the beginning of the log."""
        return not self.chooses(o) and o.group is None

    def missing(self, p: Log) -> list[tuple[Operation, int]]:
        """Firm records that nobody was shown."""
        values = {(q, v) for _, q, _, v in self.shown}
        return [
            (o, told)
            for (o, q, v, told), firm in zip(self.sent, self.firm, strict=True)
            if firm and q == p and (p, v) not in values and not self.lossy(p, told)
        ]

    def highest(self, p: Log) -> int:
        return max((o for poll, q, o, _ in self.shown if q == p and self.passes(poll)), default=-1)

    def partitions(self) -> set[Log]:
        return {p for _, p, _, _ in self.sent} | {p for _, p, _, _ in self.shown}

    def lost(self) -> set[tuple[str, Log]]:
        return {
            ("lost_write", p)
            for p in self.partitions()
            if any(told <= self.highest(p) and not self.excused(p, told) for _, told in self.missing(p))
        }

    def unseen(self) -> set[tuple[str, Log]]:
        found = set()
        for p in self.partitions():
            for append, told in self.missing(p):
                if told <= self.highest(p) or self.excused(p, told):
                    continue
                if told in {o for _, q, o, _ in self.shown if q == p}:
                    continue  # another value is there: the log judge tells that
                for process in {self.incarnation(o) for o in self.rows}:
                    mine = [o for o in self.rows if self.incarnation(o) == process and o.outcome is OK]
                    assigns = [o for o in mine if o.function is Function.ASSIGN]
                    polls = [o for o in mine if o.function is Function.POLL]
                    if not assigns or not polls:
                        continue
                    began, last = assigns[-1], polls[-1]
                    if began.argument != SEEKS or p not in self.named(began):
                        continue
                    late = last.invoke_time >= self.ends(began) and self.ends(append) < began.invoke_time
                    if late and p not in {q for poll, q, _, _ in self.shown if poll is last}:
                        found.add(("unseen", p))
        return found

    @staticmethod
    def named(o: Operation) -> set[Log]:
        return {(x.topic, x.partition) for x in o.positions}

    def before(
        self, o: Operation, p: Log, mine: list[Operation], consumer: bool
    ) -> tuple[str, Operation] | None:
        """What a poll follows: a poll of the same transaction, or the last one that counted; None where it
        was forgotten."""
        for earlier in reversed(mine[: mine.index(o)]):
            if earlier.function in (Function.JOIN, Function.CRASH):
                if earlier.outcome is not FAIL or earlier.function is Function.CRASH:
                    return None
            elif earlier.function in (Function.ASSIGN, Function.SUBSCRIBE):
                kept = p in self.named(earlier) and earlier.argument != SEEKS
                if earlier.outcome is not FAIL and not kept:
                    return None
            elif self.chooses(earlier) and not consumer and earlier.group is None:
                continue
            elif p in {q for poll, q, _, _ in self.shown if poll is earlier}:
                t, same = self.txn[earlier.op_id], self.txn[o.op_id]
                if t is not None and t is same:
                    return "within", earlier
                if t is None or t.outcome is OK:
                    if self.trace.concurrent_processes and self.ends(earlier) >= o.invoke_time:
                        return None
                    if earlier.generation != o.generation:
                        return None
                    return "next", earlier
        return None

    def consumers(self) -> set[tuple[str, Log]]:
        found = set()
        for process in {self.incarnation(o) for o in self.rows}:
            mine = [o for o in self.rows if self.incarnation(o) == process]
            mine.sort(key=lambda o: o.invoke_time)
            consumer = any(
                o.function in MOVES and (o.outcome is not FAIL or o.function is Function.CRASH) for o in mine
            )
            for o in mine:
                if self.chooses(o) and not consumer and o.group is None:
                    continue
                for p in {q for poll, q, _, _ in self.shown if poll is o}:
                    follows = self.before(o, p, mine, consumer)
                    if follows is None:
                        continue
                    how, earlier = follows
                    modes = [
                        m.function
                        for m in mine[: mine.index(o)]
                        if m.function in (Function.ASSIGN, Function.SUBSCRIBE) and m.outcome is not FAIL
                    ]
                    if how == "next" and modes[-1:] == [Function.SUBSCRIBE] and o.generation is None:
                        continue
                    t = self.txn[o.op_id]
                    rebalanced = [
                        self.named(j)
                        for j in mine
                        if j.function is Function.JOIN and t is not None and self.txn[j.op_id] is t
                    ]
                    if how == "within" and any(p in named or not named for named in rebalanced):
                        continue
                    last = [x for poll, q, x, _ in self.shown if poll is earlier and q == p][-1]
                    first = next(x for poll, q, x, _ in self.shown if poll is o and q == p)
                    if any(last < x < first and not self.excused(p, x) for x in self.occupied(p)):
                        found.add(("poll_skip" if how == "next" else "skipped_offset", p))
                    if first <= last and not self.began_anew(p, first, last):
                        found.add(("position_regressed" if how == "next" else "unordered_read", p))
        return found

    def began_anew(self, p: Log, first: int, last: int) -> bool:
        """The last record may be lost: then a consumer begins at the log's first record, or where the loss
        began, or above."""
        if not self.lossy(p, last):
            return False
        while last >= 0 and self.lossy(p, last - 1):  # where the loss began
            last -= 1
        standing = [x for x in self.occupied(p) if not self.excused(p, x)]
        return last <= first or first <= min(standing, default=first)

    def producers(self) -> set[tuple[str, Log]]:
        found = set()
        spans = defaultdict(list)
        for i, (o, p, _, _) in enumerate(self.sent):
            spans[o.op_id].append((o, p, self.place[i]))
        usable = []
        for records in spans.values():
            ends = (records[0], records[-1])
            o, p = records[0][0], records[0][1]
            good = o.acks != 0 and o.outcome is not FAIL
            good &= not self.trace.claims.duplicates
            good &= all(at is not None and not self.lossy(p, at) for _, _, at in ends)
            if good:
                bounded = o.outcome is OK and o.acks == -1 and o.offset is not None
                usable.append((o, p, ends[0][2], ends[1][2], bounded))
        for a, p, _, a_last, bounded in usable:
            for b, q, b_first, _, _ in usable:
                same = (self.incarnation(a), p, a.producer_id, a.producer_epoch) == (
                    self.incarnation(b),
                    q,
                    b.producer_id,
                    b.producer_epoch,
                )
                ordered = self.trace.concurrent_processes and a.producer_id is not None
                if a is b or not same or (bounded and not ordered):
                    continue
                if ordered:
                    earlier = a.invoke_time < b.invoke_time
                elif self.trace.concurrent_processes:
                    earlier = self.ends(a) < b.invoke_time
                else:
                    earlier = (a.invoke_time, self.rows.index(a)) < (b.invoke_time, self.rows.index(b))
                settled = a.outcome is OK or a.producer_id is not None
                if earlier and settled and b_first <= a_last:
                    found.add(("nonmonotonic_send", p))
        return found

    def transactions(self) -> set[tuple[str, Log]]:
        found = set()
        for t in self.rows:
            if t.function is not Function.TXN:
                continue
            own = {
                ((r.topic, r.partition), r.value)
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
                placed = [
                    (o, at)
                    for (o, q, _, _), at in zip(self.sent, self.place, strict=True)
                    if self.txn[o.op_id] is t and q == p and o.outcome is not FAIL
                    if at is not None and not self.lossy(p, at)
                ]
                for (a, x), (b, y) in combinations(placed, 2):
                    if a is not b and y <= x:
                        found.add(("int_nonmonotonic_send", p))
        return found
