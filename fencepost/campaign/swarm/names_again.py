"""Names that are used again: operators create a topic anew some time after it was deleted. What the swarm
draws for it.

Owns the draws. Must not know judges. A topic whose replicas are moved keeps its name for itself: a broker
that was down when its replica went to another one has old data under the name (KAFKA-13132).
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.plan import Fault, Plan

FIRST = 300_000
"""Fault ids begin here."""
GAP_MS = (100, 5_000)
"""From a deletion to the next topic: a deletion takes a few round trips where nothing is broken."""
DELETE, CREATE = "delete_topic", "create_topic"


def with_names_again(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan, in which each deletion of a topic is followed by its creation, in some plans that delete one;
    the others as they are.

    Args:
        plan: with all its faults.
        draw: the seed's draws.
        bounds: the profile.
    """
    moved = {
        fault.target.removeprefix("partition ").rpartition("-")[0]
        for fault in plan.faults
        if fault.kind.startswith("reassign")
    }
    deletions = [
        fault
        for fault in plan.faults
        if fault.kind == DELETE and fault.target.removeprefix("topic ") not in moved
    ]
    if not deletions or not draw.chance(bounds.names_again, "names_again"):
        return plan
    made = [
        Fault(
            fault_id=FIRST + number,
            kind=CREATE,
            at_ms=min(plan.safety_ms, deletion.at_ms + draw.between(GAP_MS, "names_again.gap", number)),
            duration_ms=0,
            target=deletion.target,
            parameter=draw.between((0, 3), "names_again.parameter", number),
        )
        for number, deletion in enumerate(deletions)
    ]
    again = {fault.target.removeprefix("topic ") for fault in deletions}
    topics = tuple(evolve(topic, used_again=topic.name in again) for topic in plan.cluster.topics)
    return evolve(plan, cluster=evolve(plan.cluster, topics=topics), faults=(*plan.faults, *made))
