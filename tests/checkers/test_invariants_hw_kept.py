"""HW-KEPT on histories by hand: what a checkpoint held is found again (KAFKA-1647)."""

from attrs import evolve

from fencepost.checkers import invariants
from fencepost.traces.events import Event, Name
from tests.checkers.traces_by_hand import (
    ON,
    cuts,
    event,
    fault,
    healthy_start,
    hears,
    recovers,
    starts,
    trace,
)

START = healthy_start(10, 11, 12, 13)
FIRST = [starts(2), recovers(2, 4, hw=3)]
"""Broker 2 starts, and its checkpoint holds 3."""


def found(*events: Event) -> list[tuple[str, tuple[int, ...]]]:
    """Names and certificates, counted from the end of START."""
    findings = invariants.judge(trace(*START, *events)).findings
    return [(one.anomaly, tuple(at - len(START) for at in one.events)) for one in findings]


def test_a_lower_high_watermark_at_the_next_start_is_found_with_both_starts() -> None:
    """Rule (HW-KEPT, KAFKA-1647): minimal histories, Illegal and Ok: the second start finds 0, or what the
    first one found."""
    assert found(*FIRST, starts(2), recovers(2, 4, hw=0)) == [("high_watermark_forgotten", (1, 3))]
    assert found(*FIRST, starts(2), recovers(2, 4, hw=3)) == []
    assert found(*FIRST, starts(2), recovers(2, 4, hw=4)) == []


def test_what_was_lowered_since_may_have_been_checkpointed() -> None:
    """Rule: a follower takes over a leader's lagging high watermark; a later checkpoint holds that, and no
    less."""
    assert found(*FIRST, hears(2, 0, 2), hears(2, 0, 4), starts(2), recovers(2, 4, hw=2)) == []
    forgotten = found(*FIRST, hears(2, 0, 2), hears(2, 0, 4), starts(2), recovers(2, 4, hw=1))
    assert forgotten == [("high_watermark_forgotten", (2, 5))]


def test_a_log_that_ends_below_holds_the_high_watermark_at_its_end() -> None:
    """Rule: what a checkpoint held beyond the log's end cannot be recovered, and is not asked for."""
    assert found(*FIRST, cuts(2, 1, 0, end=4, to=2, hw=3), starts(2), recovers(2, 2, hw=2)) == []
    assert found(*FIRST, starts(2), recovers(2, 2, hw=1)) == [("high_watermark_forgotten", (1, 3))]


def test_a_high_watermark_at_the_log_start_need_not_come_from_a_checkpoint() -> None:
    """Rule: it is clamped there without one, so that a log start that was not durable may take it along."""
    first = evolve(recovers(2, 4, hw=3), log_start_offset=3)
    assert found(first, starts(2), evolve(recovers(2, 4, hw=1), log_start_offset=1)) == []


def test_a_replica_that_was_deleted_is_another_when_it_comes_back() -> None:
    """Rule: a deletion takes the checkpoint's entry with it."""
    gone = event(Name.MARK, node=2, cause="replica_deleted", **ON)
    going = event(Name.TOPIC_DELETION, node=-1, topic="t", partition=-1, cause="requested")
    assert found(*FIRST, going, gone, recovers(2, 0, hw=0), starts(2), recovers(2, 4, hw=0)) == []


def test_a_power_loss_on_a_disk_that_lied_may_take_the_checkpoint() -> None:
    """Rule: the two together excuse, neither alone, and not for the starts after."""
    lies, power = fault("lying_fsync", 2), fault("power_loss", 2)
    second = [starts(2), recovers(2, 4, hw=0)]
    assert found(*FIRST, lies, power, *second) == []
    assert found(lies, *FIRST, power, *second) == []
    assert found(*FIRST, lies, *second) == [("high_watermark_forgotten", (1, 4))]
    assert found(*FIRST, power, *second) == [("high_watermark_forgotten", (1, 4))]
    assert found(lies, power, *FIRST, power, *second) == [("high_watermark_forgotten", (3, 6))]
