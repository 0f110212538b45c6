"""An embedded cluster: the simulated world, paced by the wall clock, with real sockets in front of its
brokers.

Owns the assembly (world, brokers, pace, gateway, listeners), their thread, and the housekeeping of
a world without end. Must not know why something is broken, what is recorded, or how it is judged: the
observer gets every event (fencepost/kafka adds faults by name, the record and the verdict).

    with Embedded(options=ClusterOptions(brokers=3, topics=())) as cluster:
        print(cluster.bootstrap_servers())

One thread runs one asyncio loop; only that thread touches the world. `World` and its brokers are the
simulator's, unchanged. So every fault of sim/ works, and a run records the same events. The differences from
a simulated run: virtual time follows the wall clock (pace.py), messages take a microsecond, file calls cost
nothing, and requests come from outside, so a run does not replay from its seed.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, field, fields

from fencepost import __version__
from fencepost.impl.broker.parts import Parts
from fencepost.impl.runtime.compiled_code import load_when_due
from fencepost.sim.disk_loss import PowerLossReport
from fencepost.sim.host import Observer
from fencepost.sim.scheduler import MILLISECOND, NO_BOUND, SECOND
from fencepost.sim.world import World
from fencepost.sim.zookeeper import Commit
from fencepost.systems.disk.real_files import RealDisk
from fencepost.systems.embedded_disks import EmbeddedDisks
from fencepost.systems.gateway import Gateway, Tap
from fencepost.systems.loop_thread import LoopThread
from fencepost.systems.pace import Pace
from fencepost.systems.simulation import Simulation
from fencepost.systems.system import PROCESS_VERBS, Inside, Pair, PowerLost, System, settings_of
from fencepost.traces.errors import EnvironmentError_, PlanError, unknown_name
from fencepost.traces.plan import ClusterOptions, DiskOptions, GroupOptions, NetworkOptions

if TYPE_CHECKING:
    from fencepost.systems.listeners import Listeners
    from fencepost.wire.hook import Hook

LOG = logging.getLogger("fencepost.embedded")
NEAR = NetworkOptions(latency_min_us=1, latency_tail_us=0, latency_max_us=1)
"""The network of an embedded cluster: as near to no delay as the simulator has."""
FREE = DiskOptions(write_us=0, fsync_us=0)
"""Its disks: calls take no virtual time; what a power loss leaves is as ever."""
HOUSEKEEPING = SECOND
"""Virtual time between two rounds of housekeeping."""
WRITE_BACK_S = 30
"""Between two times that the kernel of a simulated host writes its dirty pages: Linux's
vm.dirty_expire_centisecs. The network forgets then which causes it has met (sim/network.py): some ten a
second for each kind of message on each link."""
MOST_DISK_BYTES = 1 << 30
"""Of all simulated files together, a gibibyte: they are in memory, twice (as seen and as durable). Beyond it
every disk is full: an append raises ENOSPC and its broker halts, as Kafka does. A folder of real files has no
such bound."""
Answer = TypeVar("Answer")


def quick_options(brokers: int = 3, **options: Any) -> ClusterOptions:
    """Options for tests: a dead broker is noticed after a second, a follower that does not fetch leaves the
    ISR after two, and a group's first rebalance does not wait. brokers: how many; options: other fields of
    ClusterOptions. Stalls of the machine do not count for these times. Raises PlanError."""
    known = [each.name for each in fields(ClusterOptions)]
    for name in options:
        if name not in known:
            raise PlanError(
                expected="an option of a cluster (docs/reference/plans.md)",
                seen=unknown_name(name, known),
                where="an embedded cluster",
            )
    values: dict[str, Any] = {
        "topics": (),
        "zookeeper_session_timeout_ms": 1_000,
        "replica_lag_time_max_ms": 2_000,
        "replica_fetch_backoff_ms": 100,
        "controller_request_timeout_ms": 1_000,
        "isr_change_propagation_ms": 250,
        "controlled_shutdown_retry_backoff_ms": 500,
        "groups": GroupOptions(offsets_topic_partitions=8, initial_rebalance_delay_ms=0),
    }
    try:
        return ClusterOptions(brokers=brokers, **{**values, **options})
    except (TypeError, ValueError) as error:
        raise PlanError(
            expected="options of a cluster (docs/reference/plans.md)",
            seen=str(error.args[0]),
            where="an embedded cluster",
        ) from None


@define(eq=False, kw_only=True, repr=False)
class Embedded(System):
    """systems.system.System over the simulated world. All public methods may be called from any thread, and
    those with `_` only in the loop's."""

    options: ClusterOptions = field(factory=quick_options)
    # What brokers are assembled from; a planted bug swaps one.
    parts: Parts = field(factory=Parts)
    # Gets every event of the hosts, in the loop's thread.
    observer: Observer = field(factory=Observer)
    # Called at every commit of ZooKeeper, in the loop's thread.
    on_commit: Callable[[Commit], None] | None = None
    # Gets every request and answer of a connection, in the loop's thread.
    tap: Tap = field(factory=Tap)
    # Returns a broker's hook between requests and answers, or None; called when sockets are opened.
    hooks: "Callable[[int], Hook | None]" = lambda broker: None
    network: NetworkOptions = NEAR
    disk: DiskOptions = FREE
    # Seed of the world's random decisions: how long a reconnection waits, what a power loss leaves.
    seed: int = 0
    # Where the brokers' files are, each broker's in an empty folder of its own; None: in memory, on simulated
    # disks.
    directory: Path | None = None
    # Port of the first broker's listener, the others follow; 0: any free ports.
    port: int = 0
    # Whether sockets are opened.
    listen: bool = True
    # The wall clock, nanoseconds; it must never go back.
    wall: Callable[[], int] = time.monotonic_ns
    world: World = field(init=False)
    # Its brokers, in virtual time; to be used in the loop's thread.
    simulation: Simulation = field(init=False)
    gateway: Gateway = field(init=False)
    pace: Pace = field(init=False)
    thread: LoopThread = field(factory=partial(LoopThread, "fencepost cluster"), init=False)
    # The sockets, once they are open.
    listeners: "Listeners | None" = field(default=None, init=False)
    # Why the world has stopped, empty while it has not: a mistake in fencepost itself.
    failure: str = field(default="", init=False)
    # Incarnation of each broker's process at the last housekeeping.
    _incarnations: dict[int, int] = field(factory=dict, init=False)
    # Virtual time of the next housekeeping.
    _next_look: int = field(default=0, init=False)
    # Rounds of housekeeping so far.
    _looks: int = field(default=0, init=False)
    # Whether the simulated disks have met their bound.
    _full: bool = field(default=False, init=False)
    # Every power loss so far.
    _power_lost: list[PowerLost] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._refuse_used_directory()
        self.world = World(
            self.seed,
            network=self.network,
            disk=self.disk,
            session_timeout=self.options.zookeeper_session_timeout_ms * MILLISECOND,
            observer=self.observer,
            on_commit=self.on_commit,
            maximum_events=NO_BOUND,
        )
        self.simulation = Simulation(world=self.world, options=self.options, parts=self.parts)
        self.gateway = Gateway(self.world.network)
        time_of_day = time.time_ns()  # records carry it: retention and offsets by timestamp mean the wall's
        for broker in self.brokers:
            host = self.simulation.add(
                broker, clock_offset=time_of_day, disk=self._real_disk(broker), sender=self.gateway
            )
            self._incarnations[broker] = host.incarnation
        for host in self.world.hosts.values():
            self.gateway.serve(host)
        self.pace = Pace(self.world.scheduler, self.thread.loop, self.wall, self._after_turn, self._failed)

    def __repr__(self) -> str:
        return f"<Embedded cluster of {self.options.brokers} brokers>"

    def __enter__(self) -> "Embedded":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refuse_used_directory(self) -> None:
        """What ZooKeeper knew of an earlier cluster's files ended with it: a topic of the same name would
        begin with that cluster's records. Raises EnvironmentError_."""
        used = [path for path in self.directories().values() if path.is_dir() and any(path.iterdir())]
        if used:
            raise EnvironmentError_(
                expected="no files of an earlier cluster",
                seen=", ".join(path.name for path in used),
                where=str(self.directory),
                hint="an embedded cluster forgets its topics when it ends and cannot go on with them: name "
                "another directory, or delete these (`fencepost log dump` reads them)",
            )

    def _real_disk(self, broker: int) -> RealDisk | None:
        if self.directory is None:
            return None
        return RealDisk(node=broker, randomness=self.world.randomness, root=self._directory(broker))

    def _directory(self, broker: int) -> Path:
        assert self.directory is not None
        return self.directory / f"broker-{broker}"

    # ---- life

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(range(1, self.options.brokers + 1))

    def start(self) -> None:
        """Start everything; returns once every broker is registered and there is a controller."""
        self.thread.start()
        try:
            self.thread.call(self.simulation.start)  # unpaced: no client is connected yet
            if self.listen:
                self.thread.run(self._open())
            self.thread.call(self.pace.start)
        except BaseException:
            self.close()
            raise

    async def _open(self) -> None:
        from fencepost.systems.listeners import (
            Listeners,
        )  # needs the extra kafka; a cluster that does not listen does not

        hosts = {broker: self.world.hosts[broker] for broker in self.brokers}
        self.listeners = Listeners(
            hosts=hosts,
            gateway=self.gateway,
            pace=self.pace,
            tap=self.tap,
            hooks=self.hooks,
            transactions=self.options.has_transactions,
            transaction_version=self.options.transactions.version,
        )
        await self.listeners.open(self.port)

    def close(self) -> None:
        """End everything. Closing again does nothing."""
        if not self.thread.running:
            return
        self.thread.call(self.pace.stop)
        try:
            if self.listeners is not None:
                self.thread.run(self.listeners.close())
        finally:
            self.thread.close()

    # ---- in the loop's thread

    def do(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """Call something in the loop's thread with the world at the present time; what it changed shows at
        once.

        Args:
            function: what to call.
            args: of the call.
            kwargs: of the call.

        Returns:
            What it returns.

        Raises:
            EnvironmentError_: once the world has stopped.
        """
        answer: Answer = self.thread.call(self._do, function, *args, **kwargs)
        return answer

    def _do(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        if self.failure:
            raise EnvironmentError_(
                expected="a cluster that works",
                seen=f"a mistake in fencepost itself: {self.failure}",
                where=repr(self),
                hint="the log has the whole traceback; please report it",
            )
        self.pace.catch_up()
        try:
            return function(*args, **kwargs)
        finally:
            self._look_for_ends()
            self.pace.wake()

    def _failed(self, error: Exception) -> None:
        self.failure = f"{type(error).__name__}: {error}"
        LOG.error("an embedded cluster stops: a mistake in fencepost itself", exc_info=error)

    def _after_turn(self) -> None:
        self._look_for_ends()
        if self.world.now >= self._next_look:
            self._next_look = self.world.now + HOUSEKEEPING
            self._look_after_memory()
            load_when_due()

    def _look_for_ends(self) -> None:
        """A broker's process that has ended takes its connections with it."""
        for broker, known in self._incarnations.items():
            incarnation = self.world.hosts[broker].incarnation
            if incarnation != known:
                self._incarnations[broker] = incarnation
                self.gateway.cut(broker)
                if self.listeners is not None:
                    self.listeners.disconnect(broker, "its process has ended")

    def _look_after_memory(self) -> None:
        """What grows with time in a world that has no end."""
        hosts = [self.world.hosts[broker] for broker in self.brokers]
        self._looks += 1
        if self._looks % WRITE_BACK_S == 0:
            self.world.network.forget_causes()
            for host in hosts:
                host.disk.write_back()
        if self.directory is None and not self._full:
            used = sum(host.disk.size() for host in hosts)
            if used > MOST_DISK_BYTES:
                self._full = True
                LOG.error(
                    "the simulated disks hold %d bytes, at most %d fit in: they are full",
                    used,
                    MOST_DISK_BYTES,
                )
                for broker in self.brokers:
                    self.world.fill_disk(broker, 0)

    # ---- what is seen

    def healthy(self) -> bool:
        """Whether every broker is registered, there is a controller, and each partition has a live leader and
        a full ISR, as ZooKeeper has them."""
        return self.do(self.simulation.healthy)

    def bootstrap_servers(self) -> str:
        """Addresses for Kafka's clients."""
        if self.listeners is None:
            raise EnvironmentError_(
                expected="a cluster that listens", seen="one that does not", where=repr(self), hint="start it"
            )
        return ",".join(f"{host}:{port}" for host, port in self.listeners.addresses().values())

    def serve_nobody(self) -> None:
        """Cut every connection and take none any more, and let virtual time pass only as the caller says:
        before the last phases of a run."""
        self.thread.call(self.pace.stop)
        if self.listeners is not None:
            self.thread.call(self.listeners.serve_nobody)

    def directories(self) -> Mapping[int, Path]:
        """Each broker's log directory; empty where disks are simulated."""
        if self.directory is None:
            return MappingProxyType({})
        return MappingProxyType({broker: self._directory(broker) for broker in self.brokers})

    def inside(self) -> Inside:
        """What it consists of."""
        return Inside(
            software=f"fencepost's reference brokers {__version__}, in the simulated world",
            real_processes=False,
            real_files=self.directory is not None,
            can=PROCESS_VERBS
            | {"cut", "administration"}
            | ({"transactions"} if self.options.has_transactions else set())
            | (set() if self.directory is not None else {"power_off", "disks"}),
            settings=settings_of(self.options),
        )

    @property
    def disks(self) -> EmbeddedDisks | None:
        """The simulated disks; None where files are real."""
        if self.directory is not None:
            return None
        return EmbeddedDisks(
            world=self.simulation.world, do=self.do, brokers=self.brokers, lost=self._power_lost
        )

    # ---- brokers

    def kill(self, broker: int) -> None:
        """End its process at once."""
        self.do(self.simulation.kill, broker)

    def pause(self, broker: int) -> None:
        """Suspend the broker's process."""
        self.do(self.simulation.pause, broker)

    def resume(self, broker: int) -> None:
        """Resume the broker's process."""
        self.do(self.simulation.resume, broker)

    def stop(self, broker: int) -> None:
        """Ask it to stop: controlled shutdown."""
        self.do(self.simulation.stop, broker)

    def restart(self, broker: int) -> None:
        """Start the process of a broker that is down."""
        self.do(self.simulation.restart, broker)

    def runs(self, broker: int) -> bool:
        """Whether its process is there, paused or not."""
        return self.do(self.simulation.runs, broker)

    def power_off(self, broker: int) -> None:
        """Its host loses power. Raises UnsupportedError on real files."""
        report = self.do(self._power_off, broker)
        self._power_lost.append(PowerLost(time=time.time_ns(), broker=broker, logs=report.logs))

    def _power_off(self, broker: int) -> PowerLossReport:
        self.simulation.host(broker)
        return self.simulation.world.power_loss(broker)

    def cut(self, name: str, pairs: Iterable[Pair]) -> None:
        """Nothing gets over these directed links until `heal(name)`."""
        self.do(self.simulation.cut, name, tuple(pairs))

    def heal(self, name: str) -> None:
        """End the cut of this name."""
        self.do(self.simulation.heal, name)
