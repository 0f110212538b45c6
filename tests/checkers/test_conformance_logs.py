"""checkers/conformance.py: logs and high watermarks: each guard has a trace that it convicts, and the nearest
legal one."""

from attrs import evolve

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Claims
from tests.checkers.conformance_by_hand import FORKED, NEW_LEADER, START, accept, begins, convict
from tests.checkers.traces_by_hand import (
    appends,
    copies,
    cuts,
    dump,
    fault,
    follows,
    hears,
    leads,
    recovers,
    shows,
    starts,
    state,
    trace,
)

# ---- logs


def test_a_leader_appends_at_its_end_in_its_epoch() -> None:
    """Rule: a leader writes only while it leads, at its log end, in its own epoch."""
    convict(*START, appends(1, 0, 3, 12))
    convict(*START, appends(1, 1, 2, 12))
    convict(*START, appends(2, 0, 2, 12))
    convict(*START, starts(1), appends(1, 0, 2, 12))
    accept(*START, appends(1, 0, 2, 12))


def test_a_follower_appends_what_its_leader_wrote() -> None:
    """Rule: each record that a follower appends stands in its leader's log, at that offset, in that epoch."""
    wrote = [*START, appends(1, 0, 2, 12)]
    assert convict(*wrote, copies(2, 0, 2, 99)).offset == 2
    convict(*START, copies(2, 0, 2, 12))
    convict(*wrote, copies(2, 0, 3, 12))
    convict(*wrote, starts(2), copies(2, 0, 2, 12))
    accept(*wrote, copies(2, 0, 2, 12))


def test_a_follower_appends_to_a_prefix_of_its_leaders_log() -> None:
    """Rule (KIP-101, KIP-279): nothing is fetched before the fork is cut; nor is a high watermark heard."""
    forked = [
        *START,
        appends(1, 0, 2, 12),
        state(9, 2, 1, 2, 3, version=1),
        leads(2, 1, 2, 3, end=2, hw=2),
        follows(3, 2, 1, end=2, hw=2),
        appends(2, 1, 2, 20),
        appends(2, 1, 3, 21),
        copies(3, 1, 2, 20, 21),
        shows(2, 1, 4),
        follows(1, 2, 1, end=3, hw=2),
    ]
    assert convict(*forked, copies(1, 1, 3, 21)).offset == 2
    assert convict(*forked, hears(1, 1, 3)).offset == 2
    accept(*forked, cuts(1, 2, 1, end=3, to=2, hw=2), copies(1, 1, 2, 20, 21), hears(1, 1, 4))


def test_what_a_follower_gave_up_is_not_compared() -> None:
    """Rule: a follower whose own log starts behind the fork (retention, deleted records, and a cut below it)
    holds nothing that its leader could lack."""
    forked = [
        *START,
        appends(1, 0, 2, 12),
        state(9, 2, 1, 2, 3, version=1),
        leads(2, 1, 2, 3, end=2, hw=2),
        follows(3, 2, 1, end=2, hw=2),
        appends(2, 1, 2, 20, 21),
        follows(1, 2, 1, end=3, hw=2),
    ]
    begins = Event(time=0, name=Name.LOG_START, node=1, topic="t", partition=0, leader_epoch=1)
    convict(*forked, evolve(begins, log_start_offset=2), copies(1, 1, 3, 21))
    accept(*forked, evolve(begins, log_start_offset=3), copies(1, 1, 3, 21))


def test_a_late_answer_of_a_deposed_leader_is_legal() -> None:
    """Rule: a follower that has not learned the new epoch still appends what its old leader had."""
    accept(*START, appends(1, 0, 2, 12), *NEW_LEADER[10:], appends(2, 1, 2, 20), copies(3, 0, 2, 12))


def test_truncation_keeps_what_the_leader_holds_too() -> None:
    """Rule (KIP-101): a follower cuts no record that its leader has as well."""
    tail = [*START, appends(1, 0, 2, 12), *NEW_LEADER[10:], follows(1, 2, 1, end=3, hw=2)]
    finding = convict(*tail, cuts(1, 2, 1, end=3, to=1, hw=2))
    assert finding.expected == (
        "no record to be cut that leader 2 of epoch 1 holds too: those below offset 2"
    )
    convict(*tail, cuts(1, 2, 1, end=4, to=2, hw=2))
    convict(*START, cuts(1, 1, 0, end=2, to=1))
    accept(*tail, cuts(1, 2, 1, end=3, to=2, hw=2))


