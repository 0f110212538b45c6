"""A log that has a witness is legal: by exhaustive search, by the rules, and by a plain walk over its
statements."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from attrs import evolve
from log_exhaustive import legal
from log_histories import append, random_trace, read, trace
from test_log_stacked import columns_of, histories, small

from fencepost.checkers.log import log_columns, witness
from fencepost.checkers.log.judge import examine
from fencepost.checkers.log.rules import PROFILES, rules_of
from fencepost.checkers.log.witness import explained
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.trace import Trace

SEEDS = range(12)


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
NOTHING = trace(append(1, [10], 0, None))
STORIES = {
    "a value sent twice": trace(*TWO, append(3, [10], 4, None)),
    "values that fall, one sent twice": trace(append(1, [12], 0, 1, 0), append(2, [10], 2, 3, 1),
                                              append(3, [12], 4, None)),
    "an offset above all sent values": trace(*TWO, read(3, None, [(3, 12)], 4, 5)),
    "an acknowledged offset above them": trace(append(1, [10], 0, 1, 1)),
    "one that would be in the next log": trace(append(1, [10], 0, 1, 2)),
    "two batches at one offset": trace(append(1, [10, 11], 0, 1, 0), append(2, [12], 2, 3, 1)),
    "a gap": trace(append(1, [10], 0, 1, 0), append(2, [12], 2, 3, 2), append(3, [11], 4, None)),
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
    "an end above the log": trace(*TWO, read(3, 0, ALL, 4, 5, end=4)),
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
}  # fmt: skip
"""Each has one thing wrong, or one that only a rule may decide."""


@pytest.mark.parametrize("story", STORIES)
def test_a_log_with_one_thing_wrong_has_no_witness(story: str) -> None:
    """Rule: each kind of statement is compared, whatever the neighbours are."""
    whole = trace(*TWO, append(4, [13, 14], 2, None), read(3, 0, [*ALL, (3, 13)], 4, 5, end=5))
    assert has_witness([whole, NOTHING, STORIES[story], whole]) == [True, True, False, True]
    assert has_witness([STORIES[story]]) == [False]


FAULTS = {
    "no value is sent twice": ("_values_sent_twice", lambda logs: None),
    "batches may be anywhere": ("_keep_inside", lambda logs, base: None),
    "records are not compared": ("_records", lambda logs, holder, slot: None),
    "reads are not compared": ("_reads", lambda logs, holder: None),
    "epochs are not compared": ("_epochs", lambda logs, base, holder, slot: None),
    "moments are not compared": ("_too_early", lambda logs, base, holder, slot: np.empty(0, np.int64)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_witness_that_skips_a_comparison_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: what is left out lets a wrong history pass, or fails."""
    monkeypatch.setattr(witness, *FAULTS[fault])
    try:
        passed = [story for story, made in STORIES.items() if has_witness([made, NOTHING])[0]]
    except IndexError:
        passed = ["none of them, but it fails"]
    assert passed


def test_numbers_beyond_64_bits_prove_nothing() -> None:
    """Rule: logs that cannot be kept apart have no witness; alone, the same log may have one."""
    far = trace(append(1, [10], 0, 1, 0), read(2, 0, [(0, 10)], 2, 2**60))
    assert has_witness([far]) == [True]
    assert has_witness([far] * 3) == [False] * 3


def test_special_logs_and_repeated_values_have_none() -> None:
    """Rule: what removes records, or lets values repeat, is for the rules alone."""
    whole = trace(*TWO, read(3, 0, ALL, 4, 5, end=3))
    loose = evolve(whole, unique_values=False)
    kept = trace(*TWO, read(3, 0, ALL, 4, 5, end=3, log_start_offset=1), retention=True)
    assert has_witness([whole, loose, kept]) == [True, False, False]
