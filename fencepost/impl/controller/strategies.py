"""Leader election strategies (C8): pure functions from what the controller knows to the next leader and ISR.

Each returns (leader, isr), or None where the strategy has no candidate. The caller raises the leader epoch
and writes by CAS.
"""

from collections.abc import Collection

Choice = tuple[int, tuple[int, ...]]
NO_LEADER = -1


class LeaderElection:
    """The strategies of the controller, as methods so that a bug can take one away."""

    def offline(
        self, assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], *, unclean: bool
    ) -> Choice | None:
        """The first live replica in AR order that is in the ISR; if none and the topic allows it, the first
        live one (which loses data)."""
        for replica in assignment:
            if replica in live and replica in isr:
                return replica, tuple(member for member in isr if member in live)
        if unclean:
            for replica in assignment:
                if replica in live:
                    return replica, (replica,)
        return None

    def preferred(
        self, assignment: tuple[int, ...], isr: tuple[int, ...], live: Collection[int]
    ) -> Choice | None:
        """The first replica of AR, if it is alive and in sync."""
        candidate = assignment[0]
        return (candidate, isr) if candidate in live and candidate in isr else None

    def reassignment(
        self, target: tuple[int, ...], isr: tuple[int, ...], live: Collection[int], leader: int
    ) -> Choice | None:
        """Within the target: the leader stays if it is part of it, else the first live one leads. Whoever is
        not part of it leaves the ISR."""
        if not set(target) <= set(isr):
            return None  # not all of them caught up: nobody may be taken away
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
        leader that none can replace stays itself, whoever else is alive."""
        return next(((replica, stay) for replica in able if replica in stay), None)

    def keep_last_isr_member(self, isr: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
        """Protection KAFKA-708: the ISR without the dead, but never empty: the last member stays, so that no
        other replica can lead cleanly."""
        kept = [member for member in isr if member not in gone]
        return tuple(kept) if kept else isr[-1:]
