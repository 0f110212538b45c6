"""checkers/conformance.py: what only few stories reach: gaps, starts of logs, second incarnations, deletions, and when a plan is read."""

import pytest
from attrs import evolve

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.traces.events import Event, Name
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

FORKED = [*START, appends(1, 0, 2, 12), *NEW_LEADER[10:], follows(1, 2, 1, end=3, hw=2)]
"""1 has a record at offset 2 that the new leader 2 lacks, and follows it."""


def begins(node: int, epoch: int, start: int) -> Event:
    """The start of a log moved."""
    return event(
        Name.LOG_START, node=node, leader_epoch=epoch, log_start_offset=start, topic="t", partition=0
    )


def deleted(node: int, partition: int = 0, cause: str = "replica_deleted") -> Event:
    """A broker deleted its replica, or something else is marked of it."""
    return event(Name.MARK, node=node, cause=cause, topic="t", partition=partition)


# ---- what a trace claims


@pytest.mark.parametrize("events", [(fault("crash", 1),), (starts(1),), (state(1, 1, 0, 1, version=0),)])
def test_hosts_and_zookeeper_claim_nothing_of_replicas(events: tuple[Event, ...]) -> None:
    """Rule: faults, starts and ZooKeeper's states show no replica; a trace of nothing else is Ok with a reason."""
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


# ---- ZooKeeper


def test_a_plan_is_read_only_for_an_election_that_is_not_clean() -> None:
    """Rule: whether a topic allows unclean election matters where a leader comes from outside the ISR, and nowhere else."""
    assert conformance.judge(trace(*NEW_LEADER, plan="{")).decision is Decision.OK
    outside = [*START, state(1, 1, 0, 1, version=1), state(9, 3, 1, 3)]
    assert conformance.judge(trace(*outside, plan="{")).decision is Decision.ASSUMPTION_BROKEN
    assert convict(*outside).expected.endswith("never an empty one (unclean leader election is off)")


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
    convict(*START, state(9, 2, 1, 2, 3, version=1), state(2, 2, 1, 2, version=2))
    convict(*NEW_LEADER, isr_updated(2, 0, 1, 2, 3))


# ---- roles


def test_a_leaders_earlier_incarnation_still_explains() -> None:
    """Rule: a follower may append late what the leader of its epoch held before a power loss, and cut it when it learns better."""
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
    """Rule: a process that comes up twice before its log is opened may still find the truncation done that the first one began."""
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
    """Rule: a file call that failed may have written all the same; it takes nothing that was there. Bit rot may."""
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
    """Rule: what comes to the same broker later is another replica; other marks delete nothing, nor does one of another partition or broker."""
    anew = [follows(2, 1, 0), copies(2, 0, 0, 10, 11)]
    accept(*START, starts(2), deleted(2), *anew)
    convict(*START, starts(2), anew[0])
    convict(*START, starts(2), deleted(2, cause="other"), anew[0])
    convict(*START, starts(2), deleted(2, partition=1), anew[0])
    convict(*START, starts(2), deleted(3), anew[0])
    convict(*START, starts(2), evolve(fault("replica_deleted", 2), topic="t", partition=0), anew[0])
    accept(*START, deleted(9))


# ---- logs


def test_a_follower_may_begin_below_its_start() -> None:
    """Rule (KAFKA-6975): an empty log takes the batch in which its leader's log starts, from the batch's begin; one with records does not."""
    accept(*START, begins(3, 0, 2), copies(3, 0, 1, 11))
    accept(*START, begins(3, 0, 2), copies(3, 0, 0, 10, 11))
    convict(*START, begins(3, 0, 1), copies(3, 0, 1, 11))
    convict(*START, begins(3, 0, 2), copies(3, 0, 3, 13))
    convict(*START, begins(1, 0, 2), appends(1, 0, 1, 11))


def test_compaction_leaves_gaps_where_the_claims_say_so() -> None:
    """Rule: a follower of a compacted topic appends above its end, and a batch may end above its last record; a leader never."""
    wrote = [*START, appends(1, 0, 2, 12, 13)]
    compacted = Claims(compacted=("t",))
    gap = [*wrote, copies(3, 0, 3, 13)]
    assert conformance.judge(trace(*gap, claims=compacted)).decision is Decision.OK
    convict(*gap)
    leading = trace(*START, appends(1, 0, 3, 12), claims=compacted)
    assert conformance.judge(leading).decision is Decision.ILLEGAL
    ends = evolve(copies(3, 0, 2, 12), end_offset=4)
    accept(*wrote, ends, dump(3, 0, 0, 10, 11, 12, end=4, hw=2))
    convict(*wrote, ends, copies(3, 0, 3, 13))


