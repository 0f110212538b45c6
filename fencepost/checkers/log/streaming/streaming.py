"""The streaming form: one log checked while it runs, with memory bounded by a horizon.

Owns the state that decides real time with one number: E, the largest end known from completed operations. At
its invocation an operation remembers `floor = E`; its later result must not be below. E is kept separately
for acknowledgements, reads, log starts and last stable offsets, so that the anomaly gets the right name.

The streaming form never finds what the batch form does not. It leaves these to the batch form:

- holes (step 5), torn batches, leader epochs, session order;
- a skip over an offset that is known to be occupied only later, or that an operation in flight may excuse;
- loss keyed by epoch;
- violations by transactions, and whether transactions of unknown outcome have committed;
- whether the history is strong enough (`accounts`), because a stream has not ended;
- `lost_write`, which it calls stale_read, because the later reads have not happened yet.

A value without a known sender is deferred until it is sent, the stream ends, or it leaves the horizon. If the
horizon dropped something relevant, the verdict is Unknown.
"""

from collections import OrderedDict
from typing import Any

from attrs import Factory, define, field

from fencepost.checkers.log.log_rules import loss_in
from fencepost.checkers.log.one_log import CHECK
from fencepost.checkers.log.streaming.memory import (
    Sent,
    ShownValue,
    Slot,
    claimed_by,
    make_shown,
    make_slot,
    touches,
)
from fencepost.checkers.log.streaming.replies import StreamReplies
from fencepost.checkers.log.streaming.skips import StreamSkips
from fencepost.checkers.log.streaming.streaming_findings import StreamFindings
from fencepost.checkers.operation_columns import NONE
from fencepost.checkers.statements import ISOLATIONS, READ_COMMITTED, READ_UNCOMMITTED
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome, Record
from fencepost.traces.trace import Claims, Trace

HORIZON = 1_000_000
"""The most slots, unseen sends and unsent values that are kept, each."""
IN_FLIGHT = 1_000_000
"""The most operations in flight that are kept."""
ANY_PROCESS = (-(2**63), -(2**63))
"""An entry of `transacting`: there were more open transactions than are kept, so every append may be part of
one."""


