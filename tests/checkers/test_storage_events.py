"""Where logs start, and what compaction takes: the invariants and conformance convict what breaks them, and
nothing that a correct broker does."""

import pytest
from attrs import evolve

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers import conformance, invariants
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.run.simulated.run import run
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Claims, LossRange
from tests.checkers import lab
from tests.checkers.traces_by_hand import (
    ON,
    appends,
    copies,
    cuts,
    dump,
    event,
    follows,
    healthy_start,
    hears,
    leads,
    recovers,
    shows,
    state,
    trace,
)

START = healthy_start(10, 11, 12, 13)
"""Values 10 to 13 at offsets 0 to 3 of epoch 0 are committed at brokers 1, 2 and 3; 1 leads."""
BEHIND = [
    state(1, 1, 0, 1, 2, version=0),
    leads(1, 0, 1, 2),
    follows(2, 1, 0),
    follows(3, 1, 0),
    *(each for each in START[4:] if each.node != 3),
]
"""The same, but broker 3 is not in the ISR and has fetched nothing."""


def log_start(node: int, start: int, *, hw: int, end: int, epoch: int = 0, cause: str = "retention") -> Event:
    """A replica's log start moved."""
    return event(
        Name.LOG_START,
        node=node,
        leader_epoch=epoch,
        log_start_offset=start,
        high_watermark=hw,
        end_offset=end,
        cause=cause,
        **ON,
    )


def opens(node: int, end: int, hw: int, start: int) -> Event:
    """A log was opened that starts at `start`."""
    return evolve(recovers(node, end, hw=hw), log_start_offset=start)


def anomalies(verdict: Verdict) -> set[str]:
    """What was found."""
    return {finding.anomaly for finding in verdict.findings}


def both(*events: Event, claims: Claims | None = None, operations: tuple[Operation, ...] = ()) -> set[str]:
    """What the invariants and conformance find."""
    told = trace(*events, claims=claims, operations=operations)
    return anomalies(invariants.judge(told)) | anomalies(conformance.judge(told))


# ---- HW-BOUNDS


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (log_start(1, 3, hw=2, end=4), log_start(1, 2, hw=2, end=4)),
        (log_start(1, 1, hw=5, end=4), log_start(1, 1, hw=4, end=4)),
        (opens(1, 4, 1, 2), opens(1, 4, 2, 2)),
        (opens(1, 4, 5, 0), opens(1, 4, 4, 0)),
        (opens(1, 4, -1, 0), opens(1, 4, 0, 0)),
    ],
)
def test_a_high_watermark_stays_within_its_log(bad: Event, good: Event) -> None:
    """Rule (HW-BOUNDS; KAFKA-5634, KAFKA-9491, KAFKA-3978): log start <= high watermark <= log end, whatever
    event tells them."""
    assert anomalies(invariants.judge(trace(*START, bad))) == {"high_watermark_outside_log"}
    assert anomalies(invariants.judge(trace(*START, good))) == set()


def test_a_high_watermark_below_a_log_start_told_before_is_found_with_both_events() -> None:
    """Rule (HW-BOUNDS): an event that names the high watermark alone is held against the log start that is
    known."""
    verdict = invariants.judge(trace(*START, log_start(2, 3, hw=4, end=4), hears(2, 0, 2)))
    (finding,) = verdict.findings
    assert (finding.anomaly, finding.events) == ("high_watermark_outside_log", (len(START), len(START) + 1))
    cut = cuts(2, 1, 0, end=4, to=2, hw=4)
    assert (
        anomalies(invariants.judge(trace(*START, log_start(2, 3, hw=4, end=4), cut, hears(2, 0, 2)))) == set()
    )


# ---- log starts


def test_what_lies_below_a_log_start_is_not_lost() -> None:
    """Rule (COMMIT-SAFE): retention may take committed records at a leader-to-be; a log that only claims to
    hold them loses them."""
    elected = [state(1, 1, 0, 1, 2, 3, version=1), state(9, 3, 1, 3, version=2), leads(3, 1, 3, end=4, hw=4)]
    over = [cuts(3, 1, 0, end=0, to=4, cause="full"), hears(3, 0, 4), log_start(3, 4, hw=4, end=4)]
    assert both(*BEHIND, log_start(1, 4, hw=4, end=4), *over, *elected) == set()
    kept = [log_start(3, 2, hw=4, end=4), state(9, 3, 1, 3, version=1), leads(3, 1, 3, end=4, hw=4)]
    assert both(*START, *kept, dump(3, 0, 2, 12, 13, end=4, hw=4)) == set()
    lost = [*BEHIND, state(9, 3, 1, 3, version=1), leads(3, 1, 3)]
    assert "committed_record_lost" in both(*lost)


