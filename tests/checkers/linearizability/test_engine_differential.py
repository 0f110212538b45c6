"""The engine against a naive exhaustive search, for every model, on seeded random histories."""

import math
from random import Random

import numpy as np
import pytest
from attrs import evolve
from lin_exhaustive import linearizable
from lin_histories import DRAW, history, model_of, opened

from fencepost.checkers.linearizability import explain, judge_counted, linearizability_judge, search_engine
from fencepost.checkers.linearizability.history import arrays_of, split, with_relaxed
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.limits import Guard, SearchLimits
from fencepost.checkers.models import IMPOSSIBLE
from fencepost.checkers.models.containers import Queue
from fencepost.checkers.models.registers import UNSEEN, KeyValue
from fencepost.checkers.verdict import Decision
from tests.selfcheck.amounts import amount

HISTORIES = amount(250, 700)
"""Of each model; `make measure NAME=exact` runs more."""


def mismatches(name: str, seeds: range) -> tuple[int, int]:
    """How often engine and oracle differ, and how many histories were illegal."""
    model = model_of(name)
    wrong = illegal = 0
    for seed in seeds:
        trace = history(name, Random(f"{name} {seed}"))
        expected = linearizable(model, trace.operations)
        decision = judge_counted(trace, model, deciders=False).verdict.decision
        wrong += decision is not (Decision.OK if expected else Decision.ILLEGAL)
        illegal += not expected
    return wrong, illegal


def sweep(name: str, seeds: range) -> tuple[int, int]:
    """As `mismatches`, of the search alone: without limits, deciders and proofs, which cost several times as
    much."""
    model, guard = model_of(name), Guard(SearchLimits(timeout_s=math.inf))
    wrong = illegal = 0
    for seed in seeds:
        trace = history(name, Random(f"{name} {seed}"))
        expected = linearizable(model, trace.operations)
        table, legal = Table(model), True
        for part in split(model, trace).values():
            table.lens = model.lens([one.call for one in part])
            legal = (
                legal
                and search_engine.search(arrays_of(part, table), table, guard).answer
                is not search_engine.SearchAnswer.ILLEGAL
            )
        wrong += legal is not expected
        illegal += not expected
    return wrong, illegal


@pytest.mark.parametrize("name", DRAW)
def test_engine_and_exhaustive_search_agree(name: str) -> None:
    """On random small histories the engine's decision is that of trying every order."""
    wrong, illegal = mismatches(name, range(HISTORIES))
    assert wrong == 0
    assert HISTORIES // 20 < illegal < HISTORIES * 19 // 20


@pytest.mark.parametrize("name", DRAW)
def test_the_order_found_is_one(name: str) -> None:
    """Where the engine says linearizable, the order that it found keeps real time and satisfies the model."""
    model, checked = model_of(name), 0
    for seed in range(amount(60, 150)):
        for part in split(model, history(name, Random(f"order {name} {seed}"))).values():
            table = Table(model)
            arrays = arrays_of(part, table)
            outcome = search_engine.search(arrays, table, Guard(SearchLimits()))
            if outcome.answer is search_engine.SearchAnswer.LINEARIZABLE:
                order, _ = explain.prefix_order(arrays, outcome, table)
                state, latest = model.init(), -1
                for op in order:
                    state = model.step(state, arrays.asked[op].call)
                    assert state is not IMPOSSIBLE
                    latest = max(latest, arrays.asked[op].invoke)
                    assert arrays.asked[op].complete >= latest
                known = {op for op, one in enumerate(arrays.asked) if one.known}
                assert known <= set(order) and len(set(order)) == len(order)
                checked += 1
    assert checked > amount(20, 50)


@pytest.mark.parametrize("name", DRAW)
def test_a_certificate_proves_and_is_minimal(name: str) -> None:
    """With all other operations unknown the convicting ones are still illegal; with any one of them unknown
    too, no longer."""
    model, checked = model_of(name), 0
    for seed in range(amount(60, 120)):
        trace = history(name, Random(f"certificate {name} {seed}"))
        for finding in judge_counted(trace, model, deciders=False).verdict.findings:
            (part,) = (
                part
                for part in split(model, trace).values()
                if finding.operations[0] in {one.operation.op_id for one in part}
            )
            everyone = {one.operation.op_id for one in part}
            convicting = set(finding.operations)

            def legal(relaxed: set[int], part=part) -> bool:
                operations = [one.operation for one in with_relaxed(model, part, relaxed)]
                return linearizable(model, [o if o.op_id not in relaxed else opened(o) for o in operations])

            assert not legal(everyone - convicting)
            assert all(legal(everyone - convicting | {op}) for op in convicting)
            checked += 1
    assert checked > amount(3, 10)


