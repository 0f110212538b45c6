"""A cluster of processes as a system: the one interface over processes.py.

Owns the translation of the interface's verbs to processes and signals. Must not know how a broker is
assembled (node.py), or clients.
"""

from collections.abc import Mapping
from pathlib import Path
from signal import SIGTERM
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import define, field

from fencepost import __version__
from fencepost.impl.runtime.addresses import parse_address
from fencepost.impl.runtime.cluster_view import view
from fencepost.impl.runtime.processes import send_signal, state
from fencepost.impl.runtime.zookeeper.server import answers
from fencepost.systems.node import FILES
from fencepost.systems.processes import ProcessCluster
from fencepost.systems.system import PROCESS_VERBS, Inside, System, settings_of
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.plan import ClusterOptions

if TYPE_CHECKING:
    from fencepost.systems.processes import BrokerProcess, ListenerOptions


@define(eq=False, kw_only=True, repr=False)
class Processes(System):
    """systems.system.System over operating-system processes: a ZooKeeper server and the brokers."""

    # Where everything is.
    directory: Path
    # Options of the brokers.
    options: ClusterOptions = field(factory=ClusterOptions)
    # How the brokers listen for clients of Kafka's protocol; None: they do not.
    listeners: "ListenerOptions | None" = None
    # The processes.
    cluster: ProcessCluster = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.cluster = ProcessCluster(self.directory)

    def __repr__(self) -> str:
        return f"<Processes of {self.options.brokers} brokers in {self.directory}>"

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(range(1, self.options.brokers + 1))

    def start(self) -> None:
        """Start everything; returns once every broker is registered and there is a controller."""
        if self.listeners is None:
            self.cluster = ProcessCluster.up(self.directory, self.options)
            return
        from fencepost.systems.broker_process import PROGRAM  # needs the extra kafka

        self.cluster = ProcessCluster.up(
            self.directory, self.options, program=PROGRAM, listeners=self.listeners
        )

    def close(self) -> None:
        """End everything."""
        self.cluster.stop()

    def healthy(self) -> bool:
        """Whether every broker runs and is registered, there is a controller, and each partition has a leader
        and a full ISR, as ZooKeeper has them."""
        address = self.cluster.state.zookeeper
        if not address or not answers(*parse_address(address)):
            return False
        seen = view(address)
        running = all(state(self._process(broker).process) == "running" for broker in self.brokers)
        led = all(leader in seen.registered for leader in seen.leaders.values())
        registered = seen.registered == frozenset(self.brokers)
        return running and registered and seen.controller >= 0 and led and not seen.under_replicated

    def bootstrap_servers(self) -> str:
        """Addresses for Kafka's clients. Raises EnvironmentError_ where the brokers do not listen for
        them."""
        servers = self.cluster.status().bootstrap_servers
        if not servers:
            raise EnvironmentError_(
                expected="brokers that listen for Kafka's clients", seen="none that does", where=repr(self)
            )
        return servers

    # ---- brokers

    def kill(self, broker: int) -> None:
        """SIGKILL. Nothing happens if it is down."""
        if self._lives(broker):
            self.cluster.kill(broker)

    def pause(self, broker: int) -> None:
        """SIGSTOP. Nothing happens if it is down."""
        if self._lives(broker):
            self.cluster.pause(broker)

    def resume(self, broker: int) -> None:
        """SIGCONT. Nothing happens if it is down."""
        if self._lives(broker):
            self.cluster.resume(broker)

    def stop(self, broker: int) -> None:
        """SIGTERM: controlled shutdown. Returns at once. Nothing happens if it is down."""
        if self._lives(broker):
            send_signal(self._process(broker).process, SIGTERM)

    def restart(self, broker: int) -> None:
        """Start the process of a broker that is down. Nothing happens if it runs."""
        if not self._lives(broker):
            self.cluster.start(broker)

    def runs(self, broker: int) -> bool:
        """Whether its process is there, paused or not."""
        return self._lives(broker)

    def _process(self, broker: int) -> "BrokerProcess":
        return self.cluster.known(broker)

    def _lives(self, broker: int) -> bool:
        return state(self._process(broker).process) != "dead"

    # ---- to look at

    def directories(self) -> Mapping[int, Path]:
        """Each broker's log directory."""
        return MappingProxyType(
            {broker: self.directory / f"broker-{broker}" / FILES for broker in self.brokers}
        )

    def logs(self) -> Mapping[str, Path]:
        """Of each broker, and of ZooKeeper."""
        found = {
            f"broker-{broker}": self.directory / f"broker-{broker}" / "broker.log" for broker in self.brokers
        }
        return MappingProxyType({**found, "zookeeper": self.directory / "zookeeper" / "zookeeper.log"})

    def inside(self) -> Inside:
        """What it consists of."""
        return Inside(
            software=f"fencepost's reference brokers {__version__}, as processes",
            real_processes=True,
            real_files=True,
            can=PROCESS_VERBS
            | ({"administration"} if self.listeners is not None else frozenset())
            | ({"transactions"} if self.options.has_transactions else frozenset()),
            settings=settings_of(self.options),
        )
