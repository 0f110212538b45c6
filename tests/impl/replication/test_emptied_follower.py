"""A follower of whose log nothing but an offset is left, in front of a leader whose log ends below it."""

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision
from fencepost.run.simulated.run import run
from fencepost.traces import plan as plans
from fencepost.traces.events import Name

PLAN = plans.Plan(
    seed=78,
    safety_ms=5_801,
    cluster=plans.ClusterOptions(
        topics=(plans.TopicOptions(retention_ms=8_000),),
        zookeeper_session_timeout_ms=6_300,
        log_retention_check_interval_ms=4_000,
    ),
    network=plans.NetworkOptions(latency_min_us=100_000),
    budget=plans.BudgetOptions(isr_disks_lost=2),
    operations=(
        plans.PlannedOperation(op_id=65, process=0, at_ms=0, function="append"),
        plans.PlannedOperation(op_id=51, process=0, at_ms=0, function="poll"),
    ),
    faults=(
        plans.Fault(fault_id=11, kind="power_loss", at_ms=2_000, duration_ms=0, target="broker 1"),
        plans.Fault(fault_id=51, kind="power_loss", at_ms=5_000, duration_ms=0, target="broker 3"),
        plans.Fault(fault_id=110, kind="clean_restart", at_ms=5_800, duration_ms=0, target="broker 3"),
    ),
)
"""The leader loses the only record with its power, as the budget allows; a follower's retention deletes it,
so that its log is empty from offset 1 on."""


def test_it_is_cut_to_where_the_leader_ends() -> None:
    """Rule: a log without any record, and so without any epoch to ask about, goes back to the leader's end
    and follows; it was out of range for ever.

    (Kafka: a replica whose log ends beyond its leader's is truncated to the leader's end when a fetch is out
    of range.)
    """
    trace = run(PLAN)
    (cut,) = [
        event
        for event in trace.events
        if event.name is Name.TRUNCATED and event.node == 3 and event.offset == 0
    ]
    assert (cut.end_offset, cut.cause) == (1, "leader_epoch")
    assert [verdict.decision for verdict in judge(trace)] == [Decision.OK] * len(DEFAULT_CHECKS)