def test_truncation_to_the_high_watermark_is_never_right() -> None:
    """Rule (KIP-101): with epochs assigned on election, the high watermark decides no truncation."""
    tail = [*START, appends(1, 0, 2, 12), *NEW_LEADER[10:], follows(1, 2, 1, end=3, hw=2)]
    assert "KIP-101" in convict(*tail, cuts(1, 2, 1, end=3, to=2, cause="high_watermark", hw=2)).expected


def test_recovery_finds_the_log_as_it_was() -> None:
    """Rule: only a power loss shortens a log; only a step that a fault interrupted lengthens it."""
    convict(*START, starts(2), recovers(2, 1))
    convict(*START, starts(2), recovers(2, 3))
    convict(*START, fault("crash", 2), starts(2), recovers(2, 1))
    convict(*START, fault("power_loss", 2), starts(2), recovers(2, 1), starts(2), recovers(2, 0))
    convict(*START, fault("power_loss", 3), starts(2), recovers(2, 1))
    accept(*START, fault("crash", 2), starts(2), recovers(2, 2))
    accept(*START, fault("power_loss", 2), starts(2), recovers(2, 1))
    accept(*START, fault("crash", 2), starts(2), recovers(2, 3))


def test_an_interrupted_truncation_may_be_found_done() -> None:
    """Rule: a crash after the file calls of a step loses its events, not its effect: a legal cut, and no
    other."""
    tail = [
        *START,
        appends(1, 0, 2, 12),
        *NEW_LEADER[10:],
        follows(1, 2, 1, end=3, hw=2),
        fault("crash", 1),
        starts(1),
    ]
    accept(*tail, recovers(1, 2))
    convict(*tail, recovers(1, 1))


def test_a_log_start_may_be_told_by_recovery_alone() -> None:
    """Rule (storage, seed 1937): retention moves a log start in the step in which the process dies, so that
    only the log that is opened again tells of it: its followers then start over there. Nothing moves a start
    without a fault, and none gets past the log's end or what any leader had shown."""
    died = [*START, fault("crash", 2), starts(2)]
    behind = [fault("power_loss", 3), starts(3), recovers(3, 1)]
    leads_again = [state(9, 2, 1, 2, 3, version=1), leads(2, 1, 2, 3, end=2, hw=2), follows(3, 2, 1, end=1)]
    over = [cuts(3, 2, 1, end=1, to=2, cause="full"), hears(3, 1, 2)]
    accept(*died, recovers(2, 2, hw=2, start=2), *behind, *leads_again, *over)
    convict(*died, recovers(2, 2, hw=2, start=0), *behind, *leads_again, over[0])
    convict(*START, starts(2), recovers(2, 2, hw=2, start=2))
    accept(*START, begins(2, 0, 2), starts(2), recovers(2, 2, hw=2, start=2))
    accept(*START, begins(2, 0, 2), starts(2), recovers(2, 2, hw=2, start=1))
    beyond = [*START, appends(1, 0, 2, 12), copies(2, 0, 2, 12), fault("crash", 2), starts(2)]
    accept(*beyond, recovers(2, 3, hw=2, start=2))
    convict(*beyond, recovers(2, 3, hw=3, start=3))
    convict(*died, recovers(2, 2, hw=2, start=3))


def test_a_log_start_that_a_crash_took_back_has_cost_the_epochs_below_it() -> None:
    """Rule (default+transactions, seed 5): its leader knows no epoch below, so that followers cut it all."""
    back = [starts(2), recovers(2, 2, hw=2, start=0), state(9, 2, 1, 2, 3, version=1)]
    cut = [leads(2, 1, 2, 3, end=2, hw=2), follows(3, 2, 1, end=2, hw=2), cuts(3, 2, 1, end=2, to=0)]
    accept(*START, begins(2, 0, 2), *back, *cut)
    convict(*START, *back, *cut)


def test_what_an_interrupted_append_wrote_is_known_once_copied() -> None:
    """Rule: after a power loss a log may end in records that no event named; the first copy says what they
    are, the second must agree."""
    story = [
        *START,
        fault("power_loss", 1),
        starts(1),
        recovers(1, 3, epoch=0, hw=2),
        state(9, 1, 1, 1, 2, 3, version=1),
        leads(1, 1, 1, 2, 3, end=3, hw=2),
        follows(2, 1, 1, end=2, hw=2),
        follows(3, 1, 1, end=2, hw=2),
        copies(2, 0, 2, 12),
    ]
    accept(*story, copies(3, 0, 2, 12))
    convict(*story, copies(3, 0, 2, 13))


