"""Operations that arrive late and out of order, as invocations and completions in the order of time.

Owns: what has arrived and must wait, because something earlier may still come; and what came too late. Must not know: judges, where rows come from.

A row is an operation from its invocation to its completion, or first its invocation alone (unknown, without a completion time) and later, under the same
op id, the whole. A low watermark says that everything earlier has arrived: what lies below it is released, and what comes below it afterwards is
too late. At equal times invocations come first, and of several a transaction before its parts, then by op id, as in `stream_trace`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from attrs import Factory, define, field, frozen

from fencepost.traces.operations import Function, Operation

BEGINNING, END = -(2**63), 2**63 - 1


@frozen(kw_only=True)
class Moment:
    """An operation is invoked or completes."""

    time: int
    completes: bool
    operation: Operation

    @property
    def rank(self) -> tuple[int, bool, bool, int]:
        """Orders moments."""
        return (
            self.time,
            self.completes,
            self.operation.function is not Function.TXN,
            self.operation.op_id,
        )


@define(kw_only=True)
class Merge:
    """released: everything before it was released, so nothing before it may come; it never falls. newest: the latest time that was heard of. held:
    moments that wait, in no order; begun: by op id, the invocation time of an operation of which the invocation alone has arrived; at most `horizon` of
    each, and where there are more, the oldest are released without waiting, or forgotten."""

    horizon: int
    released: int = BEGINNING
    newest: int = BEGINNING
    held: list[Moment] = Factory(list)
    begun: dict[int, int] = field(factory=dict)

    def add(self, operations: Iterable[Operation]) -> list[Operation]:
        """Operations have arrived, in any order; answers those that came too late, of which nothing is taken in."""
        late = []
        held = {
            moment.operation.op_id: moment.operation.invoke_time
            for moment in self.held
            if not moment.completes
        }
        # an invocation goes before the whole operation, though both arrive at once
        for operation in sorted(operations, key=lambda operation: operation.completion_time is not None):
            if operation.completion_time is None and held.get(operation.op_id) == operation.invoke_time:
                continue  # the whole operation was faster
            moments = self._moments(operation)
            if any(moment.time < self.released for moment in moments):
                late.append(operation)
                continue
            self.held += moments
            self.hear(max(moment.time for moment in moments))
        return late

    def hear(self, time: int) -> None:
        """Something happened at this time."""
        self.newest = max(self.newest, time)

    def release(self, low_watermark: int) -> Iterator[Moment]:
        """The moments before the low watermark, in order; and the oldest of what is too much to hold."""
        self.held.sort(key=lambda moment: moment.rank)
        surplus = len(self.held) - self.horizon
        if surplus > 0:
            low_watermark = max(low_watermark, self.held[surplus - 1].time + 1)
        self.released = max(self.released, low_watermark)
        going = bisect_left(self.held, self.released, key=lambda moment: moment.time)
        if low_watermark >= END:
            going = len(self.held)
        released, self.held = self.held[:going], self.held[going:]
        yield from released

    def _moments(self, operation: Operation) -> list[Moment]:
        """What is new in a row: the invocation, unless it arrived before, and the completion, if it has one."""
        invoked = Moment(time=operation.invoke_time, completes=False, operation=operation)
        if operation.completion_time is None:
            self.begun[operation.op_id] = operation.invoke_time
            if len(self.begun) > self.horizon:
                del self.begun[next(iter(self.begun))]
            return [invoked]
        completed = Moment(time=operation.completion_time, completes=True, operation=operation)
        if self.begun.get(operation.op_id) == operation.invoke_time:
            del self.begun[operation.op_id]
            return [completed]
        return [invoked, completed]
