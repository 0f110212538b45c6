"""A follower's waits when the time of day on its host is set back."""

from itertools import pairwise

from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.trace import Trace

BACK_MS = 9_999
"""An odd parameter of clock_jump sets a clock back."""
APPENDS = tuple(
    PlannedOperation(op_id=n, process=n % 2, at_ms=100 * n, function="append" if n % 3 else "poll")
    for n in range(1, 120)
)


def longest_gap(trace: Trace) -> int:
    """The longest time in which the follower copied nothing, in nanoseconds, while clients append."""
    copied = [
        event.time
        for event in trace.events
        if event.name is Name.APPENDED and event.node == 2 and event.time < 12_500_000_000
    ]
    return max(later - earlier for earlier, later in pairwise(copied))


def test_a_follower_whose_clock_is_set_back_goes_on_fetching() -> None:
    """Rule (LIVENESS, found by seed 0 of chaos): a wait is no longer than its back-off, whatever the time of
    day was when it began. The follower's clock went back beyond the moment until which it was to wait, so it
    did not fetch for as long as the clock had gone back, and nothing was committed meanwhile."""
    fault = Fault(
        fault_id=1, kind="clock_jump", at_ms=2_000, duration_ms=200, target="broker 2", parameter=BACK_MS
    )
    topic = TopicOptions(replication_factor=2)
    cluster = ClusterOptions(
        brokers=2, topics=(topic,), replica_lag_time_max_ms=3_000, replica_fetch_wait_max_ms=100
    )
    trace = run(Plan(seed=1, safety_ms=14_000, cluster=cluster, operations=APPENDS, faults=(fault,)))
    follows = {event.node for event in trace.events if event.name is Name.BECAME_FOLLOWER}
    assert follows == {2}
    assert longest_gap(trace) < 2_000_000_000
    assert not [finding for verdict in judge(trace) for finding in verdict.findings]


def test_a_request_without_answer_is_given_up_although_the_clock_was_set_back() -> None:
    """Rule: nor does the patience with a leader grow. The leader is cut off just before the clock is set
    back, and the request on the way never comes."""
    cut = Fault(fault_id=1, kind="loss", at_ms=2_000, duration_ms=400, target="broker 1", parameter=1_000_000)
    back = Fault(
        fault_id=2, kind="clock_jump", at_ms=2_200, duration_ms=11_000, target="broker 2", parameter=BACK_MS
    )
    cluster = ClusterOptions(
        brokers=2,
        topics=(TopicOptions(replication_factor=2),),
        replica_lag_time_max_ms=30_000,
        replica_fetch_wait_max_ms=100,
        controller_request_timeout_ms=500,
    )
    plan = Plan(seed=1, safety_ms=14_000, cluster=cluster, operations=APPENDS, faults=(cut, back))
    assert longest_gap(run(plan)) < 4_000_000_000
