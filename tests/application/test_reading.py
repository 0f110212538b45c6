"""Lines of events: what is read, what is left out and said, and whose they are."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fencepost.application import event_columns
from fencepost.application.blame.lines import read_lines
from fencepost.application.event_columns import read_events
from fencepost.application.event_files import event_files
from fencepost.application.event_lines import LONGEST_LINE
from fencepost.checkers.application.application_judge import judge_events
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import TraceError

AT = {"topic": "t", "partition": 0}
MOST_BYTES = 60
"""Of memory for an event: 45 of columns, and what they are grown by."""


def written(path: Path, *rows: Any) -> Path:
    """A file of lines. rows: objects, or bytes that are written as they are."""
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows]
    path.write_bytes(b"".join(lines))
    return path


def consumer(*events: tuple[str, int], name: str = "c") -> list[dict[str, Any]]:
    """Lines of a consumer, counted. events: kind and offset."""
    rows: list[dict[str, Any]] = [{"event": "started", "process": name, "n": 0, "group": "g"}]
    for number, (event, offset) in enumerate(events, start=1):
        rows.append({"event": event, "process": name, "n": number, **AT, "offset": offset})
    return rows


WORK = consumer(("received", 0), ("processed", 0), ("committed", 1), ("received", 1), ("committed", 2))


def test_fields_that_are_not_known_are_ignored(tmp_path: Path) -> None:
    row = {"event": "received", "process": "c", **AT, "offset": 3, "tenant": "x", "nested": {"a": [1]}}
    events = read_events([written(tmp_path / "a.events", row)])
    assert (len(events), events.offset[0], events.left_out) == (1, 3, ())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"not json\n", "expected a JSON object"),
        (b'{"event":"eaten","process":"c"}\n', "saw eaten"),
        (b'{"event":"received","process":"c","topic":"t","partition":0}\n', "expected `offset`"),
        (b'{"event":"received","process":"c","topic":"t","partition":-1,"offset":1}\n', "partition"),
        (
            b'{"event":"received","process":"c","topic":"t","partition":0,"offset":99999999999999999999}\n',
            "saw",
        ),
        (b'{"event":"started","process":"c","version":2}\n', "expected version 1"),
        (b'{"event":"started","process":"' + b"x" * LONGEST_LINE + b'"}\n', "saw more"),
        (b'{"event":"started","process":"\xff"}\n', "saw"),
    ],
)
def test_a_line_that_is_none_is_left_out_with_its_number(tmp_path: Path, line: bytes, says: str) -> None:
    path = written(tmp_path / "a.events", WORK[0], line, *WORK[1:])
    events = read_events([path])
    assert len(events) == len(WORK)
    (sentence,) = events.left_out
    assert sentence.startswith(f"{path}:2: ")
    assert says in sentence


def test_nothing_is_called_lost_where_a_line_could_not_be_read(tmp_path: Path) -> None:
    whole = judge_events(read_events([written(tmp_path / "whole.events", *WORK)]))
    torn = judge_events(read_events([written(tmp_path / "torn.events", *WORK[:5], b"###\n", WORK[5])]))
    assert [finding.anomaly for finding in whole.verdict.findings] == ["record_never_processed"]
    assert torn.verdict.decision is Decision.UNKNOWN
    assert "could not be read" in torn.verdict.reason


def test_half_a_line_at_the_end_is_said_and_costs_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.events", *WORK, b'{"event":"proc')
    events = read_events([path])
    assert events.halves == (f"{path}:7",)
    assert not events.left_out_in_all
    assert judge_events(events).verdict.decision is Decision.ILLEGAL


@pytest.mark.parametrize("half", [b"{", b'{"eve', b'{"event":"proc', json.dumps(WORK[1]).encode()[:-1]])
def test_half_a_line_before_that_of_another_process_is_said_and_costs_nothing(
    tmp_path: Path, half: bytes
) -> None:
    """A process that was killed within a line left half of it; the next one writes behind it."""
    other = consumer(("received", 5), ("processed", 5), name="d")
    path = written(tmp_path / "a.events", *WORK, half, *other)
    assert len(list(read_lines(path))) == 3, "the join reads what was received"
    events = read_events([path])
    assert events.halves == (f"{path}:7",)
    assert [life.process for life in events.lives] == ["c", "d"] and len(events) == len(WORK) + len(other)
    assert not events.torn and not events.left_out_in_all
    assert judge_events(events).verdict.decision is Decision.ILLEGAL


@pytest.mark.parametrize("counted", [True, False])
def test_half_a_line_of_a_process_that_goes_on_is_missed(tmp_path: Path, counted: bool) -> None:
    """Its number is missing later; where lines have no numbers, any process may lack one."""
    rows = [row if counted else {name: row[name] for name in row if name != "n"} for row in WORK]
    events = read_events([written(tmp_path / "a.events", *rows[:3], b'{"event":"comm', *rows[4:])])
    assert events.halves and events.torn
    assert judge_events(events).verdict.decision is Decision.UNKNOWN


def test_a_doubled_line_counts_once(tmp_path: Path) -> None:
    rows = consumer(("received", 0), ("processed", 0), ("committed", 1))
    path = written(tmp_path / "a.events", *rows[:3], rows[2], *rows[3:])
    events = read_events([path])
    assert events.left_out_in_all == 1
    assert judge_events(events).verdict.decision is Decision.OK


def test_a_missing_line_shows_in_the_count(tmp_path: Path) -> None:
    events = read_events([written(tmp_path / "a.events", *WORK[:2], *WORK[3:])])
    assert judge_events(events).verdict.decision is Decision.UNKNOWN


def test_lines_of_two_processes_may_be_mixed_in_a_file(tmp_path: Path) -> None:
    other = consumer(("received", 5), ("processed", 5), name="d")
    mixed = [row for pair in zip(WORK, other, strict=False) for row in pair] + WORK[len(other) :]
    events = read_events([written(tmp_path / "a.events", *mixed)])
    assert [life.process for life in events.lives] == ["c", "d"]
    assert not events.torn


def test_a_second_start_is_a_second_life(tmp_path: Path) -> None:
    first = consumer(("received", 0), ("processed", 0))
    events = read_events([written(tmp_path / "a.events", *first, *first)])
    assert [str(life) for life in events.lives] == ["c", "c (life 2)"]
    assert judge_events(events).verdict.decision is Decision.OK, "what was not committed may be done again"


def test_a_file_that_was_rotated_goes_on(tmp_path: Path) -> None:
    parts = [written(tmp_path / f"a.{n}.events", *WORK[n * 2 : n * 2 + 2]) for n in range(3)]
    events = read_events(event_files(parts))
    assert len(events.lives) == 1
    assert not events.torn


def test_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    rows = consumer(*(("received", offset) for offset in range(12)))
    for number, row in enumerate(rows):
        written(tmp_path / f"a.{number}.events", row)
    assert not read_events(event_files([tmp_path])).torn


def test_a_copy_is_refused(tmp_path: Path) -> None:
    files = [written(tmp_path / name, *WORK) for name in ("a.events", "b.events")]
    with pytest.raises(TraceError, match="copy of"):
        event_files(files)


def test_events_and_traces_are_not_judged_in_one_call(tmp_path: Path) -> None:
    other = written(tmp_path / "b.jsonl", {"type": "trace"})
    with pytest.raises(TraceError, match="which is none"):
        event_files([written(tmp_path / "a.events", *WORK), other])


def test_a_group_without_a_name_in_later_lines_is_that_of_the_start(tmp_path: Path) -> None:
    events = read_events([written(tmp_path / "a.events", *WORK)])
    assert {events.groups[number] for number in events.group} == {"g"}


def test_a_send_takes_its_contents_to_its_acknowledgement(tmp_path: Path) -> None:
    sent = {"event": "sent", "process": "p", "id": "7", "topic": "t", "key": "k", "value": "v"}
    acknowledged = {"event": "acknowledged", "process": "p", "id": "7", **AT, "offset": 0}
    events = read_events([written(tmp_path / "a.events", sent, acknowledged)])
    assert events.value[0] == events.value[1] != -1
    assert events.key[0] == events.key[1] != -1


def test_memory_is_that_of_the_columns(tmp_path: Path) -> None:
    """Rule: what an event takes does not follow what its line holds."""

    def peak(events: int) -> int:
        rows = ({**row, "note": "x" * 500} for row in consumer(*(("received", at) for at in range(events))))
        path = written(tmp_path / f"{events}.events", *rows)
        tracemalloc.start()
        try:
            assert len(read_events([path])) == events + 1
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(20_000) - peak(10_000) < 10_000 * MOST_BYTES


@pytest.mark.parametrize("limit", ["MOST_EVENTS", "MOST_NAMES", "MOST_UNDER_WAY"])
def test_a_run_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    rows = [{"event": "sent", "process": f"p{n}", "id": n, "topic": "t"} for n in range(4)]
    path = written(tmp_path / "a.events", *rows)
    monkeypatch.setattr(event_columns, limit, 4)
    assert len(read_events([path])) == 4
    monkeypatch.setattr(event_columns, limit, 3)
    with pytest.raises(TraceError, match="at most 3"):
        read_events([path])
