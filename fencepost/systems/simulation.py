"""The simulation as a system: brokers on the hosts of a simulated world, in virtual time.

Owns the assembly of a world's brokers, the verbs of the one interface, and what "healthy" means there. Must
not know plans, the fault budget, clients or the wall clock: a run (run/simulated) and the embedded cluster
(embedded.py) let time pass and add these.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from attrs import define, field

from fencepost import __version__
from fencepost.impl.admin.cluster_state import ClusterTopics, read_cluster, read_states
from fencepost.impl.broker.broker import Broker, make_broker
from fencepost.impl.broker.parts import Parts
from fencepost.impl.core.core_interface import StopRequested
from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, GetData
from fencepost.sim.host import Host
from fencepost.sim.scheduler import MILLISECOND
from fencepost.sim.world import World
from fencepost.systems.requests import carry_out
from fencepost.systems.system import PROCESS_VERBS, Inside, Pair, System, UnsupportedError
from fencepost.traces.errors import EnvironmentError_, PlanError
from fencepost.traces.plan import ClusterOptions

START_MS = 60_000
"""Virtual time for the brokers to register: far above a session time-out and an election."""
STEP_MS = 5
"""How often the start looks whether it is over."""


@define(eq=False, kw_only=True, repr=False)
class Simulation(System):
    """systems.system.System over a simulated world. One thread; time passes as the caller says."""

    # Where the hosts are.
    world: World
    # Options of the brokers.
    options: ClusterOptions
    # What brokers are assembled from; a planted bug swaps one.
    parts: Parts = field(factory=Parts)

    def __repr__(self) -> str:
        return f"<Simulation of {self.options.brokers} brokers>"

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(range(1, self.options.brokers + 1))

    def add(self, broker: int, **host: Any) -> Host:
        """A host for this broker. host: further arguments of World.add_host."""
        return self.world.add_host(broker, partial(self._make_broker, broker), zookeeper=True, **host)

    def _make_broker(self, broker: int, files: FileSystem, now: int) -> Broker:
        return make_broker(broker, self.options, files, self.parts, now)

    # ---- life

    def start(self) -> None:
        """Start every broker and let virtual time pass until the cluster is healthy. Raises EnvironmentError_
        where it is not within START_MS."""
        for broker in self.brokers:
            self.world.start(broker)
        deadline = self.world.now + START_MS * MILLISECOND
        while not self.healthy():
            if self.world.now >= deadline:
                raise EnvironmentError_(
                    expected=f"every broker registered within {START_MS} ms of virtual time",
                    seen=f"{len(self._read(read_cluster(())).brokers)} of {self.options.brokers}",
                    where=repr(self),
                    hint="are time-outs in the options too short for its network?",
                )
            self.world.run_until(self.world.now + STEP_MS * MILLISECOND)

    # ---- what is seen

    def healthy(self) -> bool:
        """Whether every broker is registered, there is a controller, and each partition has a live leader and
        a full ISR, as ZooKeeper has them."""
        seen: ClusterTopics = self._read(read_cluster())
        if seen.brokers != self.brokers or not isinstance(self.world.admin(GetData(znodes.CONTROLLER)), Data):
            return False
        replicas = {
            TopicPartition(name, number): assigned
            for name, topic in seen.topics.items()
            for number, assigned in topic.assignment.items()
        }
        states = self._read(read_states(replicas)) if replicas else {}
        return all(
            key in states and states[key].leader in seen.brokers and set(states[key].isr) == set(assigned)
            for key, assigned in replicas.items()
        )

    def _read(self, steps: ZooKeeperSteps) -> Any:
        return carry_out(steps, self.world.admin)

    def bootstrap_servers(self) -> str:
        """No socket leads here. Raises UnsupportedError."""
        raise UnsupportedError(
            expected="a system with sockets",
            seen="the simulation",
            where=repr(self),
            hint="use the embedded cluster",
        )

    def inside(self) -> Inside:
        """What it consists of."""
        return Inside(
            software=f"fencepost's reference brokers {__version__}, in the simulated world",
            real_processes=False,
            real_files=False,
            can=PROCESS_VERBS | {"cut", "power_off"},
        )

    # ---- brokers

    def kill(self, broker: int) -> None:
        """End its process at once."""
        self.host(broker)
        self.world.crash(broker)

    def pause(self, broker: int) -> None:
        """Suspend the broker's process."""
        self.host(broker)
        self.world.pause(broker)

    def resume(self, broker: int) -> None:
        """Resume the broker's process."""
        self.host(broker)
        self.world.resume(broker)

    def stop(self, broker: int) -> None:
        """Ask it to stop: controlled shutdown."""
        self.host(broker).accept(StopRequested())

    def restart(self, broker: int) -> None:
        """Start the process of a broker that is down."""
        host = self.host(broker)
        if not host.up:
            host.start()

    def runs(self, broker: int) -> bool:
        """Whether its process is there, paused or not."""
        return self.host(broker).up

    def power_off(self, broker: int) -> None:
        """Its host loses power."""
        self.host(broker)
        self.world.power_loss(broker)

    def cut(self, name: str, pairs: Iterable[Pair]) -> None:
        """Nothing gets over these directed links until `heal(name)`."""
        self.world.block(name, tuple(pairs))

    def heal(self, name: str) -> None:
        """End the cut of this name."""
        self.world.heal(name)

    def host(self, broker: int) -> Host:
        """The host of a broker. Raises PlanError for an unknown broker."""
        if broker not in self.brokers:
            raise PlanError(
                expected=f"a broker from 1 to {self.options.brokers}", seen=str(broker), where=repr(self)
            )
        return self.world.hosts[broker]
