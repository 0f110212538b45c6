"""Operations that arrive late and out of order, as invocations and completions in the order of time.

Owns: what has arrived and must wait, because something earlier may still come; and what came too late. Must
not know: judges, where rows come from.

A row is an operation from its invocation to its completion, or first its invocation alone (unknown, without a
completion time) and later, under the same op id, the whole. A low watermark says that everything earlier has
arrived: what lies below it is released, and what comes below it afterwards is too late. At equal times
invocations come first, and of several a transaction before its parts, then by op id, as in `stream_trace`.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple, Self

from attrs import Factory, define

from fencepost.traces.operations import Function, Operation

BEGINNING, END = -(2**63), 2**63 - 1


class Moment(NamedTuple):
    """An operation is invoked or completes. part: it is no transaction. The first four order moments."""

    time: int
    completes: bool
    part: bool
    op_id: int
    operation: Operation

    @classmethod
    def of(cls, operation: Operation, *, completes: bool) -> Self:
        """The invocation of an operation, or its completion."""
        time = operation.completion_time if completes else operation.invoke_time
        assert time is not None, f"operation {operation.op_id} has not completed"
        return cls(time, completes, operation.function is not Function.TXN, operation.op_id, operation)


_RANK, _TIME = itemgetter(0, 1, 2, 3), itemgetter(0)


@define(kw_only=True)
class Merge:
    """released: everything before it was released, so nothing before it may come; it never falls. newest: the
    latest time that was heard of. held: moments that wait, in no order; begun: by op id, the invocation time
    of an operation of which the invocation alone has arrived; at most `horizon` of each, and where there are
    more, the oldest are released without waiting, or forgotten."""

    horizon: int
    released: int = BEGINNING
    newest: int = BEGINNING
    held: list[Moment] = Factory(list)
    begun: OrderedDict[int, int] = Factory(OrderedDict)

    def add(self, operations: Iterable[Operation]) -> list[Operation]:
        """Operations have arrived, in any order; answers those that came too late, of which nothing is taken
        in."""
        late: list[Operation] = []
        halves: list[Operation] = []
        newest = self.newest
        whole: list[Operation] = []
        for operation in operations:
            (halves if operation.completion_time is None else whole).append(operation)
        if halves:
            self._add_invocations(halves, late)
            newest = max(newest, self.newest)
        begun, released, keep = self.begun, self.released, self.held.append
        for operation in whole:
            completed = operation.completion_time
            assert completed is not None, "sorted out above"
            invoked = operation.invoke_time
            first = not begun or begun.get(operation.op_id) != invoked
            if not first:
                del begun[operation.op_id]
            if completed < released or (first and invoked < released):
                late.append(operation)
                continue
            part, op_id = operation.function is not Function.TXN, operation.op_id
            if first:
                keep(Moment(invoked, False, part, op_id, operation))
            keep(Moment(completed, True, part, op_id, operation))
            newest = max(newest, invoked, completed)
        self.newest = newest
        return late

    def _add_invocations(self, operations: Iterable[Operation], late: list[Operation]) -> None:
        """Operations of which the invocation alone has arrived: they go before the whole ones, though
        both arrive at once."""
        held = {moment.op_id: moment.time for moment in self.held if not moment.completes}
        for operation in operations:
            if held.get(operation.op_id) == operation.invoke_time:
                continue  # the whole operation was faster
            self.begun[operation.op_id] = operation.invoke_time
            if len(self.begun) > self.horizon:
                self.begun.popitem(last=False)
            if operation.invoke_time < self.released:
                late.append(operation)
                continue
            self.held.append(Moment.of(operation, completes=False))
            self.hear(operation.invoke_time)

    def hear(self, time: int) -> None:
        """Something happened at this time."""
        self.newest = max(self.newest, time)

    def release(self, low_watermark: int) -> Iterator[Moment]:
        """The moments before the low watermark, in order; and the oldest of what is too much to hold."""
        self.held.sort(key=_RANK)
        surplus = len(self.held) - self.horizon
        if surplus > 0:
            low_watermark = max(low_watermark, self.held[surplus - 1].time + 1)
        self.released = max(self.released, low_watermark)
        going = bisect_left(self.held, self.released, key=_TIME)
        if low_watermark >= END:
            going = len(self.held)
        released, self.held = self.held[:going], self.held[going:]
        yield from released
