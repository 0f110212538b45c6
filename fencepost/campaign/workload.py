"""The workload: planned operations handed to single-threaded clients, each at its time or as soon as its process is free.

Owns the queues of the processes. Must not know what an operation does.
"""

from collections import deque
from collections.abc import Iterable

from attrs import define, field

from fencepost.campaign.cluster import Cluster
from fencepost.impl.seam import Invoke
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.operations import Operation
from fencepost.traces.plan import PlannedOperation


@define(eq=False)
class Workload:
    """nodes: client host of each process. waiting: operations due, per process. busy: processes with one under way. last: the latest completed
    operation of each process. planned: operations that have not begun."""

    cluster: Cluster
    nodes: dict[int, int] = field(factory=dict)
    waiting: dict[int, deque[PlannedOperation]] = field(factory=dict)
    busy: dict[int, int] = field(factory=dict)
    last: dict[int, Operation] = field(factory=dict)
    planned: int = 0

    def add_process(self, process: int) -> None:
        """Start a client."""
        self.nodes[process] = self.cluster.add_client(process)
        self.waiting[process] = deque()

    def schedule(self, operations: Iterable[PlannedOperation]) -> None:
        """Let each become due at its time from now."""
        scheduler = self.cluster.world.scheduler
        for operation in operations:
            self.planned += 1
            scheduler.after(operation.at_ms * MILLISECOND, self._due, operation)

    def _due(self, operation: PlannedOperation) -> None:
        """An operation's time has come."""
        self.waiting[operation.process].append(operation)
        self._next(operation.process)

    def on_completed(self, operation: Operation) -> None:
        """A process is free again."""
        self.busy.pop(operation.process, None)
        self.last[operation.process] = operation
        self._next(operation.process)

    def _next(self, process: int) -> None:
        if process in self.busy or not self.waiting[process]:
            return
        operation = self.waiting[process].popleft()
        self.busy[process] = operation.op_id
        self.planned -= 1
        self.cluster.invoke(operation)
        self.cluster.world.hosts[self.nodes[process]].accept(Invoke(operation))

    def drop_waiting(self) -> None:
        """Forget the operations that are due and have not begun: slow processes leave a backlog that is no sign of a cluster that does not heal."""
        for queue in self.waiting.values():
            self.planned -= len(queue)
            queue.clear()

    def idle(self) -> bool:
        """Whether nothing is planned, due or under way."""
        return not self.busy and not self.planned
