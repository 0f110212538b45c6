"""The deciders of unambiguous values: against every order tried, against the general search, and with faults
planted."""

import math
import re
from itertools import pairwise
from random import Random

import pytest
from attrs import evolve
from lin_exhaustive import linearizable
from lin_histories import model_of, opened
from lin_unambiguous import NAMES, unambiguous

from fencepost.checkers.linearizability import judge_counted
from fencepost.checkers.linearizability.deciders import (
    decide,
    list_decider,
    lock_decider,
    queue_decider,
    register_decider,
    set_decider,
    text_decider,
    zones,
)
from fencepost.checkers.linearizability.history import arrays_of, split
from fencepost.checkers.linearizability.interned_steps import Table
from fencepost.checkers.linearizability.limits import Guard, SearchLimits
from fencepost.checkers.linearizability.screen import screened
from fencepost.checkers.linearizability.search_engine import SearchAnswer, search
from fencepost.checkers.models import model_named
from fencepost.checkers.models.registers import Register
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Outcome
from tests.checkers import lab
from tests.checkers.models.models_lab import history
from tests.selfcheck.amounts import amount

HISTORIES = amount(100, 200)
"""Of each model; `make measure NAME=exact` compares 200,000."""


def mismatches(name: str, seeds: range) -> tuple[int, int, int]:
    """How often decider and oracle differ; how many histories were decided, and how many of these are
    illegal."""
    model = model_of(name)
    wrong = decided = illegal = 0
    for seed in seeds:
        trace = unambiguous(name, Random(f"decided {name} {seed}"))
        answers = [decide(model, part) for part in split(model, trace).values()]
        if None not in answers:
            expected = linearizable(model, trace.operations)
            decided += 1
            wrong += expected != (not any(answer.convicting for answer in answers))
            illegal += not expected
    return wrong, decided, illegal


def sweep(name: str, seeds: range) -> tuple[int, int]:
    """As `mismatches`, against the general search and the screen too: how often one differs from the oracle,
    and how many decided histories are illegal."""
    model, wrong, illegal = model_of(name), 0, 0
    guard = Guard(SearchLimits(timeout_s=math.inf))
    for seed in seeds:
        trace = unambiguous(name, Random(f"decided {name} {seed}"))
        parts = split(model, trace).values()
        answers = [decide(model, part) for part in parts]
        if None not in answers:
            table = Table(model)
            expected = linearizable(model, trace.operations)
            searched = [search(arrays_of(part, table), table, guard).answer for part in parts]
            wrong += expected != (not any(answer.convicting for answer in answers))
            wrong += expected != (SearchAnswer.ILLEGAL not in searched)
            sure = screened(model, trace, smallest=0)
            wrong += sure is not None and expected == bool(sure.rest.operations)
            illegal += not expected
    return wrong, illegal


@pytest.mark.parametrize("name", NAMES)
def test_deciders_and_exhaustive_search_agree(name: str) -> None:
    """Where a decider answers, its answer is that of trying every order; it answers nearly always, both
    ways."""
    wrong, decided, illegal = mismatches(name, range(HISTORIES))
    assert wrong == 0
    assert decided > HISTORIES * 2 // 3
    assert HISTORIES // 20 < illegal < HISTORIES * 19 // 20


@pytest.mark.parametrize("name", NAMES)
def test_deciders_and_general_search_agree(name: str) -> None:
    """On histories too long to try every order, deciders and the general search give the same verdict, and
    the same longest prefix."""
    model, decided = model_of(name), set()
    for seed in range(25):
        trace = unambiguous(
            name, Random(f"long {name} {seed}"), most=12 if "queue" in name or "list" in name else 30
        )
        if "queue" in name:  # an unknown dequeue may have taken any value
            trace = evolve(
                trace, operations=tuple(o for o in trace.operations if o.outcome is not Outcome.UNKNOWN)
            )
        quick, slow = (judge_counted(trace, model, deciders=use) for use in (True, False))
        assert quick.verdict.decision is slow.verdict.decision
        assert slow.decided == 0
        if quick.parts and quick.decided == quick.parts:
            decided.add(quick.verdict.decision)
            ends = [o.completion_time for o in trace.operations if o.outcome is Outcome.OK]
            if len(set(ends)) == len(ends):
                assert _prefixes(quick) in ([], _prefixes(slow))
    assert decided == {Decision.OK, Decision.ILLEGAL}


def _prefixes(judged) -> list[str]:
    return [
        number
        for finding in judged.verdict.findings
        for number in re.findall(r"the first (\d+) completions", finding.seen)
    ]


