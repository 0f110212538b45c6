"""Plans like the chaos of an embedded cluster (fencepost/kafka), for the simulator: its time-outs, faults of
a seed within a few seconds, and clients that append with acks=all all the while.

They are drawn harder than chaos is: more faults, and every other one of them stops a host or loses its data.
"""

from attrs import evolve

from fencepost.campaign.swarm.bounds import PROCESS_AND_NETWORK, WIDE
from fencepost.campaign.swarm.draws import Draws, faults_of
from fencepost.campaign.swarm.profiles import profile_named
from fencepost.sim.randomness import Randomness
from fencepost.systems.embedded import FREE, NEAR, quick_options
from fencepost.traces import plan as plans

LOSING = ("power_loss", "bit_rot", "power_loss", "bounce", "crash", "pause", "isolate_zookeeper")
"""Drawn in addition to the rest, so that they meet each other."""
KINDS = (*PROCESS_AND_NETWORK, *WIDE, "clean_restart", "lying_fsync", "io_error", *LOSING)


def chaos_plan(seed: int) -> plans.Plan:
    """A plan of this seed, whose budget keeps what was acknowledged."""
    draw = Draws(Randomness(seed))
    brokers = 5 if draw.chance(20, "five") else 3
    for_ms = draw.between((2_000, 12_000), "for")
    replicas = 2 if draw.chance(25, "two") else 3
    topic = plans.TopicOptions(
        partitions=draw.between((1, 3), "partitions"),
        replication_factor=replicas,
        min_insync_replicas=draw.between((1, 2), "minimum"),
    )
    bounds = evolve(profile_named("default", ()), kinds=KINDS, faults=(4, 24))
    processes = 3
    operations = tuple(
        plans.PlannedOperation(
            op_id=number,
            process=number % processes,
            at_ms=number * 60,
            function="poll" if number % 8 == 7 else "append",
            partition=draw.between((0, topic.partitions - 1), "partition", number),
        )
        for number in range(for_ms // 60)
    )
    far = plans.NetworkOptions(latency_min_us=200, latency_tail_us=2_000, latency_max_us=60_000)
    return plans.Plan(
        seed=seed,
        profile="chaos",
        safety_ms=for_ms,
        cluster=quick_options(brokers, topics=(topic,)),
        network=far if draw.chance(50, "far") else NEAR,
        disk=FREE,
        client=plans.ClientOptions(request_timeout_ms=1_000, delivery_timeout_ms=6_000, retry_backoff_ms=50),
        budget=plans.BudgetOptions(keep_acknowledged=True),
        operations=operations,
        faults=tuple(_soon_back(fault) for fault in faults_of(draw, bounds, topic, for_ms, brokers)),
    )


def _soon_back(fault: plans.Fault) -> plans.Fault:
    """A broker that stopped cleanly starts before the run is over: some seconds more would be a slow one."""
    return evolve(fault, parameter=fault.parameter % 1_500 + 1) if fault.kind == "clean_restart" else fault
