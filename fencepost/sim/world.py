"""The simulated world: hosts, their disks, the network between them and ZooKeeper, in one virtual time.

Owns the assembly and the faults, as methods. Must not know the cores, the schedule of faults, or the checks.

The caller drives a run: make a `World`, add hosts, start them, `run_until` a time, cause a fault, heal it,
run on, then read what the observer and the commit listener received. The same seed and the same calls give
the same run, event by event.

Node ids: ZooKeeper 0, brokers from 1, clients from 1000. Final.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fencepost.impl.messages.broker_api import ProduceRequest
from fencepost.impl.messages.group_api import JoinGroupRequest, OffsetCommitRequest, SyncGroupRequest
from fencepost.impl.messages.names import NAMES
from fencepost.impl.messages.transaction_api import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from fencepost.impl.zookeeper.interface import Reply, ZooKeeperRequest
from fencepost.sim.clock import TRUE_SPEED, Clock
from fencepost.sim.disk import Disk, PowerLossReport
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.host import CoreFactory, Host, Observer, Sender
from fencepost.sim.network import LinkFault, Network, Pair
from fencepost.sim.randomness import Randomness
from fencepost.sim.scheduler import MAXIMUM_EVENTS, MICROSECOND, MILLISECOND, Scheduler
from fencepost.sim.zookeeper import FRAMES, ZOOKEEPER_NODE, Commit, ZooKeeper
from fencepost.sim.zookeeper_client import ZooKeeperClient
from fencepost.traces.plan import DiskOptions, NetworkOptions, Plan

FIRST_CLIENT_NODE = 1_000


_NEVER_TWICE = frozenset({ProduceRequest, OffsetCommitRequest, JoinGroupRequest, SyncGroupRequest})


_IN_TIME = frozenset({AddPartitionsToTxnRequest, AddOffsetsToTxnRequest})


def _may_be_late(message: Any) -> bool:
    """Version 1 of transactions assumes that some requests are not, and nothing enforces it (KAFKA-17754): a
    late end, marker or commit of offsets would count for the next transaction, in Kafka too. A question of a
    leader may be late."""
    if isinstance(message, EndTxnRequest):
        return message.version >= 2
    if isinstance(message, WriteTxnMarkersRequest):
        return message.marker.version >= 2
    if isinstance(message, TxnOffsetCommitRequest):
        return message.adds_partition
    return type(message) not in _IN_TIME or getattr(message, "verify_only", False)


def _may_duplicate(message: Any) -> bool:
    """TCP does not repeat a request; a client's retry does, if that is allowed. The second of two is late."""
    return type(message) not in _NEVER_TWICE and _may_be_late(message)


