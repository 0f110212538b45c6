"""What operations of a small history claim, read straight from the definitions: shared by the slow
references, by no judge."""

from attrs import frozen

from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


@frozen(kw_only=True)
class ReadClaims:
    """What one read says: where it began, end, log start and last stable offset (None: not said, or not to be
    trusted), its isolation."""

    position: int | None
    end: int | None
    log_start: int | None
    stable: int | None
    # End, log start and last stable offset as said, trusted or not.
    said: tuple[int | None, int | None, int | None]
    committed: bool


def claims_of(read: Operation, trace: Trace) -> ReadClaims:
    """The claims of a read."""
    committed = read.isolation == "read_committed"
    listed = read.function is Function.LIST_OFFSETS
    end, start, stable = read.end_offset, read.log_start_offset, read.last_stable_offset
    if listed and end is None:
        if read.argument == "earliest":
            start = read.offset if start is None else start
        elif committed:
            stable = read.offset if stable is None else stable
        else:
            end = read.offset
    if not trace.claims.retention:
        start = None
    trusted = read.strong or trace.claims.check == "strong"
    return ReadClaims(
        position=None if listed else read.offset,
        end=end if trusted else None,
        log_start=start if trusted else None,
        stable=stable if trusted else None,
        said=(end, start, stable),
        committed=committed,
    )


def licence_of(trace: Trace) -> int:
    """The highest log start that any answered append, poll or list_offsets states, where retention is
    claimed."""
    asked = (Function.APPEND, Function.POLL, Function.LIST_OFFSETS)
    told = [op for op in trace.operations if op.function in asked and op.completion_time is not None]
    starts = [op.log_start_offset for op in told if op.log_start_offset is not None]
    starts += [
        op.offset
        for op in told
        if op.function is Function.LIST_OFFSETS and op.argument == "earliest" and op.offset is not None
        and op.log_start_offset is None
    ]  # fmt: skip
    return max([0, *starts]) if trace.claims.retention else 0


def transaction_of(append: Operation, trace: Trace) -> Operation | None:
    """The transaction whose times contain an append of its process and session: the latest that had begun."""
    begun = [
        op
        for op in trace.operations
        if op.function is Function.TXN
        and (op.process, op.session) == (append.process, append.session)
        and op.invoke_time <= append.invoke_time
    ]
    if not begun:
        return None
    latest = max(begun, key=lambda op: op.invoke_time)
    if latest.completion_time is not None and latest.completion_time < max(
        append.invoke_time, append.completion_time or append.invoke_time
    ):
        return None
    return latest


def fate_of(append: Operation, trace: Trace) -> str | None:
    """What became of an append's transaction; None if it has none."""
    transaction = transaction_of(append, trace)
    if transaction is None:
        return None
    return {Outcome.OK: COMMITTED, Outcome.FAIL: ABORTED, Outcome.UNKNOWN: OPEN}[transaction.outcome]


def before_end(transaction: Operation, trace: Trace) -> list[tuple[int, int]]:
    """(moment, clock): before each of these the end of a committed transaction was not asked for."""
    parts = [
        op
        for op in trace.operations
        if op.function is not Function.TXN and transaction_of(op, trace) is transaction
    ]
    moments = [(op.invoke_time, op.clock_id) for op in (transaction, *parts)]
    return moments + [
        (op.completion_time, op.clock_id)
        for op in parts
        if op.outcome is Outcome.OK and op.completion_time is not None
    ]


def ended_of(transaction: Operation, trace: Trace) -> int:
    """The earliest moment at which a committed transaction's end can have been asked for, by one clock."""
    return max(moment for moment, _ in before_end(transaction, trace))


def told_for_good(append: Operation, trace: Trace) -> bool:
    """Does the offset that an append of a transaction of unknown outcome was told count?

    It does once a read that is no part of the transaction, and did not ask for uncommitted records, showed
    one of its records; or any read_committed read did.
    """
    transaction = transaction_of(append, trace)
    if transaction is None or fate_of(append, trace) != OPEN or append.outcome is Outcome.FAIL:
        return False
    mine = {
        record.value
        for op in trace.operations
        if op.function is Function.APPEND and op.outcome is not Outcome.FAIL
        if transaction_of(op, trace) is transaction
        for record in op.records
    }
    polls = [op for op in trace.operations if op.function is Function.POLL and op.outcome is Outcome.OK]
    proofs = [op for op in polls if mine & {record.value for record in op.records}]
    return append.offset is not None and any(
        op.isolation == "read_committed"
        or (op.isolation != "read_uncommitted" and transaction_of(op, trace) is not transaction)
        for op in proofs
    )


def compacted(trace: Trace) -> bool:
    """Is the one topic of the history compacted?"""
    return "t" in trace.claims.compacted


def dense(trace: Trace) -> bool:
    """Does every offset below the end hold a record that somebody sent?"""
    transactional = any(
        op.function is Function.APPEND and transaction_of(op, trace) is not None for op in trace.operations
    )
    return trace.claims.dense and not compacted(trace) and not transactional
