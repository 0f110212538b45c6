"""Hazards that ZooKeeper-era Kafka accepts (rows H of the zoo): the healthy implementation shows them, and
the claims say so, for their offsets only."""

from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.record.claims import derive_claims
from fencepost.record.observed_state import ObservedState
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import BudgetOptions, DiskOptions, Fault, Plan, TopicOptions
from fencepost.traces.trace import Trace


def last_replica_standing(small_plan):
    """KIP-966: brokers 2 and 3 are away, the ISR shrinks to broker 1, which loses its power with what it had
    not synced, and leads again."""
    plan = small_plan(
        faults=(
            Fault(fault_id=0, kind="crash", at_ms=500, duration_ms=7_000, target="broker 2"),
            Fault(fault_id=1, kind="crash", at_ms=500, duration_ms=7_000, target="broker 3"),
            Fault(fault_id=2, kind="power_loss", at_ms=6_000, duration_ms=500, target="broker 1"),
        ),
        budget=BudgetOptions(brokers_down=3, isr_disks_lost=1),
    )
    topics = (TopicOptions(name="t", replication_factor=3, min_insync_replicas=1),)
    quick = evolve(
        plan.cluster, topics=topics, replica_lag_time_max_ms=1_000, zookeeper_session_timeout_ms=1_500
    )
    return run(evolve(plan, cluster=quick))


def returned_with_less(small_plan, seed: int):
    """KIP-903: a follower in the ISR loses its tail, is back before any controller has looked, is still in
    the ISR, and is elected when the leader dies."""
    plan = small_plan(
        seed=seed,
        faults=(
            Fault(fault_id=0, kind="power_loss", at_ms=4_000, duration_ms=100, target="broker 2"),
            Fault(fault_id=1, kind="crash", at_ms=4_050, duration_ms=5_000, target="broker 1"),
        ),
        budget=BudgetOptions(brokers_down=3, isr_disks_lost=1),
    )
    topics = (TopicOptions(name="t", replication_factor=2, min_insync_replicas=1),)
    return run(evolve(plan, cluster=evolve(plan.cluster, topics=topics, zookeeper_session_timeout_ms=2_000)))


def is_a_negative_control(trace) -> bool:
    """It is Ok by its claims, names the offsets with a reason, and is a loss without them."""
    held = evolve(trace, claims=evolve(trace.claims, loss=()))
    return (
        bool(trace.claims.loss)
        and all("power loss" in loss.reason for loss in trace.claims.loss)
        and combine(judge(trace)).decision is Decision.OK
        and combine(judge(held)).anomaly == "committed_record_lost"
    )


def test_the_last_replica_standing_may_lose_its_tail(small_plan):
    """Rule (KIP-966, H): min.insync.replicas allowed the ISR of one; what it had not synced is claimed as
    lost, and nothing else."""
    assert is_a_negative_control(last_replica_standing(small_plan))


def test_an_isr_member_may_return_with_less(small_plan):
    """Rule (KIP-903, H): in this era nobody asks a returning broker whether its disk is still what it was;
    the claim says for which offsets. How much of an unsynced tail a disk keeps is its own affair: some of
    these runs lose nothing, and claim nothing."""
    traces = [returned_with_less(small_plan, seed) for seed in range(5)]
    assert any(is_a_negative_control(trace) for trace in traces)
    assert all(combine(judge(trace)).decision is Decision.OK for trace in traces)


def compacted_under_a_lie(small_plan, seed: int) -> tuple[Plan, Trace]:
    """A follower's cleaner writes records anew that were durable, while its disk lies about syncs; then its
    power fails."""
    plan = small_plan(
        seed=seed,
        faults=(
            Fault(fault_id=0, kind="lying_fsync", at_ms=4_000, duration_ms=3_000, target="broker 2"),
            Fault(fault_id=1, kind="power_loss", at_ms=7_500, duration_ms=500, target="broker 2"),
        ),
        budget=BudgetOptions(brokers_down=3, isr_disks_lost=1),
        disk=DiskOptions(torn_write=False),
    )
    topic = TopicOptions(
        name="t", flush_messages=1, cleanup_policy="compact", segment_bytes=400, min_cleanable_dirty_ppm=0
    )
    cluster = evolve(plan.cluster, topics=(topic,), log_cleaner_backoff_ms=1_900)
    keyed = tuple(
        evolve(each, key=f"k{min(each.op_id, 16)}" if each.function == "append" else "")
        for each in plan.operations
    )
    plan = evolve(plan, cluster=cluster, operations=keyed)
    return plan, run(plan)


def test_a_compaction_under_a_lie_may_lose_what_it_rewrote_and_only_with_the_lie(small_plan):
    """Rule (seed 1387 of storage): records that were durable are at risk once a compaction has written them
    anew on a disk that lies about syncs. The loss lies inside of the log, and the claim says where; the same
    run judged by what its facts allow without the lie is convicted."""
    lost = 0
    for seed in range(3):  # how much of a file a disk keeps is its own affair
        plan, trace = compacted_under_a_lie(small_plan, seed)
        assert combine(judge(trace)).decision is Decision.OK
        rewritten = [loss for loss in trace.claims.loss if "written anew" in loss.reason]
        ends = [event.end_offset for event in trace.events if event.name is Name.REPLICA_LOG]
        assert rewritten and all(loss.end < min(ends) for loss in rewritten)
        honest = ObservedState()
        for event in trace.events:
            if event.cause != "lying_fsync":
                honest.learn(event)
        held = evolve(trace, claims=derive_claims(plan, honest, trace.operations))
        lost += combine(judge(held)).anomaly == "committed_record_truncated"
    assert lost == 2
