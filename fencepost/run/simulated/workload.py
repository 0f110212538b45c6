"""The workload of a simulated run: planned operations, each due at its time.

Owns what is planned and not due yet. Must not know what an operation does.
"""

from collections.abc import Iterable

from attrs import define, field

from fencepost.impl.core.core_interface import Invoke
from fencepost.run.members import FUNCTIONS
from fencepost.run.queues import Queues, undecided
from fencepost.run.simulated.cluster import FaultyCluster
from fencepost.run.simulated.members import SimulatedMembers
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.operations import Operation
from fencepost.traces.plan import PlannedOperation


@define(eq=False)
class Workload:
    """The operations of a plan, each given to its process when it is due."""

    cluster: FaultyCluster
    # Client host of each process.
    nodes: dict[int, int] = field(factory=dict)
    queues: Queues = field(init=False)
    # Number of operations that have not begun.
    planned: int = 0
    # How often `drop_waiting` was called.
    dropped: int = 0
    # The processes of consumers in groups.
    groups: SimulatedMembers = field(init=False)

    def __attrs_post_init__(self) -> None:
        cluster = self.cluster
        self.groups = SimulatedMembers.of(cluster)
        self.queues = Queues(plan=cluster.plan, begin=self._begin, alone=lambda operation: cluster.healing)

    def add_process(self, process: int) -> None:
        """Start a client."""
        self.nodes[process] = self.cluster.add_client(process)

    def schedule(self, operations: Iterable[PlannedOperation]) -> None:
        """Let each become due at its time from now."""
        scheduler = self.cluster.world.scheduler
        for operation in operations:
            self.planned += 1
            scheduler.after(operation.at_ms * MILLISECOND, self._due, operation, self.dropped)

    def _due(self, operation: PlannedOperation, dropped: int) -> None:
        """An operation's time has come, unless it was dropped since it was scheduled."""
        if dropped != self.dropped:
            return
        if operation.function in FUNCTIONS:
            self.planned -= 1
            self.groups.do(operation)
        else:
            self.queues.due(operation)

    def _begin(self, operation: PlannedOperation) -> None:
        self.planned -= 1
        self.cluster.invoke(operation)
        self.cluster.world.hosts[self.nodes[operation.process]].accept(Invoke(operation))

    def on_completed(self, operation: Operation) -> None:
        """A process is free again; a consumer goes on by itself."""
        if operation.process in self.groups.incarnations:
            self.groups.saw(operation)
            return
        self.queues.completed(operation)
        self.queues.next(operation.process)

    def drop_waiting(self) -> None:
        """Forget the operations that have not begun: a backlog of slow processes, or a time after the safety
        phase, is no sign of a cluster that does not heal."""
        self.dropped += 1
        self.planned = 0
        self.queues.clear()

    def idle(self) -> bool:
        """Whether nothing is planned, due or under way."""
        return not self.planned and self.queues.idle

    def undecided(self) -> dict[int, Operation]:
        """The rows of pipelined appends under way, by op id."""
        return undecided(self.cluster.world.hosts[node].core for node in self.nodes.values())
