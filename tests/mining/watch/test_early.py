"""What is said of a trace under way stands: whatever comes later, the judges of the whole say it, too."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from fencepost.checkers import verdict
from fencepost.checkers.application.application_judge import Claims, Ordered, judge_events
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, standing, subject_of
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.anomalies.until_end import UNTIL_END
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Outcome
from fencepost.traces.parts import certain_prefix
from fencepost.traces.trace import Trace
from tests.application.histories import random_run
from tests.application.test_twin import PROMISES, events_of
from tests.checkers.wild_histories import wild
from tests.selfcheck.amounts import amount

sys.path += [
    str(Path(__file__).parents[2] / "checkers" / room)
    for room in ("log", "exactly_once", "transactions", "groups", "kafka")
]
import exactly_once_naive
import kafka_random
import test_groups_kept
import test_transactions_differential
from applications import changed
from log_histories import append, random_trace, read, trace
from log_special_histories import special_trace

PROFILES = ("default", "session", "strong", "content")
NOTHING = Trace(trace_id=0, plan="", seed=0, software_version="")
MOMENTS = 6
"""At which a history is cut."""


def _answered(made: Trace) -> Trace:
    """With a time for each answer, without which a trace contradicts itself."""
    rows = (
        row if row.completion_time is not None or row.outcome is Outcome.UNKNOWN
        else evolve(row, completion_time=row.invoke_time)
        for row in made.operations
    )  # fmt: skip
    return evolve(made, operations=tuple(rows))


KINDS: dict[str, Callable[[int], Trace]] = {
    "log": lambda seed: random_trace(Random(seed), profiles=PROFILES, clocks=2),
    "special": lambda seed: special_trace(Random(seed), profiles=PROFILES, clocks=2),
    "wild": wild,
    "exactly once": exactly_once_naive.history,
    "transactions": test_transactions_differential.history,
    "application": lambda seed: changed(seed, 60),
    "groups": test_groups_kept.history,
    "kafka": kafka_random.random_history,
}
SEEDS = {
    "log": 200,
    "special": 120,
    "wild": 40,
    "exactly once": 20,
    "transactions": 30,
    "application": 15,
    "groups": 60,
    "kafka": 40,
}
"""How many of each: the shorter a history, the more."""
RUNS = amount(300, 20_000)


def withdrawn(made: Trace, draw: Random, moments: int = MOMENTS) -> tuple[set[str], Counter[str]]:
    """The anomalies that are said early, at some moment, and not of the whole; and how often each is said of
    both."""
    whole = judge(made)
    broken = {one.check for one in whole if one.decision is Decision.ASSUMPTION_BROKEN}
    broken |= {one.check for one in whole if one.reason and one.findings}
    said = {subject_of(f.check, f.anomaly, f.topic, f.partition) for one in whole for f in one.findings}
    times = {row.invoke_time for row in made.operations} | {row.completion_time for row in made.operations}
    times = sorted(time for time in times if time)
    wrong, right = set(), Counter[str]()
    for time in draw.sample(times, min(moments, len(times))):
        prefix = certain_prefix(made, time + draw.randint(0, 1))
        for f in standing(judge(prefix), prefix):
            if f.check in broken:
                continue
            if subject_of(f.check, f.anomaly, f.topic, f.partition) in said:
                right[f.anomaly] += 1
            else:
                wrong.add(f.anomaly)
    return wrong, right


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_early_is_said_of_the_whole(kind: str) -> None:
    """Rule: at every moment of a history, legal or not, what is reported early is among what the judges of
    the whole report. A history that contradicts itself later is left out: there they report nothing."""
    right = Counter[str]()
    for seed in range(amount(SEEDS[kind], 4_000)):
        wrong, also = withdrawn(_answered(KINDS[kind](seed)), Random(seed))
        assert not wrong, (seed, wrong)
        right += also
    assert right, "nothing was reported early"


@pytest.mark.parametrize(
    ("anomaly", "kind", "seed"),
    [
        ("phantom_record", "transactions", 1),
        ("failed_append_visible", "special", 320),
        ("lost_write", "kafka", 33),
        ("unaccounted_offset", "log", 76),
        ("torn_batch", "kafka", 27),
        ("circular_reads_in_process", "transactions", 59),
        ("circular_reads_in_real_time", "transactions", 21),
        ("output_without_commit", "application", 10),
        ("output_missing", "application", 16),
        ("int_nonmonotonic_send", "application", 256),
        ("processing_gap", "groups", 29),
    ],
)
def test_an_anomaly_that_does_not_wait_is_withdrawn(
    anomaly: str, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: each of these is in the list for a reason: without it something is reported early that the judges
    of the whole do not say."""
    monkeypatch.setattr(
        verdict, "UNTIL_END", {name: why for name, why in UNTIL_END.items() if name != anomaly}
    )
    assert anomaly in withdrawn(_answered(KINDS[kind](seed)), Random(seed), moments=12)[0]


@pytest.mark.parametrize("part", range(2))
def test_what_is_said_early_of_an_application_is_said_of_the_whole(part: int) -> None:
    """Rule: the same of the lines that each process has written so far, in no order with others'."""
    right = Counter[str]()
    for seed in range(part, RUNS, 2):
        draw, processes = Random(seed), random_run(seed)
        claims = Claims(promise=PROMISES[seed % 3], ordered=tuple(Ordered)[seed // 3 % 3])
        said = {finding.anomaly for finding in judge_events(events_of(processes), claims).verdict.findings}
        for _ in range(3):
            so_far = [rows[: draw.randint(0, len(rows))] for rows in processes]
            early_ = standing((judge_events(events_of(so_far), claims).verdict,), NOTHING)
            assert {finding.anomaly for finding in early_} <= said, seed
            right.update(finding.anomaly for finding in early_)
    assert right, "nothing was reported early"


def test_the_list_names_anomalies() -> None:
    """Rule: each name is one of the table, and has a reason."""
    assert set(UNTIL_END) <= set(BY_NAME) and all(UNTIL_END.values())


def test_an_answer_after_the_moment_is_not_known() -> None:
    """Rule: an operation under way keeps what was asked, and nothing of its answer; one that begins at the
    moment is not there."""
    sent = append(1, [7], 0, 30, 4)
    got = read(2, 3, [(3, 6)], 10, 30, end=9)
    made = trace(sent, got, append(3, [8], 20, 40, 5))
    asked, polled = certain_prefix(made, 20).operations
    assert (asked.outcome, asked.completion_time, asked.offset) == (Outcome.UNKNOWN, None, None)
    assert [(record.offset, record.value) for record in asked.records] == [(-1, 7)]
    assert (polled.outcome, polled.records, polled.end_offset) == (Outcome.UNKNOWN, (), None)
    assert certain_prefix(made, 31).operations[:2] == (sent, got)


def test_what_was_deleted_is_not_said_early() -> None:
    """Rule: after a deletion a finding may be about another topic of the name."""
    made = trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 20, 30))
    found = {finding.anomaly for finding in standing(judge(made), made)}
    gone = Event(time=15, name=Name.TOPIC_DELETION, topic="t", cause="done")
    assert found == {"inconsistent_offsets"} and standing(judge(made), evolve(made, events=(gone,))) == ()
