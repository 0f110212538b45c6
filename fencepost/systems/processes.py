"""A cluster of real processes in one directory: a ZooKeeper server (or an external one) and the brokers.

Owns which processes run (cluster.json), their start and their end. Must not know what a broker does. The file
is rewritten as each process starts, so that another command, or the next one after a crash of this one, finds
and ends all of them.

    DIR/cluster.json, options.json, credentials.json, listeners.json, zookeeper/ (data, zookeeper.log),
    broker-N/ (files/, events.jsonl, broker.log)
"""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from attrs import define, evolve, field, frozen

from fencepost.impl.runtime.addresses import parse_address
from fencepost.impl.runtime.cluster_view import ClusterView, view
from fencepost.impl.runtime.greeting import CREDENTIALS, make_credentials
from fencepost.impl.runtime.processes import ProcessId, end, kill, send_signal, spawn, state, uninterrupted
from fencepost.impl.runtime.zookeeper.server import (
    HOST,
    ZooKeeperServer,
    answers,
    check_client,
    check_server,
    free_ports,
)
from fencepost.systems.state_file import ClusterError, read_state, write_state
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.plan import ClusterOptions

STATE, OPTIONS, LISTENERS = "cluster.json", "options.json", "listeners.json"
NODE = "fencepost.systems.node"
"""The program of a broker process that only our own clients talk to."""
HEALTHY_S = 60.0
SHUTDOWN_S = 30.0
"""Patience with a controlled shutdown: above the broker's own, three requests five seconds apart and its last
words."""
POLL_S = 0.1
"""Between two looks at a process that starts or ends."""


@frozen(kw_only=True)
class ListenerOptions:
    """How the brokers listen for clients of Kafka's protocol: what listeners.json holds, which only its owner
    may read."""

    # The address to bind and to advertise.
    host: str = HOST
    # Port of each broker's listener, by broker id.
    ports: dict[int, int] = field(factory=dict)
    # File of a TLS certificate chain, PEM; empty: no TLS.
    certificate: str = ""
    # File of its private key, PEM.
    key: str = ""
    # Name -> password of SASL/PLAIN; None: no login.
    users: dict[str, str] | None = field(default=None, repr=False)
    # Faults of requests (docs/reference/request-faults.md) that each broker process arms when it starts; each
    # hit is a line in its log.
    request_faults: tuple[str, ...] = ()
    # Seed of the probabilities of these faults.
    fault_seed: int = 0

    @property
    def security_protocol(self) -> str:
        """Kafka's name for it."""
        return ("SASL_" if self.users is not None else "") + ("SSL" if self.certificate else "PLAINTEXT")


@define
class BrokerProcess:
    """A broker's ports, and its process: the last one, whether it still runs or not."""

    # Where clients come.
    port: int
    process: ProcessId
    # Where only brokers of this cluster come.
    inter_broker_port: int
    # HOST:PORT for clients of Kafka's protocol, empty if it does not speak it.
    kafka: str = ""


@define
class ClusterState:
    """The contents of cluster.json."""

    # Address of the server, HOST:PORT.
    zookeeper: str = ""
    # The server that we started; None for an external one.
    zookeeper_process: ProcessId | None = None
    brokers: dict[int, BrokerProcess] = field(factory=dict)
    # The module that each broker process runs.
    program: str = NODE
    # Security protocol of the brokers' Kafka listeners.
    security_protocol: str = ""


@frozen
class BrokerStatus:
    """The state of one broker process."""

    broker: int
    # running, paused or dead.
    process: str
    # As started.
    pid: int
    port: int
    # Whether its node is in ZooKeeper.
    registered: bool
    # How many partitions it leads.
    leads: int
    # As in BrokerProcess.
    kafka: str = ""


@frozen(kw_only=True)
class ClusterStatus:
    """The state of a cluster of processes."""

    # HOST:PORT, and whether it answers: "answers", "does not answer", "is dead".
    zookeeper: str
    zookeeper_state: str
    # The controller's id; -1: none.
    controller: int
    # All partitions, and those without a leader.
    partitions: int
    leaderless: int
    brokers: tuple[BrokerStatus, ...]
    # How clients talk to the Kafka listeners; empty if there are none.
    security_protocol: str = ""

    @property
    def bootstrap_servers(self) -> str:
        """The Kafka listeners, as clients want them; empty if there are none."""
        return ",".join(broker.kafka for broker in self.brokers if broker.kafka)

    @property
    def healthy(self) -> bool:
        """Every broker runs and is registered, and one of them is the controller."""
        return (
            all(broker.process == "running" and broker.registered for broker in self.brokers)
            and self.controller >= 0
        )


