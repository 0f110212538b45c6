"""Which faults can cost no acknowledged record, and when a host that lost data may come back.

Owns the rule for budgets that keep what was acknowledged (`budget.keep_acknowledged`). Must not carry a fault
out.

Theory. A record with acks=all is acknowledged once every member of the ISR has written it. Kafka does not
sync it, so that a host that loses its power loses records that its broker had sent to the others. This is
safe as long as another member of the ISR has them: it is elected, and the host that comes back truncates and
fetches. min.insync.replicas says how many members a record is written to at least; it does not say that they
are still in the ISR when one of them fails. An acknowledged record is lost in exactly one way: a member that
misses it is in the ISR, and is elected. That takes two things, and the rule excludes both.

1. No other member can be elected. While a host is at risk (from the onset of its fault until it is started
   again), each partition of which it holds a replica needs a *keeper*: a member of the ISR that is not at
   risk, runs, has all that was exposed, and that no fault reaches or has reached a moment ago. A fault that
   would take the last keeper of such a partition is outside the budget; so is a loss of data where there is
   none. The moment is CALM: a session that was cut may still expire, a follower that lagged may still leave
   the ISR, and either would take the keeper out of the ISR before the controller removes the host at risk.
2. The host is back before it is out of the ISR, and is elected then. So it is started again only once it has
   been out of every ISR for a while. A follower's fetch or a leader's write of the ISR may be under way for
   as long as a session lasts, and would let in a replica that has lost its end meanwhile (KIP-903). A real
   host takes longer to boot than a session lasts; a test has sessions of a second.

A disk that had a fault may have lost what was synced (it lied, or a sync failed and the pages counted as
clean), inside of a log, where no fetch mends it. Its host may lose no data after that at all.
"""

from collections.abc import Collection

from attrs import define, field

from fencepost.record.observed_state import NOTHING, ObservedPartition, ObservedState
from fencepost.run.faults.kind import FaultKind, Reach
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.plan import ClusterOptions, Fault


def reached_by(kind: FaultKind, node: int, other: int | None, brokers: tuple[int, ...]) -> frozenset[int]:
    """The brokers that a fault may keep from replicating. other: the second broker of a fault of links, None
    or the same one for all others."""
    if kind.reach is Reach.NOBODY:
        return frozenset()
    if kind.reach is Reach.EVERYBODY or kind.on == "cluster":
        return frozenset(brokers)
    if kind.reach is Reach.LINKS:
        return frozenset(brokers) if other in (None, node) else frozenset((node, other or node))
    return frozenset((node,))


@define(eq=False, kw_only=True)
class Keeping:
    """Who may have lost data, and who can be relied on, as faults begin and end. Times are virtual, in
    nanoseconds."""

    options: ClusterOptions
    # Hosts that lose data now, or have and were not started since; with the time at which each was last in an
    # ISR, as far as was looked.
    at_risk: dict[int, int] = field(factory=dict)
    # Those at risk that the budget keeps down until they are out of every ISR.
    held: set[int] = field(factory=set)
    # Hosts of which a disk had a fault.
    doubtful: set[int] = field(factory=set)
    # Brokers that a fault under way reaches, by its id.
    _reached: dict[int, frozenset[int]] = field(factory=dict)
    # When what a fault did to a broker is over.
    _calm_at: dict[int, int] = field(factory=dict)

    @property
    def calm(self) -> int:
        """How long the effects of a fault may last: a session expires, or a follower lags."""
        return (
            self.options.zookeeper_session_timeout_ms + self.options.replica_lag_time_max_ms
        ) * MILLISECOND

    @property
    def absence(self) -> int:
        """How long a host at risk has to be out of every ISR before it is started: twice a session, as a
        leader may hear of a fetch late, and its write may be under way for as long again."""
        return 2 * self.options.zookeeper_session_timeout_ms * MILLISECOND

    # ---- what happens

    def began(self, fault: Fault, kind: FaultKind, node: int, reached: frozenset[int], now: int) -> None:
        """A fault begins."""
        self._reached[fault.fault_id] = reached
        if kind.loses:
            self.at_risk[node] = now
        if kind.disk:
            self.doubtful.add(node)

    def ended(self, fault_id: int, now: int) -> None:
        """A fault ends.

        Args:
            fault_id: as in `began`.
            now: virtual nanoseconds.
        """
        for broker in self._reached.pop(fault_id, ()):
            self._calm_at[broker] = now + self.calm

    def spared(self, node: int) -> None:
        """The host did not lose its power after all."""
        self.at_risk.pop(node, None)
        self.held.discard(node)

    def started(self, node: int, now: int) -> None:
        """A broker's process begins: what its host holds is known to its log from now on."""
        self.spared(node)
        self._calm_at[node] = now + self.calm

    # ---- what may happen

    def may_start(self, node: int, observed_state: ObservedState, now: int) -> bool:
        """Whether this host is not held, or was out of every ISR for long enough.

        Args:
            node: the host's number.
            observed_state: what the run has recorded so far.
            now: virtual nanoseconds.
        """
        if node not in self.held:
            return True
        if any(
            node in partition.isr and len(partition.isr) > 1  # the last member is never removed
            for partition in observed_state.partitions.values()
        ):
            self.at_risk[node] = now
            return False
        return now - self.at_risk[node] >= self.absence

    def why_not(
        self,
        kind: FaultKind,
        node: int,
        reached: frozenset[int],
        *,
        observed_state: ObservedState,
        stopped: Collection[int],
        now: int,
    ) -> str:
        """Why an acknowledged record could be lost if this fault began now; "" if none could."""
        if kind.loses and node in self.doubtful:
            return f"the disk of broker {node} had a fault, and may have lost what was synced"
        if kind.disk and node in self.at_risk:
            return f"broker {node} is about to lose its power"
        if not kind.loses and not reached:
            return ""
        at_risk = {*self.at_risk, *((node,) if kind.loses else ())}
        if not at_risk:
            return ""
        away = at_risk | reached | set(stopped) | self._troubled(now)
        for key, partition in sorted(observed_state.partitions.items()):
            replicas = observed_state.assignments.get(key, ()) or partition.isr
            risked = sorted(at_risk & {*replicas, *partition.isr})
            if risked and partition.isr and not _keepers(partition, away):
                return (
                    f"broker {risked[0]} may lose records of {key[0]}-{key[1]}, and no other member of its"
                    " ISR is out of reach of every fault"
                )
        return ""

    def _troubled(self, now: int) -> set[int]:
        under_way = {broker for reached in self._reached.values() for broker in reached}
        return under_way | {broker for broker, calm_at in self._calm_at.items() if now < calm_at}


def _keepers(partition: ObservedPartition, away: Collection[int]) -> list[int]:
    """Members of the ISR that have everything and that nothing keeps from being elected."""
    whole = (
        broker
        for broker in partition.isr
        if partition.replica(broker).lost_from < 0 and partition.replica(broker).hollow == NOTHING
    )
    return [broker for broker in whole if broker not in away]
