"""Faults of real systems: which verbs of the one interface (systems/system.py) each kind consists of.

Owns the table. Must not know when a fault begins, or whom it hits. The kinds are those of the simulator
(campaign/faults/table.py), with the same names and parameters; a system that lacks a verb leaves the kinds
out that need it.
"""

from collections.abc import Callable, Mapping

from attrs import frozen

from fencepost.campaign.faults.links import name_of
from fencepost.systems.system import Pair, System
from fencepost.traces.plan import Fault

Begin = Callable[[System, Fault, int, "int | None"], None]
End = Callable[[System, Fault, int], None]


@frozen(kw_only=True)
class RealFault:
    """A kind of fault."""

    verbs: frozenset[str]
    """What the system must be able to do."""
    begin: Begin
    """Called with the system, the fault, the broker that it hits and the other one (None: all others)."""
    end: End
    """Called when its time is over, and again when the cluster is healed."""
    down: bool = False
    """Whether the broker's process ends: `end` is called until it runs again."""
    by_parameter: bool = False
    """Whether the parameter, in milliseconds, is the time from the process's end to its start; otherwise the
    duration is."""
    single: bool = True
    """Whether it makes no sense while another fault holds the same broker."""


def _kill(system: System, fault: Fault, node: int, other: int | None) -> None:
    system.kill(node)


def _stop(system: System, fault: Fault, node: int, other: int | None) -> None:
    system.stop(node)


def _power_off(system: System, fault: Fault, node: int, other: int | None) -> None:
    system.power_off(node)


def _pause(system: System, fault: Fault, node: int, other: int | None) -> None:
    system.pause(node)


def _resume(system: System, fault: Fault, node: int) -> None:
    system.resume(node)


def _restart(system: System, fault: Fault, node: int) -> None:
    system.restart(node)


def links_of(brokers: tuple[int, ...], fault: Fault, node: int, other: int | None) -> list[Pair]:
    """Between the target and the other one, or all others.

    Parameters:
      brokers: all ids.
      fault: its parameter says 0 both ways, 1 what the target sends, 2 what it receives.
      node: the target.
      other: the other broker; None: all.
    Returns: directed links.
    """
    others = [broker for broker in brokers if broker != node] if other is None else [other]
    sent = [(node, broker) for broker in others] if fault.parameter != 2 else []
    received = [(broker, node) for broker in others] if fault.parameter != 1 else []
    return sent + received


def _cut(system: System, fault: Fault, node: int, other: int | None) -> None:
    system.cut(name_of(fault), links_of(system.brokers, fault, node, other))


def _heal(system: System, fault: Fault, node: int) -> None:
    system.heal(name_of(fault))


REAL_FAULTS: Mapping[str, RealFault] = {
    "bounce": RealFault(verbs=frozenset({"kill"}), begin=_kill, end=_restart, down=True, by_parameter=True),
    "clean_restart": RealFault(
        verbs=frozenset({"stop"}), begin=_stop, end=_restart, down=True, by_parameter=True
    ),
    "crash": RealFault(verbs=frozenset({"kill"}), begin=_kill, end=_restart, down=True),
    "partition": RealFault(verbs=frozenset({"cut"}), begin=_cut, end=_heal, single=False),
    "pause": RealFault(verbs=frozenset({"pause"}), begin=_pause, end=_resume),
    "power_loss": RealFault(verbs=frozenset({"power_off"}), begin=_power_off, end=_restart, down=True),
}


def kinds_for(can: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of fault that a system with these verbs can carry out, and those that it cannot.

    Parameters:
      can: verbs, as `Inside.can` has them.
    Returns: both, by name.
    """
    able = tuple(name for name, kind in REAL_FAULTS.items() if kind.verbs <= can)
    return able, tuple(name for name in REAL_FAULTS if name not in able)
