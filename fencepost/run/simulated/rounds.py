"""The rounds of questions in a simulated run, at moments of virtual time."""

from attrs import define, field

from fencepost.asked.simulated import SimulatedAsker
from fencepost.run.group_processes import Members
from fencepost.run.rounds import Rounds
from fencepost.run.simulated.cluster_of_run import FaultyCluster
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS

LONGEST_MS = 60_000
"""Bound of the last round: brokers that run answer within milliseconds, the others are given up."""
STEP_MS = 50
"""How often it looks whether it is over."""


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

    def begin(self) -> None:
        """Begin a round, unless the plan leaves asking out, and go on."""
        self._begin(last=False)

    async def ask(self, *, last: bool = False) -> None:
        """One round to its end, unless the plan leaves asking out. last: it is the last one of the run, in
        which nothing else happens, so that the way to the brokers need not take time."""
        if last:
            self.asker.come_near()
        self._begin(last=last)
        world = self.cluster.world
        deadline = world.now + LONGEST_MS * MILLISECOND
        while not self.asker.idle and world.now < deadline:
            world.run_until(min(deadline, world.now + STEP_MS * MILLISECOND))

    def _begin(self, *, last: bool) -> None:
        if self.wanted:
            known = {topic for topic, _ in self.cluster.observed_state.assignments}
            planned = {topic.name for topic in self.plan.cluster.topics}
            self.asker.begin(self.scope((known | planned) - {*INTERNAL_TOPICS}, last=last))