def test_the_final_dump_is_what_was_appended() -> None:
    """Rule: the dump of a replica is the sum of its appends and truncations; only the step under way at the
    end may be missing."""
    convict(*START, dump(2, 0, 0, 10, 99, end=2, hw=2))
    convict(*START, dump(2, 0, 0, 10, end=1, hw=1))
    accept(*START, dump(2, 0, 0, 10, 11, end=2, hw=2))
    accept(*START, dump(2, 0, 0, 10, 11, 12, end=3, hw=2))


def test_a_dump_after_a_power_loss_may_be_shorter_until_the_log_is_opened() -> None:
    """Rule: what a power loss took is unknown while the broker is down, and only then."""
    short = dump(2, 0, 0, 10, end=1, hw=1)
    accept(*START, fault("power_loss", 2), short)
    convict(*START, fault("power_loss", 2), dump(2, 0, 0, 99, end=1, hw=1))
    convict(*START, fault("power_loss", 2), starts(2), recovers(2, 2), short)
    convict(*START, fault("crash", 2), short)


# ---- high watermarks


def test_a_leader_exposes_what_the_isr_holds() -> None:
    """Rule (R3): the high watermark is at most the least log end of ZooKeeper's ISR, by fetches of this
    epoch; it never goes down."""
    wrote = [*START, appends(1, 0, 2, 12), copies(2, 0, 2, 12)]
    convict(*wrote, shows(1, 0, 3))
    convict(*wrote, shows(1, 0, 1))
    convict(*wrote, copies(3, 0, 2, 12), shows(1, 0, 4))
    convict(*wrote, shows(2, 0, 2))
    accept(*wrote, copies(3, 0, 2, 12), shows(1, 0, 3))
    accept(*wrote, state(1, 1, 0, 1, 2, version=1), shows(1, 0, 3))


def test_a_new_leader_waits_for_fetches_of_its_epoch() -> None:
    """Rule: what a follower had under another leader proves nothing."""
    wrote = [*NEW_LEADER, appends(2, 1, 2, 20)]
    assert "broker 3: nothing yet" in convict(*wrote, shows(2, 1, 3)).expected
    accept(*wrote, follows(3, 2, 1, end=2, hw=2), copies(3, 1, 2, 20), shows(2, 1, 3))


def test_a_leader_elected_again_keeps_what_it_knew() -> None:
    """Rule: a leader whose epoch grows while it leads may keep its followers' ends, if nobody else led in
    between."""
    wrote = [*START, appends(1, 0, 2, 12), copies(2, 0, 2, 12), state(9, 1, 1, 1, 2, version=1)]
    accept(*wrote, leads(1, 1, 1, 2, end=3, hw=2), shows(1, 1, 3))
    other = [*wrote, state(9, 2, 2, 1, 2, version=2), state(9, 1, 3, 1, 2, version=3)]
    convict(*other, leads(1, 3, 1, 2, end=3, hw=2), shows(1, 3, 3))


def test_a_follower_that_lost_its_tail_still_counts() -> None:
    """Rule: a leader learned an end from a fetch; a power loss since does not make its high watermark wrong
    (an accepted hazard)."""
    wrote = [*START, appends(1, 0, 2, 12), copies(2, 0, 2, 12), copies(3, 0, 2, 12)]
    accept(*wrote, fault("power_loss", 3), starts(3), recovers(3, 1), shows(1, 0, 3))


def test_a_follower_hears_at_most_what_its_leader_reached() -> None:
    """Rule (R3): a follower's high watermark is its leader's or below, and within its log."""
    wrote = [*START, appends(1, 0, 2, 12), copies(2, 0, 2, 12)]
    convict(*wrote, hears(2, 0, 3))
    convict(*wrote, hears(3, 0, 3))
    convict(*wrote, hears(2, 1, 2))
    accept(*wrote, copies(3, 0, 2, 12), shows(1, 0, 3), hears(2, 0, 3))
    accept(*START, hears(2, 0, 1))


# checkers/conformance.py: logs that begin late, have gaps, are cut, dropped or recovered: what only few
# stories reach.


def test_a_follower_may_begin_below_its_start() -> None:
    """Rule (KAFKA-6975): an empty log takes the batch in which its leader's log starts, from the batch's
    begin; one with records does not."""
    accept(*START, begins(3, 0, 2), copies(3, 0, 1, 11))
    accept(*START, begins(3, 0, 2), copies(3, 0, 0, 10, 11))
    convict(*START, begins(3, 0, 1), copies(3, 0, 1, 11))
    convict(*START, begins(3, 0, 2), copies(3, 0, 3, 13))
    convict(*START, begins(1, 0, 2), appends(1, 0, 1, 11))


