"""What became of the records of logs, in a mining: as `check` counts them, in summary, page, table and JSON,
without Spark."""

import json
from pathlib import Path

import pyarrow.parquet as pq
from attrs import evolve
from log_histories import append, loss, read, trace
from mining_results import judge_here

from fencepost.checkers.judges import judge
from fencepost.checkers.log.accounts import counts_of_trace
from fencepost.checkers.unjudged import NOTHING
from fencepost.checkers.verdict import Decision
from fencepost.mining.results.checkpoint import from_json, to_json
from fencepost.mining.results.mining_page import page_of
from fencepost.mining.results.result_rows import Counts
from fencepost.mining.results.summary import MOST_NAMED, Summary, summary_of
from fencepost.report.record_counts import MOST_LOST, LogTotals
from fencepost.traces.trace import Trace
from tests.checkers import lab

LOST, BY_LEADER, EXCUSED = 250, 172, 5


def histories() -> list[Trace]:
    """250 records lost; 172 lost that only the leader acknowledged; 5 lost where it is allowed, one
    duplicated value and one of unknown outcome; one that contradicts itself."""
    three = [append(200 + n, [200 + n], 5, 6, n) for n in range(3)]
    last = read(999, 0, [(n, 200 + n) for n in range(3)], 7, 8, 3)
    twice = [
        append(1, [10], 0, 1, 0),
        append(2, [20], 0, None),
        read(5, 0, [(0, 10), (1, 10), (2, 20)], 2, 3),
    ]
    gone = [append(100 + n, [100 + n], 0, 1, 3 + n) for n in range(EXCUSED)]
    made = [
        trace(
            *(append(n, [n], 0, 1, n) for n in range(300)),
            read(999, 0, [(n, n) for n in range(50)], 2, 3, 50),
        ),
        trace(*(append(n, [n], 0, 1, n, acks=1) for n in range(BY_LEADER)), *three, last),
        trace(*twice, *gone, read(6, 3, [], 4, 5, 3), loss=loss(3, 3 + EXCUSED), duplicates=True),
        trace(append(1, [1], 5, 4, 0)),
    ]
    return [evolve(one, trace_id=number) for number, one in enumerate(made)]


def judged(made: list[Trace], folder: Path) -> tuple[Counts, Path]:
    """All of them mined, from a folder of traces, without Spark."""
    lab.stored(folder / "in", made)
    result = judge_here(folder / "in", folder / "out", checks=("log",))
    again = from_json(to_json(result))  # as it comes back from a task that ended before
    assert again == result
    return again.counts, folder / "out"


def summed(counts: Counts, folder: Path, checks: tuple[str, ...] = ("log",)) -> Summary:
    """The summary of these counts."""
    return summary_of(counts, out=folder, checks=checks, splits=1)


def test_a_mining_counts_what_check_counts(tmp_path: Path) -> None:
    """Sums over all histories, by acks, allowed or not; a history that contradicts itself has none."""
    made = histories()
    counts, out = judged(made, tmp_path)
    records = json.loads(summed(counts, out).to_json())["records"]
    assert records["lost"] == {
        "all": {"allowed": EXCUSED, "not_allowed": LOST},
        "1": {"allowed": 0, "not_allowed": BY_LEADER},
    }
    assert records["acknowledged"] == {"all": 300 + 3 + 1 + EXCUSED, "1": BY_LEADER, "0": 0}
    assert (records["duplicated"], records["unknown_but_present"], records["unread"]) == (1, 1, 0)
    plain = [counts_of_trace(one) for one in made]
    assert plain[3] is None
    expected = [
        (number, one.topic, one.partition, one.offset, one.value, one.acks, one.allowed)
        for number, found in enumerate(plain[:3])
        for one in found.lost_values
    ]
    rows = pq.read_table(out / "lost").to_pylist()
    assert [tuple(row.values())[1:] for row in rows] == expected
    assert len(rows) == LOST + BY_LEADER + EXCUSED


