"""The table of faults: how each begins and how it ends, in a simulated cluster and in a real system.

Owns the table. A new fault is one more row: what begins it and what ends it. The fixture, the control port,
plans, the swarm and docs/reference/plans.md take their kinds from here. Must not decide whether a fault may
happen (budget.py) or whom it hits (roles.py). Rows of links, of clocks, of clients from outside and of what
operators ask for are in files of their own.
"""

from collections.abc import Mapping
from functools import partial

from fencepost.run.faults.clocks import TIME_FAULTS
from fencepost.run.faults.group_requests import GROUP_REQUESTS
from fencepost.run.faults.kind import FaultKind, Reach, Real, RealHit, SimulatedHit, there_and_back
from fencepost.run.faults.link_faults import LINK_FAULTS, LinkFault, RealCut, RealLinks
from fencepost.run.faults.operator_requests import ADMINISTRATION
from fencepost.run.faults.requests import OUTSIDE_FAULTS
from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.zookeeper import ZOOKEEPER_NODE
from fencepost.systems.system import disks_of_system, links_of_system

IO_CALLS = (DiskCall.WRITE, DiskCall.SYNC, DiskCall.READ)
"""What the remainder of the parameter of io_error says."""


def _crash(hit: SimulatedHit) -> None:
    if hit.fault.inside:
        hit.cluster.arm_power_loss(hit.fault, hit.node)
        return
    hit.world.crash(hit.node)
    hit.cluster.restart_later(hit.node, hit.down_ms)


def _bit_rot(hit: SimulatedHit) -> None:
    hit.world.crash(hit.node)
    hit.cluster.rot(hit.node, hit.parameter)
    hit.cluster.restart_later(hit.node, hit.down_ms)


def _heal_disk(hit: SimulatedHit) -> None:
    hit.world.heal_disk(hit.node)
    hit.cluster.disk_healed(hit.node)


def _fail_disk(hit: SimulatedHit) -> None:
    call, nth = (None, max(1, hit.parameter)) if hit.fault.inside else _call(hit)
    hit.world.fail_disk(hit.node, call, nth, hit.fault.inside)


def _call(hit: SimulatedHit | RealHit) -> tuple[DiskCall, int]:
    """Which call of the disk fails, and the how manieth of them."""
    passed, call = divmod(hit.parameter, len(IO_CALLS))
    return IO_CALLS[call], 1 + passed


def _fail_real(hit: RealHit) -> None:
    call, nth = _call(hit)
    disks_of_system(hit.system).fail(hit.node, call, nth=nth)


def _lie_real(hit: RealHit) -> None:
    for folder in hit.folders or ("",):
        disks_of_system(hit.system).lie(hit.node, folder)


_Down = partial(Real, end=lambda hit: hit.system.restart(hit.node))
_DiskFault = partial(FaultKind, end=_heal_disk, disk=True)
_RealDisk = partial(Real, "disks", end=lambda hit: disks_of_system(hit.system).heal(hit.node))

