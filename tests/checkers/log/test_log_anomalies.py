"""For each anomaly a tiny history that convicts it with the exact certificate, and the nearest legal one."""

import pytest
from log_histories import FAIL, UNKNOWN, append, judge_trace, loss, read, trace

from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Operation
from fencepost.traces.trace import Trace
from tests.checkers import lab

# anomaly, its two convicting operations, the history, the nearest legal history
CASES: list[tuple[str, tuple[int, ...], Trace, Trace]] = [
    lab.case(
        "append_inversion 2 1",
        trace(append(1, [10], 0, 1, 1), append(2, [20], 2, 3, 0)),
        trace(append(1, [10], 0, 2, 1), append(2, [20], 2, 3, 0)),  # a tie is concurrent
    ),
    lab.case(
        "read_before_sent 1 2",
        lambda either: trace(append(1, [10], either(5, 4), 6, 0), read(2, 0, [(0, 10)], 3, 4)),
    ),
    lab.case(
        "append_below_shown_end 1 3",
        trace(append(1, [10], 5, 6, 0), append(2, [20], 0, None), read(3, 1, [(1, 20)], 3, 4)),
        trace(append(1, [10], 4, 6, 0), append(2, [20], 0, None), read(3, 1, [(1, 20)], 3, 4)),
    ),
    lab.case(
        "stale_read 2 1",
        trace(append(1, [10], 0, 1, 0), read(2, 0, [], 2, 3, 0), read(3, 0, [(0, 10)], 4, 5, 1)),
        trace(
            append(1, [10], 0, 1, 0), read(2, 0, [], 2, 3, 0, strong=False), read(3, 0, [(0, 10)], 4, 5, 1)
        ),
    ),
    lab.case(
        "lost_write 2 1",
        trace(append(1, [10], 0, 1, 0), read(2, 0, [], 2, 3, 0)),
        trace(append(1, [10], 0, 1, 0, acks=1), read(2, 0, [], 2, 3, 0)),
    ),
    lab.case(
        "high_watermark_regressed 3 2",
        trace(append(1, [10], 0, None), read(2, 0, [(0, 10)], 1, 2, 1), read(3, 0, [], 3, 4, 0)),
        trace(append(1, [10], 0, None), read(2, 0, [(0, 10)], 1, 2, 1), read(3, 0, [], 2, 4, 0)),
    ),
    lab.case(
        "inconsistent_offsets 1 3",
        trace(append(1, [10], 0, 1, 0), append(2, [20], 0, None), read(3, 0, [(0, 20)], 2, 3)),
        trace(append(1, [10], 0, 1, 0), append(2, [20], 0, None), read(3, 1, [(1, 20)], 2, 3)),
    ),
    lab.case(
        "duplicate 2",  # the read shows both
        trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10), (1, 10)], 2, 3)),
        trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10), (1, 10)], 2, 3), duplicates=True),
    ),
    lab.case(
        "phantom_record 2",
        trace(append(1, [10], 0, 1, 0), read(2, 1, [(1, 99)], 2, 3)),
        trace(append(1, [10], 0, 1, 0), append(3, [99], 0, None), read(2, 1, [(1, 99)], 2, 3)),
    ),
    lab.case(
        "failed_append_visible 2 1",
        trace(append(1, [10], 0, 1, outcome=FAIL), read(2, 0, [(0, 10)], 2, 3)),
        trace(append(1, [10], 0, 1, outcome=UNKNOWN), read(2, 0, [(0, 10)], 2, 3)),
    ),
    lab.case(
        "unordered_read 3",
        trace(append(1, [10], 0, 1, 0), append(2, [20], 0, 1, 1), read(3, None, [(1, 20), (0, 10)], 2, 3)),
        trace(append(1, [10], 0, 1, 0), append(2, [20], 0, 1, 1), read(3, None, [(0, 10), (1, 20)], 2, 3)),
    ),
    lab.case(
        "skipped_offset 4 2",
        trace(*(append(n, [10 * n], 0, 1, n) for n in (1, 2, 3)), read(4, 1, [(1, 10), (3, 30)], 2, 3)),
        trace(append(1, [10], 0, 1, 1), append(3, [30], 0, 1, 3), read(4, 1, [(1, 10), (3, 30)], 2, 3)),
    ),
    lab.case(
        "read_outside_bounds 2",
        trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10)], 0, 3, 0)),
        trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10)], 0, 3, 0, strong=False)),
    ),
    lab.case(
        "torn_batch 2 1",
        trace(append(1, [10, 11], 0, 1, 0), read(2, 0, [], 0, 3, 1)),
        trace(append(1, [10, 11], 0, 1, 0), read(2, 0, [(0, 10)], 0, 3, 2)),
    ),
    lab.case(
        "torn_batch 2 3",
        trace(append(1, [10, 11], 0, None), read(2, 0, [(0, 10)], 2, 3), read(3, 4, [(4, 11)], 2, 3)),
        trace(append(1, [10, 11], 0, None), read(2, 0, [(0, 10)], 2, 3), read(3, 1, [(1, 11)], 2, 3)),
    ),
    lab.case(
        "torn_batch 1 2",
        trace(append(1, [10, 11], 0, None), append(2, [20], 0, 1, 1), read(3, 0, [(0, 10)], 2, 3)),
        trace(append(1, [10, 11], 0, None), append(2, [20], 0, 1, 2), read(3, 0, [(0, 10)], 2, 3)),
    ),
    lab.case(
        "unaccounted_offset 1",
        lambda either: trace(append(1, [10], 0, 1, 1), append(2, [20], either(2, 1), None), dense=True),
    ),
    lab.case(
        # holes of one and of two, two batches of two: the count suffices, the sizes do not fit
        "unaccounted_offset 3",
        lambda either: trace(
            append(1, [10], 0, 1, 1),
            append(2, either([20, 21], [20]), 0, None),
            append(3, [30], 0, 1, 4),
            append(4, [40, 41], 0, None),
            dense=True,
        ),
    ),
    lab.case(
        "epoch_regressed_in_log 1 2",
        trace(append(1, [10], 0, 1, 0, leader_epoch=2), append(2, [20], 0, 1, 1, leader_epoch=1)),
        trace(append(1, [10], 0, 1, 0, leader_epoch=1), append(2, [20], 0, 1, 1, leader_epoch=1)),
    ),
    lab.case(
        "position_regressed 2 1",
        lambda either: trace(
            read(1, 5, [], 0, 1, process=1, leader_epoch=0),
            read(2, 4, [], 1, 2, process=1, leader_epoch=either(0, 1)),
            check="session",
        ),
    ),
]


