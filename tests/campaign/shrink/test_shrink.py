"""Shrinking: what is left is smaller, shows the same anomaly, and does not depend on who looked."""

import sys
from collections.abc import Callable, Sequence

import pytest
from attrs import define, evolve

from fencepost.campaign.shrink.lists import leave_out
from fencepost.campaign.shrink.options import deviations, with_defaults
from fencepost.campaign.shrink.oracle import InProcess, OutOfTimeError, Target, target_of
from fencepost.campaign.shrink.shrink import shrink
from fencepost.campaign.shrink.smaller_cluster import cluster_passes, topic_of
from fencepost.campaign.shrink.text import short_plan, write_plan
from fencepost.campaign.shrink.times import earlier, rounded, rounder
from fencepost.campaign.shrink.workers import Workers
from fencepost.campaign.swarm.swarm import swarm
from fencepost.run.simulated.run import run
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation, TopicOptions
from fencepost.traces.plan_json import plan_from_json

ANOMALY = Target(anomaly="lost_write")

PLANS = ("default", "default+groups", "default+transactions", "default+retried", "default+hasty")


@define
class Says:
    """An oracle that answers by a function of the plan; after `most` questions it says what ends
    shrinking."""

    shows: Callable[[Plan], bool]
    most: int = 1_000_000
    end: type[BaseException] = OutOfTimeError
    runs: int = 0
    target: Target = ANOMALY

    def first(self, candidates: Sequence[Plan]) -> int | None:
        for place, plan in enumerate(candidates):
            if self.runs >= self.most:
                raise self.end
            self.runs += 1
            if self.shows(plan):
                return place
        return None


def failing_plan() -> Plan:
    """Two operations and three faults; with KIP-101 planted a follower cuts its log at its high watermark."""
    return Plan(
        seed=3,
        safety_ms=20_000,
        cluster=ClusterOptions(
            brokers=3,
            topics=(TopicOptions(partitions=2, replication_factor=2),),
            bugs=("KIP-101",),
            replica_lag_time_max_ms=5_000,
        ),
        operations=(
            PlannedOperation(op_id=1, process=0, at_ms=100, function="append"),
            PlannedOperation(op_id=2, process=2, at_ms=9_000, function="append", partition=1),
        ),
        faults=(
            Fault(fault_id=0, kind="crash", at_ms=103, duration_ms=300, target="follower 1 of t-0"),
            Fault(fault_id=1, kind="slow_link", at_ms=5_000, target="controller", parameter=9_000),
            Fault(fault_id=2, kind="crash", at_ms=6_000, duration_ms=300, target="leader of t-1"),
        ),
    )


@pytest.mark.parametrize("needed", [(), (0,), (39,), (3, 17, 30), tuple(range(40))])
def test_a_list_keeps_what_is_needed_and_nothing_else(needed):
    """Rule: what is left of a list is exactly what the anomaly needs, where each member counts for itself."""
    plan = Plan(seed=0)

    class Shrinking:
        def first(self, candidates):
            return next((n for n, kept in enumerate(candidates) if set(needed) <= set(kept)), None)

    Shrinking.plan = plan
    assert leave_out(Shrinking(), range(40), lambda kept: kept) == needed


def test_members_that_need_each_other_are_kept_together():
    """Rule: two members that only make sense together leave together, as a half or a quarter of the list
    does."""

    class Shrinking:
        def first(self, candidates):
            return next((n for n, kept in enumerate(candidates) if (4 in kept) == (5 in kept)), None)

    assert leave_out(Shrinking(), range(8), lambda kept: kept) == ()


def test_two_that_hold_each_other_go_together():
    """Rule: an operation and a fault, or two operations apart, that are only needed both or not at all,
    go."""
    plan = failing_plan()
    more = tuple(
        PlannedOperation(op_id=number, process=0, at_ms=9_000, function="poll") for number in (3, 4, 5)
    )
    plan = evolve(plan, operations=plan.operations + more)

    def shows(candidate: Plan) -> bool:
        there = {one.op_id for one in candidate.operations} | {10 + one.fault_id for one in candidate.faults}
        return ((1 in there) == (4 in there)) and ((3 in there) == (11 in there)) and 5 in there

    small = shrink(plan, Says(shows)).plan
    assert [one.op_id for one in small.operations] == [5] and small.faults == ()


@pytest.mark.parametrize("profile", PLANS)
def test_a_plan_without_any_need_becomes_nothing(profile):
    """Rule: each pass does its work: if everything may go, one broker with one partition and the defaults is
    left."""
    small = shrink(swarm(5, profile), Says(lambda plan: True)).plan
    topic = small.cluster.topics[0]
    assert (small.operations, small.faults, small.safety_ms, deviations(small)) == ((), (), 1, ())
    assert (small.cluster.brokers, len(small.cluster.topics), topic.partitions) == (1, 1, 1)
    assert topic.replication_factor == 1


