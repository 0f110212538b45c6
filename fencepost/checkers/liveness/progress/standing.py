"""What stands although it must move on: last stable offsets, high watermarks, consumers.

Owns these rules. Each looks for a run of answers that say the same, and measures it from the end of its first
operation to the beginning of its last one.

- The last stable offset of a log never goes back. If two answers show the same one below the end, one and the
  same transaction was open, or without its marker, all the time between. The broker ends each within its
  time-out (KIP-98: transaction.max.timeout.ms bounds what a producer may ask for).
- An append with acks=all is acknowledged once the high watermark has passed it. A replica that does not know
  may show less for a while: one that was just elected (KIP-207), a follower (KIP-392).
- A fetch returns at least one batch if there is one (KIP-74). Aborted and control batches are none for a
  reader of committed records, and compaction and retention take batches away. Only a record that is known to
  be at the very position counts.
"""

from collections.abc import Callable, Iterable, Iterator

from fencepost.checkers.liveness.progress.answers import Answer, Client, Log, committed, found, last_offset
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import Function, Operation

MILLISECOND = 1_000_000
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
FEWEST_POLLS = 3
"""Polls that get nothing until it counts: two of them far apart may be one that was cut short and one at the
beginning of a new position."""


def last_stable_offsets_stand(client: Client) -> Iterator[Finding]:
    """Logs in which one transaction was open for longer than any may be."""
    bound = client.claims.transaction_timeout_ms + client.claims.stall_ms
    for log, answers in sorted(client.answers.items()):
        if client.may_lose(log):
            continue
        known = [one for one in answers if one.stable >= 0 and one.end >= 0]
        run = _longest(known, lambda one: one.stable if one.stable < one.end else None)
        if _span(run) - client.slack > bound * MILLISECOND:
            yield found(
                "last_stable_offset_stands",
                log,
                offset=run[0].stable,
                proof=(run[-1].operation, run[0].operation),
                expected=f"the transaction that begins at offset {run[0].stable} to be over {bound} ms after "
                f"operation {run[0].operation.op_id} saw it open",
                seen=f"operation {run[-1].operation.op_id} still got the last stable offset {run[0].stable} "
                f"and the end {run[-1].end}, {_span(run) // MILLISECOND} ms later",
            )


def high_watermarks_stand(client: Client) -> Iterator[Finding]:
    """Logs of which readers were shown an end that a committed append had passed long before."""
    for log, answers in sorted(client.answers.items()):
        if not client.may_lose(log) and log[0] not in client.removed:
            yield from _high_watermark(client, log, answers)


def _high_watermark(client: Client, log: Log, answers: list[Answer]) -> Iterator[Finding]:
    bound = client.claims.stall_ms
    passed = _Highest(client.appends.get(log, []), client.slack)
    known = [one for one in answers if one.end >= 0 and _shows_high_watermark(client, one)]
    highest = {one.operation.op_id: passed.before(one.begin) for one in known}

    def behind(one: Answer) -> int | None:
        append = highest[one.operation.op_id]
        return None if append is None or last_offset(append) < one.end else one.end

    run = _longest(known, behind)
    append = highest[run[0].operation.op_id] if run else None
    if append is not None and _span(run) - client.slack > bound * MILLISECOND:
        yield found(
            "high_watermark_stands",
            log,
            offset=run[0].end,
            proof=(run[-1].operation, run[0].operation, append),
            expected=f"an end above offset {last_offset(append)}, acknowledged with acks=all to operation "
            f"{append.op_id}, {bound} ms after operation {run[0].operation.op_id} did not see it",
            seen=f"operation {run[-1].operation.op_id} still got the end {run[0].end}, "
            f"{_span(run) // MILLISECOND} ms later",
        )


def consumers_starved(client: Client) -> Iterator[Finding]:
    """Consumers whose polls got nothing although there was a record at their position."""
    for log, answers in sorted(client.answers.items()):
        if not client.may_lose(log) and not client.may_remove(log):
            yield from _consumers(client, log, answers)


def _consumers(client: Client, log: Log, answers: list[Answer]) -> Iterator[Finding]:
    bound = client.claims.stall_ms
    at = {
        offset: append
        for append in filter(committed, client.appends.get(log, []))
        for offset in range(append.offset or 0, last_offset(append) + 1)
    }
    polls: dict[tuple[int, int], list[Answer]] = {}
    for one in answers:
        if one.operation.function is Function.POLL:
            polls.setdefault((one.operation.process, one.operation.session), []).append(one)
    for own in polls.values():
        run = _longest(own, lambda one: one.position if _starved(client, one, at) else None)
        if len(run) < FEWEST_POLLS or _span(run) - client.slack <= bound * MILLISECOND:
            continue
        first, last, append = run[0], run[-1], at[run[0].position]
        yield found(
            "consumer_starved",
            log,
            offset=first.position,
            proof=(last.operation, first.operation, append),
            expected=f"the record at offset {first.position}, acknowledged with acks=all to operation "
            f"{append.op_id}, to be read within {bound} ms",
            seen=f"{len(run)} polls got nothing from there, from operation {first.operation.op_id} to "
            f"operation {last.operation.op_id}, {_span(run) // MILLISECOND} ms later",
        )
        return


def _starved(client: Client, one: Answer, at: dict[int, Operation]) -> bool:
    """Whether a poll got nothing although the record at its position can be read, by its own answer too."""
    append = at.get(one.position)
    if append is None or one.operation.records or (0 <= one.end <= one.position):
        return False
    assert append.completion_time is not None
    if append.completion_time + client.slack >= one.begin:
        return False
    isolation = one.operation.isolation
    if isolation == READ_UNCOMMITTED:
        return True
    if append.process in client.transactional:
        return False
    return one.stable > one.position or (isolation != READ_COMMITTED and not client.transactional)


def _shows_high_watermark(client: Client, one: Answer) -> bool:
    """Some clients report the last stable offset as the end, unless they read all records."""
    if one.operation.isolation == READ_UNCOMMITTED:
        return True
    return one.operation.isolation != READ_COMMITTED and not client.transactional


class _Highest:
    """The committed append that reaches highest, among those acknowledged before a moment."""

    def __init__(self, appends: Iterable[Operation], slack: int) -> None:
        self._left = sorted(
            filter(committed, appends), key=lambda one: one.completion_time or 0, reverse=True
        )
        self._slack = slack
        self._highest: Operation | None = None

    def before(self, moment: int) -> Operation | None:
        """moment: nanoseconds, never less than in the call before."""
        while self._left and (self._left[-1].completion_time or 0) + self._slack < moment:
            one = self._left.pop()
            if self._highest is None or last_offset(one) > last_offset(self._highest):
                self._highest = one
        return self._highest


def _longest(answers: Iterable[Answer], of: Callable[[Answer], int | None]) -> list[Answer]:
    """The longest stretch of answers that are all of the same offset; None is of none."""
    longest: list[Answer] = []
    run: list[Answer] = []
    current: int | None = None
    for one in answers:
        value = of(one)
        if value is None or value != current:
            run = []
        current = value
        if value is not None:
            run.append(one)
            if _span(run) > _span(longest) or not longest:
                longest = run
    return longest


def _span(run: list[Answer]) -> int:
    """Nanoseconds between the end of its first operation and the beginning of its last one."""
    return run[-1].begin - run[0].answered if run else 0
