"""Relations of groups and transactions to what was known of them."""

import json

import numpy as np
import pytest

from fencepost.mining.triage.event_steps import steps_of
from fencepost.mining.triage.features import features_of
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.tables import tables_of
from tests.checkers import lab


def group(state: str, generation: int, members: int, why: str = "", name: str = "g1") -> Event:
    facts = {"group": name, "generation": generation, "members": ["m"] * members, "leader": "", "why": why}
    return lab.event(1, Name.GROUP_PHASE, 1, cause=state, detail=json.dumps(facts, separators=(",", ":")))


def transaction(
    state: str, epoch: int, parts: tuple[str, ...] = (), why: str = "", producer: int = 5
) -> Event:
    facts = {
        "transactional_id": "x",
        "producer_id": producer,
        "producer_epoch": epoch,
        "partitions": list(parts),
        "why": why,
    }
    detail = json.dumps(facts, separators=(",", ":"))
    return Event(time=1, name=Name.TRANSACTION_PHASE, node=1, cause=state, detail=detail)


def marker(partition: int, commit: bool, coordinator: int = 0) -> Event:
    facts = {"producer_id": 5, "producer_epoch": 1, "coordinator_epoch": coordinator, "commit": commit}
    detail = json.dumps(facts, separators=(",", ":"))
    return Event(time=1, name=Name.MARKER_WRITTEN, node=1, topic="t", partition=partition, detail=detail)


def last(*events: Event) -> str:
    """The words of the last event."""
    tables = tables_of([rows_of(lab.trace(events=events))])
    steps = steps_of(tables.events, np.array([0]))
    return steps.words[steps.code[-1]]


PREPARED = transaction("PrepareCommit", 1, ("t-0", "t-1"))


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([group("Stable", 3, 2), group("Stable", 4, 2)], "group_phase Stable"),
        ([group("Stable", 3, 2), group("Stable", 2, 2)], "group_phase Stable, generation behind"),
        ([group("Stable", 3, 2), group("Stable", 2, 2, name="g2")], "group_phase Stable"),
        ([group("Stable", 3, 2), group("Stable", 5, 2)], "group_phase Stable, generation ahead"),
        (
            [group("Stable", 3, 2), group("Empty", 0, 0, "loaded")],
            "group_phase Empty (loaded), generation behind, members gone",
        ),
        (
            [group("Stable", 3, 2), group("Empty", 4, 0, "nobody is left")],
            "group_phase Empty (nobody is left)",
        ),
        (
            [PREPARED, marker(0, True), marker(1, True), transaction("CompleteCommit", 1)],
            "transaction_phase CompleteCommit",
        ),
        (
            [PREPARED, marker(0, True), transaction("CompleteCommit", 1)],
            "transaction_phase CompleteCommit, before all markers",
        ),
        (
            [
                *(PREPARED, marker(0, True), transaction("PrepareCommit", 1, ("t-0", "t-1"), "loaded")),
                *(marker(1, True), transaction("CompleteCommit", 1)),
            ],
            "transaction_phase CompleteCommit",
        ),
        ([PREPARED, marker(0, False)], "marker_written (commit false), not as decided"),
        ([PREPARED, marker(0, True), marker(0, True)], "marker_written (commit true), marker again"),
        (
            [PREPARED, marker(0, True, coordinator=3), marker(1, True, coordinator=2)],
            "marker_written (commit true), coordinator epoch behind",
        ),
        ([transaction("Empty", 1), transaction("Empty", 2)], "transaction_phase Empty"),
        ([transaction("Empty", 1), transaction("Empty", 1)], "transaction_phase Empty, producer epoch kept"),
        (
            [transaction("Empty", 2), transaction("Ongoing", 1)],
            "transaction_phase Ongoing, producer epoch behind",
        ),
        ([transaction("Empty", 2), transaction("Ongoing", 1, producer=6)], "transaction_phase Ongoing"),
        (
            [transaction("Ongoing", 1), transaction("Empty", 1, why="loaded")],
            "transaction_phase Empty (loaded), state other than before",
        ),
    ],
)
def test_a_number_is_compared_with_the_last_one_of_its_group_or_producer(
    events: list[Event], words: str
) -> None:
    """Rule: what the protocol orders is said only where it is out of order."""
    assert last(*events) == words


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([transaction("Ongoing", 1)], ["a transaction that is open"]),
        ([transaction("Ongoing", 1), PREPARED], ["a transaction that is decided"]),
        ([PREPARED, transaction("CompleteCommit", 1)], []),
        ([group("Stable", 3, 2), group("PreparingRebalance", 3, 2)], ["a group that rebalances"]),
        ([group("CompletingRebalance", 3, 2)], ["a group that rebalances"]),
        ([group("PreparingRebalance", 3, 2), group("Stable", 4, 2)], []),
        ([group("PreparingRebalance", 3, 2), group("Stable", 4, 2, name="g2")], ["a group that rebalances"]),
    ],
)
def test_what_is_left_in_a_state_that_cannot_stay_so(events: list[Event], left: list[str]) -> None:
    """Rule: the last state of each group and each transactional id counts, and only one that cannot stay
    so."""
    traces = [
        lab.trace(trace_id=number, seed=0, events=tuple(each))
        for number, each in enumerate(([], events, [PREPARED, transaction("CompleteCommit", 1)]))
    ]
    tables = tables_of([rows_of(trace) for trace in traces])
    steps = steps_of(tables.events, np.arange(3))
    assert list(steps.left) == [(1, word) for word in left]
    features = features_of(tables, steps).of_each(3)
    found = [[one for one in each if one.startswith("left: ")] for each in features]
    assert found == [[], [f"left: {word}" for word in left], []]


def test_a_detail_that_is_no_json_says_nothing() -> None:
    """Rule: a foreign trace may have other details."""
    odd = Event(time=1, name=Name.GROUP_PHASE, node=1, cause="Stable", detail="{")
    assert last(odd, odd) == "group_phase Stable"


def test_nothing_is_known_from_another_trace() -> None:
    """Rule: each trace has its own groups."""
    two = [lab.trace(trace_id=number, seed=0, events=(group("Stable", 3 - number, 1),)) for number in (0, 1)]
    tables = tables_of(map(rows_of, two))
    steps = steps_of(tables.events, np.array([0, 1]))
    assert {steps.words[code] for code in steps.code} == {"group_phase Stable"}
