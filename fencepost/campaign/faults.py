"""The kinds of fault: how each begins and how it ends.

Owns the table. A new fault is one more row: a function that begins it and one that ends it. Must not decide whether a fault may happen
(budget.py) or whom it hits (roles.py).
"""

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.world import World
from fencepost.sim.zookeeper import ZOOKEEPER_NODE
from fencepost.traces.plan import Fault

NOTHING = (0, 0)


class Breakable(Protocol):
    """What a fault acts on."""

    world: World
    broker_ids: tuple[int, ...]

    def restart_later(self, node: int, delay_ms: int) -> None:
        """Start the host's process after so much virtual time, if it is down then."""
        ...

    def arm_power_loss(self, fault: Fault, node: int) -> None:
        """Let the power fail at the host's next file calls; the restart follows by itself."""
        ...

    def stop_cleanly(self, node: int, delay_ms: int) -> None:
        """Ask the process to stop; so long after it has ended it is started again."""
        ...

    def rot(self, node: int, choice: int) -> None:
        """Turn over one bit under a checksum of the last segment of one of the host's logs."""
        ...

    def disk_healed(self, node: int) -> None:
        """The disk works again: a process that halted because of it is started."""
        ...


Begin = Callable[[Breakable, Fault, int, "int | None"], None]
End = Callable[[Breakable, Fault, int], None]


@frozen(kw_only=True)
class FaultKind:
    """says: for --help and docs/plans.md. stops: the broker does not run meanwhile; loses: unsynced data may be lost; rots: what was synced may be; lies: a
    later power loss may take what was synced; disk: of which a host has one at a time; needs_up: makes no sense on a broker that is down. parameter:
    bounds of the swarm's draw, and what it means."""

    says: str
    begin: Begin
    end: End
    stops: bool = False
    loses: bool = False
    rots: bool = False
    lies: bool = False
    disk: bool = False
    needs_up: bool = True
    parameter: tuple[int, int] = NOTHING
    parameter_says: str = "not used"


def _name(fault: Fault) -> str:
    return f"{fault.kind} {fault.fault_id}"


def _nothing(cluster: Breakable, fault: Fault, node: int) -> None:
    """Ends by itself."""


