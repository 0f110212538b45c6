"""The kinds of fault: how each begins and how it ends.

Owns the table. A new fault is one more row: a function that begins it and one that ends it. Must not decide
whether a fault may happen (budget.py) or whom it hits (roles.py). What operators ask for is in
administration.py, in the same form.
"""

from fencepost.run.faults.administration import ADMINISTRATION
from fencepost.run.faults.clocks import TIME_FAULTS
from fencepost.run.faults.kind import Breakable, FaultKind, Reach
from fencepost.run.faults.links import LINK_FAULTS, both_ways, heal_links, name_of
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.zookeeper import ZOOKEEPER_NODE
from fencepost.traces.plan import Fault


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
    """Between the target and the other one, or all other brokers. parameter: 0 both ways, 1 what the target
    sends, 2 what it receives."""
    others = [broker for broker in cluster.broker_ids if broker != node] if other is None else [other]
    sent = [(node, broker) for broker in others] if fault.parameter != 2 else []
    received = [(broker, node) for broker in others] if fault.parameter != 1 else []
    return sent + received


def _partition(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.block(name_of(fault), _links(cluster, fault, node, other))


def _isolate_zookeeper(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.cut_from_zookeeper(name_of(fault), (node,))


def _expire_session(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.expire_session(node)


def _lose_replies(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.lose_zookeeper_replies(node, fault.parameter)


def _slow_link(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.degrade(name_of(fault), both_ways(cluster, node, other), delay_us=fault.parameter)


def _slow_zookeeper(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    links = [(node, ZOOKEEPER_NODE), (ZOOKEEPER_NODE, node)]
    cluster.world.degrade(name_of(fault), links, delay_us=fault.parameter)


def _loss(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.degrade(name_of(fault), both_ways(cluster, node, other), loss_ppm=fault.parameter)


def _no_zookeeper(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.cut_from_zookeeper(name_of(fault), cluster.broker_ids)


def _stop_zookeeper(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    cluster.world.stop_zookeeper()


def _start_zookeeper(cluster: Breakable, fault: Fault, node: int) -> None:
    cluster.world.start_zookeeper()


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
        stops=True,
    ),
    "bounce": FaultKind(
        says="the process dies and is started again at once, usually before its ZooKeeper session expires",
        begin=_bounce,
        stops=True,
        parameter=(1, 400),
        parameter_says="milliseconds until it is started",
    ),
    "power_loss": FaultKind(
        says="the host loses its power: what was not synced is lost, the last write may be torn; started "
        "after the duration",
        begin=_power_loss,
        stops=True,
        loses=True,
        parameter=(0, 6),
        parameter_says="fails inside the n-th changing file call from the onset; 0: at the onset",
    ),
    "pause": FaultKind(
        says="the process is paused (SIGSTOP, a long garbage collection) and goes on as if nothing had been",
        begin=_pause,
        end=_resume,
        stops=True,
    ),
    "partition": FaultKind(
        says="the target and the other broker (all others, if there is none) do not reach each other; "
        "ZooKeeper and clients do",
        begin=_partition,
        end=heal_links,
        reach=Reach.LINKS,
        needs_up=False,
        parameter=(0, 2),
        parameter_says="0 both ways, 1 only what the target sends is lost, 2 only what it receives",
    ),
    "isolate_zookeeper": FaultKind(
        says="the target and ZooKeeper do not reach each other; its session may expire",
        begin=_isolate_zookeeper,
        end=heal_links,
        needs_up=False,
    ),
    "expire_session": FaultKind(
        says="ZooKeeper ends the target's session at once",
        begin=_expire_session,
        asks_zookeeper=True,
    ),
    "lose_zookeeper_replies": FaultKind(
        says="the target's next writes to ZooKeeper are committed, but the connection breaks before the "
        "reply",
        begin=_lose_replies,
        parameter=(1, 3),
        parameter_says="how many writes",
    ),
    "slow_link": FaultKind(
        says="messages between the target and the other broker (all others) take longer",
        begin=_slow_link,
        end=heal_links,
        reach=Reach.LINKS,
        needs_up=False,
        parameter=(1_000, 2_000_000),
        parameter_says="microseconds more",
    ),
    "slow_zookeeper": FaultKind(
        says="messages between the target and ZooKeeper take longer: what the target does there is cut "
        "short by whatever comes next",
        begin=_slow_zookeeper,
        end=heal_links,
        needs_up=False,
        parameter=(5_000, 1_500_000),
        parameter_says="microseconds more, each way",
    ),
    "loss": FaultKind(
        says="messages between the target and the other broker (all others) are lost more often",
        begin=_loss,
        end=heal_links,
        reach=Reach.LINKS,
        needs_up=False,
        parameter=(10_000, 900_000),
        parameter_says="per million, in addition",
    ),
    "clean_restart": FaultKind(
        says="the broker is asked to stop (SIGTERM): controlled shutdown, logs closed whole, clean-shutdown "
        "marker; then it is started again",
        begin=_clean_restart,
        stops=True,
        parameter=(1, 8_000),
        parameter_says="milliseconds from its end to its start",
    ),
    "disk_full": FaultKind(
        says="the disk has little room left: an append beyond it raises ENOSPC and the broker halts; it is "
        "started again when there is room",
        begin=_disk_full,
        end=_heal_disk,
        stops=True,
        disk=True,
        parameter=(0, 4_000),
        parameter_says="bytes of room",
    ),
    "io_error": FaultKind(
        says="a file call raises EIO and the broker halts, as all its log directories have failed; it is "
        "started again when the fault ends",
        begin=_io_error,
        end=_heal_disk,
        stops=True,
        disk=True,
        parameter=(0, 60),
        parameter_says="which call: the remainder by 3 says write, sync or read, the quotient how many of "
        "them pass before",
    ),
    "bit_rot": FaultKind(
        says="the process dies, and one durable bit in the last segment of a log turns over; started after "
        "the duration, recovery finds it",
        begin=_bit_rot,
        stops=True,
        loses=True,
        rots=True,
        parameter=(0, 63),
        parameter_says="which log, out of those of the host",
    ),
    "lying_fsync": FaultKind(
        says="syncs return and make nothing durable: harmless, unless the power fails before a later sync "
        "of the same file",
        begin=_lying_fsync,
        end=_heal_disk,
        lies=True,
        reach=Reach.NOBODY,
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
    **LINK_FAULTS,
    **TIME_FAULTS,
    "zookeeper_unreachable": FaultKind(
        says="no broker reaches ZooKeeper, which goes on: all sessions may expire; the target is of no "
        "account",
        begin=_no_zookeeper,
        end=heal_links,
        on="cluster",
        needs_up=False,
    ),
    "zookeeper_restart": FaultKind(
        says="ZooKeeper's ensemble restarts: all connections break, none is taken for the duration, all "
        "sessions survive; the target is of no account",
        begin=_stop_zookeeper,
        end=_start_zookeeper,
        on="cluster",
        single=True,
        needs_up=False,
        asks_zookeeper=True,
    ),
    **ADMINISTRATION,
}
