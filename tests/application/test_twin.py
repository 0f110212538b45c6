"""The judge of columns answers as the naive one, record by record, on random runs."""

import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from fencepost.application.event_columns import Reading
from fencepost.checkers.application.application_events import Events
from fencepost.checkers.application.application_judge import Claims, Ordered, Promise, judge_events
from tests.application.histories import random_run
from tests.application.naive_judge import naive
from tests.selfcheck.amounts import amount

PROMISES = tuple(Promise)
ORDERS = tuple(Ordered)


def events_of(processes: list[list[dict[str, Any]]]) -> Events:
    """A run, read from the lines that each process wrote into a file of its own."""
    reading = Reading()
    for number, rows in enumerate(processes):
        reading.file(f"{number}.events", [json.dumps(row).encode() + b"\n" for row in rows])
    return reading.events()


def found_by_judge(events: Events, claims: Claims) -> dict[str, set[tuple[Any, ...]]]:
    """What the judge finds, as the naive one says it."""
    found = defaultdict(set)
    for finding in judge_events(events, claims).verdict.findings:
        group = next((name for name in events.groups if name and f"of group {name}" in finding.seen), "")
        grouped = finding.anomaly.startswith(("record_", "processed_", "committed_"))
        for place in finding.places:
            found[finding.anomaly].add((group, *place) if grouped else place)
        if finding.anomaly == "key_in_two_partitions":
            found[finding.anomaly].add((finding.topic,))
    found.pop("send_without_result", None)
    return dict(found)


RUNS = amount(800, 20_000)
"""Random runs in all."""
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_agrees_with_the_naive_judge(part: int) -> None:
    met: Counter[str] = Counter()
    for seed in range(part, RUNS, PARTS):
        run = random_run(seed)
        claims = Claims(promise=PROMISES[seed % 3], ordered=ORDERS[seed // 3 % 3])
        expected = naive(run, promise=claims.promise.value, order=claims.ordered.value)
        allowed = {"record_never_processed", "record_never_received", "record_skipped_at_start"}
        allowed |= {"missing_in_sink", "committed_before_processed"}
        if claims.promise is Promise.AT_MOST_ONCE:
            expected = {name: places for name, places in expected.items() if name not in allowed}
        if claims.ordered is Ordered.NONE:
            expected.pop("processed_out_of_order", None)
        assert found_by_judge(events_of(run), claims) == expected, seed
        met.update(expected.keys())
    assert all(met[name] for name in ("record_never_processed", "processed_twice", "processed_out_of_order"))
