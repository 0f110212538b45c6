"""The state of the controller model: compact tuples.

Owns: the layout of states, constants, renaming. Must not know actions or invariants.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from attrs import field, frozen

from fencepost.model.explore.system import Value
from fencepost.traces.errors import FencepostError
from fencepost.traces.names import did_you_mean
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
        "resume_deletions",
        "offline_without_state",
        "last_in_sync_stays",
        "staying_isr_members_only",
        "shutdown_fencing",
        "names_me",
        "accept_own_isr_write",
        "resend_until_answered",
    }
)
"""The registered protections (traces/protections.py) that this model can drop."""

NONE = -1
"""No broker, no registration, no epoch."""


class Host(NamedTuple):
    """A broker's process. running; incarnation: the broker epoch that it registered with last; born: the one
    of the process's start (NONE: not running)."""

    running: bool
    incarnation: int
    born: int


class Partition(NamedTuple):
    """ZooKeeper's state of the partition; all fields NONE or empty once it was deleted. controller_epoch: of
    the controller that elected; version: the znode's; stamp: registrations until the write, so that a broker
    that registered with a larger number did so later (czxid above mzxid)."""

    leader: int
    leader_epoch: int
    isr: int
    controller_epoch: int
    version: int
    stamp: int


NO_PARTITION = Partition(NONE, NONE, 0, NONE, NONE, NONE)

UNDER_WAY, OVERLOOKED = 1, 2
"""Of a deletion, in a controller's context: it is at it; or it has not looked (only without
resume_deletions)."""

OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE = range(4)
PHASES = ("Offline", "DeletionStarted", "DeletionSuccessful", "DeletionIneligible")
"""Kafka's states of a replica that is being deleted, in the order of the numbers."""


class Context(NamedTuple):
    """What a controller has read: the partition's state, each broker's registration, the assignment, the
    target of a reassignment (empty: none).

    step: of this reign's work on the reassignment: 0 not begun, 1 its replicas are told, 2 the state is the
    target's, 3 the old replicas are told to stop. deletion: 0 none is known, UNDER_WAY or OVERLOOKED; phases:
    of each broker's replica in it. leaving: of each broker the incarnation that asked to stop, or NONE; out:
    those of them that this controller took out of the ISR.
    """

    partition: Partition
    live: tuple[int, ...]
    assignment: int
    target: int
    step: int
    deletion: int
    phases: tuple[int, ...]
    leaving: tuple[int, ...]
    out: int


class Control(NamedTuple):
    """A broker as a controller. epoch: the controller epoch that it believes to hold, or NONE; context: of
    one that has loaded, else (). kept: the target that survived a resignation, which reset_on_resign
    forbids."""

    epoch: int
    context: Context | tuple[()]
    kept: int


class Replica(NamedTuple):
    """What a broker has been told. obeyed: the highest controller epoch; leader_epoch, leader, version,
    replicas (the assignment): of the last request that it applied; leader NONE: it was told to stop, or
    nothing; stored: whether it has a log; leaving: whom it was told to be stopping."""

    obeyed: int
    leader_epoch: int
    leader: int
    version: int
    replicas: int
    stored: bool
    leaving: int = 0


class RequestBatch(NamedTuple):
    """A LeaderAndIsr to each live replica, or a StopReplica that deletes (replicas empty). live: of each
    broker the incarnation that its request is meant for, or NONE. The ISR in it is the one that ZooKeeper
    held at this version. leaving: who is stopping (the UpdateMetadata that goes with it)."""

    controller_epoch: int
    leader_epoch: int
    leader: int
    version: int
    replicas: int
    live: tuple[int, ...]
    leaving: int = 0


class Admin(NamedTuple):
    """ZooKeeper's assignment (empty: the topic's node is gone) and what admins want. target: the entry of
    /admin/reassign_partitions, or empty; asked: reassignments so far; deleting: whether the topic stands in
    /admin/delete_topics. completed is a ghost: the assignment that the last completed reassignment asked
    for."""

    assignment: int
    target: int
    completed: int
    asked: int
    deleting: bool = False


