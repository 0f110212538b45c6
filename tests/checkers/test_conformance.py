"""checkers/conformance.py: roles, ZooKeeper and the verdict: each guard has a trace that it convicts, and the
nearest legal one."""

import pytest
from attrs import evolve

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.model.refinement import ACTIONS, Refinement
from fencepost.traces.events import UNCLEAN_REQUESTED, Event, Name
from fencepost.traces.plan import ClusterOptions, Plan, TopicOptions
from fencepost.traces.plan_json import plan_to_json
from fencepost.traces.trace import Claims
from tests.checkers.conformance_by_hand import FORKED, NEW_LEADER, START, accept, begins, convict
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


# checkers/conformance.py: what only few stories reach: gaps, starts of logs, second incarnations,
# deletions, and when a plan is read.


def deleted(node: int, partition: int = 0, cause: str = "replica_deleted") -> Event:
    """A broker deleted its replica, or something else is marked of it."""
    return event(Name.MARK, node=node, cause=cause, topic="t", partition=partition)


# ---- what a trace claims


@pytest.mark.parametrize("events", [(fault("crash", 1),), (starts(1),), (state(1, 1, 0, 1, version=0),)])
def test_hosts_and_zookeeper_claim_nothing_of_replicas(events: tuple[Event, ...]) -> None:
    """Rule: faults, starts and ZooKeeper's states show no replica; a trace of nothing else is Ok with a
    reason."""
    verdict = conformance.judge(trace(*events))
    assert (verdict.decision, verdict.reason) == (Decision.OK, "the trace has no replica events")


@pytest.mark.parametrize(
    "alone",
    [
        leads(1, 0, 1),
        follows(2, 1, 0),
        appends(1, 0, 0, 10),
        cuts(2, 1, 0, 2, 1),
        shows(1, 0, 1),
        isr_updated(1, 0, 1),
        recovers(1, 0),
        dump(1, 0, 0, 10, end=1, hw=0),
    ],
    ids=lambda one: one.name.value,
)
def test_each_replica_event_claims_something(alone: Event) -> None:
    """Rule: one event of a replica is enough for the trace to be mapped, or to be too weak for it."""
    verdict = conformance.judge(trace(alone))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert "none of ZooKeeper's partition states" in verdict.reason


def test_every_event_that_moves_the_map_is_an_action() -> None:
    """Rule: the table names each kind of event that may be an action, those of hosts included; only a moved
    start is none, as logs keep all records."""
    taken = {name for name, actions in ACTIONS.items() if actions}
    hosts = {Name.BROKER_STARTED, Name.FAULT_BEGAN}
    quorum = {Name.PARTITION_STATE, Name.ISR_UPDATED}
    roles = {Name.BECAME_LEADER, Name.BECAME_FOLLOWER, Name.HIGH_WATERMARK}
    assert taken == hosts | quorum | roles | {
        Name.APPENDED,
        Name.TRUNCATED,
        Name.LOG_RECOVERED,
        Name.REPLICA_LOG,
    }


# ---- ZooKeeper


def test_a_plan_is_read_only_for_an_election_that_is_not_clean() -> None:
    """Rule: whether a topic allows unclean election matters where a leader comes from outside the ISR, and
    nowhere else."""
    assert conformance.judge(trace(*NEW_LEADER, plan="{")).decision is Decision.OK
    outside = [*START, state(1, 1, 0, 1, version=1), state(9, 3, 1, 3)]
    assert conformance.judge(trace(*outside, plan="{")).decision is Decision.ASSUMPTION_BROKEN
    assert convict(*outside).expected.endswith("never an empty one (unclean leader election is off)")


def test_brokers_tell_which_topics_allow_unclean_election() -> None:
    """Rule: beside the plan what brokers applied decides: this setting, of this topic, and no other."""
    outside = [state(1, 1, 0, 1, version=1), state(9, 3, 1, 3)]
    applied = event(
        Name.TOPIC_CONFIGURED, node=1, topic="t", detail='{"unclean.leader.election.enable":"true"}'
    )
    asked_for = event(Name.MARK, node=1, topic="t", cause=UNCLEAN_REQUESTED)
    plan = plan_to_json(Plan(seed=1))
    for told, decision in (
        (asked_for, Decision.OK),
        (evolve(asked_for, topic="u"), Decision.ILLEGAL),
        (evolve(asked_for, cause="started"), Decision.ILLEGAL),
        (applied, Decision.OK),
        (evolve(applied, topic="u"), Decision.ILLEGAL),
        (evolve(applied, detail='{"unclean.leader.election.enable":"false"}'), Decision.ILLEGAL),
        (evolve(applied, detail="{}"), Decision.ILLEGAL),
    ):
        assert conformance.judge(trace(*START, told, *outside, plan=plan)).decision is decision


