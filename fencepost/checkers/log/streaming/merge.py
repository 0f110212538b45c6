"""Operations that arrive late and out of order, converted into invocations and completions in the order of
time.

Owns the operations that must wait because earlier ones may still arrive, and those that came too late. Must
not know checks, or the source of rows.

A row is an operation from its invocation to its completion. It may also come twice: first the invocation
alone (unknown, without a completion time), later the whole under the same op id. A low watermark says that
everything earlier has arrived. Moments below it are released, and a row that begins below it afterwards is
too late. At equal times invocations come first. Of several invocations, a transaction comes before its parts,
then the order is by op id, as in `stream_trace`.
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
    """An operation is invoked or completes."""

    time: int
    completes: bool
    # It is not a transaction. The first four fields order moments.
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
    """The operations that wait.

    Attributes:
        released: everything before this time was released, so nothing before it may come. It never decreases.
        newest: the latest time seen.
        held: moments that wait, in no particular order.
        begun: by op id, the invocation time of operations for which only the invocation has arrived.
        horizon: the most entries of `held` and `begun`. Beyond it the oldest moments are released without
            waiting, and the oldest invocations are forgotten.
    """

    horizon: int
    released: int = BEGINNING
    newest: int = BEGINNING
    held: list[Moment] = Factory(list)
    begun: OrderedDict[int, int] = Factory(OrderedDict)

    def add(self, operations: Iterable[Operation]) -> list[Operation]:
        """Add operations, in any order. Returns those that came too late, which are not added."""
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
        """Add operations for which only the invocation has arrived. They go before the whole ones, even if
        both arrive at once."""
        held = {moment.op_id: moment.time for moment in self.held if not moment.completes}
        for operation in operations:
            if held.get(operation.op_id) == operation.invoke_time:
                continue  # the whole operation came first
            self.begun[operation.op_id] = operation.invoke_time
            if len(self.begun) > self.horizon:
                self.begun.popitem(last=False)
            if operation.invoke_time < self.released:
                late.append(operation)
                continue
            self.held.append(Moment.of(operation, completes=False))
            self.hear(operation.invoke_time)

    def hear(self, time: int) -> None:
        """Note a time at which something happened."""
        self.newest = max(self.newest, time)

    def release(self, low_watermark: int) -> Iterator[Moment]:
        """The moments before the low watermark, in order; also the oldest ones beyond the horizon."""
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
