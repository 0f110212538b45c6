"""Keys of a key-value history that are in order for sure: the compiled screen against the decider, operation
by operation."""

from random import Random

import pytest
from attrs import evolve
from lin_histories import history
from lin_unambiguous import unambiguous

from fencepost.checkers.linearizability import judge_counted, linearizability_judge
from fencepost.checkers.linearizability.deciders import decide
from fencepost.checkers.linearizability.history import split
from fencepost.checkers.linearizability.screen import screened
from fencepost.checkers.models import model_named
from fencepost.checkers.models.registers import KeyValue
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tests.selfcheck.amounts import amount

MODEL = model_named("key-value")
HISTORIES = amount(150, 400)
"""Of several keys each; `make measure NAME=exact` compares 200,000 keys (decider-key-value)."""


def together(traces: list[Trace]) -> Trace:
    """One history with a key for each of several."""
    keyed = [evolve(o, key=f"key {n}") for n, trace in enumerate(traces) for o in trace.operations]
    return evolve(traces[0], operations=tuple(evolve(o, op_id=op_id) for op_id, o in enumerate(keyed)))


def differing(trace: Trace) -> tuple[int, int, int]:
    """Keys about which screen and decider differ; how many are legal, and how many are not or not for
    sure."""
    parts = split(MODEL, trace)
    surely = {name for name, part in parts.items() if (told := decide(MODEL, part)) and not told.convicting}
    found = screened(MODEL, trace, smallest=0)
    assert found is not None
    unclear = set(split(MODEL, found.rest))
    assert (found.parts, found.operations) == (
        len(parts) - len(unclear),
        sum(len(part) for name, part in parts.items() if name not in unclear),
    )
    return len((set(parts) - unclear) ^ surely), len(surely), len(unclear)


def mismatches(draw: str, seeds: range) -> tuple[int, int, int]:
    """The sums of `differing` over histories of up to four keys."""
    sums = [0, 0, 0]
    for seed in seeds:
        random = Random(f"screened {draw} {seed}")
        many = random.randint(1, 4)
        traces = [
            unambiguous("key-value", random, most=random.choice((4, 7, 20)))
            if draw == "unambiguous"
            else history("key-value", random, most=7)
            for _ in range(many)
        ]
        sums = [total + one for total, one in zip(sums, differing(together(traces)), strict=True)]
    return sums[0], sums[1], sums[2]


@pytest.mark.parametrize("draw", ["unambiguous", "any"])
def test_the_screen_says_of_each_key_what_its_decider_says(draw: str) -> None:
    """Rule: a key is passed over if, and only if, its decider calls it legal; so no verdict depends on the
    screen."""
    wrong, legal, unclear = mismatches(draw, range(HISTORIES))
    assert wrong == 0
    assert min(legal, unclear) > HISTORIES // 10


