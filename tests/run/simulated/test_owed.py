"""What a run waits for: the topics that somebody is left to read."""

import pytest

from fencepost.run.group_processes import Incarnation, Members
from fencepost.run.record import Record
from fencepost.traces.plan import ConsumerOptions, Plan


class Running(Members):
    """All of them run."""

    def running(self):
        return self.incarnations


@pytest.mark.parametrize(
    ("second", "topics", "owed"),
    [
        ("range", ("t", "s"), {"s"}),
        ("range", ("t", "t"), {"t"}),
        ("", ("t", "s"), set()),
        ("range", ("t", "t,s"), {"s", "t"}),
    ],
)
def test_a_topic_that_only_consumers_read_who_may_be_refused_is_not_owed(second, topics, owed):
    """Rule: of a group that was loaded a coordinator knows one assignor, and refuses who does not name it.
    The first process names one, the second may name that, too."""
    sticky = ConsumerOptions(assignor="sticky", second_assignor=second)
    plan = Plan(seed=1, consumer=ConsumerOptions(assignor="range"), consumers=(sticky,))
    members = Running(plan=plan, record=Record, brokers=(1,))
    members.incarnations = {
        process: Incarnation(0, "g", tuple(read.split(","))) for process, read in enumerate(topics)
    }
    lagging = members.lagging({("s", 0): 5, ("t", 0): 5})
    assert lagging == [f"g of {topic}-0" for topic in sorted(owed)]
