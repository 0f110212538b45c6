"""The streaming form: one log judged while it happens, in memory bounded by a horizon.

Owns the state that decides real time with one number: E, the largest end known from completed operations. On invocation an operation
remembers `floor = E`; what it turns out to have done must not lie below. E is kept apart for acknowledgements and for reads, so that the
anomaly gets its right name. It is not the whole decision; what it leaves to the batch form: holes (step 5), torn batches, leader epochs,
session order, a skip whose occupant is known only later, loss keyed by epoch, and `lost_write` (which it calls stale_read: the later reads
have not happened yet). A value that nobody sent yet is deferred until it is sent, or the stream ends, or it leaves the horizon. What the
horizon dropped makes the verdict Unknown. It never finds what the batch form does not.
"""

from typing import Any

from attrs import Factory, define, evolve, field, frozen

from fencepost.checkers.columns import NONE
from fencepost.checkers.log.bounds import clearing
from fencepost.checkers.log.group import CHECK
from fencepost.checkers.log.rules import loss_in
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, Trace

HORIZON = 1_000_000
"""Slots, unseen sends and unsent values that are kept, each."""


@frozen(kw_only=True)
class Shown:
    """How far the log is known to reach. end: this many offsets; by: the operation that showed it first (None at the start);
    by_record: it showed a record, not a claimed end."""

    end: int = 0
    by: Operation | None = None
    by_record: bool = False


@define(kw_only=True)
class Sent:
    """An append that was invoked. acknowledged, shown: the floors at that moment; failed: it is known to have failed;
    stands: bases at which reads showed it while it was in flight (judged once it is known not to have failed)."""

    operation: Operation
    acknowledged: Shown
    shown: Shown
    failed: bool = False
    stands: list[int] = Factory(list)


@frozen(kw_only=True)
class Slot:
    """What stands at an offset, and the operation that said so."""

    value: int
    by: Operation


