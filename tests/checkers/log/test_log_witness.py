"""A log that has a witness is legal: by exhaustive search, by the rules, and by a plain walk over its
statements."""

import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from log_exhaustive import legal
from log_histories import append, random_trace, read, trace
from test_log_stacked import columns_of, histories, small

from fencepost.checkers.compiled import PLAIN, engine
from fencepost.checkers.log import evident, judge_columns, log_columns, witness
from fencepost.checkers.log.evident import evidently_legal
from fencepost.checkers.log.log_judge import examine
from fencepost.checkers.log.log_rules import PROFILES, rules_of
from fencepost.checkers.log.witness import explained
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace
from tests.checkers import lab

SEEDS = range(12)
MANY_SEEDS = 40


def has_witness(made: list[Trace]) -> list[bool]:
    """Of each history with one log, as one of many."""
    columns = log_columns(columns_of_traces([evolve(one, trace_id=n) for n, one in enumerate(made)]))
    assert columns.trace.tolist() == list(range(len(made)))
    found: list[bool] = explained(columns, rules_of(columns)).tolist()
    return found


def wrongly_explained(seed: int) -> tuple[list[int], Counter[str]]:
    """The logs of histories of all kinds that have a witness though a rule convicts them; and how many of
    which kind there were."""
    columns, rules, _ = columns_of(histories(seed))
    rules = rules_of(columns)
    sound = np.flatnonzero(~np.isin(columns.trace, list(columns.broken)))
    found, wrong, met = explained(columns, rules), [], Counter[str]()
    for g in sound.tolist():
        kept = examine(columns, rules, g) == ([], "", "")
        met[f"{'legal' if kept else 'illegal'}, {'explained' if found[g] else 'open'}"] += 1
        if found[g] and not kept:
            wrong.append(g)
    return wrong, met


def test_no_log_that_breaks_a_rule_has_a_witness() -> None:
    """Rule: whatever the claims, profiles, clocks and neighbours, the rules find nothing in a log that has a
    witness."""
    met = Counter[str]()
    for seed in SEEDS:
        wrong, more = wrongly_explained(seed)
        assert wrong == [], seed
        met += more
    assert min(met["legal, explained"], met["illegal, open"]) > 80, met


def test_every_witness_is_one_by_exhaustive_search() -> None:
    """Rule: some log and some moments explain each history that has a witness. Of the small histories
    without holes, every legal one has a witness."""
    made = small()
    Random(7).shuffle(made)
    by_search = [legal(one) for one in made]
    assert has_witness(made) == by_search and 50 < sum(by_search) < len(made) - 50


def test_every_witness_of_a_random_history_is_one_by_exhaustive_search() -> None:
    """Rule: the same of histories with batches, unknown appends, and reads of all kinds."""
    random = Random("witness")
    made = []
    for _ in range(300):
        one = random_trace(random, profiles=tuple(PROFILES))
        plain = evolve(one.claims, loss=(), content_by_epoch=False)
        made.append(evolve(one, claims=plain))
    found = has_witness(made)
    assert sum(found) > 20
    assert all(legal(one) for one, explained in zip(made, found, strict=True) if explained)