@define(kw_only=True)
class StreamingLogCheck:
    """Checks one log. Feed it invocations and completions in the order of time; at equal times invocations
    first. Then ask for the verdict."""

    # The topic.
    topic: str
    # The partition.
    partition: int
    # The claims of the trace.
    claims: Claims = Factory(Claims)
    # The most slots, unseen sends and unsent values that are kept, each.
    horizon: int = HORIZON
    # The most operations in flight that are kept.
    most_in_flight: int = IN_FLIGHT
    # The time of the last moment, in nanoseconds; it never decreases.
    now: int = Factory(lambda: -(2**63))
    # The known length of the log by acknowledgements.
    acknowledged: ShownValue = Factory(ShownValue)
    # The known length of the log by reads.
    shown: ShownValue = Factory(ShownValue)
    # The known log start.
    log_start: ShownValue = Factory(ShownValue)
    # The known last stable offset.
    stable: ShownValue = Factory(ShownValue)
    # What is known by offset. Ordered dictionaries, because finding the oldest entry of a plain one takes
    # time proportional to the entries removed before it.
    slots: OrderedDict[int, Slot] = Factory(OrderedDict)
    # The offset of each value.
    offset_of: OrderedDict[int, int] = Factory(OrderedDict)
    # The append of each value that was sent.
    sends: OrderedDict[int, Sent] = Factory(OrderedDict)
    # Values that were read before they were sent: offset and read.
    early: OrderedDict[int, tuple[int, Operation]] = Factory(OrderedDict)
    # Unfinished operations by op id, with what was known at their invocation.
    in_flight: OrderedDict[int, Sent] = Factory(OrderedDict)
    # (process, session) of open transactions.
    transacting: set[tuple[int, int]] = Factory(set)
    # How many values left the horizon undecided.
    forgotten: int = 0
    # How many operations were dropped because too many were in flight.
    abandoned: int = 0
    # Whether the horizon dropped a send.
    sends_forgotten: bool = False
    # Whether each value was sent once.
    unique: bool = True
    # How the stream contradicts itself; "" if it does not.
    broken: str = ""
    # Which operation says too little, so that the others are judged without it; "" if none.
    doubtful: str = ""
    # Ranges of offsets that may be lost.
    loss: list[tuple[int, int]] = field(init=False)
    # The findings so far.
    findings: StreamFindings = field(init=False)
    # The state of the skip rule.
    skips: StreamSkips = field(init=False)
    # The rules of single reads.
    replies: StreamReplies = field(init=False)

    def __attrs_post_init__(self) -> None:
        claims = self.claims
        self.loss = loss_in(claims, self.topic, self.partition)
        self.findings = StreamFindings(
            topic=self.topic, partition=self.partition, uncertainty=claims.clock_uncertainty_ns
        )
        self.skips = StreamSkips(
            findings=self.findings,
            claims=claims,
            compacted=self.topic in claims.compacted,
            unique=self.unique,
            horizon=self.horizon,
        )
        self.replies = StreamReplies(claims=claims, loss=self.loss, findings=self.findings, skips=self.skips)

    def invoke(self, operation: Operation) -> None:
        """`operation` begins now. Only the fields that are known at invocation are read."""
        if operation.invoke_time < self.now:
            self._tick(operation.invoke_time, operation)
        else:
            self.now = operation.invoke_time
        process = (operation.process, operation.session)
        sent = Sent(
            operation=operation,
            acknowledged=self.acknowledged,
            shown=self.shown,
            log_start=self.log_start,
            stable=self.stable,
            transactional=bool(self.transacting)
            and (process in self.transacting or ANY_PROCESS in self.transacting),
        )
        if len(self.in_flight) >= self.most_in_flight:
            self._abandon()
        self.in_flight[operation.op_id] = sent
        if operation.function is Function.TXN:
            self.transacting.add(process if len(self.transacting) < self.most_in_flight else ANY_PROCESS)
        if operation.function is Function.APPEND:
            self.skips.sent(operation)
            self.skips.transactional |= sent.transactional
            for record in operation.records:
                before = self.sends.get(record.value)
                if before is not None and not before.failed and self.unique:
                    self.doubtful = self.doubtful or f"value {record.value} was sent twice"
                    self.unique = self.skips.unique = False
                if before is None or before.failed:
                    self._keep(self.sends, record.value, sent)
                if record.value in self.early:
                    offset, read = self.early.pop(record.value)
                    self._read_before_sent(sent, record.value, offset, read)
                    self._stands(sent, record.value, offset, read)

    def began_before(self, operation: Operation) -> None:
        """`operation` began before the stream and became known only now. Nothing was known when it began, so
        that no floor binds it."""
        now, known = self.now, (self.acknowledged, self.shown, self.log_start, self.stable)
        self.now = min(now, operation.invoke_time)
        self.acknowledged = self.shown = self.log_start = self.stable = ShownValue()
        try:
            self.invoke(operation)
        finally:
            self.now = max(now, self.now)
            self.acknowledged, self.shown, self.log_start, self.stable = known

    def complete(self, operation: Operation) -> None:
        """`operation` has its outcome now."""
        self._tick(operation.completion_time or operation.invoke_time, operation)
        sent = self.in_flight.pop(operation.op_id, None)
        if operation.function is Function.TXN:
            self.transacting.discard((operation.process, operation.session))
        if sent is None and self.abandoned:
            self.forgotten += 1
            return
        if (
            sent is None
            or operation.completion_time is None
            or operation.completion_time < operation.invoke_time
        ):
            self.broken = self.broken or f"operation {operation.op_id} completed but was not in flight"
            return
        if operation.function is Function.TXN:
            return
        if self.claims.retention:
            self.skips.claim(claimed_by(operation, self.topic, self.partition).log_start)
        if operation.function is Function.APPEND:
            self._append_done(sent, operation)
        elif operation.outcome is Outcome.OK:
            self._read_done(sent, operation)

    def verdict(self) -> Verdict:
        """The verdict if the stream ended now."""
        for value, (offset, read) in self.early.items():
            what = "only records that some client sent", f"value {value}, which no append sent"
            if self.sends_forgotten:
                self.forgotten += 1
            else:
                self.findings.add("phantom_record", offset, (read,), *what)
        for sent in self.in_flight.values():
            for base in sent.stands:
                self._above_floors(sent, sent.operation, base)
        found = {**self.findings.found}
        if "skipped_offset" not in found and (skip := self.skips.final()) is not None:
            found["skipped_offset"] = skip
        if self.skips.moved:
            found.pop("skipped_offset", None)
        if self.broken or self.claims.assumption_broken:
            reason = self.broken or self.claims.assumption_broken
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=reason)
        if found:
            return Verdict(
                decision=Decision.ILLEGAL,
                check=CHECK,
                findings=tuple(found.values()),
                reason=self.doubtful,
            )
        if self.doubtful:
            return Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=self.doubtful)
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
            self.skips.placed(operation, NONE)
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
            self.doubtful = (
                self.doubtful
                or f"operation {operation.op_id} is an append with acks=all and ok but has no offset"
            )
            return
        for n, record in enumerate(operation.records):
            self._content(operation.offset + n, record.value, operation)
        self._above_floors(sent, operation, operation.offset)
        if not self.loss or not any(
            self.replies.lossy(operation.offset + n) for n in range(len(operation.records))
        ):
            self.skips.placed(operation, operation.offset + len(operation.records) - 1)
        self.acknowledged = self._raised(
            self.acknowledged, operation.offset + len(operation.records), operation
        )

    def _read_done(self, sent: Sent, operation: Operation) -> None:
        statement = claimed_by(operation, self.topic, self.partition)
        strong = operation.strong or self.claims.check == "strong"
        end, stable = (statement.end, statement.stable) if strong else (None, None)
        start = statement.log_start if strong and self.claims.retention else None
        self.replies.of_one_moment(operation, statement)
        for record in statement.records:
            self._record(operation, record)
        self.replies.order(operation, statement, (start, end, stable), self.slots, self.sends)
        self.replies.not_below(sent, operation, end, start, stable)
        reach = max([record.offset for record in statement.records]) + 1 if statement.records else 0
        claimed = max(end or 0, start or 0, stable or 0)
        if claimed >= reach:
            self.shown = self._raised(self.shown, claimed, operation)
        self.shown = self._raised(self.shown, reach, operation, by_record=True)
        self.log_start = self._raised(self.log_start, start or 0, operation)
        shown = reach if operation.isolation == ISOLATIONS[READ_COMMITTED] else 0
        self.stable = self._raised(self.stable, max(stable or 0, shown), operation)
        if self.claims.check == "strong" and statement.records:
            self.replies.above_log_start(sent, operation, min(record.offset for record in statement.records))

    def _record(self, read: Operation, record: Record) -> None:
        known = self.slots.get(record.offset)
        if known is not None and known.value == record.value and record.value not in self.early:
            return
        sent = self.sends.get(record.value)
        if record.offset < self._oldest():
            self.forgotten += 1
            return
        self._content(record.offset, record.value, read)
        if sent is None:
            self._keep(self.early, record.value, (record.offset, read))
        else:
            self._stands(sent, record.value, record.offset, read)

    def _oldest(self) -> int:
        """Slots below this offset have left the horizon."""
        return next(iter(self.slots), 0) if len(self.slots) >= self.horizon else 0

    def _content(self, offset: int, value: int, by: Operation) -> None:
        """Step 1: one value at each offset, one offset for each value (left to the batch form if loss is
        allowed)."""
        if self.replies.lossy(offset):
            return
        known = self.slots.get(offset)
        if known is not None and known.value != value:
            self.findings.add(
                "inconsistent_offsets", offset, (known.by, by), f"value {known.value}", f"value {value}"
            )
        elsewhere = self.offset_of.get(value)
        if elsewhere is not None and elsewhere != offset and self.unique and not self.claims.duplicates:
            before = (self.slots[elsewhere].by,) if elsewhere in self.slots else ()
            self.findings.add(
                "duplicate", offset, (*before, by), f"value {value} at {elsewhere} only", f"it at {offset}"
            )
        if known is None:
            self._keep(self.slots, offset, make_slot(value=value, by=by))
        if elsewhere is None:
            self._keep(self.offset_of, value, offset)

    def _stands(self, sent: Sent, value: int, offset: int, read: Operation) -> None:
        """A read showed a record of `sent` at `offset`."""
        if sent.failed:
            self._failed_visible(sent, value, Slot(value=value, by=read))
            return
        base = offset - [record.value for record in sent.operation.records].index(value)
        if not self.unique or self.replies.lossy(offset):
            return
        self.skips.placed(sent.operation, base + len(sent.operation.records) - 1)
        if sent.operation.op_id in self.in_flight:
            sent.stands.append(base)
        elif sent.abandoned:
            self.forgotten += 1  # it may have failed since
        else:
            self._above_floors(sent, sent.operation, base)

    def _above_floors(self, sent: Sent, append: Operation, base: int) -> None:
        """Check that the append is not below what was known when it was invoked."""
        last = base + len(append.records) - 1
        if not self.replies.timed or self.replies.lossy(base) or self.replies.lossy(last):
            return
        floor = sent.acknowledged
        if base >= floor.end and base >= sent.shown.end:  # nearly always
            return
        expected, seen = "an offset of {0} or more", f"offset {base}"
        if base < floor.end and floor.by is not None:
            self.findings.timed("append_inversion", base, append, floor.by, expected.format(floor.end), seen)
        floor = sent.shown
        own = floor.by_record and base <= floor.end - 1 < base + len(
            append.records
        )  # that is read_before_sent
        if base < floor.end and floor.by is not None and not own:
            self.findings.timed(
                "append_below_shown_end", base, append, floor.by, expected.format(floor.end), seen
            )

    def _raised(self, known: ShownValue, end: int, by: Operation, by_record: bool = False) -> ShownValue:
        if end < known.end:  # nearly always for a read
            return known
        while end > 0 and self.replies.lossy(end - 1):
            end = min(start for start, stop in self.loss if start <= end - 1 < stop)
            by_record = False
        claims = (
            end == known.end and known.by_record and not by_record
        )  # a claim proves more than a record does
        return make_shown(end=end, by=by, by_record=by_record) if end > known.end or claims else known

    def _keep(self, table: OrderedDict[int, Any], key: int, value: Any) -> None:
        """Remember an entry; if the horizon is full, the oldest entry is dropped."""
        if len(table) >= self.horizon:
            table.popitem(last=False)
            if table is self.early:
                self.forgotten += 1
            self.sends_forgotten |= table is self.sends
        table[key] = value

    def _abandon(self) -> None:
        """Drop the operation that has been in flight the longest: its result is not checked."""
        _, sent = self.in_flight.popitem(last=False)
        sent.abandoned = True
        self.abandoned += 1
        self.forgotten += bool(sent.stands)

    def _failed_visible(self, sent: Sent, value: int, slot: Slot | None) -> None:
        # otherwise it is not known which operation showed the record
        shown = slot is not None and slot.value == value
        hidden = shown and slot is not None and slot.by.isolation != ISOLATIONS[READ_UNCOMMITTED]
        if slot is not None and (hidden or not sent.transactional):
            offset = self.offset_of.get(value, NONE)
            operations = (slot.by, sent.operation)
            what = "no record of an append that failed", f"value {value}"
            self.findings.add("failed_append_visible", offset, operations, *what)

    def _read_before_sent(self, sent: Sent, value: int, offset: int, read: Operation) -> None:
        if self.replies.timed:
            what = (
                f"no read of value {value} before it was sent",
                f"it at offset {offset} in operation {read.op_id}",
            )
            self.findings.timed("read_before_sent", offset, sent.operation, read, *what)


def stream_trace(trace: Trace, topic: str, partition: int, *, horizon: int = HORIZON) -> Verdict:
    """Run the streaming form over one log of a finished trace."""
    check = StreamingLogCheck(
        topic=topic, partition=partition, claims=trace.claims, unique=trace.unique_values, horizon=horizon
    )
    mine = [operation for operation in trace.operations if touches(operation, topic, partition)]
    outer = [
        operation.function is Function.TXN for operation in mine
    ]  # a transaction begins before its parts
    moments = [(operation.invoke_time, 0, not outer[n], n) for n, operation in enumerate(mine)]
    moments += [
        (o.completion_time, 1, outer[n], n) for n, o in enumerate(mine) if o.completion_time is not None
    ]
    for _, completes, _, n in sorted(moments):
        (check.complete if completes else check.invoke)(mine[n])
    return check.verdict()
