"""The state of the controller model: compact tuples, and the words to read them.

Owns: the layout of states, constants, renaming, description. Must not know actions or invariants.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from attrs import field, frozen

from fencepost.model.explore.system import Value
from fencepost.traces.errors import FencepostError
from fencepost.traces.protections import BY_NAME

CONTROL_PLANE = frozenset(
    {
        "fenced_zookeeper_write",
        "controller_epoch_fencing",
        "leader_epoch_fencing",
        "broker_epoch_fencing",
        "keep_last_isr_member",
        "epoch_read_in_election_only",
        "re_elect",
    }
)
"""The registered protections (traces/protections.py) that this model can drop."""

NONE = -1
"""No broker, no registration, no epoch."""


class Host(NamedTuple):
    """A broker's process. running; incarnation: the broker epoch that it registered with last; born: the one of the process's start (NONE: not running)."""

    running: bool
    incarnation: int
    born: int


class Partition(NamedTuple):
    """ZooKeeper's state of the partition. controller_epoch: of the controller that elected; version: the znode's; stamp: registrations until the write, so that
    a broker that registered with a larger number did so later (czxid above mzxid)."""

    leader: int
    leader_epoch: int
    isr: int
    controller_epoch: int
    version: int
    stamp: int


class Context(NamedTuple):
    """What a controller has read: the partition's state, and of each broker its registration."""

    partition: Partition
    live: tuple[int, ...]


class Control(NamedTuple):
    """A broker as a controller. epoch: the controller epoch that it believes to hold, or NONE; context: of one that has loaded, else ()."""

    epoch: int
    context: Context | tuple[()]


class Replica(NamedTuple):
    """What a broker has been told. obeyed: the highest controller epoch; leader_epoch, leader, version: of the last LeaderAndIsr that it applied."""

    obeyed: int
    leader_epoch: int
    leader: int
    version: int


class Batch(NamedTuple):
    """A LeaderAndIsr to each broker that the controller believes to be alive. live: of each broker the incarnation that its request is meant for, or NONE. The
    ISR in it is the one that ZooKeeper held at this version."""

    controller_epoch: int
    leader_epoch: int
    leader: int
    version: int
    live: tuple[int, ...]


class Membership(NamedTuple):
    """ZooKeeper's /controller, /controller_epoch, each broker's registration (its incarnation, or NONE), and registrations so far after the first ones."""

    controller: int
    epoch: int
    registrations: tuple[int, ...]
    registered: int


Sent = tuple[Batch, ...]
"""Every batch that was ever sent, in order of their values: late, reordered, repeated or never, each of its requests may arrive."""

Led = tuple[tuple[int, int, int], ...]
"""A ghost: (leader epoch, broker, its process) of everybody who ever led."""


class State(NamedTuple):
    """By broker; ZooKeeper's; on the way; the ghost; and crashes so far."""

    hosts: tuple[Host, ...]
    controls: tuple[Control, ...]
    replicas: tuple[Replica, ...]
    membership: Membership
    partition: Partition
    sent: Sent
    led: Led
    crashes: int


def _known_protections(names: Iterable[str]) -> frozenset[str]:
    """`names` as a set, or the caller's mistake in one sentence."""
    drop = frozenset(names)
    unknown = sorted(drop - CONTROL_PLANE)
    if unknown:
        raise FencepostError(
            expected="names of protections of the control plane",
            seen=", ".join(name if name in BY_NAME else f"{name} (not registered)" for name in unknown),
            where="drop",
            hint=", ".join(sorted(CONTROL_PLANE)),
        )
    return drop


@frozen(kw_only=True)
class Constants:
    """The bounds of the model. brokers, each with a replica; epochs: highest controller epoch, so elections; sessions: that expire; writes: of the
    partition's state, by controllers and leaders together, so the highest zkVersion; crashes: of all brokers together. drop: protections to do
    without, by registered name.
    """

    brokers: int = 2
    epochs: int = 2
    sessions: int = 1
    writes: int = 2
    crashes: int = 0
    drop: frozenset[str] = field(default=(), converter=_known_protections)

    def keeps(self, protection: str) -> bool:
        """Whether it is not dropped."""
        return protection not in self.drop


def members(brokers: int, count: int) -> list[int]:
    """The brokers of a bit set."""
    return [broker for broker in range(count) if brokers >> broker & 1]


def renamed(numbers: Sequence[int], slot: int, value: Any) -> Value:
    """What the value of a slot becomes when broker b is called numbers[b]."""
    count = len(numbers)

    def name(broker: int) -> int:
        return numbers[broker] if broker >= 0 else broker

    def places(values: Sequence[int]) -> tuple[int, ...]:
        moved = list(values)
        for broker, what in enumerate(values):
            moved[numbers[broker]] = what
        return tuple(moved)

    def state(partition: Partition) -> Partition:
        isr = sum(1 << numbers[broker] for broker in members(partition.isr, count))
        return partition._replace(leader=name(partition.leader), isr=isr)

    if slot < count:
        return value  # type: ignore[no-any-return]
    if slot < 2 * count:
        if value.context:
            context = Context(state(value.context.partition), places(value.context.live))
            return Control(value.epoch, context)
        return value  # type: ignore[no-any-return]
    if slot < 3 * count:
        return value._replace(leader=name(value.leader))  # type: ignore[no-any-return]
    if slot == 3 * count:
        registrations = places(value.registrations)
        return value._replace(controller=name(value.controller), registrations=registrations)  # type: ignore[no-any-return]
    if slot == 3 * count + 1:
        return state(value)
    if slot == 3 * count + 2:
        return tuple(
            sorted(batch._replace(leader=name(batch.leader), live=places(batch.live)) for batch in value)
        )
    if slot == 3 * count + 3:
        return tuple(sorted((epoch, name(broker), born) for epoch, broker, born in value))
    return value  # type: ignore[no-any-return]


def describe(state: State) -> str:
    """ZooKeeper on two lines, each broker on one."""
    membership, count = state.membership, len(state.hosts)
    who = membership.controller
    lines = [
        f"ZooKeeper: {f'controller {who}' if who >= 0 else 'no controller'}, controller epoch {membership.epoch}, "
        f"registered {[broker for broker in range(count) if membership.registrations[broker] >= 0]}",
        f"partition: {_partition(state.partition, count)}",
    ]
    for broker, host in enumerate(state.hosts):
        if not host.running:
            lines.append(f"{broker}: down")
            continue
        replica, control = state.replicas[broker], state.controls[broker]
        alive = membership.registrations[broker] == host.incarnation
        words = [f"incarnation {host.incarnation}" if alive else f"zombie of incarnation {host.incarnation}"]
        role = "leads" if replica.leader == broker else f"follows {replica.leader} in"
        words.append(f"{role} epoch {replica.leader_epoch}" if replica.leader_epoch >= 0 else "no role")
        words.append(f"obeys controller epoch {replica.obeyed}")
        if control.epoch >= 0:
            known = f"knows {_partition(control.context.partition, count)}" if control.context else "loading"
            words.append(f"controller in epoch {control.epoch}, {known}")
        lines.append(f"{broker}: {', '.join(words)}")
    return "\n".join(lines)


def _partition(partition: Partition, count: int) -> str:
    leader = f"leader {partition.leader}" if partition.leader >= 0 else "no leader"
    isr = members(partition.isr, count)
    return f"{leader}, leader epoch {partition.leader_epoch}, ISR {isr}, version {partition.version}"
