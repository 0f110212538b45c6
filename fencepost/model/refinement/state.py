"""What the refinement remembers of one partition: ZooKeeper's states, each leader epoch's log, each replica.

Owns the abstraction of a trace that the guards look at. Must not decide anything: the other modules of this
folder do.
"""

from collections.abc import Callable

from attrs import define, field, frozen

from fencepost.model.replication.guards import NO_LEADER
from fencepost.model.replication.replica_log import ReplicaLog

POWER_LOSS = "power_loss"
"""The cause of the fault that takes what a host had not synced. Any other may stop the process at most: files
keep all that was written."""


@frozen(kw_only=True)
class Mismatch:
    """An event that no action of the model explains. action: the one that it would have to be; expected: the
    guard in words; seen: with numbers.

    position: of the event; because: of an earlier event that it contradicts, or -1; offset: the log offset in
    question, or -1.
    """

    position: int
    action: str
    expected: str
    seen: str
    because: int = -1
    offset: int = -1


@define
class QuorumState:
    """ZooKeeper's state of one leader epoch. leader, and each ISR that it held in this epoch, the last one
    current. position: of its first event."""

    leader: int
    isrs: list[tuple[int, ...]]
    position: int


@define
class Term:
    """What one leader did in one leader epoch. start_offset: its log end when it took over (the least, if it
    did so again after a restart). high_watermark: the highest shown.

    log_start_offset: the highest that its log had. logs: its log, as its followers may have seen it: the last
    one is current and grows; an earlier one is that of an incarnation before a power loss. position: of
    BECAME_LEADER.
    """

    leader: int
    start_offset: int
    high_watermark: int
    position: int
    logs: list[ReplicaLog]
    log_start_offset: int = 0
    reaches: dict[int, int] = field(factory=dict)
    """How far followers were known to be in the epochs before, in which the same broker led without a
    break."""


@define
class ReplicaView:
    """One replica. leader_epoch, leader: the role it took last in this incarnation (None before any).
    high_watermark, log_start_offset: as last said. interrupted: the fault that hit its host since it last
    recovered ("" for none), perhaps in the midst of a step. role_before: (leader epoch, leader) of the
    incarnation before this one."""

    log: ReplicaLog = field(factory=ReplicaLog)
    leader_epoch: int | None = None
    leader: int = NO_LEADER
    high_watermark: int = 0
    log_start_offset: int = 0
    interrupted: str = ""
    role_before: tuple[int, int] | None = None


@define
class Reach:
    """How far a follower's fetches may have said it was in one leader epoch. settled: before its last
    restart; now: its log end since it follows, after the truncation that precedes each first fetch."""

    settled: int = -1
    now: int = -1

    @property
    def end_offset(self) -> int:
        """The highest log end that its leader may know of."""
        return max(self.settled, self.now)


@define
class PartitionState:
    """All of one partition. unclean: whether the topic allows unclean leader election (asked only when it
    matters). compacted: its logs may have gaps. quorum: by leader epoch; epoch: the current one; zk_version:
    of the last write."""

    unclean: Callable[[], bool]
    compacted: bool = False
    quorum: dict[int, QuorumState] = field(factory=dict)
    epoch: int = -1
    zk_version: int = -1
    terms: dict[int, Term] = field(factory=dict)
    replicas: dict[int, ReplicaView] = field(factory=dict)
    reaches: dict[int, dict[int, Reach]] = field(factory=dict)
    """By leader epoch and follower."""

    def replica(self, node: int) -> ReplicaView:
        """The replica at `node`; an empty one if nothing was recorded of it."""
        view = self.replicas.get(node)
        if view is None:
            view = self.replicas[node] = ReplicaView()
        return view

    @property
    def shown(self) -> int:
        """The highest high watermark that any leader showed; 0 before the first."""
        return max([0, *(term.high_watermark for term in self.terms.values())])

    def followed(self, node: int) -> Term | None:
        """The term of the leader that `node` follows; None if it follows nobody, or its leader never took
        over."""
        view = self.replica(node)
        if view.leader_epoch is None or view.leader in (node, NO_LEADER):
            return None
        return self.terms.get(view.leader_epoch)

    def reach(self, epoch: int, node: int) -> Reach:
        """What the leader of `epoch` may know of `node`."""
        return self.reaches.setdefault(epoch, {}).setdefault(node, Reach())

    def known_end(self, epoch: int, member: int) -> int:
        """The highest log end that the leader of `epoch` may take `member` to have: its own, or by the
        member's fetches; -1 for none."""
        term = self.terms[epoch]
        if member == term.leader:
            return term.logs[-1].end_offset
        reach = self.reaches.get(epoch, {}).get(member)
        return max(term.reaches.get(member, -1), reach.end_offset if reach else -1)