TWO = (append(1, [10, 11], 0, 1, 0), append(2, [12], 2, 3, 2))
ALL = [(0, 10), (1, 11), (2, 12)]
COMMITTED = {"isolation": "read_committed"}
ABORTED = lab.operation(9, Function.TXN, 0, 4, process=1, outcome=Outcome.FAIL)
NOTHING = trace(append(1, [10], 0, None))
STORIES = {
    "a value sent twice": trace(*TWO, append(3, [10], 4, None)),
    "values that fall, one sent twice": trace(append(1, [12], 0, 1, 0), append(2, [10], 2, 3, 1),
                                              append(3, [12], 4, None)),
    "an offset above all sent values": trace(*TWO, read(3, None, [(3, 12)], 4, 5)),
    "an acknowledged offset above them": trace(append(1, [10], 0, 1, 1), dense=True),
    "one that would be in the next log": trace(append(1, [10], 0, 1, 2), dense=True),
    "two batches at one offset": trace(append(1, [10, 11], 0, 1, 0), append(2, [12], 2, 3, 1)),
    "a gap that nobody could fill in time": trace(
        append(1, [10], 0, 1, 0), append(2, [12], 2, 3, 2), append(3, [11], 4, None), dense=True
    ),
    "another value": trace(*TWO, read(3, 1, [(1, 12)], 4, 5)),
    "a value that nobody sent": trace(*TWO, append(4, [14], 2, None), read(3, 3, [(3, 99)], 4, 5)),
    "a value of a failed append": trace(
        *TWO, append(4, [14], 2, 3, None, outcome="fail"), read(3, 3, [(3, 14)], 4, 5)
    ),
    "an unknown batch in two places": trace(
        *TWO, append(4, [14, 15], 2, None), read(3, 3, [(3, 14)], 4, 5), read(5, 4, [(4, 14)], 4, 5)
    ),
    "an unknown batch below offset 0": trace(append(1, [10, 11], 0, None), read(2, 0, [(0, 11)], 2, 3)),
    "an unknown batch over another": trace(
        *TWO, append(4, [13, 14], 2, None), append(5, [15], 2, None), read(3, 3, [(3, 14)], 4, 5)
    ),
    "a record passed over": trace(*TWO, read(3, 0, [(0, 10), (2, 12)], 4, 5)),
    "a first record passed over": trace(*TWO, read(3, 0, [(1, 11), (2, 12)], 4, 5)),
    "records out of order": trace(*TWO, read(3, None, [(1, 11), (0, 10)], 4, 5)),
    "a record at the end": trace(*TWO, read(3, 0, ALL, 4, 5, end=2)),
    "an end inside a batch": trace(*TWO, read(3, 0, [(0, 10)], 0, 1, end=1)),
    "an end above the log": trace(*TWO, read(3, 0, ALL, 4, 5, end=4), dense=True),
    "an epoch that falls": trace(append(1, [10], 0, 1, 0, leader_epoch=2),
                                 append(2, [11], 2, 3, 1, leader_epoch=1)),
    "an epoch that falls by reads": trace(*TWO, read(3, 0, [(0, 10, 1), (1, 11, 1), (2, 12, 0)], 4, 5)),
    "two epochs at one offset": trace(
        append(1, [10], 0, 1, 0), append(2, [11], 2, 3, 1, leader_epoch=1), read(3, 0, [(0, 10, 2)], 4, 5)
    ),
    "an append that began after a later one": trace(append(1, [10], 4, 5, 0), append(2, [11], 2, 3, 1)),
    "a read before its record was sent": trace(append(1, [10], 4, 5, 0), read(2, 0, [(0, 10)], 2, 3)),
    "an end too low": trace(*TWO, read(3, 2, [], 4, 5, end=2)),
    "an end that goes back": trace(
        append(1, [10], 0, 9, 0), read(3, 1, [], 2, 3, end=1), read(4, 0, [], 4, 5, end=0)
    ),
    "an acknowledged record of the leader elsewhere": trace(
        append(1, [10], 0, 1, 1, acks=1, leader_epoch=0), append(2, [11], 2, None),
        read(3, 0, [(0, 10, 0), (1, 11, 0)], 4, 5)
    ),
    "a record of the leader over one of a later epoch": trace(
        append(1, [10], 0, 1, 0, acks=1, leader_epoch=1), append(2, [11], 2, 3, 0, leader_epoch=1)
    ),
    "two records of leaders at one epoch and offset": trace(
        append(1, [10], 0, 1, 0, acks=1, leader_epoch=1), append(2, [11], 0, 1, 0, acks=1, leader_epoch=1),
        append(3, [12], 2, 3, 0, leader_epoch=2)
    ),
    "a last stable offset that goes back": trace(
        *TWO, read(3, 0, ALL, 4, 5, end=3, last_stable_offset=3),
        read(4, 0, [], 6, 7, end=3, last_stable_offset=1)
    ),
    "a log start that goes back": trace(
        *TWO, read(3, 1, ALL[1:], 4, 5, end=3, log_start_offset=1),
        read(4, 0, ALL, 6, 7, end=3, log_start_offset=0), retention=True
    ),
    "a newer record of the key that came too late": trace(
        append(1, [10], 0, 1, 0, key="a"), append(2, [12], 2, 3, 1, key="b"), read(3, 0, [(1, 12)], 4, 5),
        append(4, [13], 6, 7, 2, key="a"), compacted=("t",)
    ),
    "a record of an aborted transaction": trace(
        append(1, [10], 1, 2, 0), ABORTED, read(3, 0, [(0, 10)], 6, 7, **COMMITTED)
    ),
    "a record above the last stable offset": trace(
        *TWO, read(3, 0, ALL, 4, 5, end=3, last_stable_offset=2, **COMMITTED)
    ),
}  # fmt: skip
"""Each has one thing wrong, or one that only a rule may decide."""


