"""The rounds in which the run's own client asks the brokers of a simulated cluster (fencepost/asked).

Owns when they begin and what they ask about. Must not know what the questions are.
"""

from attrs import define, field

from fencepost.asked.simulated import SimulatedAsker
from fencepost.asked.step import Scope
from fencepost.campaign.run.cluster import FaultyCluster
from fencepost.campaign.run.group_workload import GroupWorkload
from fencepost.impl.core.broker_context import INTERNAL_TOPICS
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.events import Event
from fencepost.traces.plan import ASK_ALWAYS, ASK_NEVER

NOT_IN_SAFETY = 10
"""One of so many runs is not asked before its faults are over, so that asking cannot heal what it looks
for."""
SHARE = 12
"""At most one of so many rows of the trace comes from asking, also in a short run, which is about a tenth of
the processor's time. What there is no room for is noted, and asked first in the next round."""


def within_share(asked: int, rows: int) -> bool:
    """Whether another row may come from asking.

    Args:
        asked: rows that came from it.
        rows: all rows of the trace so far.
    """
    return asked < (rows - asked) // (SHARE - 1)


@define(eq=False)
class Rounds:
    """Of one run."""

    cluster: FaultyCluster
    groups: GroupWorkload
    asker: SimulatedAsker = field(init=False)
    # Rows that came from asking.
    rows: int = 0

    def __attrs_post_init__(self) -> None:
        world = self.cluster.world
        self.asker = SimulatedAsker(
            scheduler=world.scheduler, network=world.network, record=self._record, room=self._has_room
        )

    def _record(self, event: Event) -> None:
        self.rows += 1
        self.cluster.recorded(event)

    def _has_room(self) -> bool:
        return within_share(self.rows, len(self.cluster.events) + len(self.cluster.operations))

    def schedule(self) -> None:
        """Ask in the middle of the safety phase, if no fault is active then."""
        if self._in_safety:
            middle = self.cluster.plan.safety_ms * MILLISECOND // 2
            self.cluster.world.scheduler.after(middle, self.in_calm)

    @property
    def _in_safety(self) -> bool:
        plan = self.cluster.plan
        return plan.asking == ASK_ALWAYS and plan.seed % NOT_IN_SAFETY != 0

    def in_calm(self) -> None:
        """Ask if no fault is active, and the run is one that is asked in its safety phase."""
        if self._in_safety and not self.cluster.active:
            self.begin()

    def begin(self, *, last: bool = False) -> None:
        """Begin a round, unless the plan leaves asking out. last: it is the last one of the run."""
        if self.cluster.plan.asking != ASK_NEVER:
            self.asker.begin(self._scope(last=last))

    def over(self) -> bool:
        """Whether no round is under way."""
        return self.asker.idle

    def _scope(self, *, last: bool) -> Scope:
        known = (topic for topic, _ in self.cluster.observed_state.assignments)
        planned = (topic.name for topic in self.cluster.plan.cluster.topics)
        consumers = self.groups.incarnations.values()
        return Scope(
            brokers=self.cluster.broker_ids,
            topics=tuple(sorted({*known, *planned} - {*INTERNAL_TOPICS})),
            groups=tuple(sorted({one.group for one in consumers})),
            transactional_ids=tuple(sorted({one.transactional_id for one in consumers} - {""})),
            last=last,
        )
