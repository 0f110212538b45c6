"""An Ok that would mean nothing is none, and every history's records are counted: by the definitions,
and on histories made by hand."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from log_histories import FAIL, append, loss, read, trace
from log_strength import Strength
from test_log_differential import SEEDS, histories, special_histories

import fencepost.checkers.log.log_judge as judging
from fencepost.checkers.log import judge_trace, judge_traces, log_columns
from fencepost.checkers.log.accounts import LogCounts, counts_of
from fencepost.checkers.operation_columns import columns_of_traces
from fencepost.checkers.verdict import Decision
from fencepost.traces.trace import Trace
from tests.selfcheck.amounts import amount

TEN = tuple(append(n, [n], 0, 1, n) for n in range(10))
HALF = [(n, n) for n in range(5)]
ALL = [(n, n) for n in range(10)]


def counted(made: Trace) -> LogCounts:
    """The counts of one trace."""
    return counts_of(log_columns(columns_of_traces((made,))))[0]


def test_ten_acknowledged_and_a_last_read_that_ends_at_five() -> None:
    """The example of the issue: nobody knows whether the other five are still there."""
    verdict = judge_trace(trace(*TEN, read(20, 0, HALF, 2, 3, 5, strong=False)))
    assert verdict.decision is Decision.ASSUMPTION_BROKEN
    assert verdict.reason == (
        "5 acknowledged records are in no last read (t-0 from offset 5 on), and no read is marked strong"
    )


WEAK = [
    (
        "nobody read",
        trace(*TEN),
        "no reads: the history has 10 appends and no answered read; 10 acknowledged "
        "records are in no last read (t-0 from offset 0 on), and no read is marked strong",
    ),
    ("no append", trace(read(1, 0, [], 0, 1)), "the history has no append to a log"),
    (
        "no acknowledgement",
        trace(append(1, [10], 0, 1), read(2, 0, [(0, 10)], 0, 1)),
        "none of 1 append was acknowledged",
    ),
    (
        "almost none",
        trace(
            append(1, [10], 0, 1, 0),
            *(append(n, [n], 0, 1) for n in range(20, 40)),
            read(2, 0, [(0, 10)], 0, 1),
        ),
        "only 1 of 21 appends were acknowledged",
    ),
    (
        "a strong read that came too early",
        trace(*TEN, append(11, [50], 5, 6, 10), read(20, 0, ALL, 2, 3, 10)),
        "1 acknowledged record is in no last read (t-0 from offset 10 on), and no later read is marked "
        "strong",
    ),
    (
        "acks=1, and nobody says that it may lose",
        trace(*TEN, append(11, [50], 0, 1, 10, acks=1), read(20, 0, ALL, 2, 3, 10)),
        "1 acks=1 record is in no read (t-0 from offset 10 on), and nothing says that acks=1 may lose them",
    ),
]


@pytest.mark.parametrize(("made", "reason"), [case[1:] for case in WEAK], ids=[case[0] for case in WEAK])
def test_a_history_that_is_too_weak_says_why(made: Trace, reason: str) -> None:
    """Nothing contradicts itself, and yet nothing is known: Assumption broken, never Ok."""
    verdict = judge_trace(made)
    assert (verdict.decision, verdict.reason) == (Decision.ASSUMPTION_BROKEN, reason)
    assert judge_trace(made, weak_is_ok=True).decision is Decision.OK


@pytest.mark.parametrize(
    "made",
    [
        trace(*TEN, read(20, 0, ALL, 2, 3)),
        trace(*TEN, read(20, 0, [], 2, 3, 10)),  # a trusted end has looked
        trace(*TEN, read(20, 0, HALF, 2, 3, 5, strong=False), loss=loss(5, 10)),
        trace(*TEN, append(11, [50], 0, 1, 10, acks=1), read(20, 0, ALL, 2, 3, 10), acks_1_may_lose=True),
        evolve(trace(*TEN, append(11, [50], 0, 1, 10, acks=1), read(20, 0, ALL, 2, 3, 10)), plan="{}"),
        evolve(trace(append(1, [10], 0, 1), read(2, 0, [(0, 10)], 0, 1)), plan="{}"),
    ],
)
def test_a_history_that_is_strong_enough_is_ok(made: Trace) -> None:
    """The nearest histories of which something is known; one with a plan is said to be weak by its
    claims, not by this rule."""
    assert judge_trace(made).decision is Decision.OK


def test_what_contradicts_itself_is_illegal_however_weak() -> None:
    """A finding needs no strength: two values at one offset convict though ten records are unread."""
    assert judge_trace(trace(*TEN, read(20, 0, [(0, 1)], 2, 3))).decision is Decision.ILLEGAL


def test_250_lost_records_are_counted_and_listed() -> None:
    """One pair convicts; the counts say how many were lost, and which."""
    sent = tuple(append(n, [n], 0, 1, n) for n in range(300))
    verdict = judge_trace(made := trace(*sent, read(999, 0, [(n, n) for n in range(50)], 2, 3, 50)))
    counts = counted(made)
    assert verdict.anomaly == "lost_write"
    assert len(verdict.findings) == 1
    assert (counts.lost_not_allowed, counts.lost_allowed) == ({"all": 250}, {})
    assert [one.value for one in counts.lost_values] == list(range(50, 300))


def test_172_records_lost_with_acks_1_are_no_silent_ok() -> None:
    """Records that only the leader acknowledged: counted, allowed only where the claims say so."""
    sent = [append(n, [n], 0, 1, n, acks=1) for n in range(172)]
    sent += [append(200 + n, [200 + n], 5, 6, n) for n in range(3)]
    final = read(999, 0, [(n, 200 + n) for n in range(3)], 7, 8, 3)
    made = trace(*sent, final)
    assert judge_trace(made).reason.startswith("172 acks=1 records are in no read")
    assert counted(made).lost_not_allowed == {"1": 172}
    allowed = trace(*sent, final, acks_1_may_lose=True)
    assert judge_trace(allowed).decision is Decision.OK
    assert counted(allowed).lost_allowed == {"1": 172}


def test_duplicates_and_unknown_records_are_counted() -> None:
    """A value at two offsets is one duplicated value; an unknown append that was read is present."""
    made = trace(
        append(1, [10], 0, 1, 0),
        append(2, [20], 0, None),
        append(3, [30], 0, None),
        append(4, [40], 0, 1, outcome=FAIL),
        read(5, 0, [(0, 10), (1, 10), (2, 20)], 2, 3),
        duplicates=True,
    )
    counts = counted(made)
    assert (counts.duplicated, counts.unknown_present, counts.acknowledged["all"]) == (1, 1, 1)


def differing(made: list[Trace]) -> list[Trace]:
    """The histories of which the judge and the definitions say another strength."""
    verdicts = dict(judge_traces(made))
    rules = dict(judge_traces(made, weak_is_ok=True))
    wrong = []
    for one in made:
        found = verdicts.get(one.trace_id)
        decided = Decision.OK if found is None else found.decision
        weak = one.trace_id not in rules and Strength(one).weak()
        before = rules[one.trace_id].decision if one.trace_id in rules else Decision.OK
        unsure = before is Decision.UNKNOWN
        if not unsure and decided is not (Decision.ASSUMPTION_BROKEN if weak else before):
            wrong.append(one)
    return wrong


@settings(max_examples=amount(12, 30), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_strength_is_its_definition(seed: int) -> None:
    """On random histories the judge calls weak what the definitions do, and nothing else."""
    assert differing(histories(seed)) == []
    assert differing(special_histories(seed)) == []


@settings(max_examples=amount(12, 30), deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_counts_are_their_definitions(seed: int) -> None:
    """And it counts what they count."""
    made = [*histories(seed), *special_histories(seed)]
    by_index = counts_of(log_columns(columns_of_traces(made)))
    for index, one in enumerate(made):
        counts, wanted = by_index[index], Strength(one)
        assert counts.acknowledged["all"] == len(wanted.acknowledged(-1))
        for acks, code in (("all", -1), ("1", 1)):
            told = sorted((x.offset, x.allowed) for x in counts.lost_values if x.acks == acks)
            assert told == wanted.lost(code), (acks, one)
        assert counts.duplicated == wanted.duplicated(), one
        assert counts.unknown_present == wanted.unknown_present(), one


def test_a_judge_that_calls_nothing_weak_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: without the rule, random histories differ from the definitions."""
    made = histories(5)
    assert differing(made) == []
    monkeypatch.setattr(judging, "weaknesses", lambda columns, rules: {})
    assert differing(made) != []