@define(kw_only=True)
class StreamingLogCheck:
    """Feed invocations and completions in time order; at equal times invocations first. Then ask for the verdict.

    slots: by offset; offset_of, sends: by value; early: values read before they were sent, with offset and read; in_flight: floors of
    unfinished operations by op id; forgotten: how much left the horizon undecided; findings: one per anomaly.
    """

    topic: str
    partition: int
    claims: Claims = Factory(Claims)
    horizon: int = HORIZON
    now: int = Factory(lambda: -(2**63))
    acknowledged: Shown = Factory(Shown)
    shown: Shown = Factory(Shown)
    slots: dict[int, Slot] = Factory(dict)
    offset_of: dict[int, int] = Factory(dict)
    sends: dict[int, Sent] = Factory(dict)
    early: dict[int, tuple[int, Operation]] = Factory(dict)
    in_flight: dict[int, Sent] = Factory(dict)
    forgotten: int = 0
    sends_forgotten: bool = False
    unique: bool = True
    broken: str = ""
    findings: dict[str, Finding] = Factory(dict)
    loss: list[tuple[int, int]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.loss = loss_in(self.claims, self.topic, self.partition)

    @property
    def timed(self) -> bool:
        """Is anything demanded of real time?"""
        return self.claims.check != "content"

    def invoke(self, operation: Operation) -> None:
        """`operation` begins now; of its fields only those known at invocation are looked at."""
        self._tick(operation.invoke_time, operation)
        sent = Sent(operation=operation, acknowledged=self.acknowledged, shown=self.shown)
        self.in_flight[operation.op_id] = sent
        if operation.function is Function.APPEND:
            for record in operation.records:
                if record.value in self.sends and self.unique:
                    self.broken = self.broken or f"value {record.value} was sent twice"
                if record.value not in self.sends:
                    self._keep(self.sends, record.value, sent)
                if record.value in self.early:
                    offset, read = self.early.pop(record.value)
                    self._read_before_sent(sent, record.value, offset, read)
                    self._stands(sent, record.value, offset, read)

    def complete(self, operation: Operation) -> None:
        """`operation` has its outcome now."""
        self._tick(operation.completion_time or operation.invoke_time, operation)
        sent = self.in_flight.pop(operation.op_id, None)
        if (
            sent is None
            or operation.completion_time is None
            or operation.completion_time < operation.invoke_time
        ):
            self.broken = self.broken or f"operation {operation.op_id} completed but was not in flight"
            return
        if operation.function is Function.APPEND:
            self._append_done(sent, operation)
        elif operation.outcome is Outcome.OK:
            self._read_done(sent, operation)

    def verdict(self) -> Verdict:
        """What is known so far, taking the stream to have ended."""
        for value, (offset, read) in self.early.items():
            what = "only records that some client sent", f"value {value}, which nobody sent"
            if self.sends_forgotten:
                self.forgotten += 1
            else:
                self._find("phantom_record", offset, (read,), *what)
        for sent in self.in_flight.values():
            for base in sent.stands:
                self._above_floors(sent, sent.operation, base)
        if self.broken or self.claims.assumption_broken:
            reason = self.broken or self.claims.assumption_broken
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason)
        if self.findings:
            return Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=tuple(self.findings.values()))
        if self.forgotten:
            reason = f"{self.forgotten} records lay beyond the horizon of {self.horizon}"
            return Verdict(decision=Decision.UNKNOWN, check=CHECK, reason=reason)
        return Verdict(decision=Decision.OK, check=CHECK)

    def _tick(self, time: int, operation: Operation) -> None:
        if time < self.now:
            self.broken = self.broken or f"operation {operation.op_id} was fed at {time}, after {self.now}"
        self.now = max(self.now, time)

    def _append_done(self, sent: Sent, operation: Operation) -> None:
        if operation.outcome is Outcome.FAIL:
            sent.failed = True
            for record in operation.records:
                if record.value in self.offset_of:
                    self._failed_visible(sent, record.value, self.slots.get(self.offset_of[record.value]))
            return
        for base in sent.stands:
            self._above_floors(sent, operation, base)
        firm = operation.outcome is Outcome.OK and operation.acks in (None, ACKS_ALL)
        if not firm or not operation.records:
            return
        if operation.offset is None:
            self.broken = (
                self.broken
                or f"operation {operation.op_id} is an append with acks=all and ok but has no offset"
            )
            return
        for n, record in enumerate(operation.records):
            self._content(operation.offset + n, record.value, operation)
        self._above_floors(sent, operation, operation.offset)
        self.acknowledged = self._raised(
            self.acknowledged, operation.offset + len(operation.records), operation
        )

    def _read_done(self, sent: Sent, operation: Operation) -> None:
        part, records = _part(operation, self.topic, self.partition)
        end = _end_of(part) if part.strong or self.claims.check == "strong" else None
        position = NONE if part.function is Function.LIST_OFFSETS or part.offset is None else part.offset
        self._order(part, records, position, end)
        for record in records:
            self._record(part, record)
        if end is not None and self.timed and not self._lossy(end):
            for floor, anomaly in (
                (sent.acknowledged, "stale_read"),
                (sent.shown, "high_watermark_regressed"),
            ):
                if end < floor.end and floor.by is not None:
                    self._timed(anomaly, end, part, floor.by, f"an end of {floor.end} or more", f"end {end}")
        reach = max((record.offset + 1 for record in records), default=0)
        if end is not None and end >= reach:
            self.shown = self._raised(self.shown, end, part)
        self.shown = self._raised(self.shown, reach, part, by_record=True)

    def _order(self, read: Operation, records: tuple[Record, ...], position: int, end: int | None) -> None:
        """Step 1 within one read."""
        before = position - 1 if position >= 0 else None
        for n, record in enumerate(records):
            offset = record.offset
            if n and before is not None and offset <= before:
                self._find("unordered_read", offset, (read,), f"an offset above {before}", f"offset {offset}")
            if offset < position or (end is not None and offset >= end):
                what = f"offsets within [{max(position, 0)}, {end if end is not None else 'any end'})"
                self._find("read_outside_bounds", offset, (read,), what, f"offset {offset}")
            if before is not None and offset > before + 1:
                self._skip(read, before + 1, offset)
            before = offset

    def _skip(self, read: Operation, first: int, stop: int) -> None:
        if self.claims.dense:
            self._find("skipped_offset", first, (read,), f"offset {first} before {stop}", f"a jump to {stop}")
            return
        held = (
            range(first, stop)
            if stop - first < len(self.slots)
            else (o for o in self.slots if first <= o < stop)
        )
        passed = next((offset for offset in held if offset in self.slots and not self._lossy(offset)), None)
        if passed is not None:
            operations = (read, self.slots[passed].by)
            self._find(
                "skipped_offset", passed, operations, f"offset {passed} before {stop}", f"a jump to {stop}"
            )

    def _record(self, read: Operation, record: Record) -> None:
        known = self.slots.get(record.offset)
        sent = self.sends.get(record.value)
        if known is not None and known.value == record.value and record.value not in self.early:
            return
        if record.offset < self._oldest():
            self.forgotten += 1
            return
        self._content(record.offset, record.value, read)
        if sent is None:
            self._keep(self.early, record.value, (record.offset, read))
        else:
            self._stands(sent, record.value, record.offset, read)

    def _oldest(self) -> int:
        """Below this offset the horizon has forgotten slots."""
        return next(iter(self.slots), 0) if len(self.slots) >= self.horizon else 0

    def _content(self, offset: int, value: int, by: Operation) -> None:
        """Step 1: one value at each offset, one offset for each value (left to the batch form where loss is allowed)."""
        if self._lossy(offset):
            return
        known = self.slots.get(offset)
        if known is not None and known.value != value:
            self._find(
                "inconsistent_offsets", offset, (known.by, by), f"value {known.value}", f"value {value}"
            )
        elsewhere = self.offset_of.get(value)
        if elsewhere is not None and elsewhere != offset and self.unique and not self.claims.duplicates:
            before = (self.slots[elsewhere].by,) if elsewhere in self.slots else ()
            self._find(
                "duplicate", offset, (*before, by), f"value {value} at {elsewhere} only", f"it at {offset}"
            )
        if known is None:
            self._keep(self.slots, offset, Slot(value=value, by=by))
        if elsewhere is None:
            self._keep(self.offset_of, value, offset)

    def _stands(self, sent: Sent, value: int, offset: int, read: Operation) -> None:
        """A read showed a record of `sent` at `offset`."""
        if sent.failed:
            self._failed_visible(sent, value, Slot(value=value, by=read))
            return
        base = offset - [record.value for record in sent.operation.records].index(value)
        if not self.unique or self._lossy(offset):
            return
        if sent.operation.op_id in self.in_flight:
            sent.stands.append(base)
        else:
            self._above_floors(sent, sent.operation, base)

    def _above_floors(self, sent: Sent, append: Operation, base: int) -> None:
        """The append must not lie below what was known when it was invoked."""
        last = base + len(append.records) - 1
        if not self.timed or self._lossy(base) or self._lossy(last):
            return
        expected, seen = "an offset of {0} or more", f"offset {base}"
        floor = sent.acknowledged
        if base < floor.end and floor.by is not None:
            self._timed("append_inversion", base, append, floor.by, expected.format(floor.end), seen)
        floor = sent.shown
        own = floor.by_record and base <= floor.end - 1 < base + len(
            append.records
        )  # that is read_before_sent
        if base < floor.end and floor.by is not None and not own:
            self._timed("append_below_shown_end", base, append, floor.by, expected.format(floor.end), seen)

    def _raised(self, known: Shown, end: int, by: Operation, by_record: bool = False) -> Shown:
        while end > 0 and self._lossy(end - 1):
            end = min(start for start, stop in self.loss if start <= end - 1 < stop)
            by_record = False
        return Shown(end=end, by=by, by_record=by_record) if end > known.end else known

    def _lossy(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.loss)

    def _keep(self, table: dict[int, Any], key: int, value: Any) -> None:
        """Remember; the oldest entry leaves where the horizon is full."""
        if len(table) >= self.horizon:
            oldest = next(iter(table))
            if table is self.early:
                self.forgotten += 1
            self.sends_forgotten |= table is self.sends
            del table[oldest]
        table[key] = value

    def _failed_visible(self, sent: Sent, value: int, slot: Slot | None) -> None:
        if slot is not None:
            offset = self.offset_of.get(value, NONE)
            operations = (slot.by, sent.operation)
            what = "no record of an append that failed", f"value {value}"
            self._find("failed_append_visible", offset, operations, *what)

    def _read_before_sent(self, sent: Sent, value: int, offset: int, read: Operation) -> None:
        if self.timed:
            what = (
                f"no read of value {value} before it was sent",
                f"it at offset {offset} in operation {read.op_id}",
            )
            self._timed("read_before_sent", offset, sent.operation, read, *what)

    def _timed(
        self, anomaly: str, offset: int, late: Operation, early: Operation, expected: str, seen: str
    ) -> None:
        """A finding of real time, unless the claimed clock uncertainty clears it."""
        assert early.completion_time is not None
        clears = NONE
        if late.clock_id != early.clock_id:
            clears = clearing(late.invoke_time, early.completion_time)
            if clears <= self.claims.clock_uncertainty_ns:
                return
        self._find(anomaly, offset, (late, early), expected, seen, clears)

    def _find(
        self,
        anomaly: str,
        offset: int,
        by: tuple[Operation, ...],
        expected: str,
        seen: str,
        uncertainty: int = NONE,
    ) -> None:
        self.findings.setdefault(
            anomaly,
            Finding(
                anomaly=anomaly,
                check=CHECK,
                expected=expected,
                seen=seen,
                topic=self.topic,
                partition=self.partition,
                offset=offset,
                operations=tuple(dict.fromkeys(operation.op_id for operation in by)),
                uncertainty_ns=uncertainty,
            ),
        )


