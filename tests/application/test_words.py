"""Each finding in its words: what was expected and seen, of which records, shown by which lines."""

import json
from typing import Any

import pytest

from fencepost.application.event_columns import Reading
from fencepost.checkers.application.application_events import Events
from fencepost.checkers.application.application_judge import (
    CHECK,
    EXPECTED,
    ONLY_ONCE,
    Claims,
    Judged,
    Ordered,
    Promise,
    judge_events,
)
from fencepost.checkers.verdict import Decision
from fencepost.traces.anomalies import APPLICATION

AT = {"topic": "t", "partition": 0}
DEFAULT = Claims()


def run_of(files: dict[str, list[dict[str, Any]]]) -> Events:
    """A run. files: rows by the name of a file, which is that of their process, too."""
    reading = Reading()
    for name, rows in files.items():
        lines = [json.dumps({"process": name, **row}).encode() + b"\n" for row in rows]
        reading.file(name, lines)
    return reading.events()


def judged(files: dict[str, list[dict[str, Any]]], claims: Claims = DEFAULT) -> Judged:
    """The judgement of a run. files: as of run_of."""
    return judge_events(run_of(files), claims)


def of(event: str, *offsets: int, **more: Any) -> list[dict[str, Any]]:
    """Lines of a kind about records of t-0."""
    return [{"event": event, "group": "g", **AT, "offset": offset, **more} for offset in offsets]


def sent(number: int, offset: int, partition: int = 0, **more: Any) -> list[dict[str, Any]]:
    """A send and its acknowledgement."""
    begun = {"event": "sent", "id": number, "topic": "t", **more}
    return [
        begun,
        {"event": "acknowledged", "id": number, "topic": "t", "partition": partition, "offset": offset},
    ]


CASES: dict[str, tuple[dict[str, list[dict[str, Any]]], str, list[str]]] = {
    "record_never_processed": (
        {"c": [*of("received", 0, 1), *of("processed", 0), *of("committed", 1, 2)], "d": of("received", 2)},
        "t-0 offset 1 of group g: received by c at c:2, passed by c at c:5, never processed",
        ["c:2", "c:5"],
    ),
    "record_never_received": (
        {
            "p": [*sent(0, 0), *sent(1, 1), *sent(2, 2)],
            "c": [*of("received", 0), *of("processed", 0), *of("received", 2)],
            "d": of("assigned", 2),
        },
        "t-0 offset 1 of group g: acknowledged by p at p:4, passed by c at c:3, never received",
        ["p:4", "c:3"],
    ),
    "record_skipped_at_start": (
        {"p": [*sent(0, 0), *sent(1, 1)], "c": [*of("assigned", 1), *of("received", 1)]},
        "t-0 offset 0 of group g: acknowledged by p at p:2; the first that was read is above, by c at c:1",
        ["p:2", "c:1"],
    ),
    "missing_in_sink": (
        {
            "c": [*of("processed", 0, 1), *of("processed", 2, sink=False)],
            "db": [{"event": "sink", **AT, "offset": 0}],
        },
        "t-0 offset 1: processed by c at c:2, not in the sink",
        ["c:2"],
    ),
    "send_without_result": (
        {
            "p": [
                *sent(0, 0),
                {"event": "sent", "id": 1, "topic": "t"},
                {"event": "sent", "id": 2, "topic": "t"},
                {"event": "stopped"},
            ]
        },
        "2 of p to t without any, the first at p:3",
        [],
    ),
    "other_bytes": (
        {"p": sent(0, 0, value="a"), "c": of("received", 0, value="b")},
        "t-0 offset 0: p at p:2 and c at c:1 differ",
        ["p:2", "c:1"],
    ),
    "offset_acknowledged_twice": (
        {"p": [*sent(0, 0), *sent(1, 5), *sent(2, 5)]},
        "t-0 offset 5: p at p:4 and p at p:6",
        ["p:4", "p:6"],
    ),
    "committed_before_processed": (
        {"c": [*of("received", 0, 1), *of("processed", 0), *of("committed", 2), *of("processed", 1)]},
        "t-0 offset 1 of group g: committed past by c at c:4, processed by c at c:5",
        ["c:4", "c:5"],
    ),
    "processed_twice": (
        {"c": [*of("assigned", 0), *of("processed", 0, 1, 2, 1, 0)]},
        "t-0 offsets 0, 1 of group g: by c at c:2, and again by c at c:6",
        ["c:2", "c:6"],
    ),
    "processed_after_revoked": (
        {"c": [*of("processed", 0), *of("revoked", -1), *of("processed", 1, 2)]},
        "t-0 offsets 1, 2 of group g: taken from c at c:2, processed by c at c:3",
        ["c:2", "c:3"],
    ),
    "processed_out_of_order": (
        {"c": of("processed", 0, 3, 2, 1, key="k")},
        "t-0 offsets 1, 2 of group g: processed by c at c:4, after a later one by c at c:3",
        ["c:3", "c:4"],
    ),
    "key_in_two_partitions": (
        {
            "p": [
                *sent(0, 0, 0, key="a"),
                *sent(1, 0, 1, key="b"),
                *sent(2, 0, 2, key="a"),
                *sent(3, 1, 3, key="b"),
            ]
        },
        "",
        [],
    ),
}