def test_compaction_leaves_gaps_where_the_claims_say_so() -> None:
    """Rule: a follower of a compacted topic appends above its end, and a batch may end above its last record;
    a leader never."""
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


def test_a_compacted_log_that_was_cut_may_have_no_batch_that_says_where_it_ended() -> None:
    """Rule: opened again it ends lower, where its last batch does. Not if it appended since, nor where
    nothing was compacted."""
    compacted, opened = Claims(compacted=("t",)), [starts(1), recovers(1, end=0)]
    cut = [*FORKED, cuts(1, 2, 1, end=3, to=2, hw=2)]
    assert conformance.judge(trace(*cut, *opened, claims=compacted)).decision is Decision.OK
    convict(*cut, *opened)
    grown = trace(*cut, appends(2, 1, 2, 20), copies(1, 1, 2, 20), *opened, claims=compacted)
    assert conformance.judge(grown).decision is Decision.ILLEGAL


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
    """Rule (KAFKA-7414): out of range: every offset of the follower must lie below the start of its leader's
    log, and it goes on no higher than there."""
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


def test_a_recovery_tells_where_a_log_begins() -> None:
    """Rule: at its known start or below; beyond it only where a step was interrupted, and no further than the
    high watermark that leaders showed."""
    again = [begins(3, 0, 2), starts(3)]
    back = [follows(3, 1, 0, end=2, hw=2), copies(3, 0, 1, 11)]
    accept(*START, *again, recovers(3, 2), *back)
    accept(*START, *again, evolve(recovers(3, 2), log_start_offset=2), *back)
    convict(*START, *again, evolve(recovers(3, 2), log_start_offset=0), *back)
    told = convict(*START, starts(3), evolve(recovers(3, 2), log_start_offset=1))
    assert "to begin at 0 or below" in told.expected
    assert "had shown the high watermark 2" in told.expected
    unseen = [
        state(1, 1, 0, 1, version=0),
        leads(1, 0, 1),
        appends(1, 0, 0, 10),
        fault("crash", 1),
        starts(1),
    ]
    convict(*unseen, evolve(recovers(1, 1), log_start_offset=1))
    accept(*unseen, evolve(recovers(1, 1), log_start_offset=0))


def test_the_record_before_is_compared_from_the_first_offset_on() -> None:
    """Rule: a fork at offset 0 is a fork."""
    forked = [
        state(1, 1, 0, 1, 2, version=0),
        leads(1, 0, 1, 2),
        appends(1, 0, 0, 10),
        state(9, 2, 1, 2, version=1),
        leads(2, 1, 2),
        appends(2, 1, 0, 20, 21),
        follows(1, 2, 1, end=1),
    ]
    assert convict(*forked, copies(1, 1, 1, 21)).offset == 0
    accept(*forked, cuts(1, 2, 1, end=1, to=0), copies(1, 1, 0, 20, 21))


def test_a_log_that_its_leader_gave_up_may_be_cut_whole() -> None:
    """Rule: below the start of the leader's log nothing is compared: a batch in which it starts is cut from
    its begin."""
    gone = [*FORKED, appends(2, 1, 2, 20), begins(2, 1, 2)]
    accept(*gone, cuts(1, 2, 1, end=3, to=0, hw=0))
    convict(*FORKED, appends(2, 1, 2, 20), begins(2, 1, 1), cuts(1, 2, 1, end=3, to=0, hw=0))


def test_a_recovery_is_judged_by_the_role_before_it() -> None:
    """Rule: who led, or followed a leader that never took over, cut nothing; a truncation is a step of one
    that follows."""
    convict(*START, appends(1, 0, 2, 12), fault("crash", 1), starts(1), recovers(1, 2))
    convict(
        *START, state(9, 2, 1, 2, 3), follows(3, 2, 1, end=2), fault("crash", 3), starts(3), recovers(3, 1)
    )
    convict(*START, recovers(2, 1))
    convict(*FORKED, starts(1), recovers(1, 2))


def test_high_watermarks_wait_for_the_fork_to_be_cut() -> None:
    """Rule: a follower with a record that its leader lacks above its own high watermark is convicted there,
    unless the leader gave that offset up."""
    forked = [
        *FORKED,
        appends(2, 1, 2, 20),
        follows(3, 2, 1, end=2, hw=2),
        copies(3, 1, 2, 20),
        shows(2, 1, 3),
    ]
    assert convict(*forked, hears(1, 1, 3)).offset == 2
    accept(*forked, begins(2, 1, 3), hears(1, 1, 3))
