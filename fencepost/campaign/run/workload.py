"""The workload: planned operations handed to single-threaded clients, each at its time or as soon as its
process is free.

Pipelined appends keep no process busy.

Owns the queues of the processes. Must not know what an operation does.
"""

from collections import deque
from collections.abc import Iterable

from attrs import define, field

from fencepost.campaign.run.cluster import FaultyCluster
from fencepost.campaign.run.group_workload import CONSUMER_FUNCTIONS, GroupWorkload
from fencepost.campaign.swarm.producers import is_pipelined
from fencepost.impl.client.producer.pipelined import PipelinedClient
from fencepost.impl.core.core_interface import Invoke
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.operations import Operation
from fencepost.traces.plan import PlannedOperation


@define(eq=False)
class Workload:
    """The operations of a plan, each given to its process when it is due."""

    cluster: FaultyCluster
    # Client host of each process.
    nodes: dict[int, int] = field(factory=dict)
    # Operations due, per process.
    waiting: dict[int, deque[PlannedOperation]] = field(factory=dict)
    # Processes with an operation under way, and its op id.
    busy: dict[int, int] = field(factory=dict)
    # The latest completed operation of each process.
    last: dict[int, Operation] = field(factory=dict)
    # Number of operations that have not begun.
    planned: int = 0
    # Appends under way next to the one operation of their process.
    pipelined: dict[int, None] = field(factory=dict)
    # How often `drop_waiting` was called.
    dropped: int = 0
    # The processes of consumers in groups.
    groups: GroupWorkload = field(init=False)

    def __attrs_post_init__(self) -> None:
        cluster = self.cluster
        self.groups = GroupWorkload(
            cluster.plan,
            cluster.parts,
            cluster.world,
            cluster,
            cluster.broker_ids,
        )

    def add_process(self, process: int) -> None:
        """Start a client."""
        self.nodes[process] = self.cluster.add_client(process)
        self.waiting[process] = deque()

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
        if operation.function in CONSUMER_FUNCTIONS:
            self.planned -= 1
            self.groups.do(operation)
            return
        self.waiting[operation.process].append(operation)
        self._next(operation.process)

    def on_completed(self, operation: Operation) -> None:
        """A process is free again; a consumer goes on by itself."""
        if operation.process in self.groups.incarnations:
            self.groups.saw(operation)
            return
        if operation.op_id in self.pipelined:
            del self.pipelined[operation.op_id]
            return
        self.busy.pop(operation.process, None)
        self.last[operation.process] = operation
        self._next(operation.process)

    def _next(self, process: int) -> None:
        if process in self.busy or not self.waiting[process]:
            return
        operation = self.waiting[process].popleft()
        pipelined = is_pipelined(self.cluster.plan, operation, healing=self.cluster.healing)
        if pipelined:
            self.pipelined[operation.op_id] = None
        else:
            self.busy[process] = operation.op_id
        self.planned -= 1
        self.cluster.invoke(operation)
        self.cluster.world.hosts[self.nodes[process]].accept(Invoke(operation))
        if pipelined:
            self._next(process)

    def drop_waiting(self) -> None:
        """Forget the operations that have not begun: a backlog of slow processes, or a time after the safety
        phase, is no sign of a cluster that does not heal."""
        self.dropped += 1
        self.planned = 0
        for queue in self.waiting.values():
            queue.clear()

    def idle(self) -> bool:
        """Whether nothing is planned, due or under way."""
        return not self.busy and not self.planned and not self.pipelined

    def undecided(self) -> dict[int, Operation]:
        """The rows of pipelined appends under way, by op id: only their clients know what became of them so
        far."""
        cores = [self.cluster.world.hosts[node].core for node in self.nodes.values()]
        return {
            row.op_id: row for core in cores if isinstance(core, PipelinedClient) for row in core.undecided()
        }
