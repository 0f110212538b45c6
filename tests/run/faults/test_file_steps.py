"""Faults inside the steps of a broker's work on its files strike where they should, and are survived."""

import pytest
from attrs import evolve

from fencepost.campaign.marks.marks import marks_of
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import INSIDE, INSIDE_KINDS, BudgetOptions, Fault, TopicOptions

AT_MS = 2_000


def faults(kind: str, step: str) -> tuple[Fault, ...]:
    """Broker 1 is struck in the second call of the step; it is made to stop, start, and cut its log."""
    follows = {"at_ms": AT_MS, "duration_ms": 9_000, "target": "broker 1"}
    struck = Fault(fault_id=1, kind=kind, inside=step, parameter=2, **follows)
    if step == "truncation":  # of what it appended while it was cut off
        apart = {"at_ms": 1_000, "duration_ms": 4_000, "target": "broker 1"}
        kinds = ("isolate_zookeeper", "partition")
        return struck, *(Fault(fault_id=2 + n, kind=kind, **apart) for n, kind in enumerate(kinds))
    restart = follows | {"at_ms": 3_000, "parameter": 300}
    return struck, Fault(fault_id=2, kind="clean_restart", **restart)


@pytest.mark.parametrize("step", INSIDE)
@pytest.mark.parametrize("kind", INSIDE_KINDS)
def test_each_step_is_struck_by_each_kind_and_survived(kind: str, step: str, small_plan) -> None:
    """Rule: the fault begins where the step is; a correct cluster keeps its promises."""
    plan = small_plan(faults=faults(kind, step), budget=BudgetOptions(brokers_down=3, isr_disks_lost=3))
    compacted = TopicOptions(
        segment_bytes=200, cleanup_policy="compact,delete", retention_bytes=600, min_cleanable_dirty_ppm=0
    )
    cluster = evolve(
        plan.cluster,
        topics=(compacted,),
        log_cleaner_backoff_ms=300,
        log_retention_check_interval_ms=300,
        replica_lag_time_max_ms=1_000,
        zookeeper_session_timeout_ms=1_000,
    )
    keyed = tuple(
        evolve(one, key=f"k{one.op_id % 3}") if one.function == "append" else one for one in plan.operations
    )
    trace = run(evolve(plan, cluster=cluster, operations=keyed))
    struck = [event for event in trace.events if event.cause == kind and '"inside"' in event.detail]
    assert [event.name for event in struck] == [Name.FAULT_BEGAN]
    failed = any(event.name is Name.LOG_DIRECTORY_FAILED for event in trace.events)
    assert failed is (kind == "io_error")
    assert (f"{step}_interrupted" in marks_of(trace)) is (kind != "io_error")
    assert combine(judge(trace)).decision is Decision.OK


def test_a_replica_whose_deletion_ends_a_process_is_gone(small_plan) -> None:
    """Rule: what a step has done to the disk before its process died has happened: the topic that is made
    again begins with an empty replica (seed 47)."""
    struck = Fault(
        fault_id=1,
        kind="crash",
        inside="deletion",
        at_ms=1_500,
        duration_ms=800,
        target="broker 1",
        parameter=1,
    )
    asked = tuple(
        Fault(fault_id=2 + number, kind=kind, at_ms=at_ms, duration_ms=1, target="topic t", parameter=2)
        for number, (kind, at_ms) in enumerate((("delete_topic", 2_000), ("create_topic", 5_000)))
    )
    plan = small_plan(faults=(struck, *asked), budget=BudgetOptions(brokers_down=1))
    trace = run(evolve(plan, cluster=evolve(plan.cluster, topics=(TopicOptions(used_again=True),))))
    began = [event for event in trace.events if event.name is Name.FAULT_BEGAN and event.cause == "crash"]
    deleted = [event.time for event in trace.events if event.cause == "replica_deleted" and event.node == 1]
    assert [event.time for event in began] == deleted
    assert combine(judge(trace)).decision is Decision.OK
