"""One group of logs of one trace while it is under way: what Spark keeps between micro-batches, and what a
micro-batch does with it.

Owns the order in which news is processed, which findings were reported, when a log is given up or has ended,
and the group's memory as bytes (MessagePack of plain values; nothing in it is ever executed). Must not know
Spark, files.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec
from attrs import Factory, define, field, frozen

from fencepost.checkers.judges import under_profile
from fencepost.checkers.log.log_rules import PROFILES
from fencepost.checkers.log.streaming.merge import BEGINNING, END, Merge, Moment
from fencepost.checkers.log.streaming.saved_stream import from_bytes
from fencepost.checkers.log.streaming.streaming import StreamingLogCheck
from fencepost.checkers.verdict import Decision, Finding
from fencepost.mining.results.result_rows import finding_row
from fencepost.mining.watch.read import SHARDS, Chunk, LogKey, logs_of, shard_of
from fencepost.mining.watch_rows import unpacked
from fencepost.report.commands import explaining
from fencepost.traces.canonical_rows import Rows, trace_of
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation
from fencepost.traces.parts import BEFORE
from fencepost.traces.trace import Trace

RETRACTABLE = "skipped_offset"
"""Later rows may explain this anomaly in a compacted topic, so it is reported when the trace has ended."""

OURS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""A bug of ours in judging one log costs only this log, and is reported: otherwise Spark would run the same
micro-batch for ever."""

Kind = Literal["finding", "log", "quarantine", "status", "verdict"]
ShardOutput = tuple[Kind, tuple[Any, ...]]
"""What a group answers: a kind, and the row of its table."""

_OF_STREAMS = frozenset({"stale_read"})
"""Names that a judge of the whole trace may replace by another (a record that is never read later is a
lost_write). No command asks for them; the run is shown by the anomaly that names it."""


@frozen(kw_only=True)
class ShardLimits:
    """What a watch was asked for."""

    # Of each log's memory, and of what waits; of the operations that the checks of transactions remember.
    horizon: int
    # How late operations may come in a trace without low watermarks, nanoseconds.
    lateness_ns: int
    # Of the log check; None: the trace's own.
    profile: str | None = None
    # Whether the checks of transactions judge, too.
    transactions: bool = False


def _taker(check: StreamingLogCheck, moment: Moment) -> Callable[[Operation], None]:
    """The judge's method for a moment."""
    return check.complete if moment.completes else check.invoke


@define(kw_only=True)
class LogUnderWay:
    """One log."""

    # Operations begun.
    operations: int = 0
    # Anomalies that were reported.
    reported: list[str] = Factory(list)
    # Once it was given up, with the reason.
    decision: Decision | None = None
    reason: str = ""
    # Entries that left the horizon.
    forgotten: int = 0
    # Its memory, as bytes until it is needed.
    kept: bytes = b""
    check: StreamingLogCheck | None = field(default=None, eq=False)