def test_epochs_never_decrease_along_a_log() -> None:
    """Rule: a record of an epoch below the one before it goes nowhere."""
    story = [*NEW_LEADER, appends(2, 1, 2, 20), follows(3, 2, 1, end=2, hw=2), copies(3, 1, 2, 20)]
    convict(*story, appends(2, 1, 3, 21), copies(3, 0, 3, 21))


def test_a_truncation_leaves_what_is_below_it() -> None:
    """Rule: below the cut the log is what it was, and the final dump must show it."""
    cut = [*FORKED, cuts(1, 2, 1, end=3, to=2, hw=2)]
    accept(*cut, dump(1, 0, 0, 10, 11, end=2, hw=2))
    convict(*cut, dump(1, 0, 0, 99, 11, end=2, hw=2))


def test_a_leader_knows_of_a_cut() -> None:
    """Rule: a follower that truncated has told no higher end than that in this epoch."""
    cut = [*FORKED, cuts(1, 2, 1, end=3, to=2, hw=2), state(2, 2, 1, 1, 2, version=2), appends(2, 1, 2, 20)]
    convict(*cut, shows(2, 1, 3))
    accept(*cut, copies(1, 1, 2, 20), shows(2, 1, 3))


def test_only_a_log_that_its_leader_gave_up_starts_over() -> None:
    """Rule (KAFKA-7414): out of range: every offset of the follower must lie below the start of its leader's log, and it goes on no higher than there."""
    gone = [*START, appends(1, 0, 2, 12, 13, 14), begins(1, 0, 4), begins(1, 0, 1)]
    full = cuts(3, 1, 0, end=2, to=4, cause="full")
    accept(*gone, full, copies(3, 0, 4, 14))
    accept(*gone, evolve(full, offset=3))
    accept(*gone, evolve(full, offset=2))
    finding = convict(*gone, evolve(full, offset=5))
    assert (finding.events, finding.offset) == ((1, 13), 5)
    assert finding.seen.startswith(
        "out_of_range: broker 3 dropped its log, which ended at 2, and started over at 5"
    )
    convict(*gone, evolve(full, offset=1))
    convict(*gone, evolve(full, end_offset=3))
    convict(*START, appends(1, 0, 2, 12, 13, 14), begins(2, 0, 4), full)
    convict(*START, appends(1, 0, 2, 12, 13, 14), begins(1, 9, 4), full)
    accept(*gone, full, dump(3, 0, 4, end=4, hw=2))
    accept(*gone, full, dump(3, 0, 0, 98, 99, end=4, hw=2))


def test_a_log_that_its_leader_gave_up_may_be_cut_whole() -> None:
    """Rule: below the start of the leader's log nothing is compared: a batch in which it starts is cut from its begin."""
    gone = [*FORKED, appends(2, 1, 2, 20), begins(2, 1, 2)]
    accept(*gone, cuts(1, 2, 1, end=3, to=0, hw=0))
    convict(*FORKED, appends(2, 1, 2, 20), begins(2, 1, 1), cuts(1, 2, 1, end=3, to=0, hw=0))


def test_a_recovery_is_judged_by_the_role_before_it() -> None:
    """Rule: who led, or followed a leader that never took over, cut nothing; a truncation is a step of one that follows."""
    convict(*START, appends(1, 0, 2, 12), fault("crash", 1), starts(1), recovers(1, 2))
    convict(
        *START, state(9, 2, 1, 2, 3), follows(3, 2, 1, end=2), fault("crash", 3), starts(3), recovers(3, 1)
    )
    convict(*START, recovers(2, 1))


def test_high_watermarks_wait_for_the_fork_to_be_cut() -> None:
    """Rule: a follower with a record that its leader lacks above its own high watermark is convicted there, unless the leader gave that offset up."""
    forked = [
        *FORKED,
        appends(2, 1, 2, 20),
        follows(3, 2, 1, end=2, hw=2),
        copies(3, 1, 2, 20),
        shows(2, 1, 3),
    ]
    assert convict(*forked, hears(1, 1, 3)).offset == 2
    accept(*forked, begins(2, 1, 3), hears(1, 1, 3))
