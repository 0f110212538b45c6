"""The operations of a plan, each handed to its client when it is due and its process is free.

Owns the queues of the processes. Must not know what an operation does, or what time is. Pipelined appends
keep no process busy.
"""

from collections import deque
from collections.abc import Callable, Iterable

from attrs import define, field

from fencepost.impl.client.producer.pipelined import PipelinedClient
from fencepost.run.client_cores import is_pipelined
from fencepost.traces.operations import Operation
from fencepost.traces.plan import Plan, PlannedOperation


@define(eq=False, kw_only=True)
class Queues:
    """Of all processes that do one operation after another."""

    plan: Plan
    # Hands an operation to the client of its process.
    begin: Callable[[PlannedOperation], None]
    # Whether an operation is one of the run's own, or due after the faults: those wait for one another.
    alone: Callable[[PlannedOperation], bool]
    # Operations that are due, by process.
    waiting: dict[int, deque[PlannedOperation]] = field(factory=dict)
    # The operation under way of each process that waits for it.
    busy: dict[int, int] = field(factory=dict)
    # The latest completed operation of each process.
    last: dict[int, Operation] = field(factory=dict)
    # Op ids of appends under way next to the one operation of their process.
    pipelined: set[int] = field(factory=set)

    def due(self, operation: PlannedOperation) -> None:
        """Its time has come."""
        self.waiting.setdefault(operation.process, deque()).append(operation)
        self.next(operation.process)

    def next(self, process: int) -> None:
        """Begin what waits, as far as the process is free."""
        while process not in self.busy and self.waiting.get(process):
            operation = self.waiting[process].popleft()
            if is_pipelined(self.plan, operation, healing=self.alone(operation)):
                self.pipelined.add(operation.op_id)
            else:
                self.busy[process] = operation.op_id
            self.begin(operation)

    def completed(self, row: Operation) -> None:
        """A row is complete; `next` lets its process go on."""
        if row.op_id in self.pipelined:
            self.pipelined.discard(row.op_id)
        elif self.busy.get(row.process) == row.op_id:
            del self.busy[row.process]
            self.last[row.process] = row

    def clear(self) -> None:
        """Forget what has not begun."""
        for queue in self.waiting.values():
            queue.clear()

    @property
    def idle(self) -> bool:
        """Whether nothing is due or under way."""
        return not (self.busy or self.pipelined or any(self.waiting.values()))


def undecided(cores: Iterable[object]) -> dict[int, Operation]:
    """The rows of pipelined appends under way, by op id: only their clients know what became of them so far.

    Args:
        cores: of the clients.
    """
    return {row.op_id: row for core in cores if isinstance(core, PipelinedClient) for row in core.undecided()}
