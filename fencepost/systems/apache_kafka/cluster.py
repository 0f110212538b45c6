"""Apache Kafka as a system: real brokers by version, as processes on loopback.

Owns the processes: their start, signals and end. Must not know settings (settings.py) or where jars come from
(jars.py). A broker is found again after its folder's `apache-kafka.json`, which is rewritten whenever a
process begins, so that another command can end all of them.

    DIR/apache-kafka.json, zookeeper/, broker-N/ (data/, server.properties, broker.log)

    with ApacheKafka(directory=folder, release=Release(version="3.9.2"), size=3) as cluster:
        print(cluster.bootstrap_servers())
"""

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from attrs import define, field

from fencepost.impl.runtime.cluster_view import view
from fencepost.impl.runtime.processes import ProcessId, end, kill, send_signal, spawn, state
from fencepost.impl.runtime.zookeeper.server import HOST, ServerOptions, ZooKeeperServer, answers, free_ports
from fencepost.processes.java import find_java
from fencepost.systems.apache_kafka.clock import Clocks
from fencepost.systems.apache_kafka.disk import SETTINGS as DISK_SETTINGS
from fencepost.systems.apache_kafka.disk import Disks
from fencepost.systems.apache_kafka.jars import SEPARATE, Release
from fencepost.systems.apache_kafka.network import NAMES, ZOOKEEPER, Network, host_name, listeners_of
from fencepost.systems.apache_kafka.node_files import JVM, NodeFiles, random_id
from fencepost.systems.apache_kafka.request_proxies import RequestProxies
from fencepost.systems.apache_kafka.settings import DIRECT, SESSION_MS, Names, Ports, bounds_of
from fencepost.systems.state_file import read_state, write_state
from fencepost.systems.system import PROCESS_VERBS, Inside, Pair, System
from fencepost.traces.errors import EnvironmentError_, FencepostError

STATE = "apache-kafka.json"
START_S = 300.0
"""Longest wait until three brokers are healthy. Two busy cores took 12 s; a crowded machine takes longer."""
FIRST_CONTROLLER, CONTROLLERS = 101, 3
"""Number of the first process that is a controller only, above those of brokers, and how many there are."""
START_AGAIN = 4
"""Brokers that end in their first start and are started again. With ZooKeeper a broker ends where its session
of two seconds is over before it has registered: with sixty busy processes on two processors that happens."""
GONE_S = 10.0
"""Longest wait until ZooKeeper forgets a broker's session: five of its time-outs."""
POLL_S = 0.1
HEAP_MB = {False: 128, True: 192}
"""Heap of a broker without and with KRaft. The smallest heaps that start are 48 and 64 MB."""
ZOOKEEPER_HEAP_MB = 64
QUIET = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSSZ",
)
"""Lines of broker.log begin with the time; inside/broker_log.py reads it."""
Answer = TypeVar("Answer")


@define
class Running:
    """What apache-kafka.json holds."""

    version: str = ""
    home: str = ""
    cluster_id: str = ""
    # HOST:PORT; empty with KRaft.
    zookeeper: str = ""
    zookeeper_process: ProcessId | None = None
    ports: dict[int, Ports] = field(factory=dict)
    # The last one of each broker, whether it still runs or not.
    processes: dict[int, ProcessId] = field(factory=dict)