@pytest.mark.parametrize("story", STORIES)
def test_a_log_with_one_thing_wrong_has_no_witness(story: str) -> None:
    """Rule: each kind of statement is compared, whatever the neighbours are."""
    whole = trace(*TWO, append(4, [13, 14], 2, None), read(3, 0, [*ALL, (3, 13)], 4, 5, end=5))
    assert has_witness([whole, NOTHING, STORIES[story], whole]) == [True, True, False, True]
    assert has_witness([STORIES[story]]) == [False]


FAULTS = {
    "values sent twice": ("if space.table[at] >= 0:\n                    return False", "pass"),
    "batches side by side": ("if space.holder[slot] >= 0:\n            return False\n        space", "space"),
    "what a leader said of a batch read": ("appends.base[a] >= 0 and appends.base[a] != base", "False"),
    "what a leader said of a batch that was cut off": ("and space.epoch[slot] <= epoch) or", "and False) or"),
    "two batches that leaders of one epoch put in one place": ("or space.gone[slot] >= epoch:", "or False:"),
    "holes": ("if not placed:\n            return False\n        slot += placed", "slot += max(placed, 1)"),
    "epochs of one record": ("if space.epoch[slot] >= 0 and space.epoch[slot] != epoch:", "if False:"),
    "epochs along the log": ("if space.epoch[slot] < highest:", "if False:"),
    "acknowledgements in time": ("if appends.completion[a] < space.grown[last - low]:", "if False:"),
    "trusted ends in time": ("if done < space.grown[end - 1 - low]:", "if False:"),
    "ends inside batches": ("if held >= 0 and space.base[held - first] < end:", "if False:"),
    "last stable offsets in time": ("if stable > low and done <", "if False and done <"),
    "log starts in time": ("if log_start > low and done <", "if False and done <"),
    "claims above the end": ("max(extras.log_start[r], extras.stable[r]) > reads.end[r]", "False"),
    "where a read begins": ("if reads.offset[begin] < at:", "if False:"),
    "the order of records": ("if offset < at:", "if False:"),
    "records passed over": ("if a >= 0 and not (\n", "if False and not (\n"),
    "newer records that came too late": ("space.gone[slot] <= done", "space.gone[slot] < NEVER"),
    "values": ("!= reads.value[i]", "== NONE"),
    "records of aborted transactions": ("return isolation != READ_COMMITTED or", "return True or"),
    "records of failed appends": ("return isolation == READ_UNCOMMITTED", "return True"),
    "records at the end": ("if (end >= 0 and at > end) or", "if"),
    "records above the last stable offset": ("(committed and 0 <= stable < at)", "False"),
    "reads in time": ("if done < space.grown[last - low] or", "if"),
    "reads of transactions under way": ("(committed and done < space.stable[at - 1 - low])", "False"),
}  # fmt: skip
"""Each takes one comparison out of the text of the module."""


