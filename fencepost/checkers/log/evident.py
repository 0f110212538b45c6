"""Which histories are evidently legal: a witness from the operations themselves, without columns.

Owns a short way to Ok for one history in memory. It repeats no rule, as `witness` does not: one log and one
course of time explain every statement, and the history is strong enough (`accounts`). What is not plain is
left to the columns: transactions, compaction, retention, polls of several partitions, acknowledgements of the
leader alone, holes that unknown appends may fill, the session profile.

Making columns of some hundred operations costs six times as much.
"""

from collections.abc import Iterable
from itertools import accumulate

from attrs import Factory, define

from fencepost.checkers.log.accounts import FEW_ACKNOWLEDGED, OF_APPENDS
from fencepost.checkers.log.log_rules import PROFILES, Profile
from fencepost.checkers.log.witness import PASSED, ROOMY
from fencepost.checkers.operation_columns import MOST_PARTITION
from fencepost.checkers.statements import EARLIEST, ISOLATIONS, READ_COMMITTED
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.trace import Trace

_OK, _UNKNOWN = Outcome.OK, Outcome.UNKNOWN
_APPEND, _POLL, _LIST_OFFSETS, _TXN = Function.APPEND, Function.POLL, Function.LIST_OFFSETS, Function.TXN
"""Python 3.11 takes longer to look up the member of an Enum than these loops do for all else of a field."""
_COMMITTED = ISOLATIONS[READ_COMMITTED]
_ALL = (None, ACKS_ALL)
_BEFORE_ALL = -(1 << 63)


@define
class _Log:
    """What the history says of one log, and its witness."""

    # Acknowledged by all in-sync replicas.
    firm: list[Operation] = Factory(list)
    # Of unknown outcome, with no offset.
    unknown: list[Operation] = Factory(list)
    # Answered reads, and the end that each was shown if it is to be trusted, else -1.
    reads: list[tuple[Operation, int]] = Factory(list)
    # By offset: the value of the record there.
    value: dict[int, int] = Factory(dict)
    # By offset: the last offset of the record's batch.
    last: dict[int, int] = Factory(dict)
    # By offset: the leader epoch, where it is known.
    epoch: dict[int, int] = Factory(dict)
    # By value: batches of unknown outcome that have no place yet.
    loose: dict[int, Operation] = Factory(dict)
    # Offsets [first, second) that reads passed over.
    skipped: list[tuple[int, int]] = Factory(list)


def evidently_legal(trace: Trace) -> bool:
    """Whether the verdict is Ok, as the columns would say.

    Args:
        trace: the history.

    Returns:
        True: it is. False: nothing is known.
    """
    claims = trace.claims
    profile = PROFILES.get(claims.check, Profile.SESSION)
    if profile is Profile.SESSION or claims.assumption_broken or claims.retention or claims.compacted:
        return False
    appends = [0, 0]
    logs = _logs_of(trace.operations, profile is Profile.STRONG, appends) if trace.unique_values else None
    if logs is None:
        return False
    timed = profile is not Profile.CONTENT
    if not all(_explained(log, timed=timed, dense=claims.dense) for log in logs):
        return False
    return bool(trace.plan) or _strong(logs, *appends)


def _logs_of(operations: Iterable[Operation], trusted: bool, appends: list[int]) -> Iterable[_Log] | None:
    """The statements by log; None if one is not plain. trusted: every end is; appends: how many, and how many
    of them were acknowledged. Written."""
    logs: dict[tuple[str, int], _Log] = {}
    before = _BEFORE_ALL
    for operation in operations:
        op_id, function, done = operation.op_id, operation.function, operation.completion_time
        ok = operation.outcome is _OK
        if op_id <= before or (ok if done is None else done < operation.invoke_time):
            return None
        before = op_id
        stable = operation.last_stable_offset
        if function is _TXN or operation.argument == EARLIEST or operation.isolation == _COMMITTED:
            return None
        if (stable is not None and stable >= 0) or operation.positions:
            return None
        is_append = function is _APPEND
        if is_append:
            if not operation.records:
                continue
        elif not ok or (function is not _POLL and function is not _LIST_OFFSETS):
            continue
        topic, partition, offset = operation.topic, operation.partition, operation.offset
        if topic is None or partition is None or not 0 <= partition < MOST_PARTITION:
            return None
        log = logs.get((topic, partition))
        if log is None:
            log = logs[topic, partition] = _Log()
        if not is_append:
            end = operation.end_offset if trusted or operation.strong else -1
            if (end is None or end < 0) and function is _LIST_OFFSETS:
                end = offset if trusted or operation.strong else -1
            log.reads.append((operation, -1 if end is None else end))
            continue
        known = offset is not None and offset >= 0
        appends[0] += 1
        if ok:
            appends[1] += 1
            if not known or operation.acks not in _ALL:
                return None
            log.firm.append(operation)
        elif operation.outcome is _UNKNOWN:
            if known:
                return None
            log.unknown.append(operation)
    return logs.values()