def stream_trace(trace: Trace, topic: str, partition: int, *, horizon: int = HORIZON) -> Verdict:
    """What the streaming form says of one log of a finished trace."""
    check = StreamingLogCheck(
        topic=topic, partition=partition, claims=trace.claims, unique=trace.unique_values, horizon=horizon
    )
    mine = [operation for operation in trace.operations if _touches(operation, topic, partition)]
    moments = [(operation.invoke_time, 0, n) for n, operation in enumerate(mine)]
    moments += [(o.completion_time, 1, n) for n, o in enumerate(mine) if o.completion_time is not None]
    for _, completes, n in sorted(moments):
        (check.complete if completes else check.invoke)(mine[n])
    return check.verdict()


def _touches(operation: Operation, topic: str, partition: int) -> bool:
    if operation.function not in (Function.APPEND, Function.POLL, Function.LIST_OFFSETS):
        return False
    named = [(operation.topic, operation.partition), *((p.topic, p.partition) for p in operation.positions)]
    return (topic, partition) in named or any(
        (r.topic, r.partition) == (topic, partition) for r in operation.records
    )


def _end_of(read: Operation) -> int | None:
    return (
        read.offset if read.function is Function.LIST_OFFSETS and read.end_offset is None else read.end_offset
    )


def _part(read: Operation, topic: str, partition: int) -> tuple[Operation, tuple[Record, ...]]:
    """The read as it concerns one partition: its own position and end, and the records of that partition."""
    records = read.records
    if any(r.partition != partition or r.topic != topic for r in records):
        records = tuple(r for r in records if (r.topic, r.partition) == (topic, partition))
    if not read.positions and (read.topic, read.partition) == (topic, partition):
        return read, records
    for position in read.positions:
        if (position.topic, position.partition) == (topic, partition):
            return evolve(read, offset=position.offset, end_offset=position.end_offset), records
    return evolve(read, offset=None, end_offset=None), records
