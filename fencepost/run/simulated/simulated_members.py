"""Consumers of a simulated run, each on a host of its own.

Owns the hosts' part of it. Must not know the phases of a run.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from attrs import define, evolve, field

from fencepost.impl.client.consumer.consumer import Consumer
from fencepost.impl.client.transaction.transform import TransformLoop
from fencepost.impl.core.core_interface import Core
from fencepost.impl.core.file_system import FileSystem
from fencepost.run.group_processes import Members
from fencepost.sim.host import Host
from fencepost.sim.scheduler import MILLISECOND
from fencepost.sim.world import FIRST_CLIENT_NODE
from fencepost.traces.plan import TransformOptions

if TYPE_CHECKING:
    from fencepost.run.simulated.cluster_of_run import FaultyCluster


@define(eq=False, kw_only=True)
class SimulatedMembers(Members):
    """Those of one run."""

    cluster: "FaultyCluster"
    live: dict[int, None] = field(factory=dict)

    @classmethod
    def of(cls, cluster: "FaultyCluster") -> "SimulatedMembers":
        """Those of this cluster's plan; none runs yet."""
        return cls(
            plan=cluster.plan,
            record=cluster,
            brokers=cluster.broker_ids,
            parts=cluster.parts,
            version=cluster.plan.cluster.transactions.version,
            cluster=cluster,
        )

    def running(self) -> Collection[int]:
        """The processes that run, paused ones included."""
        return self.live

    def _host(self, process: int) -> Host:
        return self.cluster.world.hosts[FIRST_CLIENT_NODE + process]

    def start(self, process: int) -> None:
        """Start its last incarnation; one that is about to end is gone."""
        node, world = FIRST_CLIENT_NODE + process, self.cluster.world
        if node not in world.hosts:

            def make(files: FileSystem, now: int) -> Core:
                return self.core(process)

            world.add_host(node, make, zookeeper=False)
        elif world.hosts[node].up:
            world.crash(node)
        self.live[process] = None
        world.start(node)

    def kill(self, process: int) -> None:
        """It is gone at once."""
        self.cluster.world.crash(FIRST_CLIENT_NODE + process)
        del self.live[process]

    def leave(self, process: int, verb: Callable[[Consumer], None], within_ms: int) -> None:
        """The `process` does `verb`, and ends `within_ms` later."""
        self.use(process, verb)
        del self.live[process]
        session = self.incarnations[process].session
        self.cluster.world.scheduler.after(within_ms * MILLISECOND, self._end, process, session)

    def use(self, process: int, verb: Callable[[Consumer], None]) -> None:
        """Its application does this, as soon as its process goes on."""
        self._host(process).invoke(lambda core, now: core.use(verb, now))

    def _end(self, process: int, session: int) -> None:
        if self.incarnations[process].session == session:
            self.cluster.world.crash(FIRST_CLIENT_NODE + process)

    def pause(self, process: int, duration_ms: int) -> None:
        """It stands still.

        Args:
            process: one that runs.
            duration_ms: for how long.
        """
        self.cluster.world.pause(FIRST_CLIENT_NODE + process)
        self.cluster.world.scheduler.after(duration_ms * MILLISECOND, self.resume, process)

    def resume(self, process: int) -> None:
        """It goes on now."""
        self.cluster.world.resume(FIRST_CLIENT_NODE + process)

    def settle(self) -> bool:
        """From now on nobody aborts a transaction by choice, or gives a batch up before it may be answered,
        or keeps one back; returns whether anybody did. A group that does gets no further, however healthy the
        cluster is."""
        patient = max(self.transform.attempts, TransformOptions().attempts)
        settled = evolve(self.transform, aborts_ppm=0, attempts=patient, late_sends=False)
        cores = (self._host(known).core for known in self.live)
        loops = [core.application for core in cores if isinstance(core, Consumer)]
        if settled == self.transform or not any(isinstance(loop, TransformLoop) for loop in loops):
            return False
        self.transform = settled
        for loop in loops:
            if isinstance(loop, TransformLoop):
                loop.go_on_with(settled)
        return True

    def passed(self) -> Mapping[tuple[str, str, int], int]:
        """Up to which deleted offset members of each group read on: an empty poll shows no position."""
        found: dict[tuple[str, str, int], int] = {}
        for process in self.live:
            core = self._host(process).core
            if isinstance(core, Consumer):
                group = self.incarnations[process].group
                for place, position in core.fetcher.positions.items():
                    known = self.cluster.observed_state.partitions.get(place)
                    deleted = 0 if known is None else known.forgotten
                    key = group, *place
                    found[key] = max(min(position, deleted), found.get(key, 0))
        return found
