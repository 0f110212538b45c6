"""What clients recorded of each log, in the form that the rules of progress need.

Owns these relations. Must not know any rule.
"""

from collections import defaultdict
from collections.abc import Iterator

from attrs import evolve, frozen

from fencepost.checkers.log.log_rules import loss_in
from fencepost.checkers.verdict import Finding
from fencepost.traces.operations import ACKS_ALL, Function, Operation, Outcome
from fencepost.traces.trace import Claims, Trace

CHECK = "liveness"
Log = tuple[str, int]
"""Topic and partition."""
_READS = frozenset({Function.POLL, Function.LIST_OFFSETS})
_REMOVALS = frozenset({Function.DELETE_RECORDS, Function.DELETE})


@frozen(kw_only=True)
class Answer:
    """What an answered read claimed about one log. -1: not claimed."""

    operation: Operation
    # Where the read began.
    position: int
    end: int
    stable: int

    @property
    def begin(self) -> int:
        """When the read was invoked, nanoseconds."""
        return self.operation.invoke_time

    @property
    def answered(self) -> int:
        """When it was answered, nanoseconds."""
        assert self.operation.completion_time is not None
        return self.operation.completion_time


@frozen(kw_only=True)
class Client:
    """The operations of a trace by log. All are in the order of invocation."""

    claims: Claims
    operations: tuple[Operation, ...]
    # Answered reads.
    answers: dict[Log, list[Answer]]
    # Appends, whatever became of them.
    appends: dict[Log, list[Operation]]
    # Processes that have transactions.
    transactional: frozenset[int]
    # Topics of which a client deleted records, or that it deleted; None: of an unknown one.
    removed: frozenset[str | None]
    # How far two times of different clocks must be apart to be ordered, in nanoseconds.
    slack: int

    def may_lose(self, log: Log) -> bool:
        """Whether the claims allow a loss somewhere in the log."""
        return bool(loss_in(self.claims, *log))

    def may_remove(self, log: Log) -> bool:
        """Whether records of the log may be gone for another reason."""
        claims = self.claims
        removed = log[0] in self.removed or None in self.removed
        return removed or claims.retention or log[0] in claims.compacted


def client_of(trace: Trace) -> Client:
    """The relations of a trace.

    Args:
        trace: its operations and claims are read.
    """
    operations = tuple(sorted(trace.operations, key=lambda one: (one.invoke_time, one.op_id)))
    answers: dict[Log, list[Answer]] = defaultdict(list)
    appends: dict[Log, list[Operation]] = defaultdict(list)
    for one in operations:
        if one.function in _READS and one.outcome is Outcome.OK and one.completion_time is not None:
            for log, answer in _answers(one):
                answers[log].append(answer)
        elif one.function is Function.APPEND and one.topic is not None and one.partition is not None:
            appends[one.topic, one.partition].append(one)
    clocks = {one.clock_id for one in operations}
    return Client(
        claims=trace.claims,
        operations=operations,
        answers=answers,
        appends=appends,
        transactional=frozenset(one.process for one in operations if one.function is Function.TXN),
        removed=frozenset(one.topic for one in operations if one.function in _REMOVALS),
        slack=2 * trace.claims.clock_uncertainty_ns if len(clocks) > 1 else 0,
    )


def _answers(one: Operation) -> Iterator[tuple[Log, Answer]]:
    """What it claims about each log. A list_offsets has no position: it returns an end, if it names nothing
    else."""
    if not one.positions and one.topic is not None and one.partition is not None:
        polled = one.function is Function.POLL
        end = one.end_offset if polled or one.end_offset is not None or one.argument else one.offset
        yield (
            (one.topic, one.partition),
            Answer(
                operation=one,
                position=_known(one.offset) if polled else -1,
                end=_known(end),
                stable=_known(one.last_stable_offset),
            ),
        )
    for place in one.positions:
        yield (
            (place.topic, place.partition),
            Answer(
                operation=one,
                position=place.offset,
                end=_known(place.end_offset),
                stable=_known(place.last_stable_offset),
            ),
        )


def _known(offset: int | None) -> int:
    return -1 if offset is None else offset


def committed(one: Operation) -> bool:
    """Whether an append was acknowledged by all in-sync replicas."""
    acknowledged = one.outcome is Outcome.OK and one.completion_time is not None
    return acknowledged and one.acks == ACKS_ALL and one.offset is not None and one.offset >= 0


def last_offset(one: Operation) -> int:
    """The offset of the last record of a committed append."""
    assert one.offset is not None
    return one.offset + max(len(one.records), 1) - 1


def found(
    anomaly: str, log: Log | None, *, offset: int, proof: tuple[Operation, ...], expected: str, seen: str
) -> Finding:
    """A finding of progress.

    Args:
        anomaly: its name.
        log: the log that it is about, if it is about one.
        offset: the offset that it is about.
        proof: the convicting operations.
        expected, seen: one clause each.
    """
    finding = Finding(
        anomaly=anomaly,
        check=CHECK,
        offset=offset,
        operations=tuple(dict.fromkeys(one.op_id for one in proof)),
        expected=expected,
        seen=seen,
    )
    return finding if log is None else evolve(finding, topic=log[0], partition=log[1])
