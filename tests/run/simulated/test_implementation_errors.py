"""A process that ends by a mistake of its own is a finding: judged, counted, shrunk and replayed like any
other."""

import pytest
from attrs import evolve

from fencepost.bugs import BUGS, PlantedBug
from fencepost.campaign.shrink.oracle import InProcess, target_of
from fencepost.campaign.shrink.shrink import shrink
from fencepost.campaign.swarm.swarm import swarm
from fencepost.campaign.workers.results import Job, Orders, Tally, Task
from fencepost.campaign.workers.worker import Worker
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.impl.client.consumer.coordinator_requests import ConsumerCoordinator
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.replication.fetcher import ReplicaFetcher
from fencepost.report.timeline import as_plain, timeline
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name
from fencepost.traces.operations import Outcome
from fencepost.traces.plan import Fault
from tests.bugs.found import FOUND


class FollowsOnlyAWhile(ReplicaFetcher):
    """A follower asserts that its leader sends nothing at offset 3."""

    def on_fetched(self, source, response):
        """Fail in the midst of a step that has already recorded something."""
        super().on_fetched(source, response)
        followed = self.conversations[source].followings.values()
        ends = [following.partition.log.log_end_offset for following in followed]
        assert 3 not in ends, f"log ends {ends}"


class ElectsByAccident(LeaderElection):
    """A controller looks up a broker that is gone."""

    def offline(self, *facts, **more):
        """KeyError."""
        return {}["broker 9"]


class JoinsByAccident(ConsumerCoordinator):
    """A consumer divides by the number of members that it does not know."""

    def join(self):
        """ZeroDivisionError."""
        return 1 // 0


PLANTED = {
    "fetcher": ("TEST-BROKER", FollowsOnlyAWhile),
    "leader_election": ("TEST-CONTROLLER", ElectsByAccident),
    "consumer_coordinator": ("TEST-CLIENT", JoinsByAccident),
}


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    """The three mistakes, in the zoo for as long as a test runs."""
    for role, (bug, part) in PLANTED.items():
        row = PlantedBug(bug=bug, role=role, part=part, anomalies=frozenset({"implementation_error"}))
        monkeypatch.setitem(BUGS, bug, row)


def with_bug(plan, bug):
    """The plan with a bug planted."""
    return evolve(plan, cluster=evolve(plan.cluster, bugs=(bug,)))


def errors(trace):
    """Its implementation errors."""
    return [event for event in trace.events if event.name is Name.IMPLEMENTATION_ERROR]


def verdict_of(trace):
    """What all checks say together."""
    return combine(judge(trace))


def test_an_assertion_in_a_broker_is_the_verdict_and_the_run_goes_on(small_plan):
    """Rule: the broker ends, what its last step had recorded stays, nobody else notices but by its absence,
    and the finding says what failed and where."""
    trace = run(with_bug(small_plan(), "TEST-BROKER"))
    first = errors(trace)[0]
    step = [event for event in trace.events if (event.time, event.node) == (first.time, first.node)]
    assert [event.name for event in step] == [Name.APPENDED, Name.HIGH_WATERMARK, Name.IMPLEMENTATION_ERROR]
    before = step[0]
    assert (before.name, before.node, before.offset + len(before.values)) == (Name.APPENDED, first.node, 3)
    assert first.cause == "AssertionError" and "log ends [" in first.detail
    verdict = verdict_of(trace)
    assert verdict.anomaly == "implementation_error"
    (finding,) = [one for one in verdict.findings if one.anomaly == "implementation_error"]
    assert f"broker {first.node} to go on" in finding.expected
    assert finding.seen.startswith("AssertionError: log ends [") and "at MessageArrived" in finding.seen
    assert "FollowsOnlyAWhile.on_fetched" in finding.seen
    assert trace.events[finding.events[0]] is first
    restarted = [e for e in trace.events if e.name is Name.BROKER_STARTED and e.node == first.node]
    assert restarted[-1].time > first.time, "it is started again"
    assert sum(operation.outcome is Outcome.OK for operation in trace.operations) > 3
    (line,) = [
        text
        for text in as_plain(timeline(trace, events=finding.events)).splitlines()
        if text.startswith(">>>")
    ]
    assert f"broker {first.node}" in line and "ENDS by a mistake of its own: AssertionError" in line