def test_a_map_by_itself_allows_nothing_unclean_and_counts() -> None:
    """Rule: where nobody says that a topic allows unclean elections none does; explained events are counted
    by name, mismatches are not."""
    refinement = Refinement()
    events = [*START, state(1, 1, 0, 1, version=1), state(9, 3, 1, 3)]
    wrong = [position for position, one in enumerate(events) if refinement.step(position, one) is not None]
    assert wrong == [len(events) - 1]
    assert (refinement.steps[Name.APPENDED], refinement.steps[Name.PARTITION_STATE]) == (3, 2)


def test_versions_are_compared_once_one_is_known() -> None:
    """Rule: a first write whose version nobody recorded says nothing about the second."""
    unversioned = [state(1, 1, 0, 1, 2, 3), leads(1, 0, 1, 2, 3), state(1, 1, 0, 1, 2, version=7)]
    accept(*unversioned)
    accept(*unversioned, state(1, 1, 0, 1, version=8))
    accept(*unversioned, state(1, 1, 0, 1))
    convict(*unversioned, state(1, 1, 0, 1, version=7))
    convict(state(1, 1, 0, 1, 2, 3, version=0), *unversioned[1:])


def test_who_never_fetched_does_not_join_an_empty_log_either() -> None:
    """Rule: to be at offset 0 a follower must have said so."""
    young = [state(1, 1, 0, 1, 2, version=0), leads(1, 0, 1, 2)]
    convict(*young, state(1, 1, 0, 1, 2, 3, version=1))
    accept(*young, follows(3, 1, 0), state(1, 1, 0, 1, 2, 3, version=1))


def test_a_leader_that_never_took_over_writes_no_isr() -> None:
    """Rule: a change of the ISR is the leader's, once it leads in that epoch."""
    early = convict(*START, state(9, 2, 1, 2, 3, version=1), state(2, 2, 1, 2, version=2))
    assert early.expected == "broker 2 to lead in epoch 1"
    convict(*NEW_LEADER, isr_updated(2, 0, 1, 2, 3))


# ---- roles


def test_a_leaders_earlier_incarnation_still_explains() -> None:
    """Rule: a follower may append late what the leader of its epoch held before a power loss, and cut it when
    it learns better."""
    again = [
        *NEW_LEADER,
        follows(3, 2, 1, end=2, hw=2),
        appends(2, 1, 2, 20),
        fault("power_loss", 2),
        starts(2),
        recovers(2, 2, hw=2),
        leads(2, 1, 2, 3, end=2, hw=2),
        appends(2, 1, 2, 21),
    ]
    accept(*again, copies(3, 1, 2, 20))
    accept(*again, copies(3, 1, 2, 20), cuts(3, 2, 1, end=3, to=2, hw=2), copies(3, 1, 2, 21))
    accept(*again, copies(3, 1, 2, 21))
    finding = convict(*again, copies(3, 1, 2, 22))
    assert (finding.offset, finding.events[0]) == (2, 11)


def test_a_leader_that_leads_again_starts_at_the_lower_end() -> None:
    """Rule (KAFKA-7128): of two starts of one epoch the lower one is what a follower must have reached."""
    alone = [
        *START,
        state(1, 1, 0, 1, 2, version=1),
        appends(1, 0, 2, 12),
        copies(2, 0, 2, 12),
        state(9, 2, 1, 2, version=2),
        leads(2, 1, 2, end=3, hw=2),
        follows(3, 2, 1, end=2, hw=2),
    ]
    again = [*alone, fault("power_loss", 2), starts(2), recovers(2, 2, hw=2), leads(2, 1, 2, end=2, hw=2)]
    convict(*alone, state(2, 2, 1, 2, 3, version=3))
    accept(*again, state(2, 2, 1, 2, 3, version=3))