def test_replicas_may_differ_below_the_higher_of_their_log_starts() -> None:
    """Rule (LOG-MATCH): a diverged tail that the leader's log start has passed is nobody's any more; above
    it, it is a divergence."""
    mine, other = dump(1, 0, 0, 10, 11, 12, 13, end=4, hw=4), dump(2, 0, 0, 10, 99, 12, 13, end=4, hw=4)
    started = [evolve(each, log_start_offset=2) for each in (mine, other)]
    assert "log_divergence" in anomalies(invariants.judge(trace(*START, mine, other)))
    late = [evolve(each, leader_epoch=-1, values=(), offset=4) for each in started]
    assert anomalies(invariants.judge(trace(*START, *late))) == set()


def test_a_log_is_dropped_only_below_the_start_of_the_leaders() -> None:
    """Rule (KAFKA-7414): a full truncation is explained where the log ends before the leader's begins, and
    there only."""
    over = [cuts(3, 1, 0, end=0, to=3, cause="full"), hears(3, 0, 3)]
    assert both(*BEHIND, log_start(1, 3, hw=4, end=4), *over, copies(3, 0, 3, 13)) == set()
    assert "conformance" in both(*BEHIND, log_start(1, 2, hw=4, end=4), *over)
    assert "conformance" in both(
        *START, log_start(1, 3, hw=4, end=4), cuts(3, 1, 0, end=4, to=3, cause="full", hw=4)
    )


def test_a_follower_may_begin_inside_a_batch() -> None:
    """Rule (KAFKA-6975): the first batch behind a log start inside of it begins below it; any other append
    stands at the log end."""
    begun = [
        *BEHIND,
        log_start(1, 3, hw=4, end=4),
        cuts(3, 1, 0, end=0, to=3, cause="full"),
        hears(3, 0, 3),
        log_start(3, 3, hw=3, end=3, cause="truncated"),
    ]
    assert both(*begun, copies(3, 0, 2, 12, 13)) == set()
    assert "conformance" in both(*begun, copies(3, 0, 3, 13), copies(3, 0, 2, 12, 13))


# ---- compaction


def keyed(op_id: int, key: str, value: int, *, argument: str | None = None) -> Operation:
    """An append of one record with a key."""
    return lab.operation(
        *(op_id, Function.APPEND, 0, 1),
        process=0,
        **lab.T0,
        key=key,
        argument=argument,
        records=lab.records(value, begin=-1),
    )


COMPACTED = Claims(compacted=("t",))
KEYS = (keyed(1, "a", 10), keyed(2, "b", 11), keyed(3, "a", 12), keyed(4, "c", 13))


def test_compaction_takes_what_a_later_committed_record_supersedes() -> None:
    """Rule (COMMIT-SAFE, KAFKA-13194): an offset may be missing from a compacted log only if its key was
    committed again, or it deletes its key."""
    whole = [dump(1, 0, 1, 11, 12, 13, end=4, hw=4)]
    assert both(*START, *whole, claims=COMPACTED, operations=KEYS) == set()
    gap = [dump(1, 0, 2, 12, 13, end=4, hw=4)]
    assert both(*START, *gap, claims=COMPACTED, operations=KEYS) == {"committed_record_truncated"}
    deleted = (KEYS[0], keyed(2, "b", 11, argument="tombstone"), *KEYS[2:])
    assert both(*START, *gap, claims=COMPACTED, operations=deleted) == set()


def test_a_compacted_log_may_lose_from_inside_what_claims_allow() -> None:
    """Rule (COMMIT-SAFE): a loss may lie inside of a log that goes on behind it (a compaction under a lie);
    what lies beside the range is still owed."""
    hollow = [dump(1, 0, 0, 10, end=4, hw=4), dump(1, 0, 3, 13, end=4, hw=4)]
    allowed = LossRange(topic="t", partition=0, start=1, end=3, reason="written anew while the disk lied")
    assert both(*START, *hollow, claims=COMPACTED, operations=KEYS) == {"committed_record_truncated"}
    assert both(*START, *hollow, claims=evolve(COMPACTED, loss=(allowed,)), operations=KEYS) == set()
    for narrower in (evolve(allowed, start=2), evolve(allowed, end=2), evolve(allowed, partition=1)):
        claims = evolve(COMPACTED, loss=(narrower,))
        assert both(*START, *hollow, claims=claims, operations=KEYS) == {"committed_record_truncated"}


