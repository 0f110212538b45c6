"""Disks that fail for a moment, while producers go on sending what was not answered: what the swarm draws for
it.

Owns the draws. Must not know bugs, only that files fail often, that a broker that
halts is soon back, and that producers insist.

What a log believes of its producers is put to the test by a retry that meets the log of the first attempt.
Elsewhere it seldom does: another replica leads by then, or the producer has given up. Here most topics live
on one broker; sessions are short, so that a broker is soon registered again, and outlast a failure; segments
hold a batch or two, so that nearly every append changes many files; checkpoints are seldom older than the
last append; and a disk fails within the few file calls after an append, which are mostly the next one's.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import Profile
from fencepost.campaign.swarm.draws import Draws
from fencepost.campaign.swarm.relays import RECOVERY_MS, everywhere, requests_in
from fencepost.traces.plan import Fault, NetworkOptions, Plan, TopicOptions

FAILS = "io_error"
CALLS = 2
"""Kinds of file call that fail: writes and syncs. Reads change nothing."""
PASSES = 12
"""Calls of its kind that pass at most before the one that fails: about as many as an append makes that begins
a segment."""


def with_retries(plan: Plan, draw: Draws, bounds: Profile) -> Plan:
    """The plan with disks that fail for a moment instead of its faults, in as many plans of a hundred as the
    profile says; in the others the plan as it is."""
    if not bounds.retried or not draw.chance(bounds.retried, "retry") or FAILS not in bounds.kinds:
        return plan
    return evolve(
        plan,
        cluster=evolve(
            plan.cluster,
            topics=tuple(_small(topic, draw, plan.cluster.brokers) for topic in plan.cluster.topics),
            zookeeper_session_timeout_ms=draw.between((1_500, 4_000), "retry.session"),
            high_watermark_checkpoint_interval_ms=draw.between((50, 300), "retry.checkpoint"),
        ),
        network=NetworkOptions(
            latency_min_us=draw.between((50, 5_000), "retry.latency"),
            latency_tail_us=draw.between((0, 5_000), "retry.tail"),
            latency_max_us=draw.between((10_000, 50_000), "retry.latency_max"),
        ),
        client=evolve(
            plan.client,
            producer=evolve(plan.client.producer, batch_bytes=draw.between((80, 300), "retry.batch_bytes")),
            request_timeout_ms=draw.between((800, 2_000), "retry.patience"),
            retry_backoff_ms=draw.between((20, 1_000), "retry.backoff"),
            delivery_timeout_ms=draw.between((15_000, 30_000), "retry.delivery"),
        ),
        budget=evolve(plan.budget, brokers_down=plan.cluster.brokers),
        faults=(*_failures(plan, draw), *requests_in(plan)),
    )


def _small(topic: TopicOptions, draw: Draws, brokers: int) -> TopicOptions:
    """A segment holds a batch or two; in many plans each batch is synced, and there is no other replica."""
    alone = draw.chance(75, "retry.alone")
    return evolve(
        everywhere(topic, 1 if alone else brokers),
        segment_bytes=draw.between((80, 250), "retry.segment_bytes"),
        flush_messages=1 if draw.chance(70, "retry.flush") else 0,
    )


def _failures(plan: Plan, draw: Draws) -> list[Fault]:
    """Of the leader's disk mostly, seconds apart."""
    found: list[Fault] = []
    key = f"{plan.cluster.topics[0].name}-0"
    number = at_ms = 0
    while True:
        at_ms += draw.between((500, 2_500), "retry.gap", number)
        if at_ms >= plan.safety_ms - RECOVERY_MS:
            return found
        follower = draw.chance(15, "retry.follower", number)
        call = draw.between((0, CALLS - 1), "retry.call", number)
        found.append(
            Fault(
                fault_id=number,
                kind=FAILS,
                at_ms=at_ms,
                duration_ms=draw.between((100, 1_500), "retry.duration", number),
                target=f"follower 1 of {key}" if follower else f"leader of {key}",
                parameter=call + 3 * draw.between((0, PASSES), "retry.passes", number),
                follows="appended" if draw.chance(60, "retry.follow", number) else "",
            )
        )
        number += 1
