"""checkers/conformance.py: logs that begin late, have gaps, are cut, dropped or recovered: what only few
stories reach."""

from attrs import evolve

from fencepost.checkers import conformance
from fencepost.checkers.verdict import Decision
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