@define(eq=False, kw_only=True, repr=False)
class ApacheKafka(System):
    """systems.system.System over Apache Kafka's own brokers."""

    # Where everything is.
    directory: Path
    # Which version.
    release: Release = field(factory=Release)
    # How many brokers.
    size: int = 3
    # Settings of server.properties, written before those of settings.py.
    settings: Mapping[str, str] = field(factory=dict)
    # With the controllers SEPARATE, how many processes are controllers only; 0: CONTROLLERS.
    separate: int = 0
    # Size of each broker's Java heap; 0: by version.
    heap_mb: int = 0
    # More flags of each broker's Java.
    jvm: tuple[str, ...] = ()
    # Whether the processes continue when this one ends; otherwise the kernel kills them with it (Linux).
    outlives_us: bool = False
    # Whether every connection passes a proxy of this process, so that links can be cut.
    proxied: bool = False
    # Whether each log directory is a disk that can lose power (disk.py).
    mounted: bool = False
    # Whether the wall clock of each broker can be set wrong (clock.py).
    shifted: bool = False
    # Of what such a disk loses.
    seed: int = 0
    # Brokers that run another version than `release`, as in a rolling upgrade.
    releases: dict[int, Release] = field(factory=dict)
    running: Running = field(factory=Running)
    # The proxies, from the start to `close`; None if connections are direct.
    network: Network | None = field(default=None, init=False)
    # What clients pass before the network, from the start to `close`; None if connections are direct.
    requests: RequestProxies | None = field(default=None, init=False)
    # The disks, from the start to `close`; None if files are ordinary ones.
    disks: Disks | None = field(default=None, init=False)
    # The clocks, from the start on; None if they are right.
    clocks: Clocks | None = field(default=None, init=False)
    # One thread, from the first process to `close`: the kernel ends a process with the thread that began it.
    _starter: ThreadPoolExecutor | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<Apache Kafka {self.release.version}, {self.size} brokers in {self.directory}>"

    def __enter__(self) -> "ApacheKafka":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def load(cls, directory: Path) -> "ApacheKafka":
        """The cluster that another process started in this folder. Raises FencepostError."""
        running = read_state(directory / STATE, Running, "fencepost cluster kafka up")
        home = Path(running.home) if running.home else None
        release = Release(version=running.version, home=home)
        brokers = [node for node, ports in running.ports.items() if ports.client]
        made = cls(directory=directory, release=release, size=len(brokers), running=running)
        made.separate = len(running.ports) - len(brokers)
        return made

    # ---- the beginning and the end

    def __attrs_post_init__(self) -> None:
        if self.release.controllers == SEPARATE:
            self.separate = self.separate or CONTROLLERS
        elif self.separate:
            raise FencepostError(
                expected=f"the controllers {SEPARATE}", seen=repr(self.release.controllers), where=repr(self)
            )

    @property
    def controllers(self) -> tuple[int, ...]:
        """The ids of the processes that are controllers only."""
        return tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + self.separate))

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(range(1, self.size + 1))

    def start(self) -> None:
        """Start everything; returns once it is healthy. If that fails or is interrupted, no process is left.
        Raises EnvironmentError_, with a broker's last log lines if one has ended."""
        if (self.directory / STATE).exists() and ApacheKafka.load(self.directory).alive():
            raise FencepostError(
                expected="a folder without a running cluster", seen="one that runs", where=str(self.directory)
            )
        _importable()
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        kraft, free = self.release.kraft, free_ports(3 * self.size + self.separate)
        combined = kraft and not self.separate
        self.running = Running(
            version=self.release.version,
            home=str(self.release.home.absolute()) if self.release.home else "",
            cluster_id=random_id(),
            ports={
                broker: Ports(client, inter, control if combined else 0)
                for broker, client, inter, control in zip(
                    self.brokers, free[::3], free[1::3], free[2 : 3 * self.size : 3], strict=False
                )
            }
            | {
                node: Ports(control=free[3 * self.size + place])
                for place, node in enumerate(self.controllers)
            },
        )
        if self.shifted:
            if kraft:
                raise self.cannot("a version with ZooKeeper: with KRaft no quorum came up under libfaketime")
            self.clocks = Clocks({broker: self._folder(broker) for broker in self.brokers})
        if self.mounted:
            self.disks = Disks.open(self.directories(), self.seed)
        if kraft:
            self._files.format(self.running.cluster_id)
        else:
            self._in_starter(self._start_zookeeper)
        if self.proxied:
            self.network = Network.open(listeners_of(self.running.ports, self.running.zookeeper))
            self.requests = RequestProxies.open(self._advertised())
        sharing = self.release.sharing()
        for node in (*self.controllers, *self.brokers):
            self._start_broker(node)
        self.wait_until_healthy(again=START_AGAIN)
        if "-XX:+RecordDynamicDumpInfo" in sharing and self.release.make_archive(
            self.running.processes[1].pid
        ):
            self.wait_until_healthy()
        if self.disks is not None:
            self.disks.write_back()

    def close(self) -> None:
        """Kill every process that was started; their files stay. Closing again does nothing."""
        processes = [*self.running.processes.values()]
        if self.running.zookeeper_process is not None:
            processes.append(self.running.zookeeper_process)
        end(processes, how=signal.SIGKILL)
        if self.requests is not None:
            self.requests.close()
        if self.network is not None:
            self.network.close()
        if self.disks is not None:
            self.disks.close()
        if self._starter is not None:
            self._starter.shutdown()
            self._starter = None

    def alive(self) -> bool:
        """Whether any process of it is there."""
        processes = [*self.running.processes.values(), self.running.zookeeper_process]
        return any(each is not None and state(each) != "dead" for each in processes)

    def wait_until_healthy(self, seconds: float = START_S, again: int = 0) -> None:
        """Wait until it is.

        Args:
            seconds: how long.
            again: how many brokers that end by themselves are started again.

        Raises:
            EnvironmentError_: when the time is over, or one more broker has ended by itself.
        """
        deadline = time.monotonic() + seconds
        there = [broker for broker in self.brokers if self._lives(broker)]
        while not self.healthy():
            for broker in there:
                if not self._lives(broker) and again:
                    again -= 1
                    self.restart(broker)
                elif not self._lives(broker):
                    raise EnvironmentError_(
                        expected="a broker that runs", seen=self._last_words(broker), where=f"broker {broker}"
                    )
            if time.monotonic() > deadline:
                raise EnvironmentError_(
                    expected=f"a healthy cluster within {seconds:.0f} s",
                    seen=self._last_words(1),
                    where=str(self.directory),
                )
            time.sleep(POLL_S)

    # ---- what is seen

    def healthy(self) -> bool:
        """Whether every broker runs, knows all others, and each partition has a leader and a full ISR."""
        if not all(state(self.running.processes[broker]) == "running" for broker in self.brokers):
            return False
        from fencepost.systems.agreement import all_agree

        addresses = {broker: (HOST, self.running.ports[broker].client) for broker in self.brokers}
        return bool(self._in_starter(asyncio.run, all_agree(addresses)))

    def bootstrap_servers(self) -> str:
        """Addresses for Kafka's clients."""
        known = self._advertised() if self.requests is None else self.requests.local
        return ",".join(f"{host}:{port}" for host, port in known.values())

    def _advertised(self) -> dict[int, tuple[str, int]]:
        """Where brokers tell clients to find each of them."""
        host = self._names.clients
        return {broker: (host.format(broker), self.running.ports[broker].client) for broker in self.brokers}

    def directories(self) -> Mapping[int, Path]:
        """Each broker's log directory."""
        return MappingProxyType({broker: self._folder(broker) / "data" for broker in self.brokers})

    def logs(self) -> Mapping[str, Path]:
        """Of each broker and each process that is a controller only, and of ZooKeeper."""
        nodes = (*self.brokers, *self.controllers)
        found = {f"broker-{node}": self._folder(node) / "broker.log" for node in nodes}
        if not self.release.kraft:
            found["zookeeper"] = self.directory / "zookeeper" / "zookeeper.log"
        return MappingProxyType(found)

    def processes_now(self) -> Mapping[int, int]:
        """Of brokers and controllers; of ZooKeeper, if there is one."""
        found = {node: process.pid for node, process in self.running.processes.items()}
        zookeeper = self.running.zookeeper_process
        return found if zookeeper is None else {**found, -1: zookeeper.pid}

    def inside(self) -> Inside:
        """What it consists of."""
        controllers = "KRaft" if self.release.kraft else "ZooKeeper"
        controllers += f" with {self.separate} separate controllers" if self.separate else ""
        return Inside(
            software=f"Apache Kafka {self.release.version}, {controllers}",
            real_processes=True,
            real_files=True,
            can=PROCESS_VERBS
            | {"administration", "transactions"}
            | ({"cut", "links", "requests"} if self.proxied else set())
            | ({"power_off", "disks"} if self.mounted else set()),
            settings=bounds_of(self.release.kraft, self.settings),
        )

    # ---- brokers

    def kill(self, broker: int) -> None:
        """SIGKILL. Nothing happens if it is down."""
        kill(self._known(broker))

    def pause(self, broker: int) -> None:
        """SIGSTOP. Nothing happens if it is down."""
        send_signal(self._known(broker), signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """SIGCONT. Nothing happens if it is not paused."""
        send_signal(self._known(broker), signal.SIGCONT)

    def stop(self, broker: int) -> None:
        """SIGTERM: controlled shutdown. Returns at once."""
        send_signal(self._known(broker), signal.SIGTERM)

    def restart(self, broker: int) -> None:
        """Start the process of a broker that is down. Nothing happens if it runs. A broker of the ZooKeeper
        era ends where its old session is still there, so that this one is waited for."""
        if state(self._known(broker)) != "dead":
            return
        deadline = time.monotonic() + GONE_S
        while self._registered(broker) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._start_broker(broker)

    def runs(self, broker: int) -> bool:
        """Whether its process is there, paused or not."""
        return self._lives(broker)

    def power_off(self, broker: int) -> None:
        """Its process ends, and what its disk had not synced is lost. Raises UnsupportedError where files are
        ordinary ones."""
        if self.disks is None:
            raise self.cannot("a system that can lose power")
        if broker not in self.brokers:
            raise self.cannot("a broker, which has a disk of ours")
        self.kill(broker)
        self.disks.power_loss([broker])

    def power_off_all(self) -> None:
        """All brokers lose power at once. Raises UnsupportedError, as above."""
        if self.disks is None:
            raise self.cannot("a system that can lose power")
        for broker in self.brokers:
            send_signal(self._known(broker), signal.SIGKILL)
        for broker in self.brokers:
            self.power_off(broker)

    def cut(self, name: str, pairs: Iterable[Pair]) -> None:
        """Nothing gets over these directed links until `heal(name)`. Raises UnsupportedError where brokers
        are connected directly."""
        if self.network is None:
            raise self.cannot("a system with links that can be cut")
        self.network.cut(name, pairs)

    def heal(self, name: str) -> None:
        """End the cut of this name. Nothing happens if there is none."""
        if self.network is not None:
            self.network.heal(name)

    def _registered(self, broker: int) -> bool:
        host, _, port = self.running.zookeeper.partition(":")
        if not port or not answers(host, int(port)):
            return False
        return broker in view(self.running.zookeeper).registered

    # ---- processes

    @property
    def _names(self) -> Names:
        return NAMES if self.proxied else DIRECT

    def _known(self, broker: int) -> ProcessId:
        if broker not in self.running.processes:
            raise FencepostError(
                expected=f"one of the brokers {', '.join(map(str, self.running.processes)) or '(none runs)'}",
                seen=str(broker),
                where=repr(self),
            )
        return self.running.processes[broker]

    def _lives(self, broker: int) -> bool:
        process = self.running.processes.get(broker)
        return process is not None and state(process) != "dead"

    def _folder(self, broker: int) -> Path:
        return self.directory / f"broker-{broker}"

    def _in_starter(self, function: Callable[..., Answer], *args: Any) -> Answer:
        if self._starter is None:
            self._starter = ThreadPoolExecutor(1, "apache kafka")
        return self._starter.submit(function, *args).result()

    def _start_zookeeper(self) -> None:
        options = ServerOptions(heap_mb=ZOOKEEPER_HEAP_MB, class_path=self.release.class_path())
        ZooKeeperServer.start(
            self.directory / "zookeeper", options, self._zookeeper_began, dies_with_us=not self.outlives_us
        )

    def _zookeeper_began(self, address: str, process: ProcessId) -> None:
        self.running.zookeeper, self.running.zookeeper_process = address, process
        self._save()

    @property
    def _files(self) -> NodeFiles:
        zookeeper = self.running.zookeeper
        if self.proxied:
            zookeeper = zookeeper.replace(HOST, host_name(ZOOKEEPER))
        return NodeFiles(
            directory=self.directory,
            ports=self.running.ports,
            release=self.release,
            names=self._names,
            zookeeper=zookeeper,
            more={**DISK_SETTINGS, **self.settings} if self.mounted else self.settings,
        )

    def _start_broker(self, broker: int) -> None:
        configuration, release = self._files.write_properties(broker), self.releases.get(broker, self.release)
        heap = self.heap_mb or HEAP_MB[release.kraft]
        command = [
            *(self.clocks.environment(broker) if self.clocks is not None else ()),
            *(find_java("Apache Kafka"), f"-Xmx{heap}m", *JVM, *release.sharing()),
            *(*self._flags(broker), *self.jvm, *QUIET),
            *("-cp", release.class_path(), "kafka.Kafka", str(configuration)),
        ]
        with (self._folder(broker) / "broker.log").open("ab") as log:
            self.running.processes[broker] = self._in_starter(self._spawn, command, log)
        self._save()

    def _flags(self, broker: int) -> list[str]:
        return [] if self.network is None else [self.network.write_hosts(broker, self._folder(broker))]

    def _spawn(self, command: list[str], log: Any) -> ProcessId:
        return spawn(command, log, dies_with_us=not self.outlives_us)

    def _last_words(self, broker: int) -> str:
        log = self._folder(broker) / "broker.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        wrong = [line for line in lines if " ERROR " in line or "Exception" in line]
        said = wrong[-1:] or [line for line in lines if line.strip()][-1:]
        return said[0][:300] if said else "nothing"

    def _save(self) -> None:
        write_state(self.directory / STATE, self.running)


def _importable() -> None:
    """Raises MissingExtraError unless the cluster's health can be asked."""
    import fencepost.wire.client  # noqa: F401


assert SESSION_MS / 1000 < GONE_S, "a session must be able to expire while it is waited for"
