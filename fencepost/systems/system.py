"""The one interface of a system under test: a cluster of brokers that can be started, broken, healed and
inspected.

Owns the verbs. Must not know who carries them out: each system is a file of this folder (embedded.py: the
simulated world, paced by the wall clock).

Every call may come from any thread, and returns when the system has done it; the brokers' reactions
show later. A call that the system cannot carry out raises `UnsupportedError` with a sentence, and changes
nothing. What it can carry out is in `inside().can`, which may be asked before it is started.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from attrs import frozen

from fencepost.sim.disk_faults import DiskCall
from fencepost.sim.disk_logs import LogOnDisk
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import ClusterOptions, Plan
from fencepost.traces.plan_json import plan_to_json

if TYPE_CHECKING:
    from fencepost.proxy.faults import RequestFault, Struck  # needs the extra kafka; other systems do not

Pair = tuple[int, int]
"""A directed link between two brokers: source, target."""


PROCESS_VERBS = frozenset({"kill", "pause", "stop"})
"""What every system can do to a broker, in addition to bringing it back."""


class UnsupportedError(FencepostError, NotImplementedError):
    """The system cannot do what it was asked for."""


@frozen(kw_only=True)
class Inside:
    """What a system consists of, for reports and for choosing what to break."""

    # The name and version of the brokers' software.
    software: str
    # Whether each broker is an operating-system process.
    real_processes: bool
    # Whether the brokers' files are files of the operating system.
    real_files: bool
    # Verbs of the interface that it carries out: kill, pause, stop, cut, power_off; `administration` if it
    # takes the requests of operators (elections, reassignments) over the wire; `transactions` if it has them;
    # `links` if `links_of_system` has them, `disks` if `disks_of_system` does, `requests` if
    # `requests_of_system` does.
    can: frozenset[str] = PROCESS_VERBS
    # What bounds follow from, as a plan's fields `cluster` and `real` have it (record/settings.py); None: it
    # is not known.
    settings: Mapping[str, Mapping[str, Any]] | None = None


START_MS, SLACK_MS = 20_000, 1_000
"""Of a process of ours on a busy machine; and what scheduling adds to each step."""


def settings_of(options: ClusterOptions) -> dict[str, dict[str, Any]]:
    """The settings. options: of its brokers."""
    plan = msgspec.json.decode(plan_to_json(Plan(seed=0, cluster=options)))
    return {"cluster": plan["cluster"], "real": {"start_ms": START_MS, "slack_ms": SLACK_MS}}


class Links(Protocol):
    """Connections that can be broken in more ways than between brokers. What begins here ends with
    `System.heal(name)`."""

    def cut_clients(self, name: str, broker: int, parameter: int) -> None:
        """The broker and all clients do not reach each other. name: of the cut; parameter: 0 both ways, 1
        only what clients send is lost, 2 only what they receive."""
        ...

    def cut_controllers(self, name: str, broker: int) -> None:
        """The broker and all controllers, or ZooKeeper, do not reach each other. name: of the cut."""
        ...

    def delay(self, name: str, pairs: Iterable[Pair], milliseconds: int) -> None:
        """What is sent over these directed links takes longer by so much. name: of the delay."""
        ...

    def delay_clients(self, name: str, broker: int, milliseconds: int) -> None:
        """What clients send to the broker until the heal takes longer by so much; it arrives that late also
        after the heal, and after its connection was closed. name: of the delay."""
        ...


class Requests(Protocol):
    """Requests of clients that can be broken one by one."""

    def break_requests(self, name: str, fault: "RequestFault") -> None:
        """From now on the fault may strike.

        Args:
            name: of the fault.
            fault: which requests it hits, and what happens to them.
        """
        ...

    def heal_requests(self, name: str) -> None:
        """The fault of this name strikes no more; what is held still arrives."""
        ...

    def hits(self) -> "tuple[Struck, ...]":
        """What was hit since the last call; times are nanoseconds of the wall clock."""
        ...


@frozen(kw_only=True)
class PowerLost:
    """A broker's host lost power."""

    # Nanoseconds of the wall clock.
    time: int
    broker: int
    # What its disk surely held.
    logs: tuple[LogOnDisk, ...]


