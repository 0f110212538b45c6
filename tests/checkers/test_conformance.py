"""checkers/conformance.py: roles, ZooKeeper and the verdict: each guard has a trace that it convicts, and the
nearest legal one."""

import pytest

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.traces.events import Event, Name
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Claims
from tests.checkers.conformance_by_hand import NEW_LEADER, START, accept, convict
from tests.checkers.traces_by_hand import (
    appends,
    copies,
    cuts,
    dump,
    event,
    fault,
    follows,
    hears,
    isr_updated,
    leads,
    recovers,
    shows,
    starts,
    state,
    trace,
)


def test_a_healthy_story_is_explained() -> None:
    """Rule: election, fork, truncation, catching up, shrink and expand of a correct Kafka are no findings."""
    accept(
        *START,
        appends(1, 0, 2, 12),
        state(9, 2, 1, 2, 3, version=1),
        appends(1, 0, 3, 13),
        leads(2, 1, 2, 3, end=2, hw=2),
        follows(3, 2, 1, end=2, hw=2),
        appends(2, 1, 2, 20),
        copies(3, 1, 2, 20),
        shows(2, 1, 3),
        follows(1, 2, 1, end=4, hw=2),
        cuts(1, 2, 1, end=4, to=2, hw=2),
        copies(1, 1, 2, 20),
        hears(1, 1, 3),
        state(2, 2, 1, 1, 2, 3, version=2),
        isr_updated(2, 1, 1, 2, 3),
        state(2, 2, 1, 2, version=3),
        isr_updated(2, 1, 2),
        appends(2, 1, 3, 21),
        shows(2, 1, 4),
        dump(1, 0, 0, 10, 11, end=3, hw=3),
        dump(1, 1, 2, 20, end=3, hw=3),
    )


def test_the_certificate_names_both_events() -> None:
    """Rule: a finding says the guard, what was seen with numbers, and the earlier event that it
    contradicts."""
    finding = convict(*START, shows(1, 0, 2), appends(1, 0, 2, 12), shows(1, 0, 3))
    assert finding.events == (1, 12)
    assert finding.expected == (
        "a high watermark from 2 up to what every member of the ISR is known to hold in epoch 0 (broker 1: "
        "3, broker 2: 2, broker 3: 2)"
    )
    assert finding.seen == "advance_high_watermark: leader 1 moved it to 3"


# ---- roles


def test_only_zookeeper_makes_a_leader() -> None:
    """Rule: a broker leads in an epoch only if ZooKeeper named it for that epoch."""
    assert "named 1" in convict(*START, leads(2, 0, 1, 2, 3, end=2, hw=2)).seen
    assert "does not know that epoch" in convict(*START, leads(2, 1, 2, 3, end=2, hw=2)).seen
    accept(*NEW_LEADER)


def test_a_follower_follows_whom_zookeeper_named() -> None:
    """Rule: LeaderAndIsr repeats ZooKeeper."""
    convict(*START, state(9, 2, 1, 2, 3), follows(3, 1, 1, end=2))
    convict(*START, state(9, 2, 1, 2, 3), follows(2, 2, 1, end=2))
    accept(*START, state(9, 2, 1, 2, 3), follows(3, 2, 1, end=2))


def test_a_running_broker_learns_higher_epochs_only() -> None:
    """Rule (KAFKA-1188): LeaderAndIsr of an epoch at or below the known one is ignored, unless the broker has
    restarted."""
    late = [*NEW_LEADER, follows(3, 2, 1, end=2, hw=2)]
    convict(*late, follows(3, 1, 0, end=2, hw=2))
    convict(*late, follows(3, 2, 1, end=2, hw=2))
    accept(*late, fault("crash", 3), starts(3), recovers(3, 2), follows(3, 2, 1, end=2))


def test_a_late_leader_of_an_old_epoch_is_legal() -> None:
    """Rule: LeaderAndIsr may be late: a deposed broker may take over an epoch that is over."""
    accept(
        *START, state(9, 2, 1, 2, 3), state(9, 3, 2, 2, 3), leads(3, 2, 2, 3, end=2), leads(2, 1, 2, 3, end=2)
    )


def test_a_leader_starts_where_its_log_ends() -> None:
    """Rule: taking a role does not change the log, and no high watermark is past it."""
    assert "end at 2" in convict(*START, state(9, 2, 1, 2, 3), leads(2, 1, 2, 3, end=1, hw=1)).expected
    convict(*START, state(9, 2, 1, 2, 3), leads(2, 1, 2, 3, end=2, hw=3))


def test_a_leader_believes_an_isr_of_its_epoch() -> None:
    """Rule: the ISR in LeaderAndIsr is one that ZooKeeper held in that epoch."""
    convict(*START, state(9, 2, 1, 2, 3), leads(2, 1, 1, 2, 3, end=2, hw=2))


def test_two_leaders_of_one_epoch_are_not_explained() -> None:
    """Rule: an epoch has one leader."""
    convict(*NEW_LEADER, leads(3, 1, 2, 3, end=2, hw=2))


