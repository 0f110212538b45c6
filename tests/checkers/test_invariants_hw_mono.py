"""checkers/invariants/hw_mono.py: ends that clients are shown, in real time."""

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checkers import invariants
from fencepost.checkers.events import EventTables, judge_invariants
from fencepost.checkers.verdict import Decision, Finding
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Claims, Trace
from tests.checkers import lab
from tests.checkers.traces_by_hand import event, fault, leads, loss, read, trace

POLL, LIST = Function.POLL, Function.LIST_OFFSETS
RESTARTED = Event(time=0, name=Name.BROKER_STARTED, node=1)


def findings(
    *operations: Operation, events: tuple[Event, ...] = (), claims: Claims | None = None
) -> tuple[Finding, ...]:
    """What the invariants say of these operations."""
    return invariants.judge(trace(*events, operations=operations, claims=claims)).findings


def test_an_end_never_goes_back_within_an_epoch() -> None:
    """Rule (HW-MONO): an operation that began after another had completed shows at least its end."""
    (finding,) = findings(read(1, POLL, 0, 10, end=5), read(2, POLL, 11, 20, end=4))
    assert finding.anomaly == "high_watermark_regressed"
    assert finding.operations == (1, 2)
    assert finding.expected == "an end at or above 5: poll 1 showed 5 in leader epoch 0, 1 ns before"
    assert finding.seen == "poll 2 showed 4 in leader epoch 0"
    assert finding.uncertainty_ns == -1
    assert not findings(read(1, POLL, 0, 10, end=5), read(2, POLL, 11, 20, end=5))


def test_the_highest_end_before_counts() -> None:
    """Rule (HW-MONO): of two concurrent ends both came before a later one, whichever completed last."""
    high, low = read(1, POLL, 0, 10, end=9), read(2, POLL, 5, 12, end=5)
    (finding,) = findings(high, low, read(3, POLL, 20, 30, end=7))
    assert finding.operations == (1, 3)


def test_touching_intervals_are_concurrent() -> None:
    """Rule: intervals are closed, so equal times order nothing."""
    assert not findings(read(1, POLL, 0, 10, end=5), read(2, POLL, 10, 20, end=4))


def test_across_epochs_only_list_offsets_is_bound() -> None:
    """Rule (KIP-207): a new leader's fetches may show its lagging high watermark; its ListOffsets may not."""
    shown = read(1, POLL, 0, 10, end=5, epoch=0)
    assert not findings(shown, read(2, POLL, 11, 20, end=4, epoch=1))
    (finding,) = findings(shown, read(2, LIST, 11, 20, end=4, epoch=1))
    assert finding.seen == "ListOffsets 2 showed 4 in leader epoch 1"
    assert not findings(shown, read(2, LIST, 11, 20, end=5, epoch=1))


def acknowledged(op_id: int, at: int, offset: int, **more: Any) -> Operation:
    """An append of one record with acks=all that took 1 ns."""
    columns = {"node": 7, "acks": -1, "records": lab.records(op_id, begin=offset)}
    return lab.operation(op_id, Function.APPEND, at, at + 1, **lab.T0, offset=offset, **columns | more)


def asked(op_id: int, at: int, offset: int, **more: Any) -> Operation:
    """A ListOffsets that took 1 ns, answered by a broker that names no leader epoch."""
    one = read(op_id, LIST, at, at + 1, end=offset)
    return evolve(one, leader_epoch=None, end_offset=None, offset=offset, **{"node": 7} | more)


def test_an_acknowledgement_with_acks_all_shows_an_end() -> None:
    """Rule: a leader acknowledges when its high watermark has passed the batch. What the same broker answers
    to ListOffsets later is not below that, and many such answers are one finding."""
    wrong = [asked(n, 10 * n, 277) for n in range(2, 9)]
    (finding,) = findings(acknowledged(1, 0, 299), *wrong)
    assert (finding.anomaly, finding.operations) == ("high_watermark_regressed", (1, 2))
    assert finding.expected == (
        "an end at or above 300: the acknowledgement of append 1 by broker 7 showed 300, 19 ns before"
    )
    assert finding.seen == "ListOffsets 2 by broker 7 showed 277"
    assert not findings(acknowledged(1, 0, 299), asked(2, 20, 300))


