"""A closer look at a log that is not held as a whole says exactly what the plain check says of the whole:
findings, certificates, words, clock bounds."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_histories import append, judge_trace, read, trace
from long_histories import long_trace
from ranges_twin import looked_at
from test_ranges import made_of

from fencepost.checkers.log import log_columns
from fencepost.checkers.log.ranges import around, closer, holes
from fencepost.checkers.log.ranges.around import Moments
from fencepost.checkers.log.ranges.partial import NOT_OF_SLOTS
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

WIDTHS = (1, 2, 3, 8, 64)


def difference(made: Trace, rng: Random) -> str:
    """What the closer look says and what the plain check says of a history, cut at random, where these
    differ; "" if they do not, or slots cannot tell."""
    looked = looked_at(made, rng, width=rng.choice(WIDTHS), closer=True)
    ordinary = not any(NOT_OF_SLOTS.intersection(reasons) for reasons, *_ in looked.values())
    if log_columns(columns_of_traces([made])).broken or not ordinary:
        return ""
    told = tuple(finding for _, one, _ in looked.values() for finding in one.findings)
    told += tuple(finding for _, one, _ in looked.values() for finding in one.sessions)
    undecided = "; ".join(one.undecided for _, one, _ in looked.values() if one.undecided)
    plain = judge_trace(made)
    same = told == plain.findings and (bool(told) or undecided == plain.reason)
    return "" if same else f"{told} {undecided!r} instead of {plain}"


def short(seed: int) -> str:
    return difference(made_of(seed), Random(seed))


def long(seed: int) -> str:
    rng = Random(seed)
    return difference(long_trace(rng), rng)


@settings(max_examples=amount(60, 150), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**40))
def test_short_histories_have_the_plain_findings(seed: int) -> None:
    """Of a few operations, bent in up to three places, so that several rules break at one slot."""
    assert short(seed) == ""


@settings(max_examples=amount(20, 60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**40))
def test_long_histories_have_the_plain_findings(seed: int) -> None:
    """Of some hundred operations, most of them in order, with several clocks, batches and leader epochs: more
    than half are Illegal."""
    assert long(seed) == ""


def test_an_append_begun_after_a_later_one_was_acknowledged() -> None:
    """Rule: an invocation is a bound from below, also of a slot that no end and no read speak of."""
    made = trace(append(1, [10], 10, 11, 0), append(2, [20], 2, 5, 1))
    assert judge_trace(made).anomaly == "append_inversion"
    assert [difference(made, Random(n)) for n in range(6)] == [""] * 6


def test_a_hole_just_below_a_record_that_nobody_sent() -> None:
    """Rule: the log is known up to the highest record that was shown, even if no slot has an append there."""
    made = trace(append(1, [10], 0, 1, 0), read(3, 2, [(2, 20)], 4, 5), dense=True)
    assert [finding.anomaly for finding in judge_trace(made).findings] == [
        "phantom_record",
        "unaccounted_offset",
    ]
    assert [difference(made, Random(n)) for n in range(6)] == [""] * 6


def test_few_operations_are_kept() -> None:
    """The look does not pass by keeping everything: of long histories with findings, half keep less than half
    of their operations."""
    shares = []
    for seed in range(40):
        made = long_trace(Random(seed), appends=150, reads=150)
        if not judge_trace(made).findings:
            continue
        kept = []

        def keep(wanted, appends, reads, strong, original=around.concerning, kept=kept):
            found = original(appends, reads, strong, wanted)
            kept.append(len(found))
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ranges_twin.concerning", lambda a, r, s, w, keep=keep: keep(w, a, r, s))
            looked_at(made, Random(seed), width=8, closer=True)
        if kept:
            shares.append(max(kept) / len(made.operations))
    assert len(shares) > 8
    assert float(np.median(shares)) < 0.5


LEFT_OUT = {
    "the slots of values and batches": (closer, "_with", lambda wanted, group: wanted, short, range(15, 30)),
    "bounds of what is strange": (closer, "_moments", lambda group: Moments.none(), long, range(10, 16)),
    "contradictions in time": (
        *(around, "_contradicting", lambda slots, *_: np.zeros(len(slots), np.bool_)),
        *(short, range(100, 220)),
    ),
    "sessions": (closer, "_sessions", lambda *_: (), long, range(2, 8)),
    "which appends may fill holes": (
        *(holes, "_unplaced", lambda summaries, soft, group: np.arange(len(soft.rows))),
        *(short, range(255, 300)),
    ),
    "by when holes were filled": (
        *(closer, "unfilled", lambda group, runs: (None, "")),
        *(short, range(50, 80)),
    ),
}


@pytest.mark.parametrize("what", sorted(LEFT_OUT))
def test_a_part_of_the_look_left_out_is_noticed(what: str, monkeypatch) -> None:
    """Without one of its parts the properties above fail: they can fail."""
    module, name, instead, of, seeds = LEFT_OUT[what]
    monkeypatch.setattr(module, name, instead)
    assert any(of(seed) for seed in seeds)


EPOCHS = (
    trace(append(1, [100], 0, 1, offset=0, leader_epoch=2), append(2, [200], 2, 3, offset=1, leader_epoch=1)),
    trace(
        append(1, [100], 0, 1, offset=0, leader_epoch=2),
        append(2, [200], 2, 3, offset=1, leader_epoch=3),
        read(3, 1, [(1, 200, 1)], 4, 5),
    ),
)


@pytest.mark.parametrize("made", EPOCHS)
def test_leader_epochs_that_decrease_have_both_operations(made: Trace, monkeypatch) -> None:
    """The higher epoch below, which contradicts nothing where it stands, is found with the lower one; by that
    rule alone."""
    assert judge_trace(made).anomaly == "epoch_regressed_in_log"
    assert all(difference(made, Random(n)) == "" for n in range(6))
    monkeypatch.setattr(around, "_epochs_in_question", lambda *_: np.empty(0, np.int64))
    assert all(difference(made, Random(n)) for n in range(6))


def test_too_many_in_question_are_looked_at_in_part(monkeypatch) -> None:
    """Where more operations bear on what is in question than are examined together, what is found is true,
    and it is said that there may be more."""
    monkeypatch.setattr(closer, "MOST_KEPT", 30)
    monkeypatch.setattr(closer, "FEW", 2)
    partly = 0
    for seed in range(25):
        made = long_trace(Random(seed), appends=100, reads=100)
        plain = {finding.anomaly for finding in judge_trace(made).findings}
        for _, looked, _ in looked_at(made, Random(seed), width=8, closer=True).values():
            partly += bool(looked.undecided and looked.findings)
            if looked.undecided:
                assert {finding.anomaly for finding in looked.findings} <= plain
    assert partly > 1