@define
class ProcessCluster:
    """directory: where everything is. state: what runs, as cluster.json has it."""

    directory: Path
    state: ClusterState = field(factory=ClusterState)
    # Whether processes that this object starts are killed when the thread that started them ends (Linux).
    dies_with_us: bool = False

    @classmethod
    def load(cls, directory: Path) -> "ProcessCluster":
        """The cluster in this directory."""
        return cls(directory, read_state(directory / STATE, ClusterState, "fencepost cluster up"))

    # ---- the beginning and the end

    @classmethod
    def up(
        cls,
        directory: Path,
        options: ClusterOptions,
        zookeeper: str | None = None,
        program: str = NODE,
        listeners: ListenerOptions | None = None,
        *,
        dies_with_us: bool = False,
    ) -> "ProcessCluster":
        """Start everything and wait until it is healthy. If that fails or is interrupted, no process is left.

        program: the module that each broker process runs. dies_with_us: whether the processes are killed when
        the thread that starts them ends, even after SIGKILL (Linux). listeners: for clients of Kafka's
        protocol, if that program listens for them; a broker that `ports` does not name gets a free one.
        """
        if (directory / STATE).exists() and cls.load(directory).alive():
            raise ClusterError(
                expected="a directory without a running cluster",
                seen="one that runs",
                where=str(directory),
                hint=f"stop it: fencepost cluster stop --directory {directory}",
            )
        check_client()
        if zookeeper is None:
            check_server()
        directory.mkdir(parents=True, exist_ok=True)
        cluster = cls(directory, dies_with_us=dies_with_us)
        try:
            cluster._start_zookeeper(zookeeper)
            (directory / OPTIONS).write_bytes(msgspec.json.encode(options))
            make_credentials(directory)
            cluster.state.program = program
            ports = free_ports(3 * options.brokers)
            for broker, (port, inter_broker) in enumerate(zip(ports[::3], ports[1::3], strict=True), 1):
                cluster.state.brokers[broker] = BrokerProcess(port, ProcessId(0), inter_broker)
            if listeners is not None:
                cluster._keep_listeners(listeners, ports[2::3])
            for broker in cluster.state.brokers:
                cluster._start_broker(broker)
            cluster.wait_until(lambda status: status.healthy, "every broker registered, and a controller")
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def _keep_listeners(self, listeners: ListenerOptions, free: list[int]) -> None:
        """Write listeners.json, which may hold passwords, for its owner only."""
        ports = {broker: listeners.ports.get(broker, free[broker - 1]) for broker in self.state.brokers}
        for broker, port in ports.items():
            self.state.brokers[broker].kafka = f"{listeners.host}:{port}"
        self.state.security_protocol = listeners.security_protocol
        path = self.directory / LISTENERS
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.encode(evolve(listeners, ports=ports)))

    def stop(self) -> None:
        """End everything that was started here, the brokers first, all at once: no broker is left to take
        leaders over. Stopping again does nothing."""
        end(
            [broker.process for broker in self.state.brokers.values() if broker.process.pid],
            how=signal.SIGINT,
        )
        if self.state.zookeeper_process is not None:
            end([self.state.zookeeper_process])

    def alive(self) -> bool:
        """Whether any process of it is there."""
        processes = [broker.process for broker in self.state.brokers.values()]
        if self.state.zookeeper_process is not None:
            processes.append(self.state.zookeeper_process)
        return any(process.pid and state(process) != "dead" for process in processes)

    def zookeeper_died(self) -> bool:
        """Whether the server that we started has ended."""
        process = self.state.zookeeper_process
        return process is not None and state(process) == "dead"

    def _silent_zookeeper(self) -> str:
        return "is dead" if self.zookeeper_died() else "does not answer"

    def start_zookeeper(self) -> None:
        """Start our server again, on its data and its port, after it has died. Raises ClusterError."""
        if not self.zookeeper_died():
            theirs = self.state.zookeeper_process is None
            raise ClusterError(
                expected="a ZooKeeper server of ours that is dead",
                seen="one that is not ours" if theirs else "one that runs",
                where=self.state.zookeeper,
            )
        ZooKeeperServer.start(
            self.directory / "zookeeper",
            on_spawn=self._zookeeper_began,
            dies_with_us=self.dies_with_us,
            port=parse_address(self.state.zookeeper)[1],
        )

    # ---- one broker

    def kill(self, broker: int) -> None:
        """End its process as a crash does."""
        kill(self._running(broker))

    def shut_down(self, broker: int) -> None:
        """Ask its process to stop, as an operator does: its leaders move away first. On return it has ended
        by itself, or was killed after a bounded time."""
        end([self._running(broker)], SHUTDOWN_S, signal.SIGTERM)

    def pause(self, broker: int) -> None:
        """Suspend the broker's process."""
        send_signal(self._running(broker), signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """Resume the broker's process."""
        send_signal(self._running(broker), signal.SIGCONT)

    def start(self, broker: int) -> None:
        """Start the process of a broker that is dead, on its files."""
        if state(self.known(broker).process) != "dead":
            raise ClusterError(
                expected="a broker that is dead", seen="one that runs", where=f"broker {broker}"
            )
        self._start_broker(broker)

    def known(self, broker: int) -> BrokerProcess:
        """The process of a broker. Raises ClusterError for an unknown broker."""
        if broker not in self.state.brokers:
            raise ClusterError(
                expected=f"one of the brokers {', '.join(map(str, self.state.brokers))}",
                seen=str(broker),
                where=str(self.directory),
            )
        return self.state.brokers[broker]

    def _running(self, broker: int) -> ProcessId:
        process = self.known(broker).process
        if state(process) == "dead":
            raise ClusterError(expected="a broker that runs", seen="a dead one", where=f"broker {broker}")
        return process

    # ---- what is there

    def status(self) -> ClusterStatus:
        """What the system and ZooKeeper say now."""
        address = parse_address(self.state.zookeeper)
        seen = view(self.state.zookeeper) if answers(*address) else ClusterView()
        return ClusterStatus(
            zookeeper=self.state.zookeeper,
            zookeeper_state="answers" if seen.answers else self._silent_zookeeper(),
            controller=seen.controller,
            partitions=len(seen.leaders),
            leaderless=sum(leader < 0 for leader in seen.leaders.values()),
            brokers=tuple(
                BrokerStatus(
                    number,
                    state(broker.process),
                    broker.process.pid,
                    broker.port,
                    number in seen.registered,
                    sum(leader == number for leader in seen.leaders.values()),
                    broker.kafka,
                )
                for number, broker in self.state.brokers.items()
            ),
            security_protocol=self.state.security_protocol,
        )

    def wait_until(self, condition: Callable[[ClusterStatus], bool], what: str) -> ClusterStatus:
        """Wait until `condition` holds for the status, at most HEALTHY_S. what: the condition in words, for
        the error. Raises at once if a broker has died that was alive before."""
        deadline = time.monotonic() + HEALTHY_S
        there = {status.broker for status in self.status().brokers if status.process != "dead"}
        while True:
            status = self.status()
            if condition(status):
                return status
            for broker in status.brokers:
                if broker.process == "dead" and broker.broker in there:
                    raise EnvironmentError_(
                        expected=what, seen=self._last_words(broker.broker), where=f"broker {broker.broker}"
                    )
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"{what}, within {HEALTHY_S:.0f} s", seen=str(status), where=str(self.directory)
                )
            time.sleep(POLL_S)

    def wait_for_process(self, broker: int, wanted: str, seconds: float) -> None:
        """Wait until the system shows this broker's process as running, paused or dead."""
        deadline = time.monotonic() + seconds
        while (seen := state(self.known(broker).process)) != wanted:
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"a process that is {wanted}", seen=seen, where=f"broker {broker}"
                )
            time.sleep(POLL_S / 10)

    # ---- processes

    def _start_zookeeper(self, address: str | None) -> None:
        if address is None:
            ZooKeeperServer.start(
                self.directory / "zookeeper", on_spawn=self._zookeeper_began, dies_with_us=self.dies_with_us
            )
        elif answers(*parse_address(address)):
            self.state.zookeeper = address
        else:
            raise EnvironmentError_(
                expected="a ZooKeeper server that answers `srvr`", seen="no answer", where=address
            )

    def _zookeeper_began(self, address: str, process: ProcessId) -> None:
        self.state.zookeeper, self.state.zookeeper_process = address, process
        self._save()

    def _start_broker(self, number: int) -> None:
        directory = self.directory / f"broker-{number}"
        directory.mkdir(exist_ok=True)
        peers = [
            f"--peer={other}={HOST}:{broker.inter_broker_port}"
            for other, broker in self.state.brokers.items()
        ]
        peers += [
            f"--listen={HOST}:{self.state.brokers[number].port}",
            f"--credentials={self.directory / CREDENTIALS}",
        ]
        command = [
            sys.executable,
            "-m",
            self.state.program,
            f"--broker={number}",
            *peers,
            f"--zookeeper={self.state.zookeeper}",
            f"--directory={directory}",
            f"--options={self.directory / OPTIONS}",
        ]
        if self.state.security_protocol:
            command.append(f"--listeners={self.directory / LISTENERS}")
        with uninterrupted(), (directory / "broker.log").open("ab") as log:
            self.state.brokers[number].process = spawn(command, log, dies_with_us=self.dies_with_us)
            self._save()

    def _last_words(self, number: int) -> str:
        log = self.directory / f"broker-{number}" / "broker.log"
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "a dead process that said nothing"

    def _save(self) -> None:
        write_state(self.directory / STATE, self.state)