def test_a_plan_that_needs_everything_stays():
    """Rule: shrinking ends, and keeps the plan, where no candidate shows the anomaly; a plan that does not
    show it itself is refused."""
    plan = swarm(5)
    plan = evolve(plan, operations=plan.operations[:60])
    small = shrink(plan, Says(lambda candidate: candidate == plan))
    assert small.plan == plan and small.finished and small.rounds == 1
    with pytest.raises(FencepostError, match="expected a run that shows lost_write again"):
        shrink(plan, Says(lambda candidate: False))


def test_what_the_anomaly_needs_stays():
    """Rule: an operation, a fault with its duration, an option and a client that are needed are there in the
    end, and nothing else."""
    plan = swarm(8)
    operation, fault = plan.operations[7], plan.faults[0]

    def shows(candidate: Plan) -> bool:
        return (
            any(one.op_id == operation.op_id for one in candidate.operations)
            and any(one.fault_id == fault.fault_id and one.duration_ms >= 1_234 for one in candidate.faults)
            and candidate.network.latency_min_us >= 150
            and candidate.cluster.brokers >= 2
        )

    assert fault.duration_ms >= 1_234 and shows(plan)
    small = shrink(plan, Says(shows)).plan
    assert shows(small)
    assert [one.op_id for one in small.operations] == [operation.op_id]
    assert [one.fault_id for one in small.faults] == [fault.fault_id]
    assert small.faults[0].duration_ms < 2 * 1_234 and small.cluster.brokers == 2


@pytest.mark.parametrize("end", [OutOfTimeError, KeyboardInterrupt])
def test_the_best_so_far_survives_any_end(end):
    """Rule: a limit of time and a Ctrl-C leave the last plan that showed the anomaly, and whoever keeps plans
    has it."""
    plan, kept = swarm(5), []
    small = shrink(
        plan, Says(lambda candidate: len(candidate.operations) >= 10, 40, end), on_better=kept.append
    )
    assert kept and kept[-1] == small.plan
    assert 10 <= len(small.plan.operations) < len(plan.operations)
    assert not small.finished and small.interrupted == (end is KeyboardInterrupt)


def test_every_pass_only_ever_takes_away():
    """Rule: no candidate is larger than its plan in anything that is shrunk, so that shrinking ends."""
    plan = swarm(21, "default+administered")

    def size(one: Plan) -> tuple[int, ...]:
        topics = one.cluster.topics
        return (
            len(one.operations), len(one.faults), one.cluster.brokers, len(topics), one.safety_ms,
            sum(topic.partitions for topic in topics), sum(fault.duration_ms for fault in one.faults),
            sum(each.at_ms for each in (*one.operations, *one.faults)),
        )  # fmt: skip

    class Watching(Says):
        def first(self, candidates):
            assert all(
                now <= before
                for one in candidates
                for now, before in zip(size(one), size(self.plan), strict=True)
            )
            place = super().first(candidates)
            self.plan = self.plan if place is None else candidates[place]
            return place

    oracle = Watching(lambda candidate: candidate == plan or len(candidate.operations) % 7 != 1)
    oracle.plan = plan
    shrink(plan, oracle)


def test_a_partition_takes_its_faults_along():
    """Rule: where partition 1 becomes the only one, roles follow it, and brokers by number are renamed as its
    replicas move."""
    plan = evolve(failing_plan(), faults=(
        Fault(fault_id=0, kind="crash", at_ms=1, target="leader of t-1", other="follower 2 of t-1"),
        Fault(fault_id=1, kind="crash", at_ms=1, target="broker 1", other="broker 3"),
        Fault(fault_id=2, kind="crash", at_ms=1, target="controller"),
    ))  # fmt: skip
    seen = []
    only = next(one for one in cluster_passes() if one.__name__ == "_partitions")

    class Shrinking:
        def first(self, candidates):
            seen.extend(candidates)

    Shrinking.plan = plan
    only(Shrinking())
    second = next(one for one in seen if [op.op_id for op in one.operations] == [2])
    assert second.cluster.topics[0].partitions == 1 and second.operations[0].partition == 0
    assert [(one.target, one.other) for one in second.faults] == [
        ("leader of t-0", "follower 2 of t-0"), ("broker 3", "broker 2"), ("controller", ""),
    ]  # fmt: skip
    assert [topic_of(one) for one in ("topic u", "partition a-b-3", "controller")] == ["u", "a-b", None]


