"""What the log judge says of seeded histories stays what it said (kept.py)."""

from random import Random
from typing import Any

import pytest
from attrs import evolve
from log_histories import random_trace, with_claims
from log_special_histories import special_trace

from fencepost.checkers.log import judge_columns, log_columns
from fencepost.checkers.log.appends_and_reads import LogColumns
from fencepost.checkers.log.bounds import acknowledgements, appended, claimed_ends, shows
from fencepost.checkers.log.log_rules import PROFILES, Rules, rules_of
from fencepost.checkers.log.one_log import group_of
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.traces.trace import Trace
from tests.checkers.kept import differences, plain, words_of
from tests.checkers.wild_histories import wild
from tests.selfcheck.amounts import amount

SEEDS, BLOCK = 560, 70


def histories(seed: int) -> list[Trace]:
    """Six of different kinds, judged in one call."""
    random = Random(f"kept {seed}")
    profiles = tuple(PROFILES)
    made = [wild(2 * seed), wild(2 * seed + 1)]
    made += [
        with_claims(random, random_trace(random, profiles=profiles, clocks=random.choice((1, 2))))
        for _ in range(2)
    ]
    made += [
        with_claims(random, special_trace(random, profiles=profiles, clocks=random.choice((1, 2))))
        for _ in range(2)
    ]
    return [evolve(trace, trace_id=number) for number, trace in enumerate(made)]


def relations(columns: LogColumns, rules: Rules) -> Any:
    """The rows of all logs, and of each the evidence, what stands where, and its bounds."""
    told = [plain(columns)]
    for g in range(columns.groups):
        group = group_of(columns, rules, g)
        bounds = [
            appended(group),
            acknowledgements(group),
            claimed_ends(group),
            shows(group),
            shows(group, below_slot=True),
        ]
        late = [("evidence", plain(group.evidence)), ("placements", plain(group.placements))]
        told.append([[*plain(group), *late], plain(bounds)])
    return told


def said(seed: int) -> Any:
    """The verdicts of all together, and (every other time) the relations."""
    traces = histories(seed)
    columns = log_columns(columns_of_traces(traces))
    verdicts = [
        (trace_id, words_of(verdict)) for trace_id, verdict in judge_columns(columns, weak_is_ok=True)
    ]
    rules = rules_of(columns, None)
    return verdicts, relations(columns, rules) if seed % 2 else None


@pytest.mark.parametrize("begin", range(0, amount(2 * BLOCK, SEEDS), BLOCK))
def test_what_is_said_of_a_log_stays(begin: int) -> None:
    """Rule: the same operations are convicted of the same anomaly at the same offset."""
    assert differences("log", said, range(begin, begin + BLOCK)) == []


def test_a_planted_fault_changes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a judge that looks at no log alone differs on some seed."""
    monkeypatch.setattr(
        "fencepost.checkers.log.log_judge.suspects", lambda columns, rules, groups: groups[:0]
    )
    assert differences("log", said, range(20))