def test_they_are_on_the_page_and_in_the_text(tmp_path: Path) -> None:
    """The first hundred lost records that no claim allows are listed, and where the others are."""
    counts, out = judged(histories(), tmp_path)
    summary = summed(counts, out)
    text, html = summary.plain(), page_of(summary)
    line = (
        "481 acknowledged (309 with acks=all, 172 with acks=1); 427 lost, 172 with acks=1 (5 of them "
        "allowed); 0 never read"
    )
    assert line in text
    assert "t-0 offset 50, value 50, acks=all" in text and f"and 322 more (all of them: {out}/lost)" in text
    assert "<h2>Records</h2>" in html and "<h2>Lost records</h2>" in html
    assert "100 of 422 that no claim allows; the table lost has all." in html
    giant = evolve(summary, giants=2, uncounted=("in/a trace 7", "in/a trace 9"))
    assert "records of 2 giant histories are not counted: in/a trace 7, in/a trace 9" in giant.plain()
    assert "Not counted are the records of in/a trace 7, in/a trace 9" in page_of(giant)
    assert json.loads(giant.to_json())["uncounted"] == ["in/a trace 7", "in/a trace 9"]
    many = evolve(summary, uncounted=tuple(f"in trace {n}" for n in range(MOST_NAMED + 3)))
    assert f"in trace {MOST_NAMED - 1} and 3 more" in many.plain()


def test_what_is_allowed_hides_no_lost_record(tmp_path: Path) -> None:
    """Rule: a reader looks for what no claim allows. What is allowed is counted, and not listed, however much
    of it comes first."""
    count = MOST_LOST + 20
    gone = [append(n, [n], 0, 1, n) for n in range(count)]
    allowed = trace(*gone, read(999, 0, [], 4, 5, 0), loss=loss(0, count))
    lost = trace(append(1, [1], 0, 1, 0), append(2, [2], 0, 1, 1), read(3, 0, [(0, 1)], 2, 3, 1))
    made = [evolve(one, trace_id=number) for number, one in enumerate((allowed, lost))]
    counts, out = judged(made, tmp_path)
    summary = summed(counts, out)
    assert f"{count + 1} lost ({count} of them allowed)" in summary.plain()
    assert [line for line in summary.record_lines if "offset" in line] == [
        f"  lost: {tmp_path}/in 1: t-0 offset 1, value 2, acks=all"
    ]
    assert "1 of 1 that no claim allows" in page_of(summary)


def test_without_the_log_check_nothing_is_said_of_records(tmp_path: Path) -> None:
    """Zeros would be a statement."""
    summary = summed(Counts(), tmp_path, checks=("kafka",))
    assert json.loads(summary.to_json())["records"] is None
    assert "Records" not in page_of(summary) and summary.record_lines == []


def test_the_order_of_tasks_does_not_choose_the_lost_records_that_are_listed(tmp_path: Path) -> None:
    """Tasks end in any order."""
    found = [LogTotals(), LogTotals()]
    parts = [judged([one], tmp_path / str(number))[0].records for number, one in enumerate(histories()[:2])]
    for one, order in zip(found, ((0, 1), (1, 0)), strict=True):
        for number in order:
            one.merge(parts[number], MOST_LOST)
    assert found[0] == found[1]
    assert len(found[0].lost) == MOST_LOST


def test_an_empty_trace_is_not_ok(tmp_path: Path) -> None:
    """Rule: nothing was asked of a log, and nothing is known of it; `check` and `mine` say so."""
    empty = lab.trace(trace_id=3, seed=0)
    (verdict,) = judge(empty, ("log",))
    assert (verdict.decision, verdict.reason) == (Decision.ASSUMPTION_BROKEN, NOTHING)
    counts, _ = judged([empty], tmp_path)
    assert counts.decisions == {("log", "assumption_broken"): 1}
