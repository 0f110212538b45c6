"""The memory of the streaming form: the known length of the log, sent values, known records; and what an
operation says about one partition.

Owns these values. Must not know how they are checked.
"""

from attrs import Factory, define, frozen

from fencepost.checkers.operation_columns import NONE
from fencepost.checkers.statements import EARLIEST, ISOLATIONS, READ_COMMITTED
from fencepost.traces.making import maker_of
from fencepost.traces.operations import Function, Operation, Record


@frozen(kw_only=True, weakref_slot=False)
class ShownValue:
    """The known length of the log."""

    # This many offsets.
    end: int = 0
    # The operation that first showed it (None at the start).
    by: Operation | None = None
    # It showed a record, not a claimed end.
    by_record: bool = False


@define(kw_only=True)
class Sent:
    """An operation that was invoked, with what was known at that moment."""

    # The operation, as far as it is known at its invocation.
    operation: Operation
    # The length by acknowledgements at its invocation.
    acknowledged: ShownValue
    # The length by reads at its invocation.
    shown: ShownValue
    # The log start at its invocation.
    log_start: ShownValue
    # The last stable offset at its invocation.
    stable: ShownValue
    # Whether its process was in a transaction.
    transactional: bool = False
    # Whether it is an append that is known to have failed.
    failed: bool = False
    # Whether it was dropped because too many operations were in flight.
    abandoned: bool = False
    # Base offsets at which reads showed the append while it was in flight. They are checked once it is known
    # not to have failed.
    stands: list[int] = Factory(list)


@frozen(kw_only=True, weakref_slot=False)
class Slot:
    """The value at an offset, and the operation that reported it."""

    value: int
    by: Operation


make_shown, make_slot = maker_of(ShownValue), maker_of(Slot)
"""Constructors for a stream, which makes one of each for nearly every operation."""


def touches(operation: Operation, topic: str, partition: int) -> bool:
    """Whether the streaming form of this log needs this operation."""
    if operation.function is Function.TXN:
        return True
    if operation.function not in (Function.APPEND, Function.POLL, Function.LIST_OFFSETS):
        return False
    named = [(operation.topic, operation.partition), *((p.topic, p.partition) for p in operation.positions)]
    return (topic, partition) in named or any(
        (r.topic, r.partition) == (topic, partition) for r in operation.records
    )


@frozen(kw_only=True, weakref_slot=False)
class Claimed:
    """What a read says about one partition: position (-1: not known), end, log start, last stable offset
    (None: not reported), and its records."""

    position: int
    end: int | None
    log_start: int | None
    stable: int | None
    records: tuple[Record, ...]


_make_claimed = maker_of(Claimed)


def claimed_by(read: Operation, topic: str, partition: int) -> Claimed:
    """The part of a read about one partition: the operation's own claims, or those of its position there, and
    the records of that partition."""
    records = read.records
    for record in records:
        if record.partition != partition or record.topic != topic:
            records = tuple([r for r in records if (r.topic, r.partition) == (topic, partition)])
            break
    listed = read.function is Function.LIST_OFFSETS
    if not read.positions and (read.topic, read.partition) == (topic, partition):
        end, start, stable = read.end_offset, read.log_start_offset, read.last_stable_offset
        if listed and end is None:  # its result is what it asked for
            if read.argument == EARLIEST:
                start = read.offset if start is None else start
            elif read.isolation == ISOLATIONS[READ_COMMITTED]:
                stable = read.offset if stable is None else stable
            else:
                end = read.offset
        position = NONE if listed or read.offset is None else read.offset
        return _make_claimed(position=position, end=end, log_start=start, stable=stable, records=records)
    for place in read.positions:
        if (place.topic, place.partition) == (topic, partition):
            return _make_claimed(
                position=NONE if listed else place.offset,
                end=place.end_offset,
                log_start=place.log_start_offset,
                stable=place.last_stable_offset,
                records=records,
            )
    return _make_claimed(position=NONE, end=None, log_start=None, stable=None, records=records)
