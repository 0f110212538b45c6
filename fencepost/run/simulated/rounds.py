"""The rounds of questions in a simulated run, at moments of virtual time."""

from attrs import define, field

from fencepost.asked.simulated import SimulatedAsker
from fencepost.run.members import Members
from fencepost.run.rounds import Rounds
from fencepost.run.simulated.cluster import FaultyCluster
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.kafka_names.topics import INTERNAL_TOPICS


@define(eq=False, kw_only=True)
class SimulatedRounds(Rounds):
    """Of one run."""

    cluster: FaultyCluster
    asker: SimulatedAsker = field(init=False)

    @classmethod
    def of(cls, cluster: FaultyCluster, members: Members) -> "SimulatedRounds":
        """Those of this cluster's plan. members: its groups."""
        return cls(
            plan=cluster.plan, record=cluster, members=members, brokers=cluster.broker_ids, cluster=cluster
        )

    def __attrs_post_init__(self) -> None:
        world = self.cluster.world
        self.asker = SimulatedAsker(
            scheduler=world.scheduler, network=world.network, record=self.heard, room=self.has_room
        )

    def schedule(self) -> None:
        """Ask in the middle of the safety phase, if no fault is active then."""
        if self.in_safety:
            middle = self.plan.safety_ms * MILLISECOND // 2
            self.cluster.world.scheduler.after(middle, self.in_calm)

    def in_calm(self) -> None:
        """Ask if no fault is active, and the run is one that is asked in its safety phase."""
        if self.in_safety and not self.cluster.active:
            self.begin()

    def begin(self, *, last: bool = False) -> None:
        """Begin a round, unless the plan leaves asking out. last: it is the last one of the run."""
        if self.wanted:
            known = {topic for topic, _ in self.cluster.observed_state.assignments}
            planned = {topic.name for topic in self.plan.cluster.topics}
            self.asker.begin(self.scope((known | planned) - {*INTERNAL_TOPICS}, last=last))
