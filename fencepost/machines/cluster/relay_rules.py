"""Rules for a simulated cluster in which leadership is handed on, and on again, before everybody has heard of
it.

Owns the rules and their choices, as rules.py does for the other families. Must not know oracles. A leader
that goes at once has seldom written anything; here each goes after a step of the protocol, whichever it is:
what it wrote has reached some and not others, above all not the one who is late.
"""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fencepost.machines.cluster.fall_rules import STEP_WITHIN_MS, THIRD, TRIPS, RecoveredSteps
from fencepost.machines.cluster.rules import FIRST, FIRST_NEW, LEADER, SECOND
from fencepost.traces.events import Name

LATE = st.sampled_from((FIRST, SECOND, THIRD, ""))
"""Who is late when a row begins; "" is nobody."""
LATE_MS = st.sampled_from((150, 300, 600))
"""Each way, in addition: some trips of the network."""
LATE_FOR_MS = 9_001
"""Longer than a row of quick elections."""
STEPS = st.sampled_from(("appended", "became_follower", "high_watermark", "truncated"))
"""Steps that replicas take in the first round trips of a leader."""
WRITERS = st.sampled_from((0, 1, 4))
"""Clients that append to a leader, each one record: they are new, so that none of them still knows the leader
before."""
REIGNS = st.lists(st.tuples(WRITERS, STEPS, TRIPS), min_size=2, max_size=4)


class RelayRules(RecoveredSteps):
    """Rows of leaders, with time to recover between the rows."""

    @rule(
        late=LATE,
        late_ms=LATE_MS,
        reigns=REIGNS,
        down_ms=st.sampled_from((4_001, 0)),
        acks=st.sampled_from((-1, 1)),
    )
    def leaders_hand_on(
        self, late: str, late_ms: int, reigns: list[tuple[int, str, int]], down_ms: int, acks: int
    ) -> None:
        """Each leader has so many writers and loses its session so long after a step; it stops in the same
        moment, or (down_ms=0) goes on until it hears."""
        self.until_in_sync()
        if late:
            self.fault("slow_link", late, duration_ms=LATE_FOR_MS, parameter=1_000 * late_ms)
        for writers, step, after_ms in reigns:
            for _ in range(writers):
                self.live.begin("append", process=FIRST_NEW + len(self.live.operations), acks=acks)
            self.until(Name(step), longest_ms=STEP_WITHIN_MS)
            self.wait(after_ms)
            self._leader_goes(down_ms)
            self.until(Name.BECAME_LEADER, longest_ms=STEP_WITHIN_MS)

    def _leader_goes(self, down_ms: int) -> None:
        self.live.fault("expire_session", LEADER, duration_ms=1)
        if down_ms:
            self.live.fault("crash", LEADER, duration_ms=down_ms)