def test_a_leader_may_lead_its_epoch_again_after_a_restart() -> None:
    """Rule: a restart that no controller watched is an accepted hazard: an older high watermark, the same
    epoch."""
    accept(
        *START,
        fault("bounce", 1),
        starts(1),
        recovers(1, 2, hw=1),
        leads(1, 0, 1, 2, 3, end=2, hw=1),
        appends(1, 0, 2, 12),
    )


# ---- ZooKeeper


def test_each_election_raises_the_epoch_by_one() -> None:
    """Rule: leader epochs neither jump nor decrease."""
    convict(*START, state(9, 2, 2, 2, 3))
    convict(*NEW_LEADER, state(9, 1, 0, 1))


def test_a_clean_election_stays_in_the_isr() -> None:
    """Rule: a leader comes from the ISR, nobody joins it by an election, and it is never empty
    (KAFKA-708)."""
    shrunk = [*START, state(1, 1, 0, 1, 2, version=1)]
    convict(*shrunk, state(9, 3, 1, 3))
    convict(*shrunk, state(9, 2, 1, 2, 3))
    convict(*shrunk, state(9, -1, 1))
    accept(*shrunk, state(9, 2, 1, 2))
    accept(*shrunk, state(9, -1, 1, 1))


def test_unclean_election_is_legal_where_the_topic_allows_it() -> None:
    """Rule: the options of the plan decide."""
    events = (*START, state(1, 1, 0, 1, version=1), state(9, 3, 1, 3))
    topic = TopicOptions(name="t", unclean_leader_election=True)
    plan = plan_to_json(Plan(seed=1, cluster=ClusterOptions(topics=(topic,))))
    assert conformance.judge(trace(*events, plan=plan)).decision is Decision.OK
    clean = plan_to_json(Plan(seed=1, cluster=ClusterOptions(topics=(TopicOptions(name="t"),))))
    assert conformance.judge(trace(*events, plan=clean)).decision is Decision.ILLEGAL
    broken = conformance.judge(trace(*events, plan="{"))
    assert (broken.decision, "plan of trace 1" in broken.reason) == (Decision.ASSUMPTION_BROKEN, True)


def test_only_the_leader_writes_within_an_epoch() -> None:
    """Rule: within an epoch the ISR changes by the leader's compare-and-set alone, and the leader stays."""
    convict(*START, state(2, 1, 0, 1, 2, version=1))
    convict(*START, state(1, 2, 0, 2, version=1))
    convict(*START, state(1, 1, 0, 2, 3, version=1))
    convict(*START, state(1, 1, 0, 1, 2, version=7))
    accept(*START, state(1, 1, 0, 1, 2, version=1))


def test_a_follower_joins_the_isr_caught_up() -> None:
    """Rule (KAFKA-7128): at the high watermark and at the start of the leader's epoch, by a fetch of that
    epoch."""
    alone = [
        *START,
        state(1, 1, 0, 1, 2, version=1),
        appends(1, 0, 2, 12),
        copies(2, 0, 2, 12),
        state(9, 2, 1, 2, version=2),
        leads(2, 1, 2, end=3, hw=2),
    ]
    assert "has not fetched" in convict(*alone, state(2, 2, 1, 2, 3, version=3)).seen
    behind = [*alone, follows(3, 2, 1, end=2, hw=2)]
    finding = convict(*behind, state(2, 2, 1, 2, 3, version=3))
    assert finding.expected == (
        "broker 3 to join the ISR at or past the high watermark 2 and the start 3 of leader epoch 1"
    )
    accept(*behind, copies(3, 0, 2, 12), state(2, 2, 1, 2, 3, version=3))


def test_an_accepted_isr_change_stands_in_zookeeper() -> None:
    """Rule: a leader takes only what ZooKeeper held as accepted."""
    convict(*START, isr_updated(1, 0, 1, 2))
    convict(*START, state(1, 1, 0, 1, 2), isr_updated(2, 0, 1, 2))
    accept(*START, state(1, 1, 0, 1, 2), isr_updated(1, 0, 1, 2))


# ---- the verdict


def test_each_partition_is_judged_to_its_first_mismatch() -> None:
    """Rule: one wrong event is one finding; what follows from it is not counted again."""
    verdict = conformance.judge(trace(*START, appends(1, 0, 5, 12), appends(1, 0, 9, 13)))
    assert [finding.events for finding in verdict.findings] == [(10,)]


@pytest.mark.parametrize("events", [(), (event(Name.MARK, cause="x"), starts(1))])
def test_a_trace_without_replica_events_claims_nothing(events: tuple[Event, ...]) -> None:
    """Rule: a foreign history of client operations is Ok, with the reason."""
    verdict = conformance.judge(trace(*events))
    assert (verdict.decision, verdict.reason) == (Decision.OK, "the trace has no replica events")


def test_replicas_without_zookeeper_cannot_be_mapped() -> None:
    """Rule: a trace that shows replicas but never ZooKeeper's states is too weak, not wrong; so is one whose
    claims say so."""
    assert conformance.judge(trace(*START[1:])).decision is Decision.ASSUMPTION_BROKEN
    weak = trace(*START, claims=Claims(assumption_broken="no controller was ever elected"))
    assert conformance.judge(weak).reason == "no controller was ever elected"
