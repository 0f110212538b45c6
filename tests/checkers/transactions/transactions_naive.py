"""The definitions of the transactions check, read literally and by brute force. Shares no code with the
check.

A relation is a set of pairs of nodes; closures are made by Warshall's algorithm. Only for histories of a few
operations.
"""

from itertools import pairwise, product

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace


class Naive:
    """The graph of one trace, as sets of pairs of op ids."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.rows = {op.op_id: op for op in trace.operations}
        self.node = {op.op_id: self._head(op).op_id for op in trace.operations}
        self.whole = [op for op in trace.operations if self.node[op.op_id] == op.op_id and self._counts(op)]
        self.wr, self.ww, self.rw = self._wr(), set(), set()
        self.ww, self.rw = self._ww(), self._rw()

    @staticmethod
    def _counts(op: Operation) -> bool:
        return op.function in (Function.APPEND, Function.POLL, Function.TXN)

    def _head(self, op: Operation) -> Operation:
        """The last transaction of the process that began before the row did and contains it."""
        same = [
            other
            for other in self.trace.operations
            if (other.process, other.session) == (op.process, op.session)
            and other.function is Function.TXN
            and (other.invoke_time, other.op_id) <= (op.invoke_time, op.op_id)
        ]
        if op.function is Function.TXN or not same:
            return op
        last = max(same, key=lambda other: (other.invoke_time, other.op_id))
        never = 10**18
        inside = (op.completion_time or never) <= (last.completion_time or never)
        return last if inside else op

    def _failed(self, op: Operation) -> bool:
        return Outcome.FAIL in (op.outcome, self.rows[self.node[op.op_id]].outcome)

    def _answered(self) -> list[Operation]:
        return [
            op
            for op in self.trace.operations
            if op.function is Function.POLL and op.outcome is Outcome.OK and op.completion_time is not None
        ]

    def _wr(self) -> set[tuple[int, int]]:
        pairs = set()
        for poll in self._answered():
            if poll.isolation == "read_uncommitted":
                continue
            for record, op in product(poll.records, self.trace.operations):
                wrote = op.function is Function.APPEND and any(
                    (own.topic, own.partition, own.value) == (record.topic, record.partition, record.value)
                    for own in op.records
                )
                if wrote and not self._failed(op) and self.node[op.op_id] != self.node[poll.op_id]:
                    pairs.add((self.node[op.op_id], self.node[poll.op_id]))
        return pairs

    def _places(self) -> dict[tuple[str, int], list[tuple[int, int]]]:
        """Of each log (offset, node of the writer), in order, of the records that count."""
        shown: dict[tuple[str, int, int], int] = {}
        for poll in self._answered():
            for record in poll.records:
                key = (record.topic, record.partition, record.value)
                shown[key] = min(record.offset, shown.get(key, record.offset))
        proven = self._proven()
        places: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for op in self.trace.operations:
            if op.function is not Function.APPEND or self._failed(op):
                continue
            head = self.rows[self.node[op.op_id]]
            for nth, record in enumerate(op.records):
                told = -1 if op.offset is None else op.offset + nth
                firm = told >= 0 and (
                    (op.outcome is Outcome.OK and op.acks in (None, -1))
                    or (head is not op and head.op_id in proven)
                )
                key = (record.topic, record.partition, record.value)
                offset = told if firm else shown.get(key, -1)
                known = (firm and (head is op or head.outcome is Outcome.OK)) or key in shown
                if offset >= 0 and known:
                    places.setdefault(key[:2], []).append((offset, head.op_id, op.op_id))
        return {log: [(offset, node) for offset, node, _ in sorted(here)] for log, here in places.items()}

    def _proven(self) -> set[int]:
        """Transactions of which somebody else was shown a record by a read that did not ask for uncommitted
        ones."""
        return {one for one, _ in self.wr if self.rows[one].function is Function.TXN}

    def _ww(self) -> set[tuple[int, int]]:
        return {
            (one, other)
            for here in self._places().values()
            for (_, one), (_, other) in pairwise(here)
            if one != other
        }

    def _rw(self) -> set[tuple[int, int]]:
        reached: dict[tuple[int, str, int], int] = {}
        for poll in self._answered():
            if not poll.records and poll.offset is not None and poll.topic is not None:
                key = (self.node[poll.op_id], poll.topic, poll.partition)
                reached[key] = max(poll.offset, reached.get(key, 0))
            for record in poll.records:
                key = (self.node[poll.op_id], record.topic, record.partition)
                reached[key] = max(record.offset + 1, reached.get(key, 0))
        pairs, places = set(), self._places()
        for (node, topic, partition), position in reached.items():
            later = [
                (offset, writer)
                for offset, writer in places.get((topic, partition), ())
                if offset >= position
            ]
            if later and later[0][1] != node:
                pairs.add((node, later[0][1]))
        return pairs

    def time(self, in_process: bool) -> set[tuple[int, int]]:
        """Which node ended before which began."""
        return {
            (one.op_id, other.op_id)
            for one, other in product(self.whole, self.whole)
            if one.outcome is Outcome.OK
            and one.completion_time is not None
            and one.completion_time < other.invoke_time
            and (not in_process or (one.process, one.session) == (other.process, other.session))
        }

    def circular(self) -> str | None:
        """The name of the violation, if there is one: the first kind that shows."""
        for name, more in (
            ("circular_reads", set()),
            ("circular_reads_in_process", self.time(in_process=True)),
            ("circular_reads_in_real_time", self.time(in_process=False)),
        ):
            if groups(self.wr | more):
                return name
        return None

    def cycles(self) -> dict[str, int]:
        """The counts of components by name."""
        found = {}
        for suffix, more in (("", set()), ("-process", self.time(True)), ("-realtime", self.time(False))):
            plain = self.ww | self.wr | more
            counts = {
                "G0": len(holding(groups(self.ww | more), self.ww)),
                "G1c": len(holding(groups(plain), self.wr)),
                "G-single": 0,
                "G2-item": 0,
            }
            reach = closure(plain)
            for group in holding(groups(plain | self.rw), self.rw):
                single = any((b, a) in reach for a, b in self.rw if a in group and b in group)
                counts["G-single" if single else "G2-item"] += 1
            found |= {name + suffix: count for name, count in counts.items() if count}
        return found


def closure(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Warshall's transitive closure."""
    nodes = {node for pair in pairs for node in pair}
    reach = set(pairs)
    for middle in nodes:
        before = [one for one in nodes if (one, middle) in reach]
        behind = [other for other in nodes if (middle, other) in reach]
        reach |= set(product(before, behind))
    return reach


def groups(pairs: set[tuple[int, int]]) -> set[frozenset[int]]:
    """The components that hold a cycle."""
    reach = closure(pairs)
    nodes = {node for pair in pairs for node in pair if (node, node) in reach}
    return {frozenset(b for b in nodes if (a, b) in reach and (b, a) in reach) for a in nodes}


def holding(found: set[frozenset[int]], pairs: set[tuple[int, int]]) -> list[frozenset[int]]:
    """Those with such a pair inside."""
    return [group for group in found if any(a in group and b in group for a, b in pairs)]