def _explained(log: _Log, *, timed: bool, dense: bool) -> bool:
    """Whether the log has a witness. Makes it."""
    began: dict[int, int] = {}
    for operation in log.firm:
        if not _put(log, operation, operation.offset or 0, began):
            return False
    sent = len(log.value)
    for operation in log.unknown:
        sent += len(operation.records)
        for record in operation.records:
            log.loose[record.value] = operation
    if len(log.loose.keys() | set(log.value.values())) < sent:
        return False  # a value was sent twice
    after = [_shown(log, read, began) for read, _ in log.reads]
    epochs = [epoch for _, epoch in sorted(log.epoch.items())]
    if None in after or epochs != sorted(epochs):
        return False
    known = max(log.last.values(), default=-1) + 1
    for read, end in log.reads:
        if end >= 0 and began.get(end, _BEFORE_ALL) < read.invoke_time:
            began[end] = read.invoke_time
    low, known = min(began, default=known), max(known, *began) if began else known
    if known - low > ROOMY * (sent + len(log.reads) + 16) or (dense and len(log.value) < known):
        return False
    for first, stop in log.skipped:
        if stop - first > PASSED or any(offset in log.value for offset in range(first, stop)):
            return False
    grown = [_BEFORE_ALL] * (known - low + 1)
    for offset, moment in began.items():
        grown[offset - low] = moment
    return _in_time(log, list(accumulate(grown, max)), low, after, timed=timed)


def _put(log: _Log, operation: Operation, base: int, began: dict[int, int]) -> bool:
    """Put the batch at this offset; whether that was free. began: by offset at which a batch begins or a read
    ended, its latest invocation. Written."""
    value, records, epoch = log.value, operation.records, operation.leader_epoch
    last = base + len(records) - 1
    if base < 0:
        return False
    for offset, record in enumerate(records, base):
        if offset in value:
            return False
        value[offset] = record.value
        log.last[offset] = last
        if epoch is not None and epoch >= 0:
            log.epoch[offset] = epoch
    began[base] = operation.invoke_time
    return True


def _shown(log: _Log, read: Operation, began: dict[int, int]) -> int | None:
    """The offset after the records that the read shows, -1 if it shows none; None if one of them is not
    there. A batch of unknown outcome is where it is shown."""
    value, topic, partition, epochs = log.value, read.topic, read.partition, log.epoch
    at = -1 if read.function is _LIST_OFFSETS or read.offset is None else read.offset
    for record in read.records:
        offset = record.offset
        if offset != at:
            if offset < at:
                return None
            if at >= 0:
                log.skipped.append((at, offset))
            at = offset
        if record.partition != partition or record.topic != topic:
            return None
        if offset not in value:
            batch = log.loose.get(record.value)
            if batch is None:
                return None
            sent = [one.value for one in batch.records]
            if not _put(log, batch, offset - sent.index(record.value), began):
                return None
            for one in sent:
                del log.loose[one]
        if value[offset] != record.value:
            return None
        epoch = record.leader_epoch
        if epoch >= 0 and epochs.setdefault(offset, epoch) != epoch:
            return None
        at += 1
    return at if read.records else -1


def _in_time(log: _Log, grown: list[int], low: int, after: list[int | None], *, timed: bool) -> bool:
    """Whether no answer came before the log had grown so far (the moment of each offset from `low` on), and
    no end is in a batch or below what was shown (after: by read, what `_shown` says). timed: moments count.
    """
    last = log.last
    for operation in log.firm if timed else ():
        if (operation.completion_time or 0) < grown[last[operation.offset or 0] - low]:
            return False
    for (read, end), stop in zip(log.reads, after, strict=True):
        done = read.completion_time if timed else None
        if end > low:
            inside = end in last and last.get(end - 1) == last[end]
            if inside or (done is not None and done < grown[end - 1 - low]):
                return False
        if stop is None or stop < 0:
            continue
        if 0 <= end < stop or (done is not None and done < grown[last[stop - 1] - low]):
            return False
    return True


def _strong(logs: Iterable[_Log], appends: int, acknowledged: int) -> bool:
    """Whether Ok means something: enough was acknowledged, and of each acknowledged record a read or a later
    trusted read tells."""
    reads = 0
    for log in logs:
        reads += len(log.reads)
        latest = max((read.invoke_time for read, end in log.reads if end >= 0), default=_BEFORE_ALL)
        late = [operation.offset or 0 for operation in log.firm if (operation.completion_time or 0) > latest]
        if late:
            shown = {record.offset for read, _ in log.reads for record in read.records}
            if not all(shown.issuperset(range(offset, log.last[offset] + 1)) for offset in late):
                return False
    return bool(reads and acknowledged) and (
        appends < FEW_ACKNOWLEDGED or acknowledged * OF_APPENDS >= appends
    )
