"""Faults of real systems: which verbs of the one interface (systems/system.py) each kind consists of.

Owns the table. Must not know when a fault begins, or whom it hits. The kinds are those of the simulator
(run/faults/table.py), with the same names and parameters, LATE_REQUESTS and BROKEN_REQUEST; a system
that lacks a verb leaves the kinds out that need it.
"""

from collections.abc import Callable, Mapping

from attrs import evolve, field, frozen

from fencepost.proxy.faults import parse
from fencepost.run.faults.links import name_of
from fencepost.run.faults.requests import BROKEN_REQUEST, LATE_REQUESTS
from fencepost.run.real.operators import KINDS, PATIENCE_S, REQUEST_S, Topic, ask
from fencepost.sim.disk_faults import DiskCall
from fencepost.systems.apache_kafka.administration import Administration
from fencepost.systems.system import Pair, System, disks_of_system, links_of_system, requests_of_system
from fencepost.traces.plan import Fault

MICROSECONDS = 1_000
"""In a millisecond."""
IO_CALLS = (DiskCall.WRITE, DiskCall.SYNC, DiskCall.READ)
"""What the remainder of the parameter of io_error says."""


@frozen(kw_only=True)
class Hit:
    """A fault that strikes."""

    system: System
    fault: Fault
    # The broker that it hits.
    node: int
    # The other one; None: all others.
    other: int | None = None
    # Of the run's partitions, in each broker's log directory.
    folders: tuple[str, ...] = ()
    # Of the run; None: requests of operators have nothing to ask for.
    topic: Topic | None = None
    # The cluster's name of each topic, by the plan's.
    names: Mapping[str, str] = field(factory=dict)


Verb = Callable[[Hit], None]


@frozen(kw_only=True)
class RealFault:
    """A kind of fault."""

    # What the system must be able to do.
    verb: str
    begin: Verb
    # Called when its time is over, and again when the cluster is healed.
    end: Verb
    # Whether the broker's process ends: `end` is called until it runs again.
    down: bool = False
    # Whether the parameter, in milliseconds, is the time from the process's end to its start; otherwise the
    # duration is.
    by_parameter: bool = False
    # Whether it makes no sense while another fault holds the same broker.
    single: bool = True
    # Whether its target is a broker's role; otherwise it hits none.
    of_broker: bool = True
    # Whether the broker may end its process because of it, when it likes.
    may_end: bool = False


def _kill(hit: Hit) -> None:
    hit.system.kill(hit.node)


def _stop(hit: Hit) -> None:
    hit.system.stop(hit.node)


def _power_off(hit: Hit) -> None:
    hit.system.power_off(hit.node)


def _pause(hit: Hit) -> None:
    hit.system.pause(hit.node)


def _resume(hit: Hit) -> None:
    hit.system.resume(hit.node)


def _restart(hit: Hit) -> None:
    hit.system.restart(hit.node)


# ---- links


def links_of(brokers: tuple[int, ...], fault: Fault, node: int, other: int | None) -> list[Pair]:
    """Between the target and the other one, or all others.

    Parameters:
      brokers: all ids.
      fault: its parameter says 0 both ways, 1 what the target sends, 2 what it receives.
      node: the target.
      other: the other broker; None: all.
    Returns: directed links.
    """
    others = [broker for broker in brokers if broker != node] if other is None or other == node else [other]
    sent = [(node, broker) for broker in others] if fault.parameter != 2 else []
    received = [(broker, node) for broker in others] if fault.parameter != 1 else []
    return sent + received


def _cut(hit: Hit) -> None:
    hit.system.cut(name_of(hit.fault), links_of(hit.system.brokers, hit.fault, hit.node, hit.other))


