"""What the engine and its deciders say of seeded histories, and how much they try, stays what it was
(kept.py)."""

import math
from random import Random
from typing import Any

import pytest
from attrs import evolve
from lin_histories import DRAW, history, model_of
from lin_unambiguous import NAMES, unambiguous

from fencepost.checkers.linearizability import SearchLimits, judge_counted, linearizability_judge
from fencepost.checkers.linearizability.deciders import decide
from fencepost.checkers.linearizability.history import Asked, arrays_of, split
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.models import Model
from fencepost.traces.trace import Trace
from tests.checkers.kept import differences, plain, words_of
from tests.selfcheck.amounts import amount

SEEDS, BLOCK = 240, 30
LIMITS = SearchLimits(timeout_s=math.inf)


def _clocked(random: Random, trace: Trace) -> Trace:
    """The same with clocks that err, now and then."""
    if random.random() < 0.85:
        return trace
    operations = tuple(evolve(o, clock_id=random.randrange(2)) for o in trace.operations)
    claims = evolve(trace.claims, clock_uncertainty_ns=random.choice((1, 3)))
    return evolve(trace, operations=operations, claims=claims)


def relations(model: Model, part: list[Asked]) -> Any:
    """The arrays that a search of the part works on, and what its decider says."""
    arrays = arrays_of(part, Table(model))
    return plain(arrays.part), arrays.slots, arrays.foresees, plain(decide(model, part))


def said(seed: int) -> Any:
    """Of a history of every model: the verdict and its counts, searched, and decided where values allow it;
    and its parts."""
    random, told = Random(f"kept {seed}"), []
    for name in DRAW:
        traces = [(history(name, random, most=9), False)]
        if name in NAMES:
            traces.append((unambiguous(name, random, most=9), True))
        for trace, deciders in traces:
            model = model_of(name)
            judged = judge_counted(_clocked(random, trace), model, LIMITS, deciders=deciders)
            told += [relations(model, part) for part in split(model, trace).values()]
            told.append(
                (
                    words_of(judged.verdict),
                    judged.operations,
                    judged.parts,
                    judged.steps,
                    judged.nodes,
                    judged.decided,
                )
            )
    return told


@pytest.mark.parametrize("begin", range(0, amount(2 * BLOCK, SEEDS), BLOCK))
def test_what_is_said_and_tried_stays(begin: int) -> None:
    """Rule: the same operations prove the same, and the search tries and remembers no more and no less for
    it."""
    assert differences("linearizability", said, range(begin, begin + BLOCK)) == []


def test_a_planted_fault_changes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a search that never foresees a dead end tries more on some seed."""
    monkeypatch.setattr(
        linearizability_judge, "arrays_of", lambda part, table: evolve(arrays_of(part, table), foresees=False)
    )
    assert differences("linearizability", said, range(30))