def test_numbers_become_lower_and_rounder():
    """Rule: candidates for a number are lower, each once; a gap that closes moves everything behind it."""
    for value in range(3_000):
        lower = list(rounder(value))
        assert len(set(lower)) == len(lower) and all(0 <= one < value for one in lower)
    assert list(rounder(4_321)) == [0, 400, 2_000, 3_000, 4_000, 4_300] and list(rounded(87_331)) == [
        80_000,
        87_000,
    ]
    moved = earlier(failing_plan(), 5_000, 4_000)
    assert [one.at_ms for one in moved.operations] == [100, 5_000] and moved.safety_ms == 16_000
    assert [one.at_ms for one in moved.faults] == [103, 1_000, 2_000]


def test_options_are_all_that_is_not_structure():
    """Rule: every option of every profile's plans can go back to its default, and structure stays as it
    is."""
    for profile in PLANS:
        plan = swarm(11, profile)
        plain = with_defaults(plan, deviations(plan))
        assert deviations(plain) == ()
        assert [(one.op_id, one.function, one.at_ms) for one in plain.operations] == [
            (one.op_id, one.function, one.at_ms) for one in plan.operations
        ]


def test_a_real_plan_shrinks_to_the_same_whoever_runs_it():
    """Rule: the result shows the same anomaly in a real run, nothing more can go, and one process, two, or
    none at all find the same plan."""
    plan = failing_plan()
    shown = target_of(plan)
    here = shrink(plan, InProcess(target=shown.target))
    assert here.finished
    assert target_of(here.plan).target.anomaly == shown.target.anomaly
    assert (len(here.plan.operations), len(here.plan.faults), here.plan.cluster.brokers) == (1, 1, 2)
    workers = Workers(target=shown.target, jobs=2)
    try:
        there = shrink(plan, workers)
    finally:
        workers.close()
    assert there.plan == here.plan and there.finished


DIES = """
import sys
sys.stdin.readline()
for line in sys.stdin:
    sys.exit(3)
"""


def test_a_process_that_dies_shows_nothing(monkeypatch):
    """Rule: a candidate that takes its process with it is refused, and the next one gets a process of its
    own."""
    monkeypatch.setattr("fencepost.campaign.shrink.workers.COMMAND", (sys.executable, "-c", DIES))
    workers = Workers(target=ANOMALY, jobs=1)
    try:
        assert workers.first([Plan(seed=1), Plan(seed=2)]) is None
        assert workers.runs == 2
    finally:
        workers.close()


def test_another_name_is_another_bug():
    """Rule: a run whose worst anomaly has another name does not show the target, unless it was asked for by
    name."""
    plan = failing_plan()
    trace, shown = run(plan), target_of(plan)
    assert shown.target.shown_by(trace) and shown.target.shown_by_plan(plan)
    other = evolve(shown.target, anomaly="no_progress")
    assert not other.shown_by(trace) and not evolve(other, among=True).shown_by(trace)
    healthy = evolve(plan, cluster=evolve(plan.cluster, bugs=()))
    assert not shown.target.shown_by_plan(healthy)
    impossible = evolve(plan, cluster=evolve(plan.cluster, brokers=1))
    assert not shown.target.shown_by_plan(impossible)


def test_a_run_without_the_anomaly_is_refused_in_a_sentence():
    """Rule: what shows nothing, or something else, cannot be shrunk, and the sentence says what was seen."""
    healthy = evolve(failing_plan(), cluster=ClusterOptions())
    with pytest.raises(
        FencepostError, match="expected a run that shows an anomaly, saw a run that all checks found ok"
    ):
        target_of(healthy)
    with pytest.raises(FencepostError, match="expected a run that shows no_progress, saw conformance"):
        target_of(failing_plan(), anomaly="no_progress")


def test_the_limit_of_time_holds():
    """Rule: without any time the plan comes back as it was, and says so."""
    plan = failing_plan()
    small = shrink(plan, InProcess(target=ANOMALY, seconds=0.0))
    assert (small.plan, small.finished, small.interrupted, small.runs) == (plan, False, False, 0)


@pytest.mark.parametrize("profile", PLANS)
def test_the_short_form_is_the_same_plan(profile, tmp_path):
    """Rule: what is written without the defaults reads back as the same plan, and replaces a file as a
    whole."""
    for seed in range(5):
        plan = swarm(seed, profile, ("KIP-101",))
        assert plan_from_json(short_plan(plan)) == plan
    write_plan(tmp_path / "deep" / "plan.json", plan)
    write_plan(tmp_path / "deep" / "plan.json", plan)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["plan.json"]


def test_other_clients_go_if_nothing_depends_on_them():
    """Rule: what is left is alike; where a second one is needed it stays alone."""
    plan = swarm(1, "default+different+groups")
    plan = evolve(plan, consumers=(*plan.consumers, evolve(plan.consumer, commit="none")))
    assert shrink(plan, Says(lambda _: True)).plan.consumers == ()
    needs = Says(lambda one: any(other.commit == "none" for other in one.consumers))
    shrunk = shrink(plan, needs).plan
    assert len(shrunk.consumers) == 1 and shrunk.clients == ()
