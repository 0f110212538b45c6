"""Logs put on top of each other: the stack breaks a rule if and only if one of them does."""

from collections import Counter
from itertools import product
from random import Random

import numpy as np
import pytest
from attrs import evolve
from log_exhaustive import legal
from log_histories import append, judge_traces, random_trace, read, trace, with_claims
from log_special_histories import special_trace

from fencepost.checkers.log import LogColumns, log_columns, stacked
from fencepost.checkers.log.holes import accounted
from fencepost.checkers.log.log_judge import examine
from fencepost.checkers.log.log_rules import PROFILES, Rules, rules_of
from fencepost.checkers.log.one_log import group_of
from fencepost.checkers.log.stacked import convicted, stack_of, suspects
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.checkers.verdict import Decision
from fencepost.traces.trace import Trace

SEEDS = range(16)
MANY = 60


def columns_of(made: list[Trace]) -> tuple[LogColumns, Rules, np.ndarray]:
    """The logs of these histories, their rules without allowed loss, and those that a stack may hold."""
    numbered = [evolve(one, trace_id=n) for n, one in enumerate(made)]
    columns = log_columns(columns_of_traces(numbered))
    rules = rules_of(columns)
    rules = rules._replace(keyed=np.zeros_like(rules.keyed))
    groups = ~np.isin(columns.trace, list(columns.broken))
    groups &= ~(columns.extras.compacted | columns.extras.transactional)
    return columns, rules, np.flatnonzero(groups)


def plain_claims(made: Trace) -> Trace:
    """The history where no loss is allowed."""
    return evolve(made, claims=evolve(made.claims, loss=(), content_by_epoch=False))


def histories(seed: int) -> list[Trace]:
    """Of all kinds, most of them bent."""
    random, profiles = Random(f"stacked {seed}"), tuple(PROFILES)
    made = []
    for _ in range(MANY):
        draw = random.choice((random_trace, random_trace, special_trace))
        one = draw(random, profiles=profiles, clocks=random.choice((1, 1, 2)))
        made.append(plain_claims(with_claims(random, one) if random.random() < 0.5 else one))
    return made


def wrong_answers(seed: int) -> tuple[list[int], Counter[str]]:
    """The logs that a stack of many passes though they are wrong alone, or convicts though they are right;
    and how many of which kind were asked about. Excused are only holes, and what clock uncertainty may
    explain. (A log with rules of its own is in no stack.)"""
    columns, rules, groups = columns_of(histories(seed))
    found = set(suspects(columns, rules, groups).tolist())
    kinds = [same.tolist() for same in stacked._alike(rules, groups)]
    wrong, met = [], Counter[str]()
    for g in (g for same in kinds if len(same) > 1 for g in same):
        illegal = examine(columns, rules, g) != ([], "", "")
        log = group_of(columns, rules, g)
        alone = stack_of(columns, rules, np.array([g]))
        assert alone is not None
        excused = bool(rules.uncertainty[g]) or (accounted(log) and len(stacked._with_holes(alone)))
        if (illegal and g not in found) or (not illegal and not excused and g in found):
            wrong.append(g)
        met["illegal" if illegal else "excused" if excused else "legal"] += 1
    return wrong, met


def test_a_stack_convicts_exactly_the_logs_that_break_a_rule() -> None:
    """Rule: of many histories under any rules, a stack convicts each log that is wrong alone, and no other
    but for holes and uncertain clocks."""
    met = Counter[str]()
    for seed in SEEDS:
        wrong, more = wrong_answers(seed)
        assert wrong == [], seed
        met += more
    assert min(met[kind] for kind in ("illegal", "legal", "excused")) > 60, met


def small() -> list[Trace]:
    """All histories of two appends and a read, each at one of few places and moments."""
    moments = ((0, 1), (0, 3), (2, 3))
    made = []
    for first, second, reading in product(moments, moments, moments):
        for at, shown in product((0, 1), ((), (0,), (1,), (0, 1))):
            values = {at: 100, 1 - at: 200}
            made.append(
                trace(
                    append(1, [100], *first, at),
                    append(2, [200], *second, 1 - at),
                    read(3, 0, [(offset, values[offset]) for offset in shown], *reading, end=len(shown)),
                )
            )
    return made