@define(kw_only=True)
class Shard:
    """One group of logs."""

    # Its name: source, trace, part and number.
    source: str
    trace_id: int
    part: str
    number: int
    limits: ShardLimits
    # The trace's row and replay command, from its first chunk.
    row: list[Any] = Factory(list)
    replay: str = ""
    # Nothing more may come.
    ended: bool = False
    # Why no log of it can be judged any more; None: they can.
    blind: tuple[Decision, str] | None = None
    # A file of it was damaged.
    torn: bool = False
    # All files up to this number have arrived.
    files: int = 0
    # Numbers of later files that have arrived.
    ahead: set[int] = Factory(set)
    # The low watermark of the trace, nanoseconds; None: it has none.
    marked: int | None = None
    # Marks and the end that hold from the file of a number on.
    marks: list[tuple[int, int]] = Factory(list)
    end_after: int | None = None
    merge: Merge = field(init=False)
    # Open transactions by op id.
    transactions: dict[int, Operation] = Factory(dict)
    # Logs by topic and partition.
    logs: dict[LogKey, LogUnderWay] = Factory(dict)
    trace: Trace = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.merge = Merge(horizon=self.limits.horizon)

    def advance(self, chunks: Iterable[Chunk]) -> Iterator[ShardOutput]:
        """Process the news of one micro-batch, and report what follows from it."""
        judged, news = 0, sorted(chunks, key=lambda chunk: (chunk.modified_us, chunk.place, chunk.number))
        self._count(chunk.file_number for chunk in news)
        for chunk in news:
            if self.ended:
                reason = (
                    f"{chunk.place}: expected no more of trace {self.trace_id}, which had ended, saw a "
                    f"part of it"
                )
                yield "quarantine", (self.source, chunk.place, self.trace_id, reason)
                continue
            try:
                self._take(chunk)
            except TraceError as error:
                yield "quarantine", (self.source, chunk.place, self.trace_id, f"{chunk.place}: {error}")
                self._see_no_more(Decision.UNKNOWN, f"{chunk.place} could not be read")
        self._wait_for_few()
        ending = self.end_after is not None and self._holds(self.end_after)
        if not self.ended:
            for moment in self.merge.release(END if ending else self._low_watermark()):
                judged += not moment.completes and self.number < SHARDS
                self._feed(moment)
            yield from self._certain()
            if ending:
                yield from self._end()
        under_way, undecided = self._undecided()
        yield (
            "status",
            (
                self.source,
                self.trace_id,
                self.part,
                self.number,
                len(self.merge.held),
                under_way,
                undecided,
                judged,
            ),
        )

    def _undecided(self) -> tuple[int, int]:
        """How many logs are judged, and of how many something is not known."""
        undecided = sum(state.forgotten > 0 or state.decision is not None for state in self.logs.values())
        return sum(state.decision is None for state in self.logs.values()), undecided

    def _count(self, numbers: Iterable[int]) -> None:
        """Files have arrived."""
        if self.torn:
            return  # every number holds already
        self.ahead.update(number for number in numbers if number > self.files)
        while self.files + 1 in self.ahead:
            self.files += 1
            self.ahead.discard(self.files)

    def _wait_for_few(self) -> None:
        """Remember at most `horizon` files that arrived before an earlier one, and their marks: a file that
        never comes must cost no memory."""
        self.marks = list({number: (number, time) for number, time in sorted(self.marks)}.values())
        if max(len(self.ahead), len(self.marks)) > self.limits.horizon:
            reason = (
                f"file {self.files + 1} of trace {self.trace_id} did not arrive, and more than "
                f"{self.limits.horizon} later ones did"
            )
            self._see_no_more(Decision.UNKNOWN, reason)
            self.torn, self.ahead = True, set()

    def _holds(self, number: int) -> bool:
        """Whether all files up to a number have arrived. The number of a damaged file is not known; then the
        answer is not used."""
        return number <= self.files or self.torn

    def _take(self, chunk: Chunk) -> None:
        trace = trace_of(Rows(trace=chunk.trace, operations=(), events=()), where=chunk.place)
        if not self.row:
            self.row, self.replay = chunk.trace, chunk.replay
            self.name_trace()
        if (trace.claims, trace.unique_values) != self._claimed():
            self._see_no_more(
                Decision.ASSUMPTION_BROKEN, f"{chunk.place} makes other claims than the trace began with"
            )
        if chunk.gap:
            self.torn = True
            self._see_no_more(Decision.UNKNOWN, chunk.gap)
        try:
            operations = unpacked(bytes(chunk.operations))
        except msgspec.MsgspecError as error:
            raise TraceError(expected="operations", seen=str(error), where=chunk.place) from None
        for operation in self.merge.add(operations):
            if operation.argument == BEFORE and operation.completion_time is None:
                self._there_before(operation)
                continue
            reason = f"operation {operation.op_id} arrived when what happened after it had been judged"
            if operation.function is Function.TXN:
                self._see_no_more(Decision.UNKNOWN, reason)
            for log in self._touched(operation):
                self._give_up(self.logs.setdefault(log, LogUnderWay()), Decision.UNKNOWN, reason)
        if chunk.newest is not None:
            self.merge.hear(chunk.newest)
        self.marks += chunk.marks
        if chunk.end_after is not None:
            self.end_after = max(chunk.end_after, self.end_after or 0)

    def name_trace(self) -> None:
        """What `row` says of the trace."""
        self.trace = under_profile(
            trace_of(Rows(trace=self.row, operations=(), events=())), self.limits.profile
        )
        claims = self.trace.claims
        if claims.assumption_broken:
            self.blind = (Decision.ASSUMPTION_BROKEN, claims.assumption_broken)
        elif claims.check not in PROFILES:
            self.blind = (
                Decision.ASSUMPTION_BROKEN,
                f"the claims name an unknown profile: {claims.check}",
            )

    def _claimed(self) -> tuple[Any, bool]:
        first = trace_of(Rows(trace=self.row, operations=(), events=()))
        return first.claims, first.unique_values

    def _low_watermark(self) -> int:
        """Everything before it has arrived."""
        holding = [time for number, time in self.marks if self._holds(number)]
        if holding:
            self.marked = max(holding) if self.marked is None else max(*holding, self.marked)
            self.marks = [mark for mark in self.marks if not self._holds(mark[0])]
        if self.marked is not None:
            return self.marked
        return BEGINNING if self.marks or self.ahead else self.merge.newest - self.limits.lateness_ns

    def _touched(self, operation: Operation) -> list[LogKey]:
        """The logs of this group that an operation concerns; for a transaction those that are known."""
        logs = logs_of(operation)
        if logs is None:
            return list(self.logs)
        return [log for log in logs if shard_of(log) == self.number]

    def _feed(self, moment: Moment) -> None:
        operation = moment.operation
        logs = logs_of(operation)
        if logs is not None and len(logs) == 1:
            known = self.logs.get(logs[0])
            if known is not None and known.decision is None and known.check is not None:  # nearly always
                known.operations += not moment.completes
                self._ask(known, _taker(known.check, moment), moment.operation)
                return
        for log in self._touched(operation):
            state = self.logs.get(log)
            if state is None:
                state = self.logs[log] = LogUnderWay()
                self._begin(log, state)
            state.operations += not moment.completes and operation.function is not Function.TXN
            if state.decision is None:
                self._ask(state, _taker(self._check(log, state), moment), moment.operation)
        if operation.function is Function.TXN:
            if moment.completes:
                self.transactions.pop(operation.op_id, None)
            else:
                self._open(operation)

    def _there_before(self, operation: Operation) -> None:
        """What happened before the recording, and became known when later moments had been judged: nothing of
        them was known when it began. It is in no order with them that could be judged."""
        for log in self._touched(operation):
            state = self.logs.get(log)
            if state is None:
                state = self.logs[log] = LogUnderWay()
                self._begin(log, state)
            if state.decision is not None:
                continue
            self._ask(state, self._check(log, state).began_before, operation)
        if operation.function is Function.TXN:
            self._open(operation)

    def _open(self, transaction: Operation) -> None:
        """A transaction began. If more than `horizon` are open, the oldest is forgotten; a log that appears
        later may hold records of it."""
        self.transactions[transaction.op_id] = transaction
        if len(self.transactions) > self.limits.horizon:
            del self.transactions[next(iter(self.transactions))]
            reason = f"more than {self.limits.horizon} transactions were open before its first operation"
            self.blind = self.blind or (Decision.UNKNOWN, reason)

    def _ask(self, state: LogUnderWay, take: Callable[[Operation], None], operation: Operation) -> None:
        """Pass an operation to a log's judge. take: its method."""
        try:
            take(operation)
        except OURS as error:
            what = f"operation {operation.op_id} is too much for the judge, a mistake in fencepost: {error!r}"
            self._give_up(state, Decision.ASSUMPTION_BROKEN, what)

    def _begin(self, log: LogKey, state: LogUnderWay) -> None:
        """A new log; the open transactions began before it."""
        if self.blind is not None:
            self._give_up(state, *self.blind)
            return
        check = self._check(log, state)
        for transaction in self.transactions.values():
            check.invoke(transaction)

    def _check(self, log: LogKey, state: LogUnderWay) -> StreamingLogCheck:
        if state.check is None:
            more: dict[str, Any] = {
                "topic": log[0], "partition": log[1], "claims": self.trace.claims,
                "unique": self.trace.unique_values, "horizon": self.limits.horizon,
                "most_in_flight": self.limits.horizon,
            }  # fmt: skip
            state.check = from_bytes(state.kept, **more) if state.kept else StreamingLogCheck(**more)
        return state.check

    def _see_no_more(self, decision: Decision, reason: str) -> None:
        """Stop judging the logs of the trace: nothing more can be said about any of them."""
        self.blind = self.blind or (decision, reason)
        for state in self.logs.values():
            self._give_up(state, decision, reason)

    def _give_up(self, state: LogUnderWay, decision: Decision, reason: str) -> None:
        """Earlier findings remain; there will be no new ones."""
        if state.decision is None:
            state.decision, state.reason = decision, reason
            state.check, state.kept = None, b""

    def _certain(self) -> Iterator[ShardOutput]:
        """What is certain whatever comes later."""
        for log, state in self.logs.items():
            yield from self._news(log, state)

    def _news(self, log: LogKey, state: LogUnderWay) -> Iterator[ShardOutput]:
        """Findings that are certain whatever comes later."""
        if state.check is None:
            return
        check = state.check
        state.forgotten = check.forgotten
        if check.broken:
            self._give_up(state, Decision.ASSUMPTION_BROKEN, check.broken)
            return
        for anomaly, finding in check.findings.found.items():
            if anomaly != RETRACTABLE or log[0] not in self.trace.claims.compacted:
                yield from self._tell(state, finding)

    def _tell(self, state: LogUnderWay, finding: Finding) -> Iterator[ShardOutput]:
        if finding.anomaly not in state.reported:
            state.reported.append(finding.anomaly)
            yield "finding", self._finding_row(finding)

    def _finding_row(self, finding: Finding) -> tuple[Any, ...]:
        named = "" if finding.anomaly in _OF_STREAMS else finding.anomaly
        return (*finding_row(self.source, self.trace, finding)[:-1], explaining(self.replay, named))

    def _end(self) -> Iterator[ShardOutput]:
        """The trace has ended: the last findings, and what was decided of each log."""
        for log, state in self.logs.items():
            if state.decision is None:
                verdict = self._check(log, state).verdict()
                for finding in verdict.findings:
                    yield from self._tell(state, finding)
                self._give_up(state, verdict.decision, verdict.reason)
            assert state.decision is not None
            if state.reported and state.decision is Decision.UNKNOWN:
                state.decision = Decision.ILLEGAL

            row = (
                self.source,
                self.trace_id,
                *log,
                state.decision.value,
                state.operations,
                len(state.reported),
                state.reason,
            )
            yield "log", row
        self.ended, self.logs, self.transactions = True, {}, {}
        self._forget_what_waits()

    def _forget_what_waits(self) -> None:
        self.merge = Merge(horizon=self.limits.horizon)

    @property
    def forgettable(self) -> bool:
        """Need nothing be remembered? Of a whole trace nothing can follow; one under way that ended leaves a
        mark, so that latecomers are known."""
        return self.ended and self.part != ""