@pytest.mark.parametrize("name", ["register", "cas-register", "key-value", "set", "map", "append-only-list"])
def test_a_certificate_proves_whatever_the_others_did(name: str) -> None:
    """With all other operations unknown the convicting ones are still illegal; with any one of them unknown
    too, no longer."""
    model, checked = model_of(name), 0
    for part, finding in _convicted(name):
        convicting = set(finding.operations)

        def legal(known: set[int], part=part) -> bool:
            operations = [one.operation for one in part]
            return linearizable(model, [o if o.op_id in known else opened(o) for o in operations])

        assert 1 <= len(convicting) <= 6
        assert not legal(convicting)
        assert all(legal(convicting - {op}) for op in convicting)
        checked += 1
    assert checked > 5


@pytest.mark.parametrize(
    "name", ["queue", "unordered-queue", "at-least-once-queue", "mutex", "fenced-lock", "semaphore"]
)
def test_a_certificate_is_illegal_by_itself(name: str) -> None:
    """The few operations that convict a queue or a lock fit in no order even if they were all that
    happened."""
    model, checked = model_of(name), 0
    for part, finding in _convicted(name):
        operations = [one.operation for one in part if one.operation.op_id in set(finding.operations)]
        assert not linearizable(model, operations)
        checked += 1
    assert checked > 5


def _convicted(name: str):
    """Parts with what a decider found."""
    model = model_of(name)
    for seed in range(90):
        trace = unambiguous(name, Random(f"certificate {name} {seed}"))
        judged = judge_counted(trace, model)
        if judged.decided == judged.parts == 1:
            for finding in judged.verdict.findings:
                assert "decided without a search" in finding.seen and "not further shrunk" not in finding.seen
                yield next(iter(split(model, trace).values())), finding


AMBIGUOUS = [
    ("register", "0-5 write 1; 10-15 write 1"),
    ("register", "0-5 write null"),
    ("cas-register", "0-5 write 1; 10-15 cas [1, 1] = true"),
    ("cas-register", "0-5 write 1; 10-15 cas [1, 2] = false"),
    ("key-value", '0-5 put/k "x"; 10-15 append/k "x"'),
    ("key-value", '0-5 put/k "x"; 10-15 put/k "xy"'),
    ("key-value", '0-5 append/k ""'),
    ("key-value", "0-5 get/k = null"),
    ("set", "0-5 add 1; 10-15 add 1"),
    ("set", "0-5 add 1; 10-15 read = [1]"),
    ("queue", "0-5 enqueue 1; 10-15 enqueue 1"),
    ("queue", "0-5 enqueue 1; 10- lost dequeue"),
    ("unordered-queue", "0-5 enqueue 1; 10-15 enqueue 1"),
    ("unordered-queue", "0-5 enqueue 1; 10- lost dequeue"),
    ("at-least-once-queue", "0-5 enqueue 1; 10-15 dequeue = 1; 20-25 remove 1"),
    ("map", "0-5 put/k 1; 10-15 delete/k"),
    ("map", "0-5 put/k 1; 10-15 put/k 1.0"),
    ("append-only-list", "0-5 append 1; 10-15 append 1"),
    ("semaphore", '0-5 acquire "p"; 10-15 acquire "p"'),
    ("lease", '0-5 acquire "p"'),
    ("mutex", '0-5 acquire "p"; 10-15 acquire "p"'),
    ("mutex", '0- lost acquire "p"; 10-15 release "p"'),
    ("fenced-lock", '0-5 release "p"'),
    ("counter", "0-5 add 1"),
]


@pytest.mark.parametrize(("name", "words"), AMBIGUOUS)
def test_what_is_ambiguous_is_left_to_the_search(name: str, words: str) -> None:
    """Values that do not say what belongs together are never guessed about: the general search judges, and
    the counts say so."""
    trace = lab.trace(history(words))
    model = model_of(name)
    assert [decide(model, part) for part in split(model, trace).values()] == [None]
    judged = judge_counted(trace, model)
    assert (judged.parts, judged.decided) == (1, 0)


def test_what_completes_behind_the_shortest_prefix_still_convicts() -> None:
    """What an operation answered convicts it even where the shortest illegal prefix ends before its
    completion."""
    operations = history("0-200 add 1 = false; 10-15 contains 1 = true")
    judged = judge_counted(lab.trace(operations), model_named("set"))
    assert judged.decided == 1
    assert [set(finding.operations) for finding in judged.verdict.findings] == [{0}]