class World:
    """scheduler, network, zookeeper, randomness: the parts, for reading. hosts: by node id, in the order of
    adding."""

    def __init__(
        self,
        seed: int,
        *,
        network: NetworkOptions | None = None,
        disk: DiskOptions | None = None,
        session_timeout: int = 6_000 * MILLISECOND,
        observer: Observer | None = None,
        on_commit: Callable[[Commit], None] | None = None,
        maximum_events: int = MAXIMUM_EVENTS,
    ) -> None:
        """session_timeout: of ZooKeeper sessions, in nanoseconds. on_commit: called at every ZooKeeper
        commit, in order."""
        self.randomness = Randomness(seed)
        self.scheduler = Scheduler(maximum_events)
        self.network = Network(
            self.scheduler,
            self.randomness,
            network or NetworkOptions(),
            {**NAMES, **FRAMES},
            may_duplicate=_may_duplicate,
            may_be_late=_may_be_late,
        )
        self.zookeeper = ZooKeeper(self.scheduler, self.network, on_commit)
        self.observer = observer or Observer()
        self.hosts: dict[int, Host] = {}
        self._disk_options = disk or DiskOptions()
        self._session_timeout = session_timeout

    @classmethod
    def from_plan(
        cls, plan: Plan, *, observer: Observer, on_commit: Callable[[Commit], None] | None = None
    ) -> "World":
        """The world that a plan describes, without hosts.

        Args:
            plan: the plan.
            observer: receives the hosts' events.
            on_commit: called at every ZooKeeper commit, in order.

        Returns:
            the world.
        """
        return cls(
            plan.seed,
            network=plan.network,
            disk=plan.disk,
            session_timeout=plan.cluster.zookeeper_session_timeout_ms * MILLISECOND,
            observer=observer,
            on_commit=on_commit,
        )

    # ---- building and running

    def add_host(
        self,
        node: int,
        make_core: CoreFactory,
        *,
        zookeeper: bool,
        clock_offset: int = 0,
        disk: Disk | None = None,
        sender: Sender | None = None,
    ) -> Host:
        """Add a host; it is down until `start`.

        Args:
            node: the node id.
            make_core: makes a new process's core.
            zookeeper: whether its core uses ZooKeeper.
            clock_offset: the offset of its time of day, in nanoseconds.
            disk: its disk; None: a new one.
            sender: sends its messages; None: the network.

        Returns:
            the host.
        """
        assert node != ZOOKEEPER_NODE and node not in self.hosts, f"node id {node} is taken"
        host = Host(
            node=node,
            scheduler=self.scheduler,
            network=sender or self.network,
            disk=disk or Disk(node=node, randomness=self.randomness, options=self._disk_options),
            clock=Clock(self.scheduler, clock_offset),
            make_core=make_core,
            observer=self.observer,
        )
        if zookeeper:
            host.zookeeper = ZooKeeperClient(
                node=node,
                scheduler=self.scheduler,
                clock=host.clock,
                randomness=self.randomness,
                server=self.zookeeper,
                session_timeout=self._session_timeout,
                emit=host.accept,
            )
        self.network.attach(node, host)
        self.hosts[node] = host
        return host

    @property
    def now(self) -> int:
        """Virtual nanoseconds since the world began."""
        return self.scheduler.now

    def run_until(self, time: int) -> None:
        """Run everything up to this virtual time; `stop` ends it early."""
        self.scheduler.run_until(time)

    def stop(self) -> None:
        """Make `run_until` return after the current event."""
        self.scheduler.stop()

    def admin(self, request: ZooKeeperRequest) -> Reply:
        """Apply a ZooKeeper request of the harness at once."""
        return self.zookeeper.admin(request)

    # ---- hosts

    def start(self, node: int) -> None:
        """Start the process of a host that is down."""
        self.hosts[node].start()

    restart = start

    def crash(self, node: int) -> None:
        """The process dies; its files stay as written."""
        self.hosts[node].crash()

    def power_loss(self, node: int) -> PowerLossReport:
        """The host goes down and loses what its disk had not synced."""
        return self.hosts[node].power_loss()

    def arm_power_loss(self, node: int, calls: int, step: str = "", *, kills: bool = False) -> None:
        """Arm a power loss inside a file call; `Observer.lost_power` is called when it happens.

        Args:
            node: the host.
            calls: the power fails inside this mutating file call from now (1 = the next).
            step: only calls of this step of a broker's work count; "": all do.
            kills: the process dies there instead, and its files stay as written.
        """
        self.hosts[node].disk.arm_power_loss(calls, step, kills=kills)

    def pause(self, node: int) -> None:
        """Pause the process until `resume`."""
        self.hosts[node].pause()

    def resume(self, node: int) -> None:
        """Continue the process."""
        self.hosts[node].resume()

    def slow_down(self, node: int, extra_us: int) -> None:
        """Make each step of a host's processes slower.

        Args:
            node: the host.
            extra_us: microseconds more per step; 0 ends the fault.
        """
        self.hosts[node].step_cost = extra_us * MICROSECOND

    # ---- clocks

    def jump_clock(self, node: int, milliseconds: int) -> None:
        """Set a host's time of day forward, or back if negative.

        Args:
            node: the host.
            milliseconds: the difference.
        """
        self.hosts[node].clock.jump(milliseconds * MILLISECOND, backwards=True)

    def run_clock(self, node: int, speed_ppm: int = TRUE_SPEED) -> None:
        """Change the speed of a host's clock.

        Args:
            node: the host.
            speed_ppm: parts per million of the world's time; by default the true speed.
        """
        self.hosts[node].clock.run_at(speed_ppm)

    # ---- disks

    def fill_disk(self, node: int, room: int) -> None:
        """Leave little free space on a host's disk until `heal_disk`.

        Args:
            node: the host.
            room: bytes of free space.
        """
        disk = self.hosts[node].disk
        disk.limit_capacity(disk.size() + room)

    def fail_disk(self, node: int, call: DiskCall | None, nth: int, step: str = "") -> None:
        """Make a disk fail with EIO, unless `heal_disk` comes first.

        Args:
            node: the host.
            call: the kind of call; None: any.
            nth: the call of this kind from now that fails (1 = the next).
            step: only calls of this step of a broker's work count; "": all do.
        """
        self.hosts[node].disk.fail_calls(call, nth=nth, step=step)

    def lie_about_syncs(self, node: int) -> None:
        """Syncs return without making anything durable, until `heal_disk`."""
        self.hosts[node].disk.lie_about_syncs()

    def slow_syncs(self, node: int, extra_us: int) -> None:
        """Make each sync slower until `heal_disk`.

        Args:
            node: the host.
            extra_us: microseconds more per sync.
        """
        self.hosts[node].disk.slow_syncs(extra_us)

    def heal_disk(self, node: int) -> None:
        """End all disk faults; their effects stay."""
        self.hosts[node].disk.heal()

    def files(self, node: int) -> list[str]:
        """The paths of all files on a host's disk: at its top, or in a directory there."""
        disk = self.hosts[node].disk
        paths = [f"{top}/{name}" for top in disk.list("") for name in disk.list(top)]
        return paths + [top for top in disk.list("") if isinstance(disk.look(top), bytes)]

    # ---- links

    def partition(self, name: str, *groups: Iterable[int]) -> None:
        """Block all messages between groups, in both directions, until `heal(name)`. Nodes in no group are
        not affected."""
        sides = [tuple(group) for group in groups]
        self.network.partition(
            name,
            (
                (source, target)
                for index, sources in enumerate(sides)
                for other, targets in enumerate(sides)
                if index != other
                for source in sources
                for target in targets
            ),
        )

    def block(self, name: str, links: Iterable[Pair]) -> None:
        """Block these directed links until `heal(name)`."""
        self.network.partition(name, links)

    def degrade(
        self,
        name: str,
        links: Iterable[Pair],
        *,
        loss_ppm: int = 0,
        delay_us: int = 0,
        duplicate_ppm: int = 0,
        reorder_ppm: int = 0,
    ) -> None:
        """Degrade links until `heal(name)`.

        Args:
            name: the name of the fault.
            links: the directed links.
            loss_ppm: additional losses per million messages.
            delay_us: additional delay in microseconds.
            duplicate_ppm: additional duplicates per million messages.
            reorder_ppm: additional held-back messages per million.
        """
        self.network.add_fault(
            name,
            LinkFault(
                links=frozenset(links),
                loss_ppm=loss_ppm,
                delay=delay_us * MICROSECOND,
                duplicate_ppm=duplicate_ppm,
                reorder_ppm=reorder_ppm,
            ),
        )

    def heal(self, name: str) -> None:
        """End the partition, block, degradation or cut with this name; no effect if there is none."""
        self.network.heal(name)

    # ---- ZooKeeper

    def cut_from_zookeeper(self, name: str, nodes: Iterable[int]) -> None:
        """Block all messages between these nodes (all: ZooKeeper is down for every node) and ZooKeeper until
        `heal(name)`."""
        self.partition(name, (ZOOKEEPER_NODE,), nodes)

    def stop_zookeeper(self) -> None:
        """Stop the ensemble: every connection breaks, no session expires."""
        self.zookeeper.stop()

    def start_zookeeper(self) -> None:
        """Start the ensemble again."""
        self.zookeeper.start()

    def expire_session(self, node: int) -> bool:
        """ZooKeeper ends the youngest session of this node now. False if it has none."""
        sessions = self.zookeeper.sessions(node)
        if sessions:
            self.zookeeper.expire(sessions[-1])
        return bool(sessions)

    def lose_zookeeper_replies(self, node: int, count: int = 1) -> None:
        """The next `count` writes of this node are committed but not answered: its connection breaks after
        each."""
        self.zookeeper.lose_replies(node, count)
