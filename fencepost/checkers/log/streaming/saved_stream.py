"""The memory of the streaming form as bytes, and back, so that a stream can continue in another process.

Owns which part of the memory must be kept, and its layout in MessagePack. Must not know where the bytes are
stored.

Only plain values are kept, and types are checked on reading. So a state from an untrusted source can be
wrong, but it executes nothing. Of an operation only the fields are kept that a later finding may need; a
value of `_Kept` replaces it afterwards.
"""

from collections import OrderedDict
from typing import cast

import msgspec
from attrs import define, field

from fencepost.checkers.log.streaming.memory import Sent, ShownValue, make_shown, make_slot
from fencepost.checkers.log.streaming.skips import KeyState, StreamSkips
from fencepost.checkers.log.streaming.streaming import IN_FLIGHT, StreamingLogCheck
from fencepost.checkers.verdict import Finding
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Claims

VERSION = 2


class _Value(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The kept part of a record that was sent."""

    value: int


class _Kept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The kept part of an operation, with the names of Operation."""

    # The operation.
    op_id: int
    # Nanoseconds.
    invoke_time: int
    # Nanoseconds; None while it is not complete.
    completion_time: int | None
    # The clock of the times.
    clock_id: int
    # The key of an append.
    key: str | None
    # The argument as JSON.
    argument: str | None
    # The isolation of a read.
    isolation: str | None
    # The records of an append.
    records: tuple[_Value, ...]


def _kept(operation: Operation | _Kept, *, records: bool) -> _Kept:
    if isinstance(operation, _Kept):  # restored from bytes before
        return operation
    sent = records and operation.function is Function.APPEND
    return _Kept(
        op_id=operation.op_id,
        invoke_time=operation.invoke_time,
        completion_time=operation.completion_time,
        clock_id=operation.clock_id,
        key=operation.key,
        argument=operation.argument,
        isolation=operation.isolation,
        records=tuple([_Value(record.value) for record in operation.records]) if sent else (),
    )


class _Sent(msgspec.Struct, array_like=True):
    """The kept form of a Sent."""

    # The operation.
    operation: _Kept
    # acknowledged, shown, log start and stable, as indices into `_State.shown`.
    floors: tuple[int, int, int, int]
    # As in Sent.
    transactional: bool
    # As in Sent.
    failed: bool
    # As in Sent.
    abandoned: bool
    # As in Sent.
    stands: list[int]


class _Skips(msgspec.Struct, array_like=True):
    """The part of StreamSkips that does not follow from the claims."""

    # As in StreamSkips, like the next five fields.
    licence: int
    transactional: bool
    waiting: tuple[int, Finding] | None
    dense: Finding | None
    dense_waiting: tuple[int, Finding] | None
    # Tuples of key, newest, unplaced, crowded.
    keys: list[tuple[str, int, list[int], bool]]
    moved: bool


class _State(msgspec.Struct, array_like=True):
    """A StreamingLogCheck without its log's name, claims and horizon. Dictionaries become lists of pairs,
    because their order says which entry is the oldest."""

    # The version of this layout.
    version: int
    # The time of the last moment, in nanoseconds.
    now: int
    # acknowledged, shown, log_start and stable, as indices into `shown`.
    floors: tuple[int, int, int, int]
    # Each ShownValue: end, op id, by_record.
    shown: list[tuple[int, int | None, bool]]
    # Operations that showed something; other fields refer to them by op id.
    seen: list[_Kept]
    # Each Sent; other fields refer to them by index.
    sent: list[_Sent]
    # Offset, value, op id.
    slots: list[tuple[int, int, int]]
    # Value, offset.
    offset_of: list[tuple[int, int]]
    # Value, index into `sent`.
    sends: list[tuple[int, int]]
    # Value, offset, op id of the read.
    early: list[tuple[int, int, int]]
    # Op id, index into `sent`.
    in_flight: list[tuple[int, int]]
    # Process, session.
    transacting: list[tuple[int, int]]
    # forgotten and abandoned.
    counts: tuple[int, int]
    # Whether the horizon dropped a send.
    sends_forgotten: bool
    # How the stream contradicts itself, and which operation says too little; "" if none.
    broken: str
    doubtful: str
    # Whether each value was sent once.
    unique: bool
    # The findings so far.
    found: list[Finding]
    # The state of the skip rule.
    skips: _Skips


_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(_State)


@define
class _Writer:
    """Numbers the objects that several places share."""

    shown: dict[tuple[int, int | None, bool], int] = field(factory=dict)
    # The numbers of the objects in `shown`, by identity: many operations share one, and all live as long as
    # the writing.
    numbers: dict[int, int] = field(factory=dict)
    seen: dict[int, Operation] = field(factory=dict)
    sent: dict[tuple[int, int], int] = field(factory=dict)
    sends: list[_Sent] = field(factory=list)

    def by(self, operation: Operation) -> int:
        self.seen.setdefault(operation.op_id, operation)
        return operation.op_id

    def floor(self, shown: ShownValue) -> int:
        number = self.numbers.get(id(shown))
        if number is None:
            by = None if shown.by is None else self.by(shown.by)
            number = self.shown.setdefault((shown.end, by, shown.by_record), len(self.shown))
            self.numbers[id(shown)] = number
        return number

    def floors(self, of: StreamingLogCheck | Sent) -> tuple[int, int, int, int]:
        numbers = self.numbers
        try:  # nearly all of them are known
            return (
                numbers[id(of.acknowledged)],
                numbers[id(of.shown)],
                numbers[id(of.log_start)],
                numbers[id(of.stable)],
            )
        except KeyError:
            pass
        return (
            self.floor(of.acknowledged),
            self.floor(of.shown),
            self.floor(of.log_start),
            self.floor(of.stable),
        )

    def number(self, sent: Sent) -> int:
        operation = sent.operation
        number = self.sent.setdefault((operation.op_id, operation.invoke_time), len(self.sent))
        if number == len(self.sends):
            self.sends.append(
                _Sent(
                    operation=_kept(operation, records=True),
                    floors=self.floors(sent),
                    transactional=sent.transactional,
                    failed=sent.failed,
                    abandoned=sent.abandoned,
                    stands=sent.stands,
                )
            )
        return number


def _kept_skips(skips: StreamSkips) -> _Skips:
    keys = [(key, state.newest, sorted(state.unplaced), state.crowded) for key, state in skips.keys.items()]
    return _Skips(
        licence=skips.licence,
        transactional=skips.transactional,
        waiting=skips.waiting,
        dense=skips.dense,
        dense_waiting=skips.dense_waiting,
        keys=keys,
        moved=skips.moved,
    )


def to_bytes(check: StreamingLogCheck) -> bytes:
    """The memory of the check as bytes. Equal memories give equal bytes."""
    writer = _Writer()
    floors = writer.floors(check)
    slots = [(offset, slot.value, writer.by(slot.by)) for offset, slot in check.slots.items()]
    early = [(value, offset, writer.by(read)) for value, (offset, read) in check.early.items()]
    sends = [(value, writer.number(sent)) for value, sent in check.sends.items()]
    in_flight = [(op_id, writer.number(sent)) for op_id, sent in check.in_flight.items()]
    state = _State(
        version=VERSION,
        now=check.now,
        floors=floors,
        shown=list(writer.shown),
        seen=[_kept(operation, records=False) for operation in writer.seen.values()],
        sent=writer.sends,
        slots=slots,
        offset_of=list(check.offset_of.items()),
        sends=sends,
        early=early,
        in_flight=in_flight,
        transacting=sorted(check.transacting),
        counts=(check.forgotten, check.abandoned),
        sends_forgotten=check.sends_forgotten,
        broken=check.broken,
        doubtful=check.doubtful,
        unique=check.unique,
        found=list(check.findings.found.values()),
        skips=_kept_skips(check.skips),
    )
    return _ENCODER.encode(state)


def _restore_skips(skips: StreamSkips, kept: _Skips) -> None:
    skips.licence, skips.transactional, skips.moved = kept.licence, kept.transactional, kept.moved
    skips.waiting, skips.dense, skips.dense_waiting = kept.waiting, kept.dense, kept.dense_waiting
    for key, newest, unplaced, crowded in kept.keys:
        skips.keys[key] = KeyState(newest=newest, unplaced=set(unplaced), crowded=crowded)


def _restore(check: StreamingLogCheck, state: _State) -> None:
    seen = {kept.op_id: cast(Operation, kept) for kept in state.seen}
    shown = [
        make_shown(end=end, by=None if by is None else seen[by], by_record=by_record)
        for end, by, by_record in state.shown
    ]
    sent = [
        Sent(
            operation=cast(Operation, one.operation),
            acknowledged=shown[one.floors[0]],
            shown=shown[one.floors[1]],
            log_start=shown[one.floors[2]],
            stable=shown[one.floors[3]],
            transactional=one.transactional,
            failed=one.failed,
            abandoned=one.abandoned,
            stands=one.stands,
        )
        for one in state.sent
    ]
    check.now = state.now
    check.acknowledged, check.shown, check.log_start, check.stable = (shown[n] for n in state.floors)
    check.slots = OrderedDict(
        [(offset, make_slot(value=value, by=seen[by])) for offset, value, by in state.slots]
    )
    check.offset_of = OrderedDict(state.offset_of)
    check.sends = OrderedDict([(value, sent[number]) for value, number in state.sends])
    check.early = OrderedDict([(value, (offset, seen[by])) for value, offset, by in state.early])
    check.in_flight = OrderedDict([(op_id, sent[number]) for op_id, number in state.in_flight])
    check.transacting = set(state.transacting)
    check.forgotten, check.abandoned = state.counts
    check.sends_forgotten, check.broken = state.sends_forgotten, state.broken
    check.doubtful, check.unique = state.doubtful, state.unique
    check.skips.unique = state.unique
    check.findings.found.update((finding.anomaly, finding) for finding in state.found)
    _restore_skips(check.skips, state.skips)


def from_bytes(
    data: bytes,
    *,
    topic: str,
    partition: int,
    claims: Claims,
    unique: bool,
    horizon: int,
    most_in_flight: int = IN_FLIGHT,
) -> StreamingLogCheck:
    """Restore a check from `data`, for the same log under the same claims. Raises TraceError if the bytes are
    not a memory of this version."""
    check = StreamingLogCheck(
        topic=topic,
        partition=partition,
        claims=claims,
        unique=unique,
        horizon=horizon,
        most_in_flight=most_in_flight,
    )
    where = f"the memory of {topic}-{partition}"
    try:
        state = _DECODER.decode(data)
        if state.version == VERSION:
            _restore(check, state)
            return check
    except (msgspec.MsgspecError, LookupError) as error:
        raise TraceError(expected="what a stream remembers", seen=str(error), where=where) from None
    raise TraceError(expected=f"version {VERSION}", seen=f"version {state.version}", where=where)