def test_the_latest_incarnation_of_a_leader_is_its_log() -> None:
    """Rule: of several incarnations in one epoch the last one grows and is compared with a new start; none of
    the earlier ones is forgotten."""
    second = [
        *NEW_LEADER,
        follows(3, 2, 1, end=2, hw=2),
        appends(2, 1, 2, 20),
        fault("power_loss", 2),
        starts(2),
        recovers(2, 2, hw=2),
        leads(2, 1, 2, 3, end=2, hw=2),
        appends(2, 1, 2, 21, 22),
    ]
    accept(*second, state(2, 2, 1, 2, version=2), shows(2, 1, 4))
    third = [
        *second,
        fault("power_loss", 2),
        starts(2),
        recovers(2, 3, hw=2),
        leads(2, 1, 2, 3, end=3, hw=2),
        appends(2, 1, 3, 23),
    ]
    for values in ((20,), (21, 22), (21, 23)):
        accept(*third, copies(3, 1, 2, *values))
    convict(*third, copies(3, 1, 2, 20, 23))


def test_a_leader_that_leads_again_gave_up_what_it_gave_up() -> None:
    """Rule: the highest start that a leader's log had in an epoch counts for its followers, whatever a
    restart says of it."""
    gone = [*START, appends(1, 0, 2, 12, 13, 14), begins(1, 0, 4), starts(1)]
    again = [*gone, evolve(recovers(1, 5, hw=2), log_start_offset=1), leads(1, 0, 1, 2, 3, end=5, hw=2)]
    accept(*again, cuts(3, 1, 0, end=2, to=4, cause="full"))


def test_a_follower_takes_the_high_watermark_that_it_says() -> None:
    """Rule: what a broker had exposed as a leader does not excuse what it hears as a follower."""
    behind = [
        *START,
        state(9, 2, 1, 2, 3, version=1),
        leads(2, 1, 2, 3, end=2, hw=1),
        follows(1, 2, 1, end=2, hw=1),
    ]
    accept(*behind, hears(1, 1, 1))
    convict(*behind, hears(1, 1, 2))


def test_a_role_is_remembered_over_two_starts() -> None:
    """Rule: a process that comes up twice before its log is opened may still find the truncation done that
    the first one began."""
    accept(*FORKED, fault("crash", 1), starts(1), starts(1), recovers(1, 2))
    convict(*FORKED, fault("crash", 1), starts(1), starts(1), recovers(1, 1))


# ---- hosts


def test_a_fault_of_broker_zero_is_one() -> None:
    """Rule: broker ids begin at 0; a fault without a broker (of the network) touches no replica."""
    young = [state(1, 1, 0, 0, 1, version=0), leads(1, 0, 0, 1), follows(0, 1, 0)]
    accept(*young, fault("crash", 0), starts(0), recovers(0, 1))
    convict(*young, fault("crash", -1), starts(0), recovers(0, 1))
    convict(*young, fault("crash", 1), starts(0), recovers(0, 1))


def test_a_log_directory_that_fails_interrupts_a_step() -> None:
    """Rule: a file call that failed may have written all the same; it takes nothing that was there. Bit rot
    may."""
    failed = event(Name.LOG_DIRECTORY_FAILED, node=2)
    accept(*START, failed, starts(2), recovers(2, 3))
    convict(*START, failed, starts(2), recovers(2, 1))
    convict(*START, evolve(failed, node=3), starts(2), recovers(2, 3))
    accept(*START, fault("bit_rot", 2), starts(2), recovers(2, 1))


def test_a_fault_before_a_partition_was_seen_counts_for_it() -> None:
    """Rule: what a power loss took is taken, whether or not anything was told of the replica before."""
    accept(fault("power_loss", 1), state(1, 1, 0, 1, version=0), recovers(1, 2), leads(1, 0, 1, end=2))
    convict(fault("power_loss", 2), state(1, 1, 0, 1, version=0), recovers(1, 2))


def test_a_power_loss_outranks_a_crash_that_follows() -> None:
    """Rule: what the first took, no later fault gives back."""
    accept(*START, fault("power_loss", 2), fault("crash", 2), starts(2), recovers(2, 1))
    accept(*START, fault("crash", 2), fault("power_loss", 2), starts(2), recovers(2, 1))


def test_a_deleted_replica_has_no_log() -> None:
    """Rule: what comes to the same broker later is another replica; other marks delete nothing, nor does one
    of another partition or broker."""
    anew = [follows(2, 1, 0), copies(2, 0, 0, 10, 11)]
    accept(*START, starts(2), deleted(2), *anew)
    convict(*START, starts(2), anew[0])
    convict(*START, starts(2), deleted(2, cause="other"), anew[0])
    convict(*START, starts(2), deleted(2, partition=1), anew[0])
    convict(*START, starts(2), deleted(3), anew[0])
    convict(*START, starts(2), evolve(fault("replica_deleted", 2), topic="t", partition=0), anew[0])
    accept(*START, deleted(9))