class FaultyDisks(Protocol):
    """Disks that do not only lose power. broker: the one with the disk."""

    def lie(self, broker: int, below: str = "") -> None:
        """Syncs return and make nothing durable. below: only of this folder, such as `t-0`."""
        ...

    def fail(
        self, broker: int, call: DiskCall, *, nth: int = 1, times: int | None = 1, below: str = ""
    ) -> None:
        """EIO for the `nth` call of this kind from now and the `times` - 1 after it (None: all)."""
        ...

    def fill(self, broker: int, room_bytes: int = 0) -> None:
        """The disk is full once room_bytes more are written."""
        ...

    def slow(self, broker: int, milliseconds: int) -> None:
        """Each sync takes longer by so many milliseconds."""
        ...

    def write_back(self) -> None:
        """What a kernel does by itself within 30 seconds: all is durable."""
        ...

    def heal(self, broker: int | None = None) -> None:
        """End the faults of one disk or of all; their effects stay."""
        ...

    def power_losses(self) -> Sequence[PowerLost]:
        """Every power loss so far, in order."""
        ...


class System(Protocol):
    """A cluster under test. What a system cannot do is left to the methods here, which refuse; what it has no
    use for does nothing."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of all brokers, whether they run or not."""
        ...

    def start(self) -> None:
        """Start everything; returns once the cluster is healthy. Raises EnvironmentError_ where it does not
        get there within its bound."""
        ...

    def close(self) -> None:
        """End everything, and leave no thread, process or port. Closing again does nothing."""
        return

    def healthy(self) -> bool:
        """Whether every broker is registered, there is a controller, and every partition has a live leader
        and a full ISR."""
        ...

    def bootstrap_servers(self) -> str:
        """Addresses for Kafka's clients, as their setting bootstrap.servers wants them."""
        ...

    # ---- brokers

    def kill(self, broker: int) -> None:
        """End its process at once (SIGKILL); its files stay as written. Nothing happens if it is down."""
        raise self.cannot("a process for each broker")

    def pause(self, broker: int) -> None:
        """Suspend the broker's process (SIGSTOP). Nothing happens if it is down."""
        raise self.cannot("a process for each broker")

    def resume(self, broker: int) -> None:
        """Resume the broker's process. Nothing happens if it is not paused."""
        return

    def stop(self, broker: int) -> None:
        """Ask it to stop (SIGTERM): controlled shutdown, logs closed whole. Returns at once; it is down a
        little later."""
        raise self.cannot("a process for each broker")

    def restart(self, broker: int) -> None:
        """Start the process of a broker that is down, on the files that are there. Nothing happens if it
        runs."""
        ...

    def runs(self, broker: int) -> bool:
        """Whether its process is there, paused or not."""
        ...

    def power_off(self, broker: int) -> None:
        """Its host loses power: the process ends, and what its disk had not synced is lost. `restart` brings
        it back."""
        raise self.cannot("a system that can lose power")

    # ---- links

    def cut(self, name: str, pairs: Iterable[Pair]) -> None:
        """Nothing gets over these directed links until `heal(name)`."""
        raise self.cannot("a system with links that can be cut")

    def heal(self, name: str) -> None:
        """End the cut or delay of this name. Nothing happens if there is none."""
        return

    # ---- to look at

    def directories(self) -> Mapping[int, Path]:
        """Where each broker's log directory is in the file system of this machine; empty where there are no
        real files."""
        return MappingProxyType({})

    def logs(self) -> Mapping[str, Path]:
        """What its processes wrote about themselves: the file by a name that tells whose it is. Files may be
        absent; empty where nothing is written."""
        return MappingProxyType({})

    def processes_now(self) -> Mapping[int, int]:
        """The process of each broker that is one on this machine, by its number; under -1 that of whoever all
        of them need, such as ZooKeeper."""
        return MappingProxyType({})

    def inside(self) -> Inside:
        """What the system consists of."""
        ...

    def cannot(self, expected: str, seen: str = "") -> UnsupportedError:
        """What to raise. expected: what it would take; seen: what there is instead, if not the system."""
        return UnsupportedError(expected=expected, seen=seen or self.inside().software, where=repr(self))


def links_of_system(system: System) -> Links:
    """The links of a system that has `links` among its verbs. Raises UnsupportedError for another."""
    found: Links | None = getattr(system, "network", None)
    if found is None:
        raise UnsupportedError(
            expected="a system with links that can be cut", seen=repr(system), where="links"
        )
    return found


def disks_of_system(system: System) -> FaultyDisks:
    """The disks of a system that has `disks` among its verbs. Raises UnsupportedError for another."""
    found: FaultyDisks | None = getattr(system, "disks", None)
    if found is None:
        raise UnsupportedError(expected="a system with disks of ours", seen=repr(system), where="disks")
    return found


def requests_of_system(system: System) -> Requests:
    """The requests of a system that has `requests` among its verbs. Raises UnsupportedError for another."""
    found: Requests | None = getattr(system, "requests", None)
    if found is None:
        raise UnsupportedError(
            expected="a system whose clients come in through a proxy", seen=repr(system), where="requests"
        )
    return found