def _heal(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.heal(_name(fault))


def _crash(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.crash(node)
    cluster.restart_later(node, fault.duration_ms)


def _bounce(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.crash(node)
    cluster.restart_later(node, fault.parameter)


def _power_loss(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.arm_power_loss(fault, node)


def _pause(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.pause(node)


def _resume(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.resume(node)


def _links(cluster: Breakable, fault: Fault, node: int, other: int | None) -> list[tuple[int, int]]:
    """Between the target and the other one, or all other brokers. parameter: 0 both ways, 1 what the target sends, 2 what it receives."""
    others = [broker for broker in cluster.broker_ids if broker != node] if other is None else [other]
    sent = [(node, broker) for broker in others] if fault.parameter != 2 else []
    received = [(broker, node) for broker in others] if fault.parameter != 1 else []
    return sent + received


def _partition(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.block(_name(fault), _links(cluster, fault, node, other))


def _isolate_zookeeper(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.cut_from_zookeeper(_name(fault), (node,))


def _expire_session(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.expire_session(node)


def _lose_replies(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.lose_zookeeper_replies(node, fault.parameter)


def _both_ways(cluster: Breakable, node: int, other: int | None) -> list[tuple[int, int]]:
    others = [broker for broker in cluster.broker_ids if broker != node] if other is None else [other]
    return [pair for broker in others for pair in ((node, broker), (broker, node))]


def _slow_link(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.degrade(_name(fault), _both_ways(cluster, node, other), delay_us=fault.parameter)


def _slow_zookeeper(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    links = [(node, ZOOKEEPER_NODE), (ZOOKEEPER_NODE, node)]
    cluster.world.degrade(_name(fault), links, delay_us=fault.parameter)


def _loss(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.degrade(_name(fault), _both_ways(cluster, node, other), loss_ppm=fault.parameter)


def _clean_restart(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.stop_cleanly(node, fault.parameter)


def _disk_full(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.fill_disk(node, fault.parameter)


def _io_error(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    calls = (DiskCall.WRITE, DiskCall.SYNC, DiskCall.READ)
    cluster.world.fail_disk(node, calls[fault.parameter % 3], 1 + fault.parameter // 3)


def _lying_fsync(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.lie_about_syncs(node)


def _slow_fsync(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.slow_syncs(node, fault.parameter)


def _bit_rot(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.crash(node)
    cluster.rot(node, fault.parameter)
    cluster.restart_later(node, fault.duration_ms)


def _heal_disk(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.heal_disk(node)
    cluster.disk_healed(node)


FAULTS: dict[str, FaultKind] = {
    "crash": FaultKind(
        says="the process dies (kill -9) and is started again after the duration; files stay as written",
        begin=_crash,
        end=_nothing,
        stops=True,
    ),
    "bounce": FaultKind(
        says="the process dies and is started again at once, usually before its ZooKeeper session expires",
        begin=_bounce,
        end=_nothing,
        stops=True,
        parameter=(1, 400),
        parameter_says="milliseconds until it is started",
    ),
    "power_loss": FaultKind(
        says="the host loses its power: what was not synced is lost, the last write may be torn; started after the duration",
        begin=_power_loss,
        end=_nothing,
        stops=True,
        loses=True,
        parameter=(0, 6),
        parameter_says="fails inside the n-th changing file call from the onset; 0: at the onset",
    ),
    "pause": FaultKind(
        says="the process stands still (SIGSTOP, a long garbage collection) and goes on as if nothing had been",
        begin=_pause,
        end=_resume,
        stops=True,
    ),
    "partition": FaultKind(
        says="the target and the other broker (all others, if there is none) do not reach each other; ZooKeeper and clients do",
        begin=_partition,
        end=_heal,
        needs_up=False,
        parameter=(0, 2),
        parameter_says="0 both ways, 1 only what the target sends is lost, 2 only what it receives",
    ),
    "isolate_zookeeper": FaultKind(
        says="the target and ZooKeeper do not reach each other; its session may expire",
        begin=_isolate_zookeeper,
        end=_heal,
        needs_up=False,
    ),
    "expire_session": FaultKind(
        says="ZooKeeper ends the target's session at once",
        begin=_expire_session,
        end=_nothing,
    ),
    "lose_zookeeper_replies": FaultKind(
        says="the target's next writes to ZooKeeper are committed, but the connection breaks before the reply",
        begin=_lose_replies,
        end=_nothing,
        parameter=(1, 3),
        parameter_says="how many writes",
    ),
    "slow_link": FaultKind(
        says="messages between the target and the other broker (all others) take longer",
        begin=_slow_link,
        end=_heal,
        needs_up=False,
        parameter=(1_000, 2_000_000),
        parameter_says="microseconds more",
    ),
    "slow_zookeeper": FaultKind(
        says="messages between the target and ZooKeeper take longer: what the target does there is cut short by whatever comes next",
        begin=_slow_zookeeper,
        end=_heal,
        needs_up=False,
        parameter=(5_000, 1_500_000),
        parameter_says="microseconds more, each way",
    ),
    "loss": FaultKind(
        says="messages between the target and the other broker (all others) are lost more often",
        begin=_loss,
        end=_heal,
        needs_up=False,
        parameter=(10_000, 900_000),
        parameter_says="per million, in addition",
    ),
    "clean_restart": FaultKind(
        says="the broker is asked to stop (SIGTERM): controlled shutdown, logs closed whole, clean-shutdown marker; then it is started again",
        begin=_clean_restart,
        end=_nothing,
        stops=True,
        parameter=(1, 8_000),
        parameter_says="milliseconds from its end to its start",
    ),
    "disk_full": FaultKind(
        says="the disk has little room left: an append beyond it raises ENOSPC and the broker halts; it is started again when there is room",
        begin=_disk_full,
        end=_heal_disk,
        stops=True,
        disk=True,
        parameter=(0, 4_000),
        parameter_says="bytes of room",
    ),
    "io_error": FaultKind(
        says="a file call raises EIO and the broker halts, as all its log directories have failed; it is started again when the fault ends",
        begin=_io_error,
        end=_heal_disk,
        stops=True,
        disk=True,
        parameter=(0, 60),
        parameter_says="which call: the remainder by 3 says write, sync or read, the quotient how many of them pass before",
    ),
    "bit_rot": FaultKind(
        says="the process dies, and one durable bit in the last segment of a log turns over; started after the duration, recovery finds it",
        begin=_bit_rot,
        end=_nothing,
        stops=True,
        loses=True,
        rots=True,
        parameter=(0, 63),
        parameter_says="which log, out of those of the host",
    ),
    "lying_fsync": FaultKind(
        says="syncs return and make nothing durable: harmless, unless the power fails before a later sync of the same file",
        begin=_lying_fsync,
        end=_heal_disk,
        lies=True,
        disk=True,
    ),
    "slow_fsync": FaultKind(
        says="each sync takes longer, and the host does nothing else meanwhile",
        begin=_slow_fsync,
        end=_heal_disk,
        disk=True,
        parameter=(1_000, 400_000),
        parameter_says="microseconds more",
    ),
}
