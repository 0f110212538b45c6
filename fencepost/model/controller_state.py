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
        "reset_on_resign",
        "stop_replica_fencing",
        "assigned_replicas_only",
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
    """What a controller has read: the partition's state, each broker's registration, the assignment, the target of a reassignment (empty: none).

    step: of this reign's work on the reassignment: 0 not begun, 1 its replicas are told, 2 the old replicas are told to stop.
    """

    partition: Partition
    live: tuple[int, ...]
    assignment: int
    target: int
    step: int


class Control(NamedTuple):
    """A broker as a controller. epoch: the controller epoch that it believes to hold, or NONE; context: of one that has loaded, else (). kept: the target that
    survived a resignation, which reset_on_resign forbids."""

    epoch: int
    context: Context | tuple[()]
    kept: int


class Replica(NamedTuple):
    """What a broker has been told. obeyed: the highest controller epoch; leader_epoch, leader, version, replicas (the assignment): of the last request that it
    applied; leader NONE: it was told to stop, or nothing; stored: whether it has a log."""

    obeyed: int
    leader_epoch: int
    leader: int
    version: int
    replicas: int
    stored: bool


class Batch(NamedTuple):
    """A LeaderAndIsr to each live replica, or a StopReplica that deletes (replicas empty). live: of each broker the incarnation that its request is meant
    for, or NONE. The ISR in it is the one that ZooKeeper held at this version."""

    controller_epoch: int
    leader_epoch: int
    leader: int
    version: int
    replicas: int
    live: tuple[int, ...]


class Admin(NamedTuple):
    """ZooKeeper's assignment and reassignment. target: the entry of /admin/reassign_partitions, or empty; asked: reassignments so far. completed is a ghost:
    the assignment that the last completed reassignment asked for."""

    assignment: int
    target: int
    completed: int
    asked: int


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
    """By broker; ZooKeeper's; on the way; the ghost; crashes so far; ZooKeeper's assignment."""

    hosts: tuple[Host, ...]
    controls: tuple[Control, ...]
    replicas: tuple[Replica, ...]
    membership: Membership
    partition: Partition
    sent: Sent
    led: Led
    crashes: int
    admin: Admin


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
    """The bounds of the model. brokers; epochs: highest controller epoch, so elections; sessions: that expire; writes: of the partition's state, by controllers
    and leaders together, so the highest zkVersion; crashes: of all brokers together; spare: brokers without a replica at the beginning;
    reassignments: asked for. drop: protections to do without, by registered name.
    """

    brokers: int = 2
    epochs: int = 2
    sessions: int = 1
    writes: int = 2
    crashes: int = 0
    spare: int = 0
    reassignments: int = 0
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

    def some(brokers: int) -> int:
        return sum(1 << numbers[broker] for broker in members(brokers, count))

    def state(partition: Partition) -> Partition:
        return partition._replace(leader=name(partition.leader), isr=some(partition.isr))

    def control(value: Control) -> Control:
        known = value.context and value.context._replace(
            partition=state(value.context.partition),
            live=places(value.context.live),
            assignment=some(value.context.assignment),
            target=some(value.context.target),
        )
        return Control(value.epoch, known, some(value.kept))

    def told(batch: Any) -> Any:
        return batch._replace(leader=name(batch.leader), replicas=some(batch.replicas))

    if slot < 3 * count:
        return (value, control, told)[slot // count](value) if slot >= count else value
    membership, zookeeper, sent, led, crashes, _ = range(3 * count, 3 * count + 6)
    if slot == membership:
        registrations = places(value.registrations)
        return value._replace(controller=name(value.controller), registrations=registrations)  # type: ignore[no-any-return]
    if slot == zookeeper:
        return state(value)
    if slot == sent:
        return tuple(sorted(told(batch)._replace(live=places(batch.live)) for batch in value))
    if slot == led:
        return tuple(sorted((epoch, name(broker), born) for epoch, broker, born in value))
    if slot == crashes:
        return value  # type: ignore[no-any-return]
    return Admin(some(value.assignment), some(value.target), some(value.completed), value.asked)


def describe(state: State) -> str:
    """ZooKeeper on two or three lines, each broker on one."""
    membership, count = state.membership, len(state.hosts)
    who = membership.controller
    lines = [
        f"ZooKeeper: {f'controller {who}' if who >= 0 else 'no controller'}, controller epoch {membership.epoch}, "
        f"registered {[broker for broker in range(count) if membership.registrations[broker] >= 0]}",
        f"partition: {_partition(state.partition, count)}",
    ]
    if state.admin.asked:
        target = f", to become {members(state.admin.target, count)}" if state.admin.target else ""
        lines.append(f"assignment: {members(state.admin.assignment, count)}{target}")
    for broker, host in enumerate(state.hosts):
        if not host.running:
            lines.append(f"{broker}: down")
            continue
        replica, control = state.replicas[broker], state.controls[broker]
        alive = membership.registrations[broker] == host.incarnation
        words = [f"incarnation {host.incarnation}" if alive else f"zombie of incarnation {host.incarnation}"]
        role = "leads" if replica.leader == broker else f"follows {replica.leader} in"
        words.append(f"{role} epoch {replica.leader_epoch}" if replica.leader != NONE else "no role")
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