@pytest.mark.parametrize("anomaly", CASES)
def test_a_finding_says_what_and_where(anomaly: str) -> None:
    files, seen, lines = CASES[anomaly]
    found = judged(files)
    (finding,) = found.verdict.findings
    assert (finding.anomaly, finding.check, found.verdict.decision) == (anomaly, CHECK, Decision.ILLEGAL)
    assert finding.expected == EXPECTED[anomaly] + " for each key" * (anomaly == "processed_out_of_order")
    shown = list(map(run_of(files).where, finding.events))
    if seen:
        assert (finding.seen, shown) == (seen, lines)
    else:
        assert finding.seen.startswith("2 keys of t in two or more, the first in t-")
        assert set(shown) in ({"p:2", "p:6"}, {"p:4", "p:8"})
    topic, *_ = [place[0] for place in finding.places] or ["t"]
    assert (finding.topic, topic) == ("t", "t")
    assert finding.offset == (finding.places[0][2] if finding.places else -1)


def test_every_anomaly_has_a_case() -> None:
    assert {*CASES, "twice_in_sink"} == {anomaly.name for anomaly in APPLICATION} == set(EXPECTED)


def test_a_sink_that_holds_a_record_twice() -> None:
    files = {
        "db": [{"event": "sink", **AT, "offset": offset} for offset in (0, 1, 1)],
        "c": of("processed", 0, 1),
    }
    assert judged(files).verdict.decision is Decision.OK
    (finding,) = judged(files, Claims(promise=Promise.EXACTLY_ONCE)).verdict.findings
    assert (finding.anomaly, finding.seen) == ("twice_in_sink", "t-0 offset 1: two rows or more")


@pytest.mark.parametrize("promise", [Promise.AT_MOST_ONCE, Promise.EXACTLY_ONCE])
def test_a_promise_of_once_is_in_the_words(promise: Promise) -> None:
    (finding,) = judged(
        {"c": of("processed", 0), "d": of("processed", 0)}, Claims(promise=promise)
    ).verdict.findings
    assert (finding.anomaly, finding.expected) == ("processed_twice", ONLY_ONCE)


def test_order_of_partitions_is_in_the_words() -> None:
    found = judged({"c": of("processed", 1, 0)}, Claims(ordered=Ordered.PARTITION))
    (finding,) = found.verdict.findings
    assert (finding.anomaly, finding.expected) == (
        "processed_out_of_order",
        EXPECTED["processed_out_of_order"],
    )


def test_many_records_are_cut_in_words_and_not_in_number() -> None:
    files = {"c": [*of("received", *range(250)), *of("committed", 250)]}
    (finding,) = judged(files).verdict.findings
    assert finding.seen.startswith("t-0 offsets 0, 1, 2, 3, 4 and 245 more of group g: ")
    assert len(finding.places) == 100


def test_processes_without_a_group_have_none_in_words() -> None:
    rows = [{**AT, "event": event, "offset": offset} for event, offset in (("received", 0), ("committed", 1))]
    (finding,) = judged({"c": rows}).verdict.findings
    assert finding.seen.startswith("t-0 offset 0: received")


def test_readers_without_a_group_do_not_pass_for_each_other() -> None:
    rows = {name: [{**AT, "event": "received", "offset": offset}] for name, offset in (("c", 0), ("d", 5))}
    assert judged(rows).verdict.decision is Decision.OK


def test_a_send_of_a_process_with_missing_lines_may_have_its_result_there() -> None:
    rows = [{"event": "sent", "id": 0, "topic": "t", "n": 0}, {"event": "stopped", "n": 2}]
    found = judged({"p": rows})
    assert (found.verdict.decision, found.verdict.findings) == (Decision.UNKNOWN, ())
    assert "lines of p are missing" in found.verdict.reason


def test_a_result_without_an_id_may_be_that_of_any_send() -> None:
    rows = [
        {"event": "sent", "id": 0, "topic": "t"},
        {"event": "acknowledged", **AT, "offset": 0},
        {"event": "stopped"},
    ]
    assert judged({"p": rows}).verdict.decision is Decision.OK


def test_what_is_lacking_is_said() -> None:
    assert judged({"c": of("received", 0)}).verdict.unjudged.split("; ") == [
        "records that were never received (no acknowledgements)",
        "processing (no line says `processed`)",
        "sinks (no line says what one holds)",
    ]
    assert judged({"c": of("processed", 0)}).verdict.unjudged.split("; ") == [
        "records that were never received (no acknowledgements)",
        "what a group has passed (no commits and no assignments)",
        "order (no keys: `--ordered-by partition` asks for the order of partitions)",
        "sinks (no line says what one holds)",
    ]
    whole = {
        "p": sent(0, 0, key="k"),
        "c": [*of("processed", 0), *of("committed", 1)],
        "db": [{"event": "sink", **AT, "offset": 0}],
    }
    assert judged(whole).verdict.unjudged == ""


def test_what_was_under_way_is_counted_above_what_was_passed() -> None:
    files = {
        "c": [*of("received", 0, 1, 2), *of("processed", 0), *of("committed", 1)],
        "p": [*sent(0, 0)[:1]],
    }
    counts = judged(files).counts
    assert (counts["under_way"], counts["sends_under_way"], counts["records"]) == (2, 1, 3)
    assert (counts["events"], counts["processes"], counts["groups"]) == (6, 2, 1)
