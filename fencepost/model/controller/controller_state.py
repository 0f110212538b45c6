"""The state of the controller model: compact tuples.

Owns the layout of states, constants, renaming. Must not know actions or invariants.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from attrs import frozen

from fencepost.model.dropped import Bounds
from fencepost.model.explore.transition_system import Value
from fencepost.traces.errors import FencepostError

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
"""The registered protections (traces/protections) that this model can drop."""

NONE = -1
"""No broker, no registration, no epoch."""


class Host(NamedTuple):
    """A broker's process."""

    # Whether it runs.
    running: bool
    # The broker epoch of its last registration.
    incarnation: int
    # The broker epoch at the process's start (NONE: not running).
    born: int


class Partition(NamedTuple):
    """ZooKeeper's state of the partition; all fields are NONE or empty after its deletion."""

    # The leader; NONE if there is none.
    leader: int
    # The leader epoch.
    leader_epoch: int
    # The in-sync replicas as a bit set.
    isr: int
    # The epoch of the controller that elected.
    controller_epoch: int
    # The version of the node.
    version: int
    # Registrations until the write. A broker that registered with a larger number did so later (czxid above
    # mzxid).
    stamp: int


NO_PARTITION = Partition(NONE, NONE, 0, NONE, NONE, NONE)

UNDER_WAY, OVERLOOKED = 1, 2
"""A deletion in a controller's context: it works on it; or it has not looked (only without
resume_deletions)."""

OFFLINE, STARTED, SUCCESSFUL, INELIGIBLE = range(4)
PHASES = ("Offline", "DeletionStarted", "DeletionSuccessful", "DeletionIneligible")
"""Kafka's states of a replica that is being deleted, in the order of the numbers."""


class Context(NamedTuple):
    """What a controller has read."""

    # The partition's state.
    partition: Partition
    # Each broker's registration, or NONE.
    live: tuple[int, ...]
    # The assigned replicas as a bit set.
    assignment: int
    # The target of a reassignment; empty: none.
    target: int
    # This reign's work on the reassignment: 0 not begun, 1 its replicas got requests, 2 the state is the
    # target's, 3 the old replicas got StopReplica.
    step: int
    # 0: none is known; UNDER_WAY or OVERLOOKED.
    deletion: int
    # The state of each broker's replica in the deletion.
    phases: tuple[int, ...]
    # For each broker the incarnation that asked to stop, or NONE.
    leaving: tuple[int, ...]
    # Those of the stopping brokers that this controller removed from the ISR.
    out: int


class Control(NamedTuple):
    """A broker as a controller."""

    # The controller epoch that it believes to have, or NONE.
    epoch: int
    # What it has loaded, else ().
    context: Context | tuple[()]
    # The target that survived a resignation, which reset_on_resign prevents.
    kept: int


class Replica(NamedTuple):
    """A broker's knowledge from requests."""

    # The highest controller epoch that it obeyed.
    obeyed: int
    # The leader epoch of the last request that it applied.
    leader_epoch: int
    # The leader in that request; NONE: it was a stop, or there was none.
    leader: int
    # The version in that request.
    version: int
    # The assignment in that request as a bit set.
    replicas: int
    # Whether it has a log.
    stored: bool
    # The stopping brokers in that request.
    leaving: int = 0


class RequestBatch(NamedTuple):
    """A LeaderAndIsr to each live replica, or a StopReplica that deletes."""

    # The epoch of the sender.
    controller_epoch: int
    # The leader epoch.
    leader_epoch: int
    # The leader; NONE if there is none.
    leader: int
    # The version of ZooKeeper's state; it also determines the ISR.
    version: int
    # The assignment as a bit set; empty: a StopReplica that deletes.
    replicas: int
    # For each broker the incarnation that its request is for, or NONE.
    live: tuple[int, ...]
    # The stopping brokers (from the UpdateMetadata sent with it).
    leaving: int = 0


class Admin(NamedTuple):
    """ZooKeeper's assignment (empty: the topic's node is removed) and the requests of admins."""

    assignment: int
    # The entry of /admin/reassign_partitions, or empty.
    target: int
    # A ghost variable, the target of the last completed reassignment.
    completed: int
    # Reassignments so far.
    asked: int
    # Whether the topic is in /admin/delete_topics.
    deleting: bool = False