FAULTS: dict[str, FaultKind] = {
    "crash": FaultKind(
        says="the process dies (kill -9) and is started again after the duration; files stay as written",
        begin=_crash,
        real=_Down("kill", lambda hit: hit.system.kill(hit.node)),
        down=True,
        stops=True,
    ),
    "bounce": FaultKind(
        says="the process dies and is started again at once, usually before its ZooKeeper session expires",
        begin=_crash,
        real=_Down("kill", lambda hit: hit.system.kill(hit.node)),
        down=True,
        down_by_parameter=True,
        stops=True,
        parameter=(1, 400),
        parameter_says="milliseconds until it is started",
    ),
    "power_loss": FaultKind(
        says="the host loses its power: what was not synced is lost, the last write may be torn; started "
        "after the duration",
        begin=lambda hit: hit.cluster.arm_power_loss(hit.fault, hit.node),
        real=_Down("power_off", lambda hit: hit.system.power_off(hit.node)),
        down=True,
        stops=True,
        loses=True,
        parameter=(0, 6),
        parameter_says="fails inside the n-th changing file call from the onset; 0: at the onset",
    ),
    "pause": FaultKind(
        says="the process is paused (SIGSTOP, a long garbage collection) and goes on as if nothing had been",
        begin=lambda hit: hit.world.pause(hit.node),
        end=lambda hit: hit.world.resume(hit.node),
        real=Real("pause", lambda hit: hit.system.pause(hit.node), lambda hit: hit.system.resume(hit.node)),
        stops=True,
    ),
    "partition": LinkFault(
        says="the target and the other broker (all others, if there is none) do not reach each other; "
        "ZooKeeper and clients do",
        begin=lambda hit: hit.world.block(hit.name, hit.links),
        real=RealCut(lambda hit: hit.system.cut(hit.name, hit.links)),
        reach=Reach.LINKS,
        parameter=(0, 2),
        parameter_says="0 both ways, 1 only what the target sends is lost, 2 only what it receives",
    ),
    "isolate_zookeeper": LinkFault(
        says="the target and ZooKeeper do not reach each other; its session may expire",
        begin=lambda hit: hit.world.cut_from_zookeeper(hit.name, (hit.node,)),
        real=RealLinks(lambda hit: links_of_system(hit.system).cut_controllers(hit.name, hit.node)),
    ),
    "expire_session": FaultKind(
        says="ZooKeeper ends the target's session at once",
        begin=lambda hit: hit.world.expire_session(hit.node),
        asks_zookeeper=True,
    ),
    "lose_zookeeper_replies": FaultKind(
        says="the target's next writes to ZooKeeper are committed, but the connection breaks before the "
        "reply",
        begin=lambda hit: hit.world.lose_zookeeper_replies(hit.node, hit.parameter),
        parameter=(1, 3),
        parameter_says="how many writes",
    ),
    "slow_link": LinkFault(
        says="messages between the target and the other broker (all others) take longer",
        begin=lambda hit: hit.world.degrade(hit.name, hit.both_ways, delay_us=hit.parameter),
        real=RealLinks(lambda hit: links_of_system(hit.system).delay(hit.name, hit.links, hit.delay_ms)),
        reach=Reach.LINKS,
        parameter=(1_000, 2_000_000),
        parameter_says="microseconds more",
    ),
    "slow_zookeeper": LinkFault(
        says="messages between the target and ZooKeeper take longer: what the target does there is cut "
        "short by whatever comes next",
        begin=lambda hit: hit.world.degrade(
            hit.name, there_and_back(hit.node, [ZOOKEEPER_NODE]), delay_us=hit.parameter
        ),
        parameter=(5_000, 1_500_000),
        parameter_says="microseconds more, each way",
    ),
    "loss": LinkFault(
        says="messages between the target and the other broker (all others) are lost more often",
        begin=lambda hit: hit.world.degrade(hit.name, hit.both_ways, loss_ppm=hit.parameter),
        reach=Reach.LINKS,
        parameter=(10_000, 900_000),
        parameter_says="per million, in addition",
    ),
    "clean_restart": FaultKind(
        says="the broker is asked to stop (SIGTERM): controlled shutdown, logs closed whole, clean-shutdown "
        "marker; then it is started again",
        begin=lambda hit: hit.cluster.stop_cleanly(hit.node, hit.down_ms),
        real=_Down("stop", lambda hit: hit.system.stop(hit.node)),
        down=True,
        down_by_parameter=True,
        stops=True,
        parameter=(1, 8_000),
        parameter_says="milliseconds from its end to its start",
    ),
    "disk_full": _DiskFault(
        says="the disk has little room left: an append beyond it raises ENOSPC and the broker halts; it is "
        "started again when there is room",
        begin=lambda hit: hit.world.fill_disk(hit.node, hit.parameter),
        real=_RealDisk(lambda hit: disks_of_system(hit.system).fill(hit.node, hit.parameter)),
        stops=True,
        parameter=(0, 4_000),
        parameter_says="bytes of room",
    ),
    "io_error": _DiskFault(
        says="a file call raises EIO and the broker halts, as all its log directories have failed; it is "
        "started again when the fault ends",
        begin=_fail_disk,
        real=_RealDisk(_fail_real),
        stops=True,
        parameter=(0, 60),
        parameter_says="which call: the remainder by 3 says write, sync or read, the quotient how many of "
        "them pass before",
    ),
    "bit_rot": FaultKind(
        says="the process dies, and one durable bit in the last segment of a log turns over; started after "
        "the duration, recovery finds it",
        begin=_bit_rot,
        down=True,
        stops=True,
        loses=True,
        rots=True,
        parameter=(0, 63),
        parameter_says="which log, out of those of the host",
    ),
    "lying_fsync": _DiskFault(
        says="syncs return and make nothing durable: harmless, unless the power fails before a later sync "
        "of the same file",
        begin=lambda hit: hit.world.lie_about_syncs(hit.node),
        real=_RealDisk(_lie_real),
        lies=True,
        reach=Reach.NOBODY,
    ),
    "slow_fsync": _DiskFault(
        says="each sync takes longer, and the host does nothing else meanwhile",
        begin=lambda hit: hit.world.slow_syncs(hit.node, hit.parameter),
        real=_RealDisk(lambda hit: disks_of_system(hit.system).slow(hit.node, hit.delay_ms)),
        parameter=(1_000, 400_000),
        parameter_says="microseconds more",
    ),
    **LINK_FAULTS,
    **TIME_FAULTS,
    "zookeeper_unreachable": LinkFault(
        says="no broker reaches ZooKeeper, which goes on: all sessions may expire; the target is of no "
        "account",
        begin=lambda hit: hit.world.cut_from_zookeeper(hit.name, hit.cluster.broker_ids),
        on="cluster",
    ),
    "zookeeper_restart": FaultKind(
        says="ZooKeeper's ensemble restarts: all connections break, none is taken for the duration, all "
        "sessions survive; the target is of no account",
        begin=lambda hit: hit.world.stop_zookeeper(),
        end=lambda hit: hit.world.start_zookeeper(),
        on="cluster",
        single=True,
        needs_up=False,
        asks_zookeeper=True,
    ),
    **ADMINISTRATION,
    **GROUP_REQUESTS,
}
"""What a simulated run can have, in the order of `campaign --list-faults`."""
KINDS: Mapping[str, FaultKind] = {**FAULTS, **OUTSIDE_FAULTS}
"""All kinds."""
EMBEDDED_FAULTS = {name: kind for name, kind in KINDS.items() if kind.simulated}
"""What an embedded cluster can have."""


def _place(item: tuple[str, FaultKind]) -> tuple[int, bool, str]:
    """Where a kind is among those of real systems; requests of operators stay in the order of the table."""
    name, kind = item
    assert kind.real is not None
    group = ("links", "requests", "disks", "administration")
    place = group.index(kind.real.verb) if kind.real.verb in group else -1
    return place, kind.on != "topic", "" if kind.ask else name


REAL_FAULTS = dict(sorted((item for item in KINDS.items() if item[1].real is not None), key=_place))
"""What a real system can have, if it has the verb. What a seed draws depends on this order."""


def kinds_for(can: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of fault that a system with these verbs can carry out, and those that it cannot.

    Args:
        can: verbs, as `Inside.can` has them.

    Returns:
        Both, by name.
    """
    able = tuple(
        name for name, kind in REAL_FAULTS.items() if kind.real is not None and kind.real.verb in can
    )
    return able, tuple(name for name in REAL_FAULTS if name not in able)
