"""Leader election strategies (C8): pure functions from the controller's knowledge to the next leader and ISR.

Each returns (leader, isr), or None without a candidate. The caller raises the leader epoch and writes by CAS.
"""

from collections.abc import Collection

Choice = tuple[int, tuple[int, ...]]
NO_LEADER = -1


class LeaderElection:
    """The controller's strategies, as methods so that a planted bug can replace one."""

    def offline(
        self, assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, unclean: bool
    ) -> Choice | None:
        """The first live replica in AR order that is in the ISR. If there is none and the topic allows it:
        the first live one (which loses data).

        Args:
            assignment: the replicas (AR).
            isr: the in-sync replicas.
            live: ids of live brokers.
            unclean: whether the topic allows an unclean election.

        Returns:
            leader and ISR, or None.
        """
        for replica in assignment:
            if replica in live and replica in isr:
                return replica, tuple(member for member in isr if member in live)
        return self.outside_isr(assignment, live) if unclean else None

    def outside_isr(self, assignment: tuple[int, ...], live: Collection[int]) -> Choice | None:
        """Protection KAFKA-1028: where a topic prefers to be available, a partition is led by the first live
        replica when nobody of its ISR is alive.

        Args:
            assignment: the replicas (AR).
            live: ids of live brokers.

        Returns:
            leader and ISR, or None.
        """
        return next(((replica, (replica,)) for replica in assignment if replica in live), None)

    def preferred(
        self, assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]
    ) -> Choice | None:
        """The first replica of AR, if it is alive and in sync.

        Args:
            assignment: the replicas (AR).
            isr: the in-sync replicas.
            live: ids of live brokers.

        Returns:
            leader and ISR, or None.
        """
        candidate = assignment[0]
        return (candidate, isr) if candidate in live and candidate in isr else None

    def reassignment(
        self, target: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], leader: int
    ) -> Choice | None:
        """A leader within the target: the current leader if it is in the target, otherwise the first live
        one. Replicas outside of the target leave the ISR.

        Args:
            target: the target replicas.
            isr: the in-sync replicas.
            live: ids of live brokers.
            leader: the current leader.

        Returns:
            leader and ISR, or None.
        """
        if not set(target) <= set(isr):
            return None  # not all of them are caught up: no replica may be removed
        able = [replica for replica in target if replica in live]
        if not able:
            return None
        kept = tuple(member for member in isr if member in target)
        return (leader if leader in able else able[0]), kept

    def controlled_shutdown(
        self, assignment: tuple[int, ...], isr: tuple[int, ...], electable: Collection[int], leader: int
    ) -> Choice | None:
        """The leader goes to another ISR member that stays."""
        able = [replica for replica in assignment if replica in electable and replica != leader]
        return self.last_in_sync_stays(able, tuple(member for member in isr if member in electable))

    def last_in_sync_stays(self, able: list[int], stay: tuple[int, ...]) -> Choice | None:
        """Protection KAFKA-340: of those able to lead, only a member of the ISR that stays takes over; a
        leader that none can replace stays the leader, whatever else is alive."""
        return next(((replica, stay) for replica in able if replica in stay), None)

    def keep_last_isr_member(self, isr: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
        """Protection KAFKA-708: the ISR without dead brokers, but never empty. The last member stays, so that
        no other replica can lead cleanly.

        Args:
            isr: the in-sync replicas.
            gone: ids of dead brokers.

        Returns:
            the new ISR.
        """
        kept = [member for member in isr if member not in gone]
        return tuple(kept) if kept else isr[-1:]