@pytest.mark.parametrize(
    "more",
    [
        {"node": 8},  # another broker, of an epoch that is not known: it may have been deposed
        {"node": -1},
        {"argument": "earliest"},
        {"argument": "by_time"},
        {"isolation": "read_committed"},
        {"invoke_time": 1, "completion_time": 2},
        {"outcome": Outcome.FAIL},
    ],
)
def test_other_answers_to_list_offsets_owe_nothing_to_an_acknowledgement(more) -> None:
    """Rule: only the end that the same broker shows later is bound; not a log start, a place by time, a last
    stable offset, or a concurrent answer."""
    assert not findings(acknowledged(1, 0, 299), asked(2, 20, 277, **more))


@pytest.mark.parametrize("acks", [0, 1])
def test_an_acknowledgement_by_the_leader_alone_shows_no_end(acks: int) -> None:
    """Rule: with acks=1 the high watermark may still be below the batch."""
    assert not findings(acknowledged(1, 0, 299, acks=acks), asked(2, 20, 277))


def test_a_log_start_or_a_place_by_time_is_no_end() -> None:
    """Rule: ListOffsets with an argument shows no end, in no epoch."""
    shown = read(1, POLL, 0, 10, end=5)
    for argument in ("earliest", "by_time"):
        assert not findings(shown, evolve(asked(2, 20, 0, argument=argument), leader_epoch=0))


def test_an_acknowledgement_in_a_known_epoch_binds_other_brokers() -> None:
    """Rule: ListOffsets of a higher epoch is guarded (KIP-207), whichever broker answers."""
    before = acknowledged(1, 0, 299, leader_epoch=1)
    assert findings(before, evolve(asked(2, 20, 277, node=8), leader_epoch=2))
    assert not findings(before, evolve(asked(2, 20, 277, node=8), leader_epoch=0))


def test_a_batch_that_was_sent_again_binds_who_answered_alone() -> None:
    """Rule: its epoch is that of the append; who answers may lead in a later one, while the deposed leader of
    that epoch still shows what it has (found by the profile everything, seeds 11 and 27)."""
    again = acknowledged(1, 0, 5, node=1, leader_epoch=14, attempts=5)
    deposed = evolve(read(2, LIST, 11, 20, end=5, epoch=14), node=2)
    assert not findings(again, deposed)
    assert findings(evolve(again, attempts=1), deposed)
    assert findings(again, evolve(deposed, node=1))


def test_a_deposed_leader_may_show_less() -> None:
    """Rule: an end of a lower epoch owes nothing to a higher one: a deposed leader that has not heard yet
    still answers."""
    assert not findings(read(1, LIST, 0, 10, end=5, epoch=1), read(2, LIST, 11, 20, end=4, epoch=0))


def test_allowed_loss_excuses_an_end_over_exactly_these_offsets() -> None:
    """Rule: the claims name the offsets whose end may go back."""
    back = (read(1, POLL, 0, 10, end=5), read(2, LIST, 11, 20, end=3, epoch=1))
    assert findings(*back)
    assert not findings(*back, claims=loss(3, 5))
    assert findings(*back, claims=loss(4, 5))
    assert findings(*back, claims=loss(3, 4))


def test_a_leader_that_restarted_in_its_epoch_may_show_its_checkpoint() -> None:
    """Rule: polls across a second BECAME_LEADER of the epoch are not compared (an accepted hazard);
    ListOffsets are."""
    again = (leads(1, 0), RESTARTED, leads(1, 0))
    before = read(1, POLL, 0, 0, end=5)
    assert not findings(before, read(2, POLL, 10, 20, end=4), events=again)
    assert findings(before, read(2, LIST, 10, 20, end=4), events=again)
    assert findings(before, read(2, POLL, 10, 20, end=4), events=again[:1])
    assert findings(read(1, POLL, 3, 5, end=5), read(2, POLL, 10, 20, end=4), events=again)


