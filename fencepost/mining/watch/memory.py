"""What a group of logs remembers between micro-batches, as bytes and back.

Owns: the layout in MessagePack. Must not know: Spark, what is done with a memory.

Plain values only, checked against types when they are read: no state is ever unpickled.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import msgspec

from fencepost.checkers.log.streaming.merge import Moment
from fencepost.checkers.log.streaming.saved_stream import to_bytes
from fencepost.checkers.verdict import Decision
from fencepost.mining.watch.read import WHOLE
from fencepost.mining.watch.shard import LogUnderWay, Shard, ShardLimits
from fencepost.mining.watch.watched_transactions import WholeTrace
from fencepost.traces.canonical_rows import Row, Rows, operation_row, trace_of
from fencepost.traces.errors import TraceError
from fencepost.traces.operations import Operation

VERSION = 1


class _Log(msgspec.Struct, array_like=True):
    # Name of the log.
    topic: str
    partition: int
    operations: int
    # Anomalies that were reported.
    reported: list[str]
    # As in LogUnderWay.
    decision: Decision | None
    reason: str
    forgotten: int
    # The state of the check as bytes.
    kept: bytes


class _Memory(msgspec.Struct, array_like=True):
    """A Shard's fields in plain values."""

    version: int
    trace: list[Any]
    replay: str
    ended: bool
    blind: tuple[Decision, str] | None
    torn: bool
    files: tuple[int, list[int]]
    marked: int | None
    marks: list[tuple[int, int]]
    end_after: int | None
    released: int
    newest: int
    # (row, which of its two moments wait).
    held: list[tuple[list[Any], bool]]
    begun: list[tuple[int, int]]
    # Rows of the open ones.
    transactions: list[list[Any]]
    logs: list[_Log]
    # The memory of the checks of transactions; b"": there is none.
    whole: bytes = b""


def group_of(source: str, trace_id: int, part: str, number: int, limits: ShardLimits) -> Shard:
    """A new group of a trace.

    Args:
        source, trace_id, part: the trace, and its part.
        number: of the group; WHOLE is the one that gets every operation.
        limits: of its memory.

    Returns:
        the group, without a memory.
    """
    kind = WholeTrace if number == WHOLE else Shard
    return kind(source=source, trace_id=trace_id, part=part, number=number, limits=limits)


_DECODER = msgspec.msgpack.Decoder(_Memory)


def _operations(trace: list[Any], rows: Iterable[Row]) -> tuple[Operation, ...]:
    return trace_of(Rows(trace=trace, operations=list(rows), events=())).operations


def memory_of(shard: Shard) -> bytes:
    """What a group remembers. Equal memories give equal bytes."""
    logs = [
        _Log(*log, state.operations, state.reported, state.decision, state.reason, state.forgotten,
             state.kept if state.check is None else to_bytes(state.check))
        for log, state in shard.logs.items()
    ]  # fmt: skip
    held = [(list(operation_row(moment.operation)), moment.completes) for moment in shard.merge.held]
    memory = _Memory(
        version=VERSION,
        trace=[] if shard.ended else shard.row,
        replay=shard.replay,
        ended=shard.ended,
        blind=shard.blind,
        torn=shard.torn,
        files=(shard.files, sorted(shard.ahead)),
        marked=shard.marked,
        marks=shard.marks,
        end_after=shard.end_after,
        released=shard.merge.released,
        newest=shard.merge.newest,
        held=held,
        begun=list(shard.merge.begun.items()),
        transactions=[list(operation_row(operation)) for operation in shard.transactions.values()],
        logs=logs,
        whole=shard.memory() if isinstance(shard, WholeTrace) else b"",
    )
    return msgspec.msgpack.encode(memory)


def remember(shard: Shard, data: bytes) -> None:
    """Restore a new group from `memory_of`. shard: the new group; data: the bytes. Raises TraceError for
    bytes that are not a memory of this version."""
    where = f"the memory of trace {shard.trace_id} of {shard.source}"
    try:
        memory = _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise TraceError(expected="what a watch remembers", seen=str(error), where=where) from None
    if memory.version != VERSION:
        raise TraceError(expected=f"version {VERSION}", seen=f"version {memory.version}", where=where)
    shard.row, shard.replay, shard.ended, shard.blind = (
        memory.trace,
        memory.replay,
        memory.ended,
        memory.blind,
    )
    shard.marked, shard.merge.released, shard.merge.newest = memory.marked, memory.released, memory.newest
    shard.torn = memory.torn
    shard.files, shard.ahead = memory.files[0], set(memory.files[1])
    shard.marks, shard.end_after = memory.marks, memory.end_after
    shard.merge.begun = OrderedDict(memory.begun)
    if isinstance(shard, WholeTrace):
        shard.kept = memory.whole
    if not shard.row:
        return
    shard.name_trace()
    waiting = _operations(shard.row, (row for row, _ in memory.held))
    for operation, (_, completes) in zip(waiting, memory.held, strict=True):
        shard.merge.held.append(Moment.of(operation, completes=completes))
    open_ones = _operations(shard.row, memory.transactions)
    shard.transactions = {operation.op_id: operation for operation in open_ones}
    for kept in memory.logs:
        shard.logs[kept.topic, kept.partition] = LogUnderWay(
            operations=kept.operations,
            reported=kept.reported,
            decision=kept.decision,
            reason=kept.reason,
            forgotten=kept.forgotten,
            kept=kept.kept,
        )
