"""When a history is too weak to be called Ok, and what became of its records, read straight from the
definitions, record by record."""

from collections import Counter

from log_claims import ABORTED, OPEN, claims_of, compacted, fate_of, licence_of, told_for_good

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace


class Strength:
    """One trace about the log t-0."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        operations = trace.operations
        self.appends = [op for op in operations if op.function is Function.APPEND]
        answered = (Function.POLL, Function.LIST_OFFSETS)
        self.reads = [op for op in operations if op.function in answered and op.outcome is Outcome.OK]
        self.shown = {record.value for read in self.reads for record in read.records}

    def acknowledged(self, acks: int) -> list[tuple[Operation, int, int]]:
        """(append, offset, value) of each record that was acknowledged so, and was told an offset."""
        return [
            (op, op.offset + n, record.value)
            for op in self.appends
            if op.outcome is Outcome.OK
            and (-1 if op.acks is None else op.acks) == acks
            and op.offset is not None
            for n, record in enumerate(op.records)
        ]

    def excused(self, append: Operation, offset: int) -> bool:
        """May it be missing?"""
        claims, trace = self.trace.claims, self.trace
        if claims.content_by_epoch or any(r.start <= offset < r.end for r in claims.loss):
            return True
        fate = fate_of(append, trace)
        shown = fate == OPEN and self.committed(append)
        if offset < licence_of(trace) or (fate in (OPEN, ABORTED) and not shown):
            return True
        if append.acks == 1 and (trace.plan or claims.acks_1_may_lose):
            return True
        others = [
            op
            for op in self.appends
            if op is not append and op.key == append.key and op.outcome is not Outcome.FAIL
            if fate_of(op, trace) != ABORTED
        ]
        newer = append.key is not None and bool(others or claims.duplicates)
        return compacted(trace) and (append.argument == "tombstone" or newer)

    def committed(self, append: Operation) -> bool:
        """Did a read_committed read prove that its transaction of unknown outcome has committed?"""
        alone = [op for op in self.trace.operations if op.isolation == "read_committed"]
        kept = [
            op for op in self.trace.operations if op.function not in (Function.POLL, Function.LIST_OFFSETS)
        ]
        from attrs import evolve

        return told_for_good(append, evolve(self.trace, operations=(*kept, *alone)))

    def strong(self) -> list[tuple[int, int]]:
        """(end, invocation) of each read whose end is to be trusted."""
        claimed = [(claims_of(read, self.trace).end, read.invoke_time) for read in self.reads]
        return [(end, invoked) for end, invoked in claimed if end is not None]

    def unread(self, acks: int) -> int:
        """Records that nobody read, and whose place nobody that may be trusted looked at afterwards."""
        latest = max([invoked for _, invoked in self.strong()], default=None)
        return sum(
            value not in self.shown
            and not self.excused(append, offset)
            and (acks == 1 or latest is None or latest < (append.completion_time or 0))
            for append, offset, value in self.acknowledged(acks)
        )

    def lost(self, acks: int) -> list[tuple[int, bool]]:
        """(offset, allowed) of each record that a read went past, or that a trusted end excludes."""
        found = []
        for append, offset, value in self.acknowledged(acks):
            passed = any(
                (read.offset or 0) <= offset <= max(record.offset for record in read.records)
                for read in self.reads
                if read.records
            )
            ended = any(
                end <= offset and invoked >= (append.completion_time or 0) for end, invoked in self.strong()
            )
            if value not in self.shown and (passed or ended):
                found.append((offset, self.excused(append, offset)))
        return sorted(found)

    def duplicated(self) -> int:
        """Values that stand at several offsets."""
        places = {(record.value, record.offset) for read in self.reads for record in read.records}
        places |= {(value, offset) for _, offset, value in self.acknowledged(-1)}
        places |= {
            (record.value, op.offset + n)
            for op in self.appends
            if op.offset is not None and told_for_good(op, self.trace)
            for n, record in enumerate(op.records)
        }
        return sum(many > 1 for many in Counter(value for value, _ in places).values())

    def unknown_present(self) -> int:
        """Records of unknown appends that were read."""
        return sum(
            record.value in self.shown
            for op in self.appends
            if op.outcome is Outcome.UNKNOWN
            for record in op.records
        )

    def weak(self) -> bool:
        """Would an Ok mean nothing?"""
        acked = [op for op in self.appends if op.outcome is Outcome.OK]
        thin = (
            not self.appends
            or not self.reads
            or not acked
            or (len(self.appends) >= 20 and 20 * len(acked) < len(self.appends))
        )
        return not self.trace.plan and (thin or self.unread(-1) > 0 or self.unread(1) > 0)