def _unknown_never_happens(part, table):
    return arrays_of([one for one in part if one.known], table)


def _ties_are_ordered(part, table):
    made = arrays_of(part, table)
    invoke = np.array([one.invoke for one in made.asked])
    complete = np.array([one.complete for one in made.asked])[made.part.returns]
    earlier = np.maximum(np.searchsorted(invoke, complete, side="left"), made.part.returns + 1)
    return _with(made, invoked=np.maximum.accumulate(earlier))


def _unknown_at_once(part, table):
    """Unknown operations are open only from the end on: a later effect is forgotten."""
    made = arrays_of(part, table)
    return _with(made, unknown_before=np.zeros_like(made.part.unknown_before))


def _twins_by_function(part, table):
    """Every unknown operation waits for the one before, whatever it is."""
    made = arrays_of(part, table)
    twin = made.part.twin.copy()
    twin[made.part.unknown[1:]] = made.part.unknown[:-1]
    return _with(made, twin=twin)


def _everything_observes(part, table):
    """What changes nothing in one state is taken for what never changes any."""
    made = arrays_of(part, table)
    return _with(made, observes=made.part.order < len(made.part.returns))


def _resets_forgotten(part, table):
    """What undoes others is taken for what only adds."""
    made = arrays_of(part, table)
    return _with(made, reset=np.full_like(made.part.reset, len(made.asked)))


def test_the_differential_test_notices_forgotten_resets(monkeypatch) -> None:
    """An engine that foresees too much differs from the oracle somewhere."""
    monkeypatch.setattr(linearizability_judge, "arrays_of", _resets_forgotten)
    monkeypatch.setattr(
        linearizability_judge,
        "explain",
        lambda arrays, _, table, __, name: explain.bare_finding(arrays.asked, table.model, name),
    )
    assert _noticed("set")


def _puts_forgotten(part, table):
    """What overwrites the state is taken for what only adds to it."""
    made = arrays_of(part, table)
    return _with(made, lands=np.full_like(made.part.lands, -1))


def test_the_differential_test_notices_forgotten_puts(monkeypatch) -> None:
    """An engine that does not wait for a put differs from the oracle somewhere."""
    monkeypatch.setattr(linearizability_judge, "arrays_of", _puts_forgotten)
    monkeypatch.setattr(
        linearizability_judge,
        "explain",
        lambda arrays, _, table, __, name: explain.bare_finding(arrays.asked, table.model, name),
    )
    assert _noticed("key-value", first=32)  # 20 is searched until the time is up


@pytest.mark.parametrize(
    ("name", "model", "blur"),
    [
        ("key-value", KeyValue, lambda state: UNSEEN if state else state),
        ("queue", Queue, lambda state: state[:1]),
    ],
)
def test_the_differential_test_notices_a_lens_that_blurs(name, model, blur, monkeypatch) -> None:
    """An engine that takes states for one which calls can tell apart differs from the oracle somewhere."""
    monkeypatch.setattr(model, "lens", lambda self, calls: blur)
    assert _noticed(name)


def _noticed(name: str, first: int = 0) -> bool:
    """One history at a time, and none after the first mismatch: a wrong engine may search some of them until
    its time is up. first: a seed to begin with."""
    return any(mismatches(name, range(seed, seed + 1))[0] for seed in (*range(first, 600), *range(first)))


def _with(made, **changes):
    return evolve(made, part=made.part._replace(**changes))


@pytest.mark.parametrize(
    "fault",
    [_everything_observes, _unknown_never_happens, _ties_are_ordered, _unknown_at_once, _twins_by_function],
)
def test_the_differential_test_notices_a_planted_fault(fault, monkeypatch) -> None:
    """An engine with one rule broken differs from the oracle somewhere."""
    monkeypatch.setattr(linearizability_judge, "arrays_of", fault)
    assert _noticed("cas-register")