@pytest.mark.parametrize(
    ("anomaly", "operations", "bad", "good"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_anomaly_is_convicted_by_its_operations(
    anomaly: str, operations: tuple[int, ...], bad: Trace, good: Trace
) -> None:
    """Each anomaly has a certificate of the operations that prove it; the nearest legal history has none."""
    verdict = judge_trace(bad)
    found = {finding.anomaly: finding for finding in verdict.findings}
    assert verdict.decision is Decision.ILLEGAL
    assert anomaly in found
    assert found[anomaly].operations == operations
    assert (found[anomaly].topic, found[anomaly].partition) == ("t", 0)
    assert judge_trace(good).decision is Decision.OK, judge_trace(good)


def ended(claims: str, *, ends: tuple[int, int], **more: object) -> Trace:
    """One process that reads twice and is shown these ends."""
    polls = [
        read(n, 0, [], 10 * n, 10 * n + 1, end, process=1, strong=False, **more)
        for n, end in enumerate(ends, 1)
    ]
    return trace(*polls, check=claims)


def test_profiles_demand_what_they_say() -> None:
    """content and default let weak ends go back; session forbids it within an epoch; strong forbids it
    always."""
    decisions = {
        name: judge_trace(ended(name, ends=(3, 2), leader_epoch=1)).decision
        for name in ("content", "default", "session", "strong")
    }
    assert list(decisions.values()) == [Decision.OK, Decision.OK, Decision.ILLEGAL, Decision.ILLEGAL]
    assert (
        judge_trace(ended("session", ends=(3, 2))).decision is Decision.OK
    )  # an unknown epoch compares with nothing
    assert judge_trace(ended("session", ends=(2, 3), leader_epoch=1)).decision is Decision.OK
    inverted = (append(1, [10], 0, 1, 1), append(2, [20], 2, 3, 0))
    assert judge_trace(trace(*inverted, check="content")).decision is Decision.OK
    assert judge_trace(trace(*inverted), profile="content").decision is Decision.OK


def test_concurrent_operations_of_a_process_are_not_in_session_order() -> None:
    """Where a trace allows several operations in flight, only what had completed before counts."""
    polls = (
        read(1, 5, [], 0, 10, process=1, leader_epoch=0),
        read(2, 4, [], 1, 2, process=1, leader_epoch=0),
        read(3, 3, [], 9, 11, process=1, leader_epoch=0),
    )
    assert judge_trace(trace(*polls[:2], check="session", concurrent=True)).decision is Decision.OK
    assert judge_trace(trace(*polls, check="session", concurrent=True)).findings[0].operations == (3, 2)


@pytest.mark.parametrize(("same_clock", "gap", "clears"), [(True, 4, -1), (False, 4, 2), (False, 5, 3)])
def test_clock_uncertainty_clears_only_pairs_of_two_clocks(same_clock: bool, gap: int, clears: int) -> None:
    """A finding names the smallest uncertainty that clears it; one clock's own stamps keep their order."""
    pair = (
        append(1, [10], 0, 1, 1, clock_id=1),
        append(2, [20], 1 + gap, 9, 0, clock_id=1 if same_clock else 2),
    )
    (finding,) = judge_trace(trace(*pair)).findings
    assert finding.uncertainty_ns == clears
    if same_clock:
        assert judge_trace(trace(*pair, clock_uncertainty_ns=1000)).decision is Decision.ILLEGAL
    else:
        assert judge_trace(trace(*pair, clock_uncertainty_ns=clears)).decision is Decision.OK
        assert judge_trace(trace(*pair, clock_uncertainty_ns=clears - 1)).decision is Decision.ILLEGAL


def test_clock_uncertainty_clears_a_hole() -> None:
    """An unknown append that begins too late on another clock may fill a hole once that clock errs enough."""
    late = (append(1, [10], 0, 1, 1, clock_id=1), append(2, [20], 6, None, clock_id=2))
    (finding,) = judge_trace(trace(*late, dense=True)).findings
    assert (finding.anomaly, finding.uncertainty_ns) == ("unaccounted_offset", 3)
    assert judge_trace(trace(*late, dense=True, clock_uncertainty_ns=3)).decision is Decision.OK


def lost_and_rewritten(**claims: object) -> Trace:
    """Offset 0 is acknowledged in epoch 0, lost, and written again in epoch 1."""
    return trace(
        append(1, [10], 0, 1, 0, leader_epoch=0),
        append(2, [20], 5, 6, 0, leader_epoch=1),
        read(3, 0, [(0, 10, 0)], 2, 3, 1),
        read(4, 0, [(0, 20, 1)], 7, 8, 1),
        **claims,
    )


def test_allowed_loss_keys_content_by_epoch() -> None:
    """Where loss is allowed an offset may hold one value per leader epoch; divergence within an epoch and
    phantoms stay violations."""
    assert judge_trace(lost_and_rewritten()).decision is Decision.ILLEGAL
    assert judge_trace(lost_and_rewritten(loss=loss(0, 1))).decision is Decision.OK
    assert judge_trace(lost_and_rewritten(content_by_epoch=True)).decision is Decision.OK
    assert judge_trace(lost_and_rewritten(loss=loss(1, 5))).decision is Decision.ILLEGAL
    operations = lost_and_rewritten().operations
    divergent = trace(*operations, read(5, 0, [(0, 10, 1)], 9, 10), loss=loss(0, 1))
    assert [f.anomaly for f in judge_trace(divergent).findings] == ["inconsistent_offsets"]
    phantom = trace(*operations, read(5, 0, [(0, 77, 2)], 9, 10), loss=loss(0, 1))
    assert [f.anomaly for f in judge_trace(phantom).findings] == ["phantom_record"]


def test_acks_one_is_evidence_only_under_its_epoch() -> None:
    """An acks=1 acknowledgement bounds nothing, but (epoch, offset) still names one value."""
    told = append(1, [10], 0, 1, 0, acks=1, leader_epoch=3)
    other = append(2, [20], 0, None)
    assert judge_trace(trace(told, other, read(3, 0, [(0, 20, 4)], 2, 3))).decision is Decision.OK
    convicted = judge_trace(trace(told, other, read(3, 0, [(0, 20, 3)], 2, 3)))
    assert [(f.anomaly, f.operations) for f in convicted.findings] == [("inconsistent_offsets", (1, 3))]


CONTRADICTIONS: dict[str, tuple[Operation, ...]] = {
    "completed before it was invoked": (append(1, [10], 5, 4, 0),),
    "has no completion time": (append(1, [10], 5, None, 0),),
    "has no offset": (append(1, [10], 0, 1, outcome=read(9, 0, [], 0, 0).outcome),),
    "read a record that has no offset": (read(1, 0, [(-1, 10)], 0, 1),),
    "shares its op id": (append(1, [10], 0, 1, 0), append(1, [20], 0, 1, 1)),
    "was sent twice": (append(1, [10], 0, 1, 0), append(2, [10], 0, 1, 1)),
}


@pytest.mark.parametrize("reason", CONTRADICTIONS)
def test_contradictions_break_the_assumption(reason: str) -> None:
    """A trace that contradicts itself is neither Ok nor Illegal, and never an exception."""
    verdict = judge_trace(trace(*CONTRADICTIONS[reason]))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert reason in verdict.reason
    assert not verdict.findings


def test_weak_runs_and_strange_profiles_break_the_assumption() -> None:
    """Claims that say that the run means nothing, or that name no known profile, are answered, not raised."""
    assert judge_trace(trace(assumption_broken="no quorum")).reason == "no quorum"
    assert judge_trace(trace(check="linear")).decision is Decision.ASSUMPTION_BROKEN


def test_a_fit_beyond_the_bound_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bin packing that is not decided within its bound is Unknown, never Ok."""
    import fencepost.checkers.log.holes as holes

    batches = [append(n, list(range(100 * n, 100 * n + 2 + n % 2)), 0, None) for n in range(2, 8)]
    odd = trace(append(1, [10], 0, 1, 8), *batches, dense=True)
    assert judge_trace(odd).decision is Decision.OK
    monkeypatch.setattr(holes, "FIT_STEPS", 2)
    assert judge_trace(odd).decision is Decision.UNKNOWN


def test_offsets_of_any_size_are_judged() -> None:
    """Offsets far apart, or at the end of 64 bits, cost no memory and break nothing."""
    far = 2**63 - 2
    ops = (append(1, [10], 0, 1, 3), append(2, [20], 0, 1, far), read(3, 3, [(3, 10), (far, 20)], 2, 3))
    assert judge_trace(trace(*ops)).decision is Decision.OK
    assert judge_trace(trace(*ops, read(4, 0, [], 4, 5, 2**63 - 1))).decision is Decision.OK
    assert judge_trace(trace(*ops, read(4, 0, [], 4, 5, 9))).anomaly == "lost_write"


def test_value_zero_is_a_value_like_any_other() -> None:
    """An empty slot is told from one that holds value 0: a phantom 0 is convicted, a sent one is not."""
    assert (
        judge_trace(trace(append(1, [10], 0, 1, 1), read(2, 0, [(0, 0)], 2, 3))).anomaly == "phantom_record"
    )
    sent = (append(1, [10], 0, 1, 1), append(3, [0], 0, None), read(2, 0, [(0, 0)], 2, 3))
    assert judge_trace(trace(*sent)).decision is Decision.OK
    failed = (append(1, [10], 0, 1, 1), append(3, [0], 0, 1, outcome=FAIL), read(2, 0, [(0, 0)], 2, 3))
    assert judge_trace(trace(*failed, check="content")).anomaly == "failed_append_visible"