def test_what_was_shown_since_the_restart_counts() -> None:
    """Rule: a restart excuses what it lies between; a lower end that was shown after it still binds."""
    again = (leads(1, 0), RESTARTED, leads(1, 0))
    before, since, later = read(1, POLL, 0, 0, end=9), read(2, POLL, 3, 4, end=6), read(3, POLL, 5, 6, end=5)
    (finding,) = findings(before, since, later, events=again)
    assert finding.operations == (2, 3)
    assert not findings(before, since, later, events=(*again, *(RESTARTED, leads(1, 0)) * 3))


def test_a_follower_may_show_less_than_the_leader() -> None:
    """Rule (KIP-392): a follower's high watermark lags, its poll is no regress, whatever says who led. That
    of a leader still is; and where nobody is known to have led, that of one broker."""
    shown = acknowledged(1, 0, 4, node=1, leader_epoch=0)
    lower = read(2, POLL, 11, 20, end=4)
    assert not findings(shown, evolve(lower, node=2))
    assert findings(shown, evolve(lower, node=1))
    polled = evolve(read(1, POLL, 0, 10, end=5), node=1)
    assert not findings(polled, evolve(lower, node=2), events=(leads(1, 0),))
    assert findings(polled, evolve(lower, node=1), events=(leads(1, 0),))
    assert not findings(evolve(polled, node=2), evolve(lower, node=2), events=(leads(1, 0),))
    assert findings(polled, evolve(lower, node=1)) and not findings(polled, evolve(lower, node=2))
    assert findings(evolve(polled, node=2), evolve(asked(2, 20, 4, node=1), leader_epoch=0))


def test_clock_uncertainty_widens_pairs_of_two_clocks() -> None:
    """Rule: stamps of two clocks err by e each; those of one clock keep their order. The finding says which e
    would clear it."""
    earlier, later = read(1, POLL, 0, 10, end=5, clock=1), read(2, POLL, 21, 30, end=4, clock=2)
    (finding,) = findings(earlier, later, claims=Claims(clock_uncertainty_ns=5))
    assert finding.uncertainty_ns == 6
    assert not findings(earlier, later, claims=Claims(clock_uncertainty_ns=6))
    same_clock = read(2, POLL, 21, 30, end=4, clock=1)
    assert findings(earlier, same_clock, claims=Claims(clock_uncertainty_ns=6))


def test_each_partition_of_a_poll_shows_its_own_end() -> None:
    """Rule: a poll of several partitions shows one end for each that it names with its epoch."""

    def poll(op_id: int, at: int, *ends: int) -> Operation:
        positions = tuple(
            Position(topic="t", partition=number, offset=0, end_offset=end, leader_epoch=0)
            for number, end in enumerate(ends)
        )
        return lab.operation(op_id, POLL, at, at + 1, process=1, positions=positions)

    (finding,) = findings(poll(1, 0, 3, 7), poll(2, 5, 3, 6))
    assert (finding.topic, finding.partition, finding.offset) == ("t", 1, 6)


READS = st.builds(
    lambda at, took, end, epoch, listed: (at, at + took, end, epoch, listed),
    st.integers(0, 12),
    st.integers(0, 6),
    st.integers(0, 4),
    st.integers(0, 2),
    st.booleans(),
)


@settings(deadline=None)
@given(st.lists(READS, max_size=8))
def test_the_sweep_is_the_definition(reads: list[tuple[int, int, int, int, bool]]) -> None:
    """Rule: the sweep finds a regress exactly if some pair of operations is one by definition, and its
    certificate is such a pair."""
    pairs = {
        (a, b)
        for a, one in enumerate(reads)
        for b, two in enumerate(reads)
        if one[1] < two[0] and one[2] > two[2] and (one[3] == two[3] or (two[4] and one[3] < two[3]))
    }
    operations = tuple(
        read(number, LIST if listed else POLL, at, until, end, epoch)
        for number, (at, until, end, epoch, listed) in enumerate(reads)
    )
    verdict = invariants.judge(trace(operations=operations))
    assert (verdict.decision is Decision.ILLEGAL) == bool(pairs)
    assert all(finding.operations in pairs for finding in verdict.findings)


# checkers/invariants: reads at or above the high watermark or the last stable offset of the same answer.