def without(comparison: str) -> Callable[..., Any]:
    """`explained` as it would be without a comparison."""
    old, new = FAULTS[comparison]
    text = Path(witness.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{text.count(old)} of {old}"
    module = ModuleType(f"witness without {comparison}")
    module.__file__ = witness.__file__
    with engine(PLAIN):
        exec(compile(text.replace(old, new), witness.__file__, "exec"), module.__dict__)
    sys.modules.pop(module.__name__, None)
    return module.explained


@cache
def of_seed(seed: int) -> tuple[Any, Any, Any]:
    """Columns of histories, their rules, and which have a witness; the same for each fault."""
    columns, _, _ = columns_of(histories(seed))
    rules = rules_of(columns)
    return columns, rules, explained(columns, rules)


@pytest.mark.parametrize("comparison", FAULTS)
def test_a_witness_that_skips_a_comparison_is_noticed(comparison: str) -> None:
    """Rule: each comparison is needed: without it some log has a witness that breaks a rule."""
    judged = without(comparison)
    with engine(PLAIN):
        for seed in range(MANY_SEEDS):
            columns, rules, known = of_seed(seed)
            more = judged(columns, rules) & ~known
            if any(examine(columns, rules, g) != ([], "", "") for g in np.flatnonzero(more).tolist()):
                return
        columns = log_columns(
            columns_of_traces([evolve(one, trace_id=n) for n, one in enumerate(STORIES.values())])
        )
        assert judged(columns, rules_of(columns)).any()


def test_times_may_have_any_size() -> None:
    """Rule: nothing is added to a time, so the widest have a witness beside others."""
    far = trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10)], 2, 2**62))
    assert has_witness([far] * 3) == [True] * 3


def test_offsets_far_apart_have_none() -> None:
    """Rule: the log of a witness has a place for each offset, so few records that are far apart are left to
    the rules; a log that begins late is not far apart."""
    late = trace(append(1, [10], 0, 1, 2**40), read(2, 2**40, [(2**40, 10)], 2, 3))
    apart = trace(append(1, [10], 0, 1, 0), append(2, [11], 2, 3, 2**40))
    assert has_witness([late, apart, late]) == [True, False, True]


def test_repeated_values_are_for_the_rules() -> None:
    """Rule: where values may repeat, nothing is looked up by value."""
    whole = trace(*TWO, read(3, 0, ALL, 4, 5, end=3))
    assert has_witness([whole, evolve(whole, unique_values=False)]) == [True, False]


def test_most_legal_logs_of_each_kind_have_one() -> None:
    """Rule: retention, compaction and transactions do not leave the rules alone with legal logs."""
    legal_ones, found_ones = Counter[str](), Counter[str]()
    for seed in SEEDS:
        columns, rules, _ = columns_of(histories(seed))
        rules, extras = rules_of(columns), columns.extras
        found = explained(columns, rules)
        for g in np.flatnonzero(~np.isin(columns.trace, list(columns.broken))).tolist():
            kinds = {"compacted": extras.compacted[g], "transactional": extras.transactional[g]}
            kinds |= {"with a log start": extras.licence[g] > 0, "dense": rules.dense[g]}
            for kind in (kind for kind, is_one in kinds.items() if is_one):
                if found[g] or examine(columns, rules, g) == ([], "", ""):
                    legal_ones[kind] += 1
                    found_ones[kind] += bool(found[g])
    assert len(legal_ones) == 4 and all(found_ones[kind] > 0.6 * legal_ones[kind] for kind in legal_ones)


