"""The refinement's state of one partition: ZooKeeper's states, each leader epoch's log, each replica.

Owns the abstraction of a trace that the guards read. Must not decide anything: the other modules of this
folder do.
"""

from collections.abc import Callable

from attrs import define, field, frozen

from fencepost.model.replication.guards import NO_LEADER
from fencepost.model.replication.replica_log import ReplicaLog

POWER_LOSS = "power_loss"
"""The cause of the fault that loses what a host had not synced. Any other fault at most stops the process:
files keep everything that was written."""


@frozen(kw_only=True)
class Mismatch:
    """An event that no action of the model explains."""

    # The position of the event.
    position: int
    # The action that it would have to be.
    action: str
    # The guard in words.
    expected: str
    # What the event says, with numbers.
    seen: str
    # The position of an earlier event that it contradicts, or -1.
    because: int = -1
    # The log offset in question, or -1.
    offset: int = -1


@define
class QuorumState:
    """ZooKeeper's state of one leader epoch: the leader, and each ISR in this epoch, the last one current."""

    leader: int
    isrs: list[tuple[int, ...]]
    # Of its first event.
    position: int


@define
class Term:
    """The term of one leader in one leader epoch."""

    # The broker that leads.
    leader: int
    # Its log end when it took over (the lowest, if it did so again after a restart).
    start_offset: int
    # The highest high watermark that it showed.
    high_watermark: int
    # The position of BECAME_LEADER.
    position: int
    # Its log, as its followers may have seen it. The last one is current and grows; an earlier one is of an
    # incarnation before a power loss.
    logs: list[ReplicaLog]
    # The highest start that its log had.
    log_start_offset: int = 0
    # The known log ends of followers from earlier epochs that the same broker led without a break.
    reaches: dict[int, int] = field(factory=dict)


@define
class ReplicaView:
    """One replica."""

    # Its log.
    log: ReplicaLog = field(factory=ReplicaLog)
    # The leader epoch of its last role in this incarnation; None before any.
    leader_epoch: int | None = None
    # The leader in that role.
    leader: int = NO_LEADER
    # As last reported.
    high_watermark: int = 0
    # As last reported.
    log_start_offset: int = 0
    # The highest one that was reported.
    highest_start: int = 0
    # Whether its log ends where it was cut.
    cut: bool = False
    # The fault of its host since it last recovered, perhaps during a step; "" for none.
    interrupted: str = ""
    # (leader epoch, leader) of the previous incarnation.
    role_before: tuple[int, int] | None = None


@define
class Reach:
    """The log ends that a follower's fetches may have reported in one leader epoch."""

    # Before its last restart.
    settled: int = -1
    # Its log end since it follows, after the truncation that precedes each first fetch.
    now: int = -1

    @property
    def end_offset(self) -> int:
        """The highest log end that its leader may know."""
        return max(self.settled, self.now)


@define
class PartitionState:
    """The state of one partition."""

    # Whether the topic allows unclean leader election; called only if it matters.
    unclean: Callable[[], bool]
    # Whether its logs may have gaps.
    compacted: bool = False
    # Whether an operator ever moved its replicas.
    reassigned: bool = False
    # ZooKeeper's states by leader epoch.
    quorum: dict[int, QuorumState] = field(factory=dict)
    # The current leader epoch.
    epoch: int = -1
    # The version after the last write.
    zk_version: int = -1
    # The terms of leaders, by leader epoch.
    terms: dict[int, Term] = field(factory=dict)
    # The replicas, by broker.
    replicas: dict[int, ReplicaView] = field(factory=dict)
    # By leader epoch and follower: the reported log ends.
    reaches: dict[int, dict[int, Reach]] = field(factory=dict)

    def replica(self, node: int) -> ReplicaView:
        """The replica at `node`; an empty one if nothing was recorded about it."""
        view = self.replicas.get(node)
        if view is None:
            view = self.replicas[node] = ReplicaView()
        return view

    @property
    def shown(self) -> int:
        """The highest high watermark that any leader showed; 0 before the first."""
        return max([0, *(term.high_watermark for term in self.terms.values())])

    def followed(self, node: int) -> Term | None:
        """The term of the leader that `node` follows; None if it follows none, or if its leader never took
        over."""
        return self.term_of(self.replica(node), node)

    def term_of(self, view: ReplicaView, node: int) -> Term | None:
        """As `followed`. view: the replica at `node`."""
        if view.leader_epoch is None or view.leader == node or view.leader == NO_LEADER:
            return None
        return self.terms.get(view.leader_epoch)

    def reach(self, epoch: int, node: int) -> Reach:
        """What the leader of `epoch` may know of `node`."""
        followers = self.reaches.get(epoch)
        if followers is None:
            followers = self.reaches[epoch] = {}
        reach = followers.get(node)
        if reach is None:
            reach = followers[node] = Reach()
        return reach

    def known_end(self, epoch: int, member: int) -> int:
        """The highest log end of `member` that the leader of `epoch` may know: for itself its own, else from
        the member's fetches; -1 for none."""
        term = self.terms[epoch]
        if member == term.leader:
            return term.logs[-1].end_offset
        reach = self.reaches.get(epoch, {}).get(member)
        return max(term.reaches.get(member, -1), reach.end_offset if reach else -1)