def test_a_derived_model_is_left_to_the_search() -> None:
    """A class derived from a built-in model may allow something else, so no decider answers for it."""

    class Mine(Register):
        pass

    trace = lab.trace(history("0-5 write 1"))
    assert judge_counted(trace, Mine()).decided == 0
    assert judge_counted(trace, Register()).decided == 1


def _nothing(*_, **__) -> None:
    return None


def _sent_late(traffic) -> bool:
    """Some value was dequeued that nobody enqueued before."""
    part, sent = traffic.part, traffic.enqueued
    return any(
        v not in sent or part[sent[v]].invoke > part[op].complete for v, op in traffic.dequeued.items()
    )


def _late_last(self, op, asked) -> None:
    """A cluster that takes the first invocation for the last."""
    if asked.complete < self.first:
        self.first, self.first_op = asked.complete, op
    if self.last == zones.BEFORE_ALL:
        self.last, self.last_op = asked.invoke, op


def _only_forward(clusters):
    forward = sorted((one for one in clusters if one.first < one.last), key=lambda one: one.first)
    for one, other in pairwise(forward):
        if other.first < one.last:
            return one, other
    return None


def _ends_exclude(clusters):
    """Zones that share an end are taken to overlap."""
    made = sorted(clusters, key=lambda one: one.first)
    forward = [one for one in made if one.first < one.last]
    for one, other in pairwise(forward):
        if other.first <= one.last:
            return one, other
    return None


def _first_only(found, root, count, makers, gets) -> None:
    """What follows the first piece of a text is not looked at."""
    found.chains[root].readers[0] += gets


_holds_of = lock_decider.holds_of


def _never_released(part):
    """Every hold is taken to last for ever."""
    holds = _holds_of(part)
    return None if holds is None else [lock_decider.Hold(hold.acquire, -1) for hold in holds]


FAULTS = [
    ("register", register_decider, "in_turn", _nothing),
    ("register", zones.ZoneCluster, "add", _late_last),
    ("register", zones, "zones_apart", _only_forward),
    ("register", zones, "zones_apart", _ends_exclude),
    ("register", register_decider, "_mark_needed", lambda values: values.needed.update(values.makers)),
    ("cas-register", register_decider, "_unmade", lambda *_: zones.LEGAL),
    ("cas-register", register_decider, "_taken_twice", lambda *_: zones.LEGAL),
    ("key-value", text_decider, "in_turn", _nothing),
    ("key-value", text_decider, "conflict", lambda *_: zones.LEGAL),
    ("key-value", text_decider, "_continued", _first_only),
    ("key-value", text_decider.Texts, "taken_apart", lambda self, text, begin=0: []),
    ("set", set_decider.Element, "changes_twice", lambda self: False),
    ("set", set_decider.Element, "changes_once", lambda self, idle: False),
    ("set", set_decider.Element, "can_answer", lambda self, op, changes: op >= 0),
    ("queue", queue_decider, "_too_early", lambda traffic: zones.LEGAL if _sent_late(traffic) else None),
    ("queue", queue_decider, "_overtaken", _nothing),
    ("queue", queue_decider, "_not_empty", _nothing),
    ("unordered-queue", queue_decider, "_twice", _nothing),
    (
        "unordered-queue",
        queue_decider,
        "_too_early",
        lambda traffic: zones.LEGAL if _sent_late(traffic) else None,
    ),
    ("unordered-queue", queue_decider, "_not_empty", _nothing),
    (
        "at-least-once-queue",
        queue_decider,
        "_too_early",
        lambda traffic: zones.LEGAL if _sent_late(traffic) else None,
    ),
    ("at-least-once-queue", queue_decider, "_not_empty", _nothing),
    ("at-least-once-queue", queue_decider.Traffic, "gone", lambda self, value: zones.NEVER),
    ("map", register_decider, "in_turn", _nothing),
    ("append-only-list", list_decider, "in_turn", _nothing),
    ("append-only-list", list_decider, "_not_its_beginning", _nothing),
    ("semaphore", lock_decider, "holds_of", _never_released),
    ("mutex", zones, "zones_apart", _nothing),
    ("fenced-lock", lock_decider, "in_turn", _nothing),
]


@pytest.mark.parametrize(("name", "owner", "attribute", "fault"), FAULTS)
def test_a_planted_fault_is_noticed(name: str, owner, attribute: str, fault, monkeypatch) -> None:
    """A decider with one rule broken differs from the oracle somewhere."""
    monkeypatch.setattr(owner, attribute, fault)
    assert any(mismatches(name, range(begin, begin + 100))[0] for begin in range(0, 1000, 100))