PLAIN_FAULTS = {
    "values sent twice": ("        return False  # a value was sent twice", "        pass"),
    "batches side by side": ("if offset in value:\n            return", "if False:\n            return"),
    "epochs along the log": ("or epochs != sorted(epochs)", ""),
    "epochs of one record": ("and epochs.setdefault(offset, epoch) != epoch", "and False"),
    "holes": ("or (dense and len(log.value) < known)", ""),
    "records passed over": ("or any(offset in log.value for offset in range(first, stop))", ""),
    "the order of records": ("            if offset < at:\n                return None", "            pass"),
    "values": ("if value[offset] != record.value:", "if False:"),
    "acknowledgements in time": ("if (operation.completion_time or 0) < grown", "if 0 and 0 < grown"),
    "trusted ends in time": ("(done is not None and done < grown[end - 1 - low])", "False"),
    "ends inside batches": ("if inside or", "if"),
    "records at the end": ("if 0 <= end < stop or", "if"),
    "reads in time": ("(done is not None and done < grown[last[stop - 1] - low])", "False"),
    "records that no read tells of": ("if not all(shown.issuperset", "if 0 and not all(shown.issuperset"),
    "few acknowledgements": ("acknowledged * OF_APPENDS >= appends", "True"),
    "the claims": ("claims.assumption_broken or claims.retention or claims.compacted", "False"),
    "op ids": ("op_id <= before or", ""),
    "completions": ("(ok if done is None else done < operation.invoke_time)", "False"),
    "acks": ("or operation.acks not in _ALL", ""),
}  # fmt: skip
"""The same of the witness that is made of operations."""
FEW = trace(*(append(n, [n], 2 * n, None) for n in range(1, 30)), append(30, [30], 60, 61, 0),
            read(31, 0, [(0, 30)], 62, 63, end=1, strong=True))  # fmt: skip
WEAK = (
    FEW,
    trace(append(1, [10], 0, 1, 0), append(2, [11], 2, 3, 1), read(3, 0, [(0, 10)], 0, 1)),
    trace(append(1, [10], 0, 1, 0), append(2, [11], 2, 3, 1, acks=1), read(3, 0, [(0, 10)], 4, 5)),
    trace(append(5, [10], 0, 1, 0), append(5, [11], 2, 3, 1), read(6, 0, [(0, 10), (1, 11)], 4, 5)),
    trace(append(5, [10], 3, 2, 0), append(6, [11], 2, 3, 1), read(7, 0, [(0, 10), (1, 11)], 4, 5)),
    trace(append(1, [10], 0, 1, 0), append(2, [11], 2, 3, 1, acks=1), read(3, 0, [(0, 10)], 4, 5, end=2)),
    trace(append(1, [10], 0, 1, 0), append(2, [10], 2, 3, 1), read(3, 0, [(0, 10), (1, 10)], 4, 5)),
    trace(append(1, [10, 11], 0, 5, 0), append(2, [12], 0, 5, 1), read(3, 0, [(0, 10), (1, 12)], 6, 7)),
    trace(append(1, [10], 0, 1, 0), read(3, 0, [(0, 10)], 4, 5),
          lab.operation(4, Function.POLL, 9, 8, outcome=Outcome.FAIL)),
)  # fmt: skip
WRONG = (*WEAK, *STORIES.values(), *(evolve(one, plan="{}") for one in STORIES.values()))


def is_ok(one: Trace) -> bool:
    """By the columns."""
    return not judge_columns(log_columns(columns_of_traces((one,))))


def without_plan(seed: int) -> list[Trace]:
    """Histories of all kinds that have to be strong enough."""
    return [evolve(one, plan="", target="foreign") for one in histories(seed)]


def test_a_history_that_is_evidently_legal_is_ok() -> None:
    """Rule: what operations alone prove, the columns say; and they prove it of many."""
    met = Counter[tuple[bool, bool]]()
    for seed in SEEDS:
        for one in (*histories(seed), *without_plan(seed)):
            met[evidently_legal(one), is_ok(one)] += 1
    assert met[True, False] == 0 and min(met[True, True], met[False, False]) > 80, met
    assert [evidently_legal(one) for one in small()] == [is_ok(one) for one in small()]
    assert not any(map(evidently_legal, WRONG))


@pytest.mark.parametrize("comparison", PLAIN_FAULTS)
def test_an_evident_witness_that_skips_a_comparison_is_noticed(comparison: str) -> None:
    """Rule: each comparison is needed there, too."""
    old, new = PLAIN_FAULTS[comparison]
    text = Path(evident.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{text.count(old)} of {old}"
    module = ModuleType(f"evident without {comparison}")
    exec(compile(text.replace(old, new), evident.__file__, "exec"), module.__dict__)
    many = (one for seed in range(MANY_SEEDS) for one in (*histories(seed), *without_plan(seed)))
    assert any(module.evidently_legal(one) and not is_ok(one) for one in chain(WRONG, small(), many))
