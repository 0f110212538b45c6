"""Rules for a simulated cluster whose operators are at work: reassignments, topics that come, grow and go.

Owns the rules and their choices, as rules.py does for the other families. Must not know oracles.
"""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from fencepost.machines.cluster.rules import WAITS
from fencepost.machines.cluster.steps import ClusterSteps
from fencepost.traces.events import Name

TOPICS = st.sampled_from(("t", "u", "v"))
"""Of the machine with operators: t is there from the beginning, u and v come and go."""
TOGETHER = 4
"""As in administration.py: the parameter of a reassignment is choice * TOGETHER + how many of the following
partitions too."""


class OperatorRules(ClusterSteps):
    """Reassignments, topics that come, grow and go."""

    @rule(
        how=st.sampled_from(("move", "grow", "shrink", "reorder", "back")),
        partition=st.sampled_from(("t-0", "t-1", "u-0")),
        choice=st.sampled_from((0, 1, 2, 3)),
        others=st.sampled_from((0, 1)),
    )
    def reassign(self, how: str, partition: str, choice: int, others: int) -> None:
        """choice: which of the possible results; others: how many of the following partitions too."""
        self.fault(f"reassign_{how}", f"partition {partition}", parameter=choice * TOGETHER + others)

    @rule(
        partition=st.sampled_from(("t-0", "t-1", "u-0")),
        choice=st.sampled_from((0, 1, 2, 3)),
        wait_ms=st.sampled_from((2, 60, 1_000)),
        late=st.sampled_from(("", "isr_updated", "became_leader")),
        after_ms=st.sampled_from((2, 60, 180)),
        controller_falls=st.booleans(),
    )
    def there_and_back(
        self, partition: str, choice: int, wait_ms: int, late: str, after_ms: int, controller_falls: bool
    ) -> None:
        """An operator moves a replica and regrets it. late: what the controller says for a moment, after_ms
        after this step, comes two seconds later, after what it says again; there may be another controller
        by then."""
        self.fault("reassign_move", f"partition {partition}", parameter=choice * TOGETHER)
        if late:
            self.until(Name(late), longest_ms=1_000)
            self.wait(after_ms)
            self.fault("slow_link", "controller", parameter=2_000_000, duration_ms=51)
        if controller_falls:
            self.fault("expire_session", "controller")
            self.until(Name.CONTROLLER_ELECTED)
        if self.live.run.cluster.observed_state.reassigning:
            self.until(Name.REASSIGNMENT, longest_ms=3_000)
        self.wait(wait_ms)
        self.fault("reassign_back", f"partition {partition}")

    @rule(topic=st.sampled_from(("u", "v")), first=st.sampled_from((0, 1, 2)))
    def create_topic(self, topic: str, first: int) -> None:
        """Create a topic under a name that was not used before.

        Args:
            topic: the name.
            first: the number of the first replica's broker.
        """
        self.fault("create_topic", f"topic {topic}", parameter=first)

    @rule(topic=st.sampled_from(("u", "v")))
    def delete_topic(self, topic: str) -> None:
        """For good."""
        self.fault("delete_topic", f"topic {topic}")

    @rule(topic=TOPICS, first=st.sampled_from((0, 1, 2)))
    def add_partition(self, topic: str, first: int) -> None:
        """Add a partition to a topic.

        Args:
            topic: the name.
            first: the number of the first replica's broker.
        """
        self.fault("add_partitions", f"topic {topic}", parameter=first)

    @rule(topic=TOPICS)
    def elect_preferred(self, topic: str) -> None:
        """Of all its partitions."""
        self.fault("preferred_election", f"topic {topic}")

    @rule(topic=TOPICS, partition=st.sampled_from((0, 1)), wait_ms=WAITS)
    def append_to(self, topic: str, partition: int, wait_ms: int) -> None:
        """By a client of its own, which waits for nobody's topic but this."""
        self.begin_operation("append", topic, partition, process=3, wait_ms=wait_ms)
