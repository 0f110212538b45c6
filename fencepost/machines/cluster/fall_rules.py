"""Rules for a simulated cluster in which brokers go at a moment that a step of the protocol chooses,
silently, or while nobody else may lead.

Owns the rules and their choices, as rules.py does for the other families. Must not know oracles. A window
between two messages is seldom hit by a rule that comes at a time of its own; a rule that waits for a step is
in the window each time, whichever step it is.
"""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fencepost.machines.cluster.rules import FIRST, LEADER, SECOND
from fencepost.machines.cluster.steps import ClusterSteps
from fencepost.traces.events import Name

THIRD = "follower 3 of t-0"
TRIPS = st.sampled_from((2, 30, 60, 120))
"""Up to a round trip of the far network."""
LOAD = 4
"""Appends of each of two clients while somebody is silent."""
OWING = st.sampled_from(("isr_proposed", "isr_updated", "became_leader", "appended"))
"""Steps after which a leader owes somebody an answer."""
MOST_CHANGES = 4
"""Changes of the ISR that a cluster may take to recover."""
STEP_WITHIN_MS = 3_000
"""How long a fall waits for its step: above an election, and the shrinking of an ISR."""


class RecoveredSteps(ClusterSteps):
    """Steps of rules that begin in a cluster that has recovered from what was before."""

    def until_in_sync(self) -> None:
        """What falls next falls where every replica is in the ISR, if that comes about."""
        partition = self.live.run.cluster.observed_state.partition(("t", 0))
        for _ in range(MOST_CHANGES):
            if len(partition.isr) == self.live.plan.cluster.topics[0].replication_factor:
                return
            self.until(Name.ISR_UPDATED, longest_ms=STEP_WITHIN_MS)


class SilenceRules(RecoveredSteps):
    """Brokers are cut off from the others before anybody replaces them; ZooKeeper still hears them."""

    @rule(
        follower=st.sampled_from((FIRST, SECOND, THIRD, "")),
        back_ms=st.sampled_from((1_501, 1_901, 2_501)),
        after_ms=TRIPS,
        then=st.lists(st.tuples(OWING, TRIPS, TRIPS), max_size=2),
    )
    def brokers_fall_silent(
        self, follower: str, back_ms: int, after_ms: int, then: list[tuple[str, int, int]]
    ) -> None:
        """Under load a follower is cut off until it is out of the ISR; then the leader is, and others after
        it, each so long after a step; a session ends a little later than its broker is cut off."""
        self.until_in_sync()
        if follower:
            self.fault("partition", follower, duration_ms=back_ms)
        self._load()
        self.until(Name.ISR_UPDATED if follower else Name.APPENDED, longest_ms=STEP_WITHIN_MS)
        self._fall_silent(after_ms, 60)
        for step, after_ms, ends_ms in then:
            self._load()
            self.until(Name(step), longest_ms=STEP_WITHIN_MS)
            self._fall_silent(after_ms, ends_ms)

    def _load(self) -> None:
        for process in (0, 1):
            for _ in range(LOAD):
                self.live.begin("append", process=process)

    def _fall_silent(self, after_ms: int, ends_ms: int) -> None:
        self.wait(after_ms)
        self.fault("partition", LEADER, duration_ms=2_501)
        self.wait(ends_ms)
        self.fault("expire_session", LEADER)


class ReturnRules(ClusterSteps):
    """Brokers that start while nobody leads, and start again."""

    @rule(away_ms=st.sampled_from((9_001, 20_001)))
    def leader_dies_alone(self, away_ms: int) -> None:
        """It is cut off until it is the last of the ISR, and dies for long: nobody else may lead."""
        self.fault("partition", LEADER, duration_ms=4_001)
        self.until(Name.ISR_UPDATED)
        self.fault("crash", LEADER, duration_ms=away_ms)

    @rule(
        broker=st.sampled_from((1, 2, 3)),
        times=st.sampled_from((1, 2)),
        up_ms=st.sampled_from((300, 1_500, 6_000)),
    )
    def starts_again(self, broker: int, times: int, up_ms: int) -> None:
        """The broker is killed and started at once, several times.

        Args:
            broker: its number.
            times: how often.
            up_ms: how long it is up in between, in virtual milliseconds.
        """
        for _ in range(times):
            self.fault("crash", f"broker {broker}", duration_ms=51)
            self.wait(up_ms)