class Membership(NamedTuple):
    """ZooKeeper's /controller, /controller_epoch and each broker's registration (its incarnation, or NONE).
    Also the registrations so far after the first ones, the writes so far with a lost reply, and the lost
    requests."""

    controller: int
    epoch: int
    registrations: tuple[int, ...]
    registered: int
    unheard: int = 0


Sent = tuple[RequestBatch, ...]
"""Every batch that was ever sent, sorted by value. Each of its requests may arrive late, reordered,
repeatedly or never."""

Led = tuple[tuple[int, int, int], ...]
"""A ghost variable: (leader epoch, broker, its process) of every leader so far."""


Stopping = tuple[tuple[int, int], ...]
"""(broker, its incarnation) of every ControlledShutdown request that was ever sent. It may arrive late, twice
or never."""


class ControllerState(NamedTuple):
    """A state of the model."""

    # The process of each broker.
    hosts: tuple[Host, ...]
    # The controller of each broker.
    controls: tuple[Control, ...]
    # The replica of each broker.
    replicas: tuple[Replica, ...]
    # ZooKeeper's membership.
    membership: Membership
    # ZooKeeper's state of the partition.
    partition: Partition
    # The requests so far.
    sent: Sent
    # The leaders so far; a ghost variable.
    led: Led
    # Crashes so far.
    crashes: int
    # The assignment and the requests of admins.
    admin: Admin
    # The requests to stop so far.
    stopping: Stopping


@frozen(kw_only=True)
class Constants(Bounds):
    """The bounds of the model."""

    PROTECTIONS: ClassVar[frozenset[str]] = CONTROL_PLANE
    AREA: ClassVar[str] = "the control plane"

    # The number of brokers.
    brokers: int = 2
    # The highest controller epoch, so a bound on elections.
    epochs: int = 2
    # The most sessions that expire.
    sessions: int = 1
    # The most writes of the partition's state, by controllers and leaders together; so the highest zkVersion.
    writes: int = 2
    # The most crashes of all brokers together.
    crashes: int = 0
    # Brokers without a replica at the beginning.
    spare: int = 0
    # The most requested reassignments.
    reassignments: int = 0
    # 1 if the topic may be deleted.
    deletions: int = 0
    # The most ControlledShutdown requests of all brokers together.
    shutdowns: int = 0
    # The most writes that are applied and have a lost reply: of elections and of a smaller ISR. Without
    # resend_until_answered also lost LeaderAndIsr requests.
    unheard: int = 0

    def __attrs_post_init__(self) -> None:
        if self.deletions not in (0, 1):
            raise FencepostError(
                expected="0 or 1: a topic goes once", seen=str(self.deletions), where="deletions"
            )

    @property
    def for_good(self) -> int:
        """The leader epoch in the StopReplica of a deletion: later than every leader epoch, so that no
        earlier request creates the replica again (EpochDuringDelete)."""
        return self.writes + 1


def members(brokers: int, count: int) -> list[int]:
    """The brokers of a bit set."""
    return [broker for broker in range(count) if brokers >> broker & 1]


def renamed(numbers: Sequence[int], slot: int, value: Any) -> Value:
    """The value of a slot after broker b is renamed to numbers[b]."""
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

    def renamed_batch(batch: Any) -> Any:
        return batch._replace(
            leader=name(batch.leader), replicas=some(batch.replicas), leaving=some(batch.leaving)
        )

    if slot < 3 * count:
        return (value, control, renamed_batch)[slot // count](value) if slot >= count else value
    membership, zookeeper, sent, led, crashes, admin, _ = range(3 * count, 3 * count + 7)
    if slot == membership:
        registrations = places(value.registrations)
        return value._replace(controller=name(value.controller), registrations=registrations)  # type: ignore[no-any-return]
    if slot == zookeeper:
        return state(value)
    if slot == sent:
        return tuple(sorted(renamed_batch(batch)._replace(live=places(batch.live)) for batch in value))
    if slot == led:
        return tuple(sorted((epoch, name(broker), born) for epoch, broker, born in value))
    if slot == crashes:
        return value  # type: ignore[no-any-return]
    if slot == admin:
        return value._replace(  # type: ignore[no-any-return]
            assignment=some(value.assignment), target=some(value.target), completed=some(value.completed)
        )
    return tuple(sorted((name(broker), incarnation) for broker, incarnation in value))
