"""A trace under way as a whole: what the checks of transactions need, next to the groups of its logs.

Owns the group that gets every operation of a trace, and its memory as bytes. Must not know Spark, files, or
what the checks forget.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from attrs import define, field

from fencepost.checkers.log.streaming.merge import Moment
from fencepost.checkers.transactions.streaming import CHECKS, TransactionWindow
from fencepost.checkers.transactions.streaming.accounts import Accounts
from fencepost.checkers.verdict import Decision, Finding
from fencepost.mining.watch.read import LogKey
from fencepost.mining.watch.shard import OURS, Shard, ShardOutput
from fencepost.mining.watch_rows import packed, unpacked
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation

Ends = list[tuple[str, int, int]]


class _Window(msgspec.Struct, array_like=True):
    """A TransactionWindow's fields in plain values; operations are packed (watch_rows.py)."""

    under_way: msgspec.Raw
    completed: msgspec.Raw
    fresh: list[int]
    kept: list[int]
    since: int
    operations: int
    lost: bool
    transactional: bool
    appended: list[LogKey]
    foreign: list[LogKey]
    below: Ends
    # Of Accounts: written, read, made, settled, owed.
    accounts: tuple[Ends, Ends, Ends, Ends, Ends]
    until: int
    beyond: dict[str, int]
    reported: dict[str, list[str]]


_DECODER = msgspec.msgpack.Decoder(_Window)
_ENDS = ("written", "read", "made", "settled", "owed")


def window_to_bytes(window: TransactionWindow) -> bytes:
    """What a window remembers. Equal memories give equal bytes."""
    accounts = window.accounts
    ends = [_ends(getattr(accounts, name)) for name in _ENDS]
    return msgspec.msgpack.encode(
        _Window(
            under_way=msgspec.Raw(packed(list(window.under_way.values()))),
            completed=msgspec.Raw(packed(list(window.completed.values()))),
            fresh=sorted(window.fresh),
            kept=sorted(window.kept),
            since=window.since,
            operations=window.operations,
            lost=window.lost,
            transactional=window.transactional,
            appended=sorted(window.appended),
            foreign=sorted(window.foreign),
            below=_ends(window.below),
            accounts=(ends[0], ends[1], ends[2], ends[3], ends[4]),
            until=accounts.until,
            beyond=window.beyond,
            reported=window.reported,
        )
    )


def _ends(ends: dict[LogKey, int]) -> Ends:
    return sorted((*log, end) for log, end in ends.items())


def _by_log(ends: Ends) -> dict[LogKey, int]:
    return {(topic, partition): end for topic, partition, end in ends}


def restore(window: TransactionWindow, data: bytes) -> None:
    """Restore a new window from `window_to_bytes`.

    Args:
        window: the new window.
        data: the bytes.

    Raises:
        TraceError: for bytes that are not a window's.
    """
    try:
        kept = _DECODER.decode(data)
        under_way, completed = (unpacked(bytes(rows)) for rows in (kept.under_way, kept.completed))
    except msgspec.MsgspecError as error:
        raise TraceError(
            expected="what the checks of transactions remember", seen=str(error), where="a watch's memory"
        ) from None
    window.under_way = {operation.op_id: operation for operation in under_way}
    window.completed = {operation.op_id: operation for operation in completed}
    window.fresh, window.kept, window.since = set(kept.fresh), set(kept.kept), kept.since
    window.operations, window.lost, window.transactional = kept.operations, kept.lost, kept.transactional
    window.appended, window.foreign, window.below = set(kept.appended), set(kept.foreign), _by_log(kept.below)
    ends = dict(zip(_ENDS, map(_by_log, kept.accounts), strict=True))
    window.accounts = Accounts(until=kept.until, **ends)
    window.beyond, window.reported = kept.beyond, kept.reported


@define(kw_only=True)
class WholeTrace(Shard):
    """The group of a trace that gets all of its operations."""

    # The memory of the checks, as bytes until it is needed.
    kept: bytes = b""
    window: TransactionWindow | None = field(default=None, eq=False)

    def _open_window(self) -> TransactionWindow:
        if self.window is None:
            self.window = TransactionWindow(trace=self.trace, horizon=self.limits.horizon)
            if self.kept:
                restore(self.window, self.kept)
        return self.window

    def memory(self) -> bytes:
        """The memory of the checks."""
        return self.kept if self.window is None else window_to_bytes(self.window)

    def _touched(self, operation: Operation) -> list[LogKey]:
        if self.blind is None and operation.function != Function.TXN:
            reason = f"operation {operation.op_id} arrived when what happened after it had been judged"
            self._see_no_more(Decision.UNKNOWN, reason)
        return []

    def _feed(self, moment: Moment) -> None:
        if self.blind is not None:
            return
        window = self._open_window()
        try:
            (window.complete if moment.completes else window.invoke)(moment.operation)
        except OURS as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        what = f"a mistake in fencepost: {error!r}"
        self._see_no_more(Decision.ASSUMPTION_BROKEN, f"the checks of transactions failed, {what}")

    def _certain(self) -> Iterator[ShardOutput]:
        if self.blind is not None or (self.window is None and not self.kept):
            return
        try:
            found = list(self._open_window().news())
        except OURS as error:
            self._fail(error)
            return
        yield from map(self._row_of, found)

    def _row_of(self, finding: Finding) -> ShardOutput:
        return "finding", self._finding_row(finding)

    def _end(self) -> Iterator[ShardOutput]:
        if self.window is not None or self.kept:
            window = self._open_window()
            verdicts = [] if self.blind is not None else self._verdicts(window)
            for verdict in verdicts:
                yield from map(self._row_of, verdict.findings)
            if window.transactional:
                decided = {verdict.check: (verdict.decision, verdict.reason) for verdict in verdicts}
                for check in CHECKS:
                    yield self._verdict_row(
                        check, window.reported[check], *decided.get(check, self.blind or ())
                    )
        self.ended, self.kept, self.window = True, b"", None
        self._forget_what_waits()

    def _verdicts(self, window: TransactionWindow) -> list[Any]:
        try:
            return list(window.end())
        except OURS as error:
            self._fail(error)
            return []

    def _verdict_row(self, check: str, reported: list[str], decision: Decision, reason: str) -> ShardOutput:
        if reported and decision is Decision.UNKNOWN:
            decision = Decision.ILLEGAL
        named = reported[0] if reported else None
        row = (self.source, self.trace_id, check, decision.value, named, len(reported), reason, "")
        return "verdict", row

    def _undecided(self) -> tuple[int, int]:
        undecided = 0
        if self.window is not None:
            undecided = sum(count > 0 for count in self.window.beyond.values())
        return 0, len(CHECKS) if self.blind is not None and not self.ended else undecided