def test_a_screened_history_is_judged_as_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: verdict, convicted operations, words and counts are those of the judge that looks at every
    operation."""
    decisions = set()
    for seed in range(12):
        random = Random(f"whole {seed}")
        drawn = [unambiguous("key-value", random, most=14) for _ in range(24)]
        if seed % 2:
            drawn = [trace for trace in drawn if not differing(trace)[2]]
        trace = together(drawn)
        if seed % 3 == 0:
            clocks = tuple(evolve(o, clock_id=o.process % 2) for o in trace.operations)
            trace = evolve(trace, operations=clocks, claims=evolve(trace.claims, clock_uncertainty_ns=1))
        assert screened(MODEL, trace) is not None
        quick = judge_counted(trace, MODEL)
        with monkeypatch.context() as patched:
            patched.setattr(linearizability_judge, "screened", lambda *_: None)
            assert judge_counted(trace, MODEL) == quick
        decisions.add(quick.verdict.decision)
    assert decisions >= {Decision.OK, Decision.ILLEGAL}


def _operation(function: Function, **given: object) -> Operation:
    known = {
        "op_id": 0,
        "process": 0,
        "invoke_time": 0,
        "completion_time": 1,
        "outcome": Outcome.OK,
        "key": "k",
    }
    return Operation(function=function, **{**known, **given})  # type: ignore[arg-type]


def _alone(*operations: Operation) -> Trace:
    numbered = tuple(evolve(o, op_id=op_id) for op_id, o in enumerate(operations))
    return lab.trace(numbered)


PUT = _operation(Function.PUT, argument='"a"')
GET = _operation(Function.GET, result='"a"', invoke_time=2, completion_time=3)
NEGATIVE = _operation(Function.GET, result='""', invoke_time=-9, completion_time=-8)


@pytest.mark.parametrize(
    "strange",
    [
        evolve(GET, result='"\\u0061"'),
        evolve(GET, result=' "a"'),
        evolve(GET, result='"a" '),
        evolve(GET, result='"'),
        evolve(GET, result=""),
        evolve(GET, result='"a""b"'),
        evolve(GET, result='"a\n"'),
        evolve(GET, result="null"),
        evolve(GET, result=None),
        evolve(GET, argument='"a"'),
        evolve(GET, function=Function.READ),
        evolve(GET, key=None),
        evolve(GET, result='"\ud800"'),
        evolve(GET, completion_time=1),
        evolve(GET, completion_time=None),
        evolve(GET, completion_time=1 << 63),
        evolve(GET, invoke_time=-(1 << 63)),
        evolve(PUT, argument=None),
        evolve(PUT, argument="1"),
        evolve(PUT, result='"a"'),
    ],
)
def test_a_history_with_anything_unusual_is_left_to_the_judge(strange: Operation) -> None:
    """Rule: what could be a mistake of the history, or needs more than a look at bytes, is never passed
    over."""
    assert screened(MODEL, _alone(PUT, GET, strange), smallest=0) is None


def test_what_does_not_count_may_look_as_it_likes() -> None:
    """Rule: failed operations, and gets whose answer nobody heard, say nothing, whatever stands in their
    columns."""
    failed = evolve(PUT, outcome=Outcome.FAIL, argument="{", key=None)
    unheard = evolve(GET, outcome=Outcome.UNKNOWN, completion_time=None, result="{", key=None)
    found = screened(MODEL, _alone(PUT, failed, GET, unheard, NEGATIVE), smallest=0)
    assert found is not None
    assert (found.parts, found.operations, found.rest.operations) == (1, 3, ())


def test_other_models_and_short_histories_are_not_screened() -> None:
    """Rule: a model derived from key-value may allow something else; a first text other than none is the
    decider's."""

    class Mine(KeyValue):
        """Another one."""

    trace = _alone(PUT, GET)
    assert screened(Mine(), trace, smallest=0) is None
    assert screened(KeyValue(initial="b"), trace, smallest=0) is None
    assert screened(KeyValue(initial=None), trace, smallest=0) is None
    assert screened(MODEL, trace) is None
    assert screened(MODEL, trace, smallest=2) is not None


def test_a_stamp_that_may_err_is_widened() -> None:
    """Rule: with uncertain clocks both ends of every interval move outwards, and so what is passed over stays
    legal."""
    late = evolve(GET, result='""')
    assert len(screened(MODEL, _alone(PUT, late), smallest=0).rest.operations) == 2  # type: ignore[union-attr]
    assert not screened(MODEL, _alone(PUT, late), 1, smallest=0).rest.operations  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "shown"),
    [(("a", "bc"), "ab"), (("a", "ab"), "aab"), (("a", "a"), "aa"), (("a", "b"), "ba"), (("a", ""), "a")],
)
def test_a_text_that_ends_within_a_piece_or_has_two_readings_is_left(
    written: tuple[str, str], shown: str
) -> None:
    """Rule: a get that shows half of what was appended is illegal; pieces of which one begins with another
    one are for the search."""
    first, second = written
    story = [
        evolve(PUT, argument=f'"{first}"'),
        _operation(Function.APPEND, argument=f'"{second}"', invoke_time=2, completion_time=3),
        evolve(GET, result=f'"{first}{second}"', invoke_time=4, completion_time=5),
        evolve(GET, result=f'"{shown}"', invoke_time=4, completion_time=5),
    ]
    found = screened(MODEL, _alone(*story), smallest=0)
    assert found is not None
    assert len(found.rest.operations) == 4


def test_nothing_is_nothing() -> None:
    """Rule: a history without operations has no part that is in order, or out of it."""
    found = screened(MODEL, _alone(), smallest=0)
    assert found is not None
    assert (found.parts, found.operations, found.rest.operations) == (0, 0, ())