class Membership(NamedTuple):
    """ZooKeeper's /controller, /controller_epoch, each broker's registration (its incarnation, or NONE),
    registrations so far after the first ones, and writes so far whose reply was lost, and requests that
    were."""

    controller: int
    epoch: int
    registrations: tuple[int, ...]
    registered: int
    unheard: int = 0


Sent = tuple[RequestBatch, ...]
"""Every batch that was ever sent, in order of their values: late, reordered, repeated or never, each of its
requests may arrive."""

Led = tuple[tuple[int, int, int], ...]
"""A ghost: (leader epoch, broker, its process) of everybody who ever led."""


Stopping = tuple[tuple[int, int], ...]
"""(broker, its incarnation) of every ControlledShutdown request that was ever sent: late, twice or never it
may arrive."""


class ControllerState(NamedTuple):
    """By broker; ZooKeeper's; on the way; the ghost; crashes so far; ZooKeeper's assignment; who asked to
    stop."""

    hosts: tuple[Host, ...]
    controls: tuple[Control, ...]
    replicas: tuple[Replica, ...]
    membership: Membership
    partition: Partition
    sent: Sent
    led: Led
    crashes: int
    admin: Admin
    stopping: Stopping


def _known_protections(names: Iterable[str]) -> frozenset[str]:
    """`names` as a set, or the caller's mistake in one sentence."""
    drop = frozenset(names)
    unknown = sorted(drop - CONTROL_PLANE)
    if unknown:
        raise FencepostError(
            expected="names of protections of the control plane",
            seen=", ".join(
                name if name in BY_NAME else f"{name} (not registered){did_you_mean(name, CONTROL_PLANE)}"
                for name in unknown
            ),
            where="drop",
            hint=", ".join(sorted(CONTROL_PLANE)),
        )
    return drop


@frozen(kw_only=True)
class Constants:
    """The bounds of the model. brokers; epochs: highest controller epoch, so elections; sessions: that
    expire; writes: of the partition's state, by controllers and leaders together, so the highest zkVersion;
    crashes: of all brokers together; spare: brokers without a replica at the beginning; reassignments: asked
    for; deletions: 1 if the topic may be deleted; shutdowns: ControlledShutdown requests, of all brokers
    together; unheard: writes that are done and whose reply is lost, of elections and of a smaller ISR;
    without resend_until_answered also LeaderAndIsr that is lost. drop: protections to do without, by
    registered name.
    """

    brokers: int = 2
    epochs: int = 2
    sessions: int = 1
    writes: int = 2
    crashes: int = 0
    spare: int = 0
    reassignments: int = 0
    deletions: int = 0
    shutdowns: int = 0
    unheard: int = 0
    drop: frozenset[str] = field(default=(), converter=_known_protections)

    def __attrs_post_init__(self) -> None:
        if self.deletions not in (0, 1):
            raise FencepostError(
                expected="0 or 1: a topic goes once", seen=str(self.deletions), where="deletions"
            )

    def keeps(self, protection: str) -> bool:
        """Whether it is not dropped."""
        return protection not in self.drop

    @property
    def for_good(self) -> int:
        """In the StopReplica of a deletion: later than every leader epoch, so that no earlier request brings
        the replica back (EpochDuringDelete)."""
        return self.writes + 1


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
            phases=places(value.context.phases),
            leaving=places(value.context.leaving),
            out=some(value.context.out),
        )
        return Control(value.epoch, known, some(value.kept))

    def told(batch: Any) -> Any:
        return batch._replace(
            leader=name(batch.leader), replicas=some(batch.replicas), leaving=some(batch.leaving)
        )

    if slot < 3 * count:
        return (value, control, told)[slot // count](value) if slot >= count else value
    membership, zookeeper, sent, led, crashes, admin, _ = range(3 * count, 3 * count + 7)
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
    if slot == admin:
        return value._replace(  # type: ignore[no-any-return]
            assignment=some(value.assignment), target=some(value.target), completed=some(value.completed)
        )
    return tuple(sorted((name(broker), incarnation) for broker, incarnation in value))