def poll(op_id: int, *offsets: int, end: int, time: int = 0, **columns: object) -> Operation:
    """Records at these offsets with this high watermark, by broker 1 in leader epoch 0."""
    made = lab.operation(
        *(op_id, Function.POLL, time, time + 5),
        **lab.T0,
        offset=0,
        end_offset=end,
        leader_epoch=0,
        node=1,
        records=tuple(Record(topic="t", partition=0, offset=offset, value=offset) for offset in offsets),
    )
    return evolve(made, **columns)


def found(whole: Trace) -> list[Finding]:
    """The findings, which are the same over tables."""
    verdict = invariants.judge(whole)
    tables = tables_of([rows_of(whole)])
    header = evolve(whole, operations=(), events=())
    by_table = judge_invariants(EventTables(tables=tables, headers=[header])).get(whole.trace_id)
    assert (by_table.findings if by_table else ()) == verdict.findings
    return list(verdict.findings)


def simulated(*operations: Operation) -> Trace:
    """A run with a plan."""
    return evolve(trace(event(fault("x", 1).name), operations=operations), plan="{}")


def real(*operations: Operation, events: tuple = ()) -> Trace:
    """Of brokers that answer with a bound that they read before the records."""
    return evolve(trace(*events, operations=operations), target="kafka")


def test_in_the_simulation_an_answer_convicts_itself() -> None:
    """At the high watermark is beyond it; below it is legal."""
    (finding,) = found(simulated(poll(1, 0, 1, 2, end=2)))
    assert (finding.anomaly, finding.offset, finding.operations) == ("read_outside_bounds", 2, (1,))
    assert not found(simulated(poll(1, 0, 1, end=2)))


def test_under_read_committed_the_last_stable_offset_is_the_bound() -> None:
    """A read_uncommitted one may go up to the high watermark."""
    wrong = poll(1, 0, 1, 2, end=9, last_stable_offset=2, isolation="read_committed")
    (finding,) = found(simulated(wrong))
    assert "last stable offset 2" in finding.expected
    assert not found(simulated(evolve(wrong, isolation="read_uncommitted")))
    assert not found(simulated(evolve(wrong, last_stable_offset=3)))


def test_each_partition_of_a_poll_has_its_own_bounds() -> None:
    """Records of one partition are not held against the end of another."""
    positions = (
        Position(topic="t", partition=0, offset=0, end_offset=3, leader_epoch=0),
        Position(topic="u", partition=0, offset=0, end_offset=1, leader_epoch=0),
    )
    legal = poll(1, 0, 1, 2, end=3, topic=None, partition=None, end_offset=None, positions=positions)
    assert not found(simulated(legal))
    beyond = (*legal.records, Record(topic="u", partition=0, offset=1, value=9))
    (finding,) = found(simulated(evolve(legal, records=beyond)))
    assert (finding.topic, finding.offset) == ("u", 1)


def test_a_real_broker_is_convicted_by_a_later_answer_only() -> None:
    """Of the same broker in the same epoch, which began after the read had ended, with a bound that is still
    not above the record."""
    early = poll(1, 0, 1, 2, end=2)
    assert not found(real(early))
    (finding,) = found(real(early, poll(2, end=2, time=50)))
    assert finding.operations == (1, 2)
    for other in (
        poll(2, end=3, time=50),
        poll(2, end=2, time=3),
        poll(2, end=2, time=50, node=2),
        poll(2, end=2, time=50, leader_epoch=1),
    ):
        # a lower end of the same epoch is a finding of HW-MONO elsewhere; here only this rule counts
        assert "read_outside_bounds" not in {one.anomaly for one in found(real(early, other))}
    unknown = evolve(early, node=-1)
    assert not found(real(unknown, poll(2, end=2, time=50, node=-1)))


def test_a_leader_that_led_its_epoch_again_may_show_a_lower_bound() -> None:
    """Its high watermark is that of its checkpoint then."""
    events = (leads(1, 0, 1), leads(1, 0, 1))
    names = {
        one.anomaly for one in found(real(poll(1, 0, 1, 2, end=2), poll(2, end=2, time=50), events=events))
    }
    assert "read_outside_bounds" not in names
