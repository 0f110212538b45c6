"""The batch judge against two slow references, and its own forms against each other, on random small
histories."""

from random import Random

import numpy as np
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from log_claims import OPEN, compacted, fate_of
from log_exhaustive import firm, legal
from log_histories import judge_trace, judge_traces, random_trace, trace, with_claims
from log_pairs import INFINITE, TIMED, History, anomalies
from log_special_histories import special_trace

from fencepost.checkers.log import judge_columns, log_columns, log_judge
from fencepost.checkers.log.log_judge import examine
from fencepost.checkers.log.log_rules import rules_of
from fencepost.checkers.log.stacked import suspects
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.checkers.verdict import Decision, Verdict
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

PROFILES = ("default", "default", "strong", "strong", "content")
BATCH = 40
"""Histories per example: judged in one call."""

SEEDS = st.integers(0, 2**40)


def severities(verdict: Verdict) -> dict[str, float]:
    """What clears each anomaly of a verdict; step 5 left out."""
    found = {f.anomaly: INFINITE if f.uncertainty_ns < 0 else f.uncertainty_ns for f in verdict.findings}
    found.pop("unaccounted_offset", None)
    return found


def special_histories(seed: int, **more: object) -> list[Trace]:
    """As `histories`, of logs with retention, compaction and transactions."""
    made = []
    for n in range(BATCH):
        rng = Random(seed * BATCH + n)
        made.append(evolve(special_trace(rng, profiles=PROFILES, **more), trace_id=n))
    return made


def may_be_missed(made: Trace) -> bool:
    """The one thing that the judge passes though no log explains it: in a compacted topic, an append that
    nobody saw, or a transaction nobody knows the end of, excuses whatever it could excuse alone."""
    appends = [
        op for op in made.operations if op.function is Function.APPEND and op.outcome is not Outcome.FAIL
    ]
    shown = {record.value for op in made.operations if op.function is Function.POLL for record in op.records}
    unseen = [op for op in appends if op.key is not None and not firm(op)
              and not shown & {record.value for record in op.records}]  # fmt: skip
    return compacted(made) and bool(unseen or any(fate_of(op, made) == OPEN for op in appends))


def disagreements(made: list[Trace]) -> list[tuple[Trace, Verdict | None]]:
    """The histories where judge and exhaustive search differ, with what the judge says."""
    return compared(made)[0]


def compared(made: list[Trace]) -> tuple[list[tuple[Trace, Verdict | None]], int]:
    """The histories where judge and exhaustive search differ, and how many of all are illegal."""
    verdicts = dict(judge_traces(made))
    wrong, illegal = [], 0
    for made_trace in made:
        found = verdicts.get(made_trace.trace_id)
        decided = Decision.OK if found is None else found.decision
        wanted = Decision.OK if legal(made_trace) else Decision.ILLEGAL
        illegal += wanted is Decision.ILLEGAL
        if decided is not wanted and not (decided is Decision.OK and may_be_missed(made_trace)):
            wrong.append((made_trace, found))
    return wrong, illegal


def sweep(seed: int, count: int) -> tuple[list[tuple[Trace, Verdict | None]], int]:
    """`count` random histories, half of them of special logs, judged and searched exhaustively: those where
    the two differ, and how many are illegal."""
    wrong: list[tuple[Trace, Verdict | None]] = []
    illegal = 0
    for first in range(0, count, 2 * BATCH):
        made = [*histories(seed + first), *special_histories(seed + first)][: count - first]
        differ, more = compared([evolve(t, trace_id=n) for n, t in enumerate(made)])
        wrong, illegal = wrong + differ, illegal + more
    return wrong, illegal


def histories(seed: int, **more: object) -> list[Trace]:
    """`BATCH` histories with trace ids 0, 1, ..."""
    made = []
    for n in range(BATCH):
        rng = Random(seed * BATCH + n)
        made.append(evolve(random_trace(rng, profiles=PROFILES, **more), trace_id=n))
    return made


