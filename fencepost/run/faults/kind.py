"""What a kind of fault is: a row of the tables in table.py and administration.py.

Owns the shape of a row, and what a fault may act on. Must not know any kind.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from attrs import frozen

from fencepost.record.observed_state import ObservedState
from fencepost.sim.world import World
from fencepost.traces.plan import Fault, Plan, TopicOptions

NOTHING = (0, 0)


class Breakable(Protocol):
    """What a fault acts on."""

    plan: Plan
    world: World
    observed_state: ObservedState
    broker_ids: tuple[int, ...]

    def client_nodes(self) -> list[int]:
        """Nodes of all clients, of those too that begin later."""
        ...

    def restart_later(self, node: int, delay_ms: int) -> None:
        """Start the host's process after a while, if it is down then.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds until the start.
        """
        ...

    def arm_power_loss(self, fault: Fault, node: int) -> None:
        """Let the power fail at one of the host's next file calls; the restart follows by itself.

        Args:
            fault: `parameter` is the number of the call, 0 is at once.
            node: the host's number.
        """
        ...

    def stop_cleanly(self, node: int, delay_ms: int) -> None:
        """Ask the process to stop, and start it again later.

        Args:
            node: the host's number.
            delay_ms: virtual milliseconds between its end and its start.
        """
        ...

    def rot(self, node: int, choice: int) -> None:
        """Turn over one bit under a checksum of the last segment of one of the host's logs.

        Args:
            node: the host's number.
            choice: which log and which bit, modulo what there is.
        """
        ...

    def disk_healed(self, node: int) -> None:
        """The disk works again: a process that halted because of it is started."""
        ...

    def create_new(self, topic: TopicOptions, replicas: dict[int, tuple[int, ...]]) -> str:
        """Write the assignment of a new topic; why not, if its name is taken."""
        ...


Begin = Callable[[Breakable, Fault, int, "int | None"], None]
End = Callable[[Breakable, Fault, int], None]
Ask = Callable[[Breakable, Fault], str]
"""Makes a request; answers why it could not be made, "" if it was."""


def begin_nothing(cluster: Breakable, fault: Fault, node: int, other: int | None) -> None:
    """A request hits no broker, so that nothing begins.

    Args:
        cluster: not used.
        fault: not used.
        node: not used.
        other: not used.
    """


def end_nothing(cluster: Breakable, fault: Fault, node: int) -> None:
    """The fault ends by itself.

    Args:
        cluster: not used.
        fault: not used.
        node: not used.
    """


class Reach(Enum):
    """Which brokers a fault may keep from replicating, or from their sessions with ZooKeeper."""

    TARGET = "the target"
    LINKS = "the target and the other broker, or all others"
    EVERYBODY = "all brokers"
    NOBODY = "none: only clients notice, or a later fault"


@frozen(kw_only=True)
class FaultKind:
    """A kind of fault: what it does, what it may cost, which target and parameter it has."""

    # Its description in --help and docs/reference/plans.md.
    says: str
    begin: Begin = begin_nothing
    end: End = end_nothing
    # An operator's request (administration.py): it hits no broker and lasts no time.
    ask: Ask | None = None
    # Whether the broker is down during the fault.
    stops: bool = False
    # Whether data that was not synced may be lost.
    loses: bool = False
    # Whether synced data may be lost.
    rots: bool = False
    # Whether a later power loss may take synced data.
    lies: bool = False
    # Whether it is a fault of the disk: a host has one at a time.
    disk: bool = False
    # Whether a host, or the cluster, has one of this kind at a time.
    single: bool = False
    # Whether it needs a broker that runs.
    needs_up: bool = True
    # Whether it needs a ZooKeeper that runs.
    asks_zookeeper: bool = False
    # Bounds of the parameter that the swarm draws; parameter_says: what it means.
    parameter: tuple[int, int] = NOTHING
    parameter_says: str = "not used"
    # What its target names, "broker", "partition" or "topic"; "cluster": everybody is hit, and the target
    # names nothing.
    on: str = "broker"
    # Of whom the budget says that nobody can rely on them meanwhile (keeping.py).
    reach: Reach = Reach.TARGET
