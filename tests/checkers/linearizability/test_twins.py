"""The later models against naive twins that share no code with them, and each one's planted faults."""

from random import Random

import pytest
from attrs import evolve
from lin_histories import history, model_of
from lin_twins import TWINS, possible

from fencepost.checkers.linearizability import judge_counted
from fencepost.checkers.models.leases import Lease
from fencepost.checkers.models.lists import AppendOnlyList
from fencepost.checkers.models.locks import Semaphore
from fencepost.checkers.models.maps import Map
from fencepost.checkers.models.queue_models import AtLeastOnceQueue, UnorderedQueue
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Function, Operation
from tests.checkers import lab
from tests.selfcheck.amounts import amount

HISTORIES = amount(125, 250)


def differences(name: str, seeds: range, *, searched: bool = False) -> tuple[int, int]:
    """How often the judge and the twin differ, and how many histories are illegal. searched: without
    deciders."""
    model, wrong, illegal = model_of(name), 0, 0
    for seed in seeds:
        trace = history(name, Random(f"twin {name} {seed}"), most=6)
        expected = possible(name, trace.operations)
        decision = judge_counted(trace, model, shrink=False, deciders=not searched).verdict.decision
        wrong += decision is not (Decision.OK if expected else Decision.ILLEGAL)
        illegal += not expected
    return wrong, illegal


@pytest.mark.parametrize("name", TWINS)
def test_a_model_and_its_twin_agree(name: str) -> None:
    """Rule: the judge's decision with a model is that of a system that is tried step by step, with every
    choice."""
    wrong, illegal = differences(name, range(HISTORIES))
    assert wrong == 0
    assert HISTORIES // 40 < illegal < HISTORIES * 19 // 20


FAULTS = [
    ("unordered-queue", UnorderedQueue, "_dequeued", lambda self, contents, call: (contents,)),
    (
        "unordered-queue",
        UnorderedQueue,
        "_enqueued",
        lambda self, contents, call: (frozenset({(call.argument, 1)}),),
    ),
    ("at-least-once-queue", AtLeastOnceQueue, "_dequeued", lambda self, contents, call: (contents,)),
    ("at-least-once-queue", AtLeastOnceQueue, "_removed", lambda self, contents, call: (contents,)),
    ("map", Map, "observes", lambda self, call: call.function != "put"),
    ("append-only-list", AppendOnlyList, "reaches", lambda self, state, call: call.result == state),
    ("semaphore", Semaphore, "init", lambda self: frozenset({("nobody", 1)})),
    ("lease", Lease, "init", lambda self: ("nobody", 20, 0)),
]


@pytest.mark.parametrize(("name", "owner", "attribute", "fault"), FAULTS)
def test_a_planted_fault_is_noticed(name: str, owner, attribute: str, fault, monkeypatch) -> None:
    """Rule: a model with one rule broken differs from its twin somewhere."""
    monkeypatch.setattr(owner, attribute, fault)
    assert any(differences(name, range(begin, begin + 50), searched=True)[0] for begin in range(0, 1000, 50))


def test_uncertain_clocks_widen_what_a_lease_looks_at() -> None:
    """Rule: where clocks may err, a lease that was handed on a little early by the stamps alone is undecided,
    and by much is convicted."""

    def acquired(at: int, client: str, clock: int) -> Operation:
        return lab.operation(
            at, Function.ACQUIRE, at, at + 1, process=clock, clock_id=clock, argument=f'"{client}"'
        )

    def decision(second: int, uncertainty: int) -> Decision:
        operations = (acquired(100, "p", 0), acquired(second, "q", 1))
        trace = lab.trace(operations)
        trace = evolve(trace, claims=evolve(trace.claims, clock_uncertainty_ns=uncertainty))
        return judge_counted(trace, Lease(10e-6)).verdict.decision

    assert decision(109, 0) is Decision.OK and decision(108, 0) is Decision.ILLEGAL
    assert decision(107, 1) is Decision.UNKNOWN and decision(106, 1) is Decision.ILLEGAL
