"""What is said of a trace under way stands: whatever comes later, the judges of the whole trace say it, too."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from fencepost.checkers import early
from fencepost.checkers.application.application_judge import judge_events
from fencepost.checkers.early import certain_prefix, standing, subject_of
from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision
from fencepost.traces.anomalies import BY_NAME
from fencepost.traces.anomalies.until_end import UNTIL_END
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace
from tests.application.histories import random_run
from tests.application.test_twin import PROMISES, Claims, Ordered, events_of
from tests.checkers.wild_histories import wild
from tests.selfcheck.amounts import amount

for room in ("log", "exactly_once", "transactions", "groups", "kafka"):
    sys.path.insert(0, str(Path(__file__).parent / room))
import exactly_once_naive
import kafka_random
import test_groups_kept
import test_transactions_differential
from applications import changed
from log_histories import append, random_trace, read, trace
from log_special_histories import special_trace

PROFILES = ("default", "session", "strong", "content")
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
SEEDS = amount(15, 4_000)


def withdrawn(made: Trace, draw: Random) -> tuple[set[str], Counter[str]]:
    """The anomalies that are said early, at some moment, and not of the whole; and how often each is said of
    both."""
    whole = judge(made)
    contradicted = {
        one.check for one in whole if one.decision is Decision.ASSUMPTION_BROKEN or (one.reason and one.findings)
    }
    said = {subject_of(f.check, f.anomaly, f.topic, f.partition) for one in whole for f in one.findings}
    times = sorted({time for row in made.operations for time in (row.invoke_time, row.completion_time) if time})
    wrong, right = set(), Counter[str]()
    for time in draw.sample(times, min(MOMENTS, len(times))):
        prefix = certain_prefix(made, time + draw.randint(0, 1))
        for f in standing(judge(prefix), prefix):
            if f.check in contradicted:
                continue
            if subject_of(f.check, f.anomaly, f.topic, f.partition) in said:
                right[f.anomaly] += 1
            else:
                wrong.add(f.anomaly)
    return wrong, right


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_early_is_said_of_the_whole(kind: str) -> None:
    """Rule: at every moment of a history, legal or not, what is reported early is among what the judges of the
    whole report. A history that contradicts itself later is left out: there they report nothing."""
    right = Counter[str]()
    for seed in range(SEEDS):
        wrong, also = withdrawn(_answered(KINDS[kind](seed)), Random(seed))
        assert not wrong, (seed, wrong)
        right += also
    assert right, "nothing was reported early"


@pytest.mark.parametrize(
    ("anomaly", "kind"),
    [
        ("phantom_record", "transactions"),
        ("failed_append_visible", "special"),
        ("lost_write", "kafka"),
        ("unaccounted_offset", "log"),
        ("torn_batch", "kafka"),
        ("circular_reads_in_process", "transactions"),
        ("circular_reads_in_real_time", "transactions"),
        ("output_without_commit", "application"),
        ("output_missing", "application"),
    ],
)
def test_an_anomaly_that_does_not_wait_is_withdrawn(
    anomaly: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: each of these is in the list for a reason: without it something is reported early that the judges
    of the whole do not say."""
    monkeypatch.setattr(early, "UNTIL_END", {name: why for name, why in UNTIL_END.items() if name != anomaly})
    seeds = (*range(400),)
    assert any(anomaly in withdrawn(_answered(KINDS[kind](seed)), Random(seed))[0] for seed in seeds)