def _delay(hit: Hit) -> None:
    pairs = links_of(hit.system.brokers, hit.fault, hit.node, hit.other)
    milliseconds = max(1, hit.fault.parameter // MICROSECONDS)
    links_of_system(hit.system).delay(name_of(hit.fault), pairs, milliseconds)


def _cut_clients(hit: Hit) -> None:
    links_of_system(hit.system).cut_clients(name_of(hit.fault), hit.node, hit.fault.parameter)


def _delay_clients(hit: Hit) -> None:
    milliseconds = max(1, hit.fault.parameter // MICROSECONDS)
    links_of_system(hit.system).delay_clients(name_of(hit.fault), hit.node, milliseconds)


def _cut_controllers(hit: Hit) -> None:
    links_of_system(hit.system).cut_controllers(name_of(hit.fault), hit.node)


def _heal(hit: Hit) -> None:
    hit.system.heal(name_of(hit.fault))


def _break_requests(hit: Hit) -> None:
    """The target says what is broken, as docs/reference/request-faults.md has it."""
    fault = parse(hit.fault.target)
    named = evolve(fault, topic=hit.names.get(fault.topic, fault.topic))
    requests_of_system(hit.system).break_requests(name_of(hit.fault), named)


def _heal_requests(hit: Hit) -> None:
    requests_of_system(hit.system).heal_requests(name_of(hit.fault))


# ---- disks


def _lie(hit: Hit) -> None:
    for folder in hit.folders or ("",):
        disks_of_system(hit.system).lie(hit.node, folder)


def _fail(hit: Hit) -> None:
    passed, call = divmod(hit.fault.parameter, len(IO_CALLS))
    disks_of_system(hit.system).fail(hit.node, IO_CALLS[call], nth=1 + passed)


def _fill(hit: Hit) -> None:
    disks_of_system(hit.system).fill(hit.node, hit.fault.parameter)


def _slow(hit: Hit) -> None:
    disks_of_system(hit.system).slow(hit.node, max(1, hit.fault.parameter // MICROSECONDS))


def _heal_disk(hit: Hit) -> None:
    disks_of_system(hit.system).heal(hit.node)


# ---- operators


def _ask(hit: Hit) -> None:
    assert hit.topic is not None, "the run has a topic"
    admin = Administration(hit.system.bootstrap_servers(), patience_s=PATIENCE_S, request_s=REQUEST_S)
    ask(admin, hit.fault, hit.topic)


def _over(hit: Hit) -> None:
    """A request ends by itself."""


REAL_FAULTS: Mapping[str, RealFault] = {
    "bounce": RealFault(verb="kill", begin=_kill, end=_restart, down=True, by_parameter=True),
    "clean_restart": RealFault(verb="stop", begin=_stop, end=_restart, down=True, by_parameter=True),
    "crash": RealFault(verb="kill", begin=_kill, end=_restart, down=True),
    "partition": RealFault(verb="cut", begin=_cut, end=_heal, single=False),
    "pause": RealFault(verb="pause", begin=_pause, end=_resume),
    "power_loss": RealFault(verb="power_off", begin=_power_off, end=_restart, down=True),
    "client_partition": RealFault(verb="links", begin=_cut_clients, end=_heal, single=False),
    "isolate_zookeeper": RealFault(verb="links", begin=_cut_controllers, end=_heal, single=False),
    LATE_REQUESTS: RealFault(verb="links", begin=_delay_clients, end=_heal, single=False),
    BROKEN_REQUEST: RealFault(
        verb="requests", begin=_break_requests, end=_heal_requests, single=False, of_broker=False
    ),
    "slow_link": RealFault(verb="links", begin=_delay, end=_heal, single=False),
    "disk_full": RealFault(verb="disks", begin=_fill, end=_heal_disk, may_end=True, single=False),
    "io_error": RealFault(verb="disks", begin=_fail, end=_heal_disk, may_end=True, single=False),
    "lying_fsync": RealFault(verb="disks", begin=_lie, end=_heal_disk, single=False),
    "slow_fsync": RealFault(verb="disks", begin=_slow, end=_heal_disk, single=False),
    **{
        kind: RealFault(verb="administration", begin=_ask, end=_over, single=False, of_broker=False)
        for kind in KINDS
    },
}


def kinds_for(can: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of fault that a system with these verbs can carry out, and those that it cannot.

    Parameters:
      can: verbs, as `Inside.can` has them.
    Returns: both, by name.
    """
    able = tuple(name for name, kind in REAL_FAULTS.items() if kind.verb in can)
    return able, tuple(name for name in REAL_FAULTS if name not in able)
