"""What the streaming form remembers: how far the log was shown, what was sent, what stands where; and what an
operation says of one partition.

Owns these values. Must not know what is judged by them.
"""

from attrs import Factory, define, frozen

from fencepost.checkers.operation_columns import NONE
from fencepost.checkers.statements import EARLIEST, ISOLATIONS, READ_COMMITTED
from fencepost.traces.making import maker_of
from fencepost.traces.operations import Function, Operation, Record


@frozen(kw_only=True, weakref_slot=False)
class ShownValue:
    """How far the log is known to reach. end: this many offsets; by: the operation that showed it first (None
    at the start); by_record: it showed a record, not a claimed end."""

    end: int = 0
    by: Operation | None = None
    by_record: bool = False


@define(kw_only=True)
class Sent:
    """An operation that was invoked. acknowledged, shown, log_start, stable: the floors at that moment;
    transactional: its process was in a transaction; abandoned: too many others were in flight. Of an append:
    failed: it is known to have failed; stands: bases at which reads showed it while it was in flight (judged
    once it is known not to have failed)."""

    operation: Operation
    acknowledged: ShownValue
    shown: ShownValue
    log_start: ShownValue
    stable: ShownValue
    transactional: bool = False
    failed: bool = False
    abandoned: bool = False
    stands: list[int] = Factory(list)


@frozen(kw_only=True, weakref_slot=False)
class Slot:
    """What stands at an offset, and the operation that said so."""

    value: int
    by: Operation


make_shown, make_slot = maker_of(ShownValue), maker_of(Slot)
"""For a stream, which makes one of each for nearly every operation."""


def touches(operation: Operation, topic: str, partition: int) -> bool:
    """Does the streaming form of this log want to be fed this operation?"""
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
    """What a read says of one partition: position (-1: not said), end, log start, last stable offset (None:
    not said), and its records."""

    position: int
    end: int | None
    log_start: int | None
    stable: int | None
    records: tuple[Record, ...]


_make_claimed = maker_of(Claimed)


def claimed_by(read: Operation, topic: str, partition: int) -> Claimed:
    """The read as it concerns one partition: its own claims, or those of its position there, and the records
    of that partition."""
    records = read.records
    for record in records:
        if record.partition != partition or record.topic != topic:
            records = tuple([r for r in records if (r.topic, r.partition) == (topic, partition)])
            break
    listed = read.function is Function.LIST_OFFSETS
    if not read.positions and (read.topic, read.partition) == (topic, partition):
        end, start, stable = read.end_offset, read.log_start_offset, read.last_stable_offset
        if listed and end is None:  # what it returned is what it asked for
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