@settings(max_examples=amount(20, 60), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_judge_agrees_with_exhaustive_search(seed: int) -> None:
    """A trace is Ok if and only if some log and some moments of growth explain it: unknown outcomes, holes,
    ties, batches, retries, epochs."""
    assert disagreements(histories(seed)) == []


@settings(max_examples=amount(14, 40), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_judge_agrees_with_exhaustive_search_on_special_logs(seed: int) -> None:
    """The same with log starts and retention, keys and compaction, transactions and last stable offsets."""
    assert disagreements(special_histories(seed)) == []


def misnamed(made: list[Trace]) -> list[tuple[Trace, Verdict | None]]:
    """The histories where the judge's anomalies, or what clears them, are not those of the definitions."""
    verdicts = dict(judge_traces(made))
    wrong = []
    for made_trace in made:
        found = verdicts.get(made_trace.trace_id)
        got, wanted = severities(found) if found else {}, anomalies(made_trace)
        ambiguous = set(TIMED) if History(made_trace).overlapping else set()
        if wanted.keys() & {"inconsistent_offsets", "duplicate", "torn_batch", "phantom_record"}:
            ambiguous.add("skipped_offset")  # whose record an offset holds, and so its key, is ambiguous
        got, wanted = ({k: v for k, v in d.items() if k not in ambiguous} for d in (got, wanted))
        if got != wanted:
            wrong.append((made_trace, found))
    return wrong


@settings(max_examples=amount(20, 60), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_judge_names_each_anomaly_by_its_definition(seed: int) -> None:
    """The anomalies found, and the clock uncertainty that clears each, are exactly those of the definitions,
    with loss and clocks."""
    assert misnamed([with_claims(Random(seed + t.trace_id), t) for t in histories(seed, clocks=3)]) == []


@settings(max_examples=amount(14, 40), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_judge_names_each_anomaly_of_special_logs(seed: int) -> None:
    """The same with log starts, compaction, transactions and last stable offsets."""
    assert (
        misnamed([with_claims(Random(seed + t.trace_id), t) for t in special_histories(seed, clocks=3)]) == []
    )


@settings(max_examples=amount(10, 30), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_a_stack_never_passes_what_a_log_alone_convicts(seed: int) -> None:
    """The rules, asked about many logs at once, may convict too much but never too little."""
    made = [with_claims(Random(seed), t) for t in (*histories(seed, clocks=2), *special_histories(seed))]
    columns = log_columns(columns_of_traces([evolve(t, trace_id=n) for n, t in enumerate(made)]))
    rules = rules_of(columns)
    sound = np.flatnonzero(~np.isin(columns.trace, list(columns.broken)))
    suspected = set(suspects(columns, rules, sound).tolist())
    for group in sound.tolist():
        if group not in suspected:
            assert examine(columns, rules, group) == ([], "", "")


@settings(max_examples=amount(8, 20), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_stacked_traces_are_judged_as_each_alone(seed: int) -> None:
    """One call over many traces gives exactly the verdicts of one call per trace."""
    drawn = [*histories(seed, clocks=2), *special_histories(seed, clocks=2)]
    made = [evolve(with_claims(Random(seed + n), one), trace_id=n) for n, one in enumerate(drawn)]
    alone = [(t.trace_id, judge_trace(t)) for t in made]
    assert judge_traces(made) == [pair for pair in alone if pair[1].decision is not Decision.OK]


@settings(max_examples=amount(8, 20), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_repeated_values_are_never_blamed_wrongly(seed: int) -> None:
    """Where values repeat, an Illegal verdict still means that no log explains the trace."""
    for made_trace in histories(seed, plain=True):
        merged = {100: 200, 200: 200, 300: 300, 400: 300}
        operations = [
            evolve(o, records=tuple(evolve(r, value=merged.get(r.value, r.value)) for r in o.records))
            for o in made_trace.operations
        ]
        repeated = trace(
            *operations, unique=False, dense=made_trace.claims.dense, check=made_trace.claims.check
        )
        if judge_trace(repeated).decision is not Decision.OK:
            assert not legal(repeated), repeated


def test_a_blind_stack_is_noticed(monkeypatch) -> None:
    """A judge that passes everything fails the differential test: the planted fault."""
    monkeypatch.setattr(log_judge, "suspects", lambda columns, rules, groups: groups[:0])
    made = histories(7)
    assert any(not legal(t) for t in made)
    assert judge_columns(log_columns(columns_of_traces(made)), weak_is_ok=True) == []