def test_a_compacted_log_may_lose_the_tail_that_claims_allow() -> None:
    """Rule (COMMIT-SAFE): a compacted log that ends before what was committed owes nothing where that loss is
    allowed, and its gaps are still judged."""
    loss = (LossRange(topic="t", partition=0, start=3, end=4, reason="power loss"),)
    claims = evolve(COMPACTED, loss=loss)
    short = [dump(1, 0, 1, 11, 12, end=3, hw=3)]
    names = {
        f.anomaly for f in invariants.judge(trace(*START, *short, claims=claims, operations=KEYS)).findings
    }
    assert names == set()
    gap = [dump(1, 0, 2, 12, end=3, hw=3)]
    names = {
        f.anomaly for f in invariants.judge(trace(*START, *gap, claims=claims, operations=KEYS)).findings
    }
    assert names == {"committed_record_truncated"}


def test_what_is_written_where_loss_was_allowed_supersedes() -> None:
    """Rule (COMMIT-SAFE): a record that took the offset of one whose loss is allowed supersedes earlier ones
    of its key, once it is committed."""
    claims = evolve(COMPACTED, loss=(LossRange(topic="t", partition=0, start=3, end=4, reason="power loss"),))
    again = [
        recovers(1, 3, hw=3),
        recovers(2, 3, hw=3),
        state(1, 1, 1, 1, 2),
        leads(1, 1, 1, 2, end=3, hw=3),
        appends(1, 1, 3, 14),
        copies(2, 1, 3, 14),
        shows(1, 1, 4),
    ]
    gap = dump(1, 0, 2, 12, end=4, hw=4)

    def found(key: str, *steps: Event) -> set[str]:
        operations = (*KEYS, keyed(5, key, 14, argument="tombstone"))
        judged = invariants.judge(trace(*START, *steps, gap, claims=claims, operations=operations))
        return {finding.anomaly for finding in judged.findings}

    assert found("b", *again) == set()
    assert "committed_record_truncated" in found("a", *again)
    assert "committed_record_truncated" in found("b", *again[:-1])


def test_a_follower_of_a_compacted_log_takes_gaps() -> None:
    """Rule: behind compaction offsets jump, and a batch may end beyond its last record; in a topic that
    nobody compacts a jump is none of the model's."""
    jump = [copies(3, 0, 1, 11), evolve(copies(3, 0, 2, 12), end_offset=4), hears(3, 0, 4)]
    assert both(*BEHIND, *jump, claims=COMPACTED) == set()
    assert both(*BEHIND, *jump) == {"conformance"}


def test_an_explained_start_over_leaves_the_follower_following() -> None:
    """Rule: after it started over, a replica fetches on and joins in, as any other."""
    over = [
        cuts(3, 1, 0, end=0, to=3, cause="full"),
        hears(3, 0, 3),
        log_start(3, 3, hw=3, end=3, cause="truncated"),
    ]
    again = [copies(3, 0, 3, 13), hears(3, 0, 4), state(9, 2, 1, 2, version=1), follows(3, 2, 1, end=4, hw=4)]
    assert both(*BEHIND, log_start(1, 3, hw=4, end=4), *over, *again) == set()
    assert conformance.judge(trace(*BEHIND)).decision is Decision.OK


def test_a_log_that_gave_all_its_records_up_goes_on_in_any_epoch() -> None:
    """Rule (R5): what was deleted is compared with nothing. A follower whose log is empty behind its log
    start copies what a leader of an unclean election has there, though in an earlier epoch than what it had
    itself."""
    recorded = run(swarm(29, "default"))
    epochs: dict[tuple[int, str | None, int], int] = {}
    lower = []
    for one in recorded.events:
        if one.name is Name.APPENDED:
            key = one.node, one.topic, one.partition
            lower += [one] * (one.cause == "follower" and one.leader_epoch < epochs.get(key, -1))
            epochs[key] = one.leader_epoch
    assert lower, "the seed shows it"
    assert conformance.judge(recorded).decision is Decision.OK