def test_all_small_histories_in_one_stack_are_judged_as_by_exhaustive_search() -> None:
    """Rule: whatever is above and below a log in the stack, it is Ok if and only if some log explains it."""
    made = small()
    Random(5).shuffle(made)
    made = [evolve(one, trace_id=n) for n, one in enumerate(made)]
    bad = {trace_id for trace_id, verdict in judge_traces(made) if verdict.decision is Decision.ILLEGAL}
    expected = {one.trace_id for one in made if not legal(one)}
    assert bad == expected and 50 < len(expected) < len(made) - 50


WHOLE = trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10)], 2, 3, end=1))
STORIES = {
    "another value": trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 11)], 2, 3, end=1)),
    "an end too low": trace(append(1, [10], 0, 1, 0), read(2, 0, [], 2, 3, end=0)),
    "a batch that begins below 0": trace(append(1, [10, 11], 0, None), read(2, 0, [(0, 11)], 2, 3, end=1)),
    "a value sent twice": trace(append(1, [10], 0, 1, 0), append(2, [10], 2, None)),
    "a log start that goes back": trace(
        append(1, [10], 0, 1, 0),
        read(2, 1, [], 2, 3, end=1, log_start_offset=1),
        read(3, 0, [(0, 10)], 4, 5, end=1, log_start_offset=0),
        retention=True,
    ),
    "a log start above the end": trace(
        append(1, [10], 0, 1, 0), read(2, 0, [], 2, 3, end=1, log_start_offset=90), retention=True
    ),
    "a last stable offset above the end": trace(
        append(1, [10], 0, 1, 0), read(2, 0, [], 2, 3, end=1, last_stable_offset=90)
    ),
}
"""Each has something wrong that one rule alone notices."""


def convicts(bad: Trace, at: int) -> bool:
    """Whether a stack of three, with this log at a place, is convicted for it, and for nothing else."""
    made = [WHOLE] * 3
    made[at] = bad
    columns, rules, groups = columns_of(made)
    stack = stack_of(columns, rules, groups)
    assert stack is not None
    found = convicted(stack)[0].tolist()
    return at in found and set(found) <= {at, max(at - 1, 0)}


def names_all() -> bool:
    """Whether each of three wrong logs among others is named, though one rule convicts them all."""
    bad = STORIES["another value"]
    columns, rules, groups = columns_of([bad, WHOLE, bad, bad, WHOLE])
    return {0, 2, 3} <= set(suspects(columns, rules, groups).tolist())


FAULTS = {
    "offsets and times are not moved": ("_before", lambda sizes: np.zeros_like(sizes)),
    "no log has holes": ("_with_holes", lambda stack: np.empty(0, np.int64)),
    "batches may begin below offset 0": ("_beyond", lambda stack: np.empty(0, np.int64)),
    "time is not looked at": ("chain_offsets", lambda log: np.empty(0, np.int64)),
    "content is not looked at": ("content_offsets", lambda log, most: ([], True)),
    "log starts are not looked at": ("side_findings", lambda log: iter(())),
    "no value was sent twice": ("sent_again", lambda log: np.empty(0, np.int64)),
    "some are taken for all": ("MOST", None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_stack_with_a_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a stack that leaves something out answers wrongly for some seed."""
    name, planted = FAULTS[fault]
    if name == "MOST":
        before = stacked.content_offsets
        monkeypatch.setattr(stacked, "content_offsets", lambda log, most: (before(log, 1)[0], True))
    else:
        monkeypatch.setattr(stacked, name, planted)
    assert any(_answers_wrongly(seed) for seed in SEEDS)


def _answers_wrongly(seed: int) -> bool:
    try:
        named = names_all() and all(convicts(bad, 1) for bad in STORIES.values())
        return not named or bool(wrong_answers(seed)[0])
    except (IndexError, StopIteration):
        return True


def test_what_does_not_fit_into_64_bits_is_judged_alone() -> None:
    """Rule: offsets, times or values whose sums are too large make no stack."""
    for far in (
        read(2, 2**61, [], 2, 3, end=2**61),
        read(2, 0, [(0, 10)], 2, 2**61),
        read(2, 0, [(0, 2**61)], 2, 3),
    ):
        made = [trace(append(1, [10], 0, 1, 0), far)] * 3
        columns, rules, groups = columns_of(made)
        assert stack_of(columns, rules, groups) is None
        assert suspects(columns, rules, groups).tolist() == groups.tolist()


def test_large_logs_and_those_with_keys_are_judged_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: only small logs without compaction and transactions are stacked."""
    whole = trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10)], 2, 3, end=1))
    columns, rules, groups = columns_of([whole, whole, whole])
    assert suspects(columns, rules, groups).tolist() == []
    monkeypatch.setattr(stacked, "LARGE", 2)
    assert suspects(columns, rules, groups).tolist() == groups.tolist()
    monkeypatch.undo()
    extras = columns.extras._replace(compacted=np.array([True, False, False]))
    assert suspects(evolve(columns, extras=extras), rules, groups).tolist() == [0]


