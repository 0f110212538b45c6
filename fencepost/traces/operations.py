"""Client operations: what a client asked of a log, when, and what it was told.

One `Operation` is one row of the `operations` table. Intervals are closed, times are integer
nanoseconds, and equal times count as concurrent. What each column means for each function stands in
docs/reference/traces.md; the short form is beside each field.
"""

from enum import StrEnum

from attrs import frozen

from fencepost.traces.making import maker_of, remaker_of


class Function(StrEnum):
    """What an operation does. Later work adds values here, never columns."""

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
    """One record of a log as a client wrote or saw it.

    value: a 64-bit id, unique within a trace unless the trace says otherwise; offset and
    leader_epoch are -1 where the client was not told.
    """

    topic: str
    partition: int
    offset: int
    value: int
    leader_epoch: int = -1


@frozen(kw_only=True)
class Position:
    """Where one partition of a multi-partition poll started and what its reply claimed."""

    topic: str
    partition: int
    offset: int
    end_offset: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    leader_epoch: int = -1


@frozen(kw_only=True, weakref_slot=False)
class Operation:
    """One client operation, from its invocation to its completion.

    op_id: unique within the trace. process: a single-threaded client; at most one operation of a process is
    in flight unless the trace's `concurrent_processes` is true. session: a process's incarnation. clock_id:
    stamps of one clock are ordered exactly; stamps of two clocks err (docs/spec/log-check.md: clock
    uncertainty). offset: append: the base offset assigned; poll: the position read from; list_offsets: the
    offset returned. end_offset: the high watermark that the reply claims. strong: the claimed end may be
    trusted as of some moment between invocation and completion (final reads after the cluster healed; foreign
    systems that promise it). records: what was appended (offsets -1 until known) or read. attempts: requests
    sent for this operation. node: the broker that answered last (-1 unknown). completion_time: None while the
    outcome is unknown and nothing was heard.
    """

    op_id: int
    process: int
    function: Function
    invoke_time: int
    outcome: Outcome
    completion_time: int | None = None
    session: int = 0
    clock_id: int = 0
    topic: str | None = None
    partition: int | None = None
    key: str | None = None
    argument: str | None = None
    result: str | None = None
    error: str | None = None
    acks: int | None = None
    isolation: str | None = None
    offset: int | None = None
    end_offset: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    leader_epoch: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    sequence: int | None = None
    group: str | None = None
    member: str | None = None
    generation: int | None = None
    node: int = -1
    attempts: int = 1
    strong: bool = False
    records: tuple[Record, ...] = ()
    positions: tuple[Position, ...] = ()


make_record, make_operation = maker_of(Record), maker_of(Operation)
remake_operation = remaker_of(Operation, make_operation)
"""For those who make thousands."""
