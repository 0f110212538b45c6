"""A second topic, and consumers that subscribe to one of the two or to both, and change their minds.

Owns the draws. Must not know bugs. Members of one group then have different topics, and each may come back,
or go on, with others than before; a leader divides what each of them may have.
"""

from attrs import evolve

from fencepost.campaign.swarm.draws import Draws
from fencepost.traces.plan import Plan, PlannedOperation, TopicOptions

SECOND = "s"
MOVED = ("append", "poll", "list_offsets")
SETS = ("t", "t,s", "t,s", "s")
"""What a consumer subscribes to, each as likely as the others."""
ELSEWHERE = 35
"""Of a hundred operations on the first topic: how many are on the second one instead."""
KEEPING = 60
"""Of a hundred members that change their topics: how many stay members meanwhile."""


def with_subscriptions(plan: Plan, draw: Draws) -> Plan:
    """The plan with a second topic and members that differ in their topics, if it has a plain group.

    Args:
        plan: with its groups.
        draw: the seed's draws.
    """
    if not any(one.function == "subscribe" for one in plan.operations):
        return plan
    first, *others = plan.cluster.topics
    second = TopicOptions(
        name=SECOND,
        partitions=draw.between((1, 3), "second.partitions"),
        replication_factor=draw.between((2, 3), "second.replication_factor"),
        min_insync_replicas=2 if draw.chance(20, "second.min_insync") else 1,
        segment_bytes=draw.between((200, 4_000), "second.segment_bytes")
        if draw.chance(40, "second.small_segments")
        else 1 << 20,
    )
    operations = [_moved(one, draw, first.name, second.partitions) for one in plan.operations]
    return evolve(
        plan,
        cluster=evolve(plan.cluster, topics=(first, second, *others)),
        operations=tuple(operations),
    )


def _moved(one: PlannedOperation, draw: Draws, first: str, partitions: int) -> PlannedOperation:
    if one.topic != first:
        return one
    if one.function in ("subscribe", "resubscribe"):
        topics = draw.choice(list(SETS), "subscriptions", one.op_id)
        keeps = one.function == "resubscribe" and draw.chance(KEEPING, "subscriptions.keeping", one.op_id)
        return evolve(one, topic=topics, argument="changed" if keeps else one.argument)
    if one.function not in MOVED or not draw.chance(ELSEWHERE, "second", one.op_id):
        return one
    kept = "" if one.argument == "tombstone" else one.argument
    return evolve(one, topic=SECOND, partition=one.partition % partitions, key="", argument=kept)