@pytest.mark.parametrize("story", STORIES)
def test_the_one_wrong_log_of_a_stack_is_named(story: str) -> None:
    """Rule: what convicts a stack leads to the log that it is about, first, last or in between."""
    assert all(convicts(STORIES[story], at) for at in range(3))


def test_all_wrong_logs_of_a_stack_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: where a rule names only some, it is asked about the others again."""
    assert names_all()
    monkeypatch.setattr(stacked, "MOST", 1)
    assert names_all()


def test_a_log_may_begin_and_end_with_reads() -> None:
    """Rule: the times of all operations of a log are between those of its neighbours, also of reads."""
    long = trace(
        append(1, [10], 500, 501, 0), read(2, 0, [], 0, 1, end=0), read(3, 0, [(0, 10)], 900, 950, end=1)
    )
    late = trace(append(1, [10], 0, 700, 0), read(2, 0, [(0, 10)], 1, 2, end=1))
    unheard = trace(append(1, [10], 600, None), read(2, 0, [], 0, 1, end=0))
    made = [long, late, unheard, long, unheard, late]
    columns, rules, groups = columns_of(made)
    stack = stack_of(columns, rules, groups)
    assert stack is not None and convicted(stack)[0].tolist() == []


def test_only_the_logs_with_holes_are_named_for_holes() -> None:
    """Rule: of logs with dense offsets, exactly those with an offset below the known end and without a record
    are named, wherever the end is known from."""
    full = trace(
        append(1, [10, 11], 0, 1, 0), append(2, [12], 2, 3, 2), read(3, 0, [], 4, 5, end=3), dense=True
    )
    nothing = trace(append(1, [10], 0, 1, 0), read(2, 0, [], 0, 1, end=0), dense=True)
    holes = (
        trace(append(1, [10], 0, 1, 0), append(2, [12], 2, 3, 2), append(3, [11], 0, None), dense=True),
        trace(append(1, [10], 0, 1, 1), append(3, [11], 0, None), dense=True),
        trace(append(1, [10], 0, 1, 0), append(3, [11], 0, None), read(4, 0, [], 2, 3, end=2), dense=True),
    )
    for one in holes:
        for at in range(3):
            made = [full, nothing, nothing, full]
            made.insert(at, one)
            columns, rules, groups = columns_of(made)
            assert suspects(columns, rules, groups).tolist() == [at]


def test_all_logs_with_a_wrong_log_start_are_named() -> None:
    """Rule: a rule that names one log of a stack is asked about the others again."""
    bad = STORIES["a log start that goes back"]
    columns, rules, groups = columns_of([bad, WHOLE, WHOLE, WHOLE, bad])
    assert {0, 4} <= set(suspects(columns, rules, groups).tolist())
