"""Client operations: what a client asked of a log, when, and the answer.

One `Operation` is one row of the `operations` table. Intervals are closed, times are integer
nanoseconds, and equal times count as concurrent. docs/reference/traces.md says what each column means for
each function; the short form is next to each field.
"""

from enum import StrEnum

import msgspec
from attrs import frozen

from fencepost.traces.making import maker_of, remaker_of

LONGEST_NAME = 64
"""Characters of the name of a function."""


class Function(StrEnum):
    """What an operation does. Later work adds values here, never columns. A history of another system may
    have functions of its own: any other name is a function, too, of which models and workloads know more."""

    APPEND = "append"
    POLL = "poll"
    LIST_OFFSETS = "list_offsets"
    COMMIT = "commit"
    FETCH_COMMITTED = "fetch_committed"
    JOIN = "join"
    TXN = "txn"
    READ = "read"
    WRITE = "write"
    CAS = "cas"
    GET = "get"
    PUT = "put"
    ADD = "add"
    REMOVE = "remove"
    CONTAINS = "contains"
    ENQUEUE = "enqueue"
    DEQUEUE = "dequeue"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    CRASH = "crash"
    DELETE_RECORDS = "delete_records"
    DELETE = "delete"
    RENEW = "renew"
    LEAVE = "leave"

    @classmethod
    def _missing_(cls, value: object) -> "Function | None":
        if not isinstance(value, str) or not value or len(value) > LONGEST_NAME or not value.isprintable():
            return None
        known = _OTHERS.get(value)
        if known is None:
            known = str.__new__(cls, value)
            known._name_, known._value_ = value, value
            if len(_OTHERS) < MOST_OTHERS:
                _OTHERS[value] = known
        return known


_OTHERS: dict[str, Function] = {}
"""Functions of other systems that were met, so that a history has one object for each."""
MOST_OTHERS = 1_000
"""Beyond so many they are made anew."""


class Outcome(StrEnum):
    """What the client knows: it happened, it did not, or neither.

    An unknown operation may have happened, may happen at any later time, or may never happen.
    """

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


ACKS_ALL, ACKS_LEADER, ACKS_NONE = -1, 1, 0


@frozen(kw_only=True, weakref_slot=False)
class Record:
    """One record of a log as a client wrote or saw it."""

    topic: str
    partition: int
    offset: int
    # A 64-bit id, unique within a trace unless the trace says otherwise; offset and leader_epoch are -1 if
    # the client does not know them.
    value: int
    leader_epoch: int = -1


class ByTime(msgspec.Struct, frozen=True, kw_only=True):
    """The `result` of a list_offsets `by_time`, as JSON: the first record with that timestamp or a later one.
    Times are milliseconds of the trace's time, as the records' makers stamped them; -1 for all that there is
    not."""

    # What was asked for.
    from_ms: int
    # The record that was named.
    offset: int = -1
    timestamp_ms: int = -1
    leader_epoch: int = -1
    # How far the times may be from the trace's, which another clock was converted to; UNRELATED: they are of
    # a clock that nobody knows.
    within_ms: int = 0


UNRELATED = -1
BY_TIME = "by_time"
"""The argument of such a list_offsets."""
SEEK = "seek"
"""The argument of an assign that keeps its partitions and moves in some of them."""
LATE = "late"
"""The argument of a commit of an earlier generation, sent on purpose: it must be refused."""
LOST = "lost"
"""The argument of an assign without partitions: others may have those of a cooperative member."""
CHANGED = "changed"
"""The argument of a subscribe to other topics by a member that stays one: it joins again."""
COOPERATIVE = "cooperative"
"""The argument of a join of a member that goes on in the partitions that it keeps (KIP-429)."""


@frozen(kw_only=True, weakref_slot=False)
class Position:
    """Where one partition of a multi-partition poll started, and what its reply claimed."""

    topic: str
    partition: int
    # The position read from.
    offset: int
    # As in Operation; None: not claimed.
    end_offset: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    # Leader epoch of the reply; -1: unknown.
    leader_epoch: int = -1


@frozen(kw_only=True, weakref_slot=False)
class Operation:
    """One client operation, from its invocation to its completion. None: the operation does not have it, or
    it is not known."""

    # Unique within the trace.
    op_id: int
    # A single-threaded client; at most one operation of a process is in flight unless the trace's
    # `concurrent_processes` is true.
    process: int
    function: Function
    # Nanoseconds, as all times.
    invoke_time: int
    outcome: Outcome
    # None while the outcome is unknown and there was no answer.
    completion_time: int | None = None
    # A process's incarnation.
    session: int = 0
    # Times of one clock are ordered exactly. Times of two clocks differ by their uncertainty
    # (docs/spec/log-check.md: clock uncertainty).
    clock_id: int = 0
    topic: str | None = None
    partition: int | None = None
    key: str | None = None
    # JSON, for the functions of sequential models.
    argument: str | None = None
    result: str | None = None
    # Kafka's error name, or a text.
    error: str | None = None
    # -1 for all.
    acks: int | None = None
    # read_committed or read_uncommitted.
    isolation: str | None = None
    # append: the assigned base offset; poll: the position read from; list_offsets: the returned offset.
    offset: int | None = None
    # The high watermark that the reply claims.
    end_offset: int | None = None
    # Further offsets that the reply claims.
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    leader_epoch: int | None = None
    # Id, epoch and first sequence of an idempotent producer.
    producer_id: int | None = None
    producer_epoch: int | None = None
    sequence: int | None = None
    # Group, member id and generation of a group's member.
    group: str | None = None
    member: str | None = None
    generation: int | None = None
    # The broker that answered last; -1: unknown.
    node: int = -1
    # Requests sent for this operation.
    attempts: int = 1
    # The claimed end was true at some moment between invocation and completion (final reads after the cluster
    # healed; foreign systems that promise it).
    strong: bool = False
    # What was appended (offsets -1 until known) or read.
    records: tuple[Record, ...] = ()
    # Bounds and position for each partition of a poll of several.
    positions: tuple[Position, ...] = ()


make_record, make_operation = maker_of(Record), maker_of(Operation)
remake_operation = remaker_of(Operation)
"""For those who make thousands."""