def test_an_exception_in_a_controller_is_the_verdict(small_plan):
    """Rule: a controller is a broker like any other: its mistake names the run."""
    crash = Fault(fault_id=0, kind="crash", at_ms=3_000, duration_ms=3_000, target="leader of t-0")
    trace = run(with_bug(small_plan(faults=(crash,)), "TEST-CONTROLLER"))
    assert {event.cause for event in errors(trace)} == {"KeyError"}
    assert verdict_of(trace).anomaly == "implementation_error"


def test_an_exception_in_a_client_is_the_verdict_and_names_its_process():
    """Rule: a client that ends is no broker: its process is named, and its operation stays unknown."""
    trace = run(swarm(0, "default+groups", bugs=("TEST-CLIENT",)))
    first = errors(trace)[0]
    assert (first.node, first.cause) == (-1, "ZeroDivisionError")
    verdict = verdict_of(trace)
    assert verdict.anomaly == "implementation_error"
    finding = next(one for one in verdict.findings if one.anomaly == "implementation_error")
    assert finding.seen.startswith("in process ") and "JoinsByAccident.join" in finding.seen
    assert finding.expected.startswith("a client to go on")


def test_the_same_plan_fails_in_the_same_way_and_shrinks(small_plan):
    """Rule: the run replays to the same digest, and shrinking keeps implementation_error with fewer
    operations."""
    plan = with_bug(small_plan(), "TEST-BROKER")
    assert run(plan).digest == run(plan).digest
    shown = target_of(plan)
    assert shown.target.anomaly == "implementation_error"
    small = shrink(plan, InProcess(target=shown.target, seconds=30)).plan
    assert len(small.operations) <= 4 < len(plan.operations)
    assert target_of(small, expected="implementation_error").finding.anomaly == "implementation_error"


def test_a_campaign_counts_it_as_a_finding_not_as_a_crashed_run():
    """Rule: a worker judges such a run; `crashed` is for runs that did not end."""
    job = Job(profile="default", bugs=("TEST-BROKER",))
    result = Worker(orders=Orders(job=job, out="", name="w")).do(Task(seed=3))
    assert (result.crash, result.decision) == ("", Decision.ILLEGAL)
    tally = Tally()
    tally.add(result)
    assert tally.anomalies == {"implementation_error": 1} and not tally.crashed


def test_a_healthy_run_has_none(small_plan):
    """The control: without the plants nothing of it is in the trace."""
    trace = run(small_plan())
    assert not errors(trace) and verdict_of(trace).decision is Decision.OK


@pytest.mark.parametrize("bug", ["KAFKA-5634", "KAFKA-3978", "KAFKA-9491"])
def test_the_bugs_of_the_bounds_keep_their_verdict(bug):
    """Rule: the assertion of the bounds ends the broker, the run goes on to its end, and the finding is still
    high_watermark_outside_log: what the broker recorded convicts it, not what it asserts."""
    trace = run(FOUND[bug])
    assert "is not between the log start" in errors(trace)[0].detail
    verdict = verdict_of(trace)
    assert verdict.anomaly == "high_watermark_outside_log"
    assert "implementation_error" in {finding.anomaly for finding in verdict.findings}
    assert {Name.REPLICA_LOG, Name.ASKED} & {event.name for event in trace.events[-10:]}


def test_a_step_that_no_state_allows_is_a_finding(monkeypatch):
    """Rule: a controller whose new replicas never come to their first state says that it refused the next."""
    monkeypatch.setattr(ControllerState, "adopt_replicas", lambda controller, key: None)
    verdict = combine(judge(run(swarm(2, "default"))))
    assert {finding.anomaly for finding in verdict.findings} == {"illegal_transition"}
