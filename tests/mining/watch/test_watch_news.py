"""What arrives late, torn, foreign or after the end: what a watch makes of it, without Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from damaged_stores import IDS, as_before, healthy, rewrite

from fencepost.checkers.verdict import Decision
from fencepost.mining.watch.out import LOGS
from fencepost.mining.watch.read import SHARDS, Addressed, Folder, Unread, shard_of
from fencepost.mining.watch.shard import ShardLimits
from fencepost.traces.digest import digest_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Outcome
from tests.mining.watch.watch_by_hand import END, Watch, append, low_watermark, plain, read, trace

FOREIGN = {
    "empty.jsonl": b"",
    "text.jsonl": b"hello\n",
    "deep.jsonl": b"[" * 100_000,
    "binary.jsonl": bytes(range(256)),
    "orphan.jsonl": b'{"type":"operation","op_id":1}\n',
    "other.parquet": b"PAR1",
    "traces/part-00000.parquet": b"PAR1 cut",
    "traces/part-000001.parquet": b"PAR1 cut",
    "traces/mine.parquet": b"",
}


def test_what_lies_beyond_the_horizon_is_undecided(tmp_path: Path) -> None:
    """A log of which the horizon dropped something ends as unknown, with the number, and is counted as
    undecided before."""
    watch = Watch(tmp_path, ShardLimits(horizon=3, lateness_ns=0))
    rows = [append(n, [n], 10 * n, 10 * n + 5, n) for n in range(8)]
    whole = trace(*rows, read(9, 0, [(n, n) for n in range(8)], 200, 300))
    watch.batch([watch.write(evolve(whole, events=(low_watermark(350),)))])
    assert sum(row[6] for row in watch.reported["status"]) == 1
    watch.batch([watch.write(evolve(trace(append(10, [10], 400, 401, 8)), events=(END,)))])
    ((*_, decision, operations, findings, reason),) = watch.reported["log"]
    assert (decision, operations, findings) == ("unknown", 10, 0) and "beyond the horizon of 3" in reason


def test_what_comes_too_late_is_undecided_and_convicts_nobody(tmp_path: Path) -> None:
    """An operation that arrives after what followed it was judged ends the judging of its log, and of no
    other."""
    watch = Watch(tmp_path, ShardLimits(horizon=100, lateness_ns=50))
    elsewhere = [evolve(op, topic="u", records=()) for op in (append(5, [], 0, 5), append(6, [], 900, 901))]
    watch.batch([watch.write(trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 1)], 500, 510), *elsewhere))])
    watch.batch([watch.write(trace(append(3, [3], 20, 30, 1)))])  # 480 behind, 50 are allowed
    assert [row[5:7] for row in watch.reported["status"][-SHARDS:] if any(row[5:7])] == [(0, 1), (1, 0)]
    last = trace(read(4, 1, [(1, 3)], 600, 610))
    watch.batch([watch.write(evolve(last, events=(END,)))])
    reported = {row[2]: row[4:] for row in watch.reported["log"]}
    assert reported["t"][0] == "unknown" and "operation 3 arrived when" in reported["t"][3]
    assert reported["u"][0] == "ok" and watch.findings() == []


def test_within_the_lateness_any_order_is_as_good(tmp_path: Path) -> None:
    """Without low watermarks, operations may arrive as late as the limit says."""
    watch = Watch(tmp_path, ShardLimits(horizon=100, lateness_ns=500))
    watch.batch([watch.write(trace(read(2, 0, [(0, 1)], 400, 410)))])
    watch.batch([watch.write(trace(append(1, [1], 0, 10, 0)))])
    watch.batch([watch.write(evolve(trace(read(3, 0, [(0, 9)], 950, 960)), events=(END,)))])
    assert [row[0] for row in watch.findings()] == ["inconsistent_offsets", "phantom_record"]
    assert [row[4] for row in watch.reported["log"]] == ["illegal"]


def test_findings_are_told_before_the_trace_ends(tmp_path: Path) -> None:
    """What is certain is reported as soon as time has come so far, and not again at the end."""
    watch = Watch(tmp_path)
    wrong = trace(append(1, [1], 0, 10, 0), read(2, 0, [(0, 7)], 20, 30), append(3, [7], 40, 50, 0))
    watch.batch([watch.write(evolve(wrong, events=(low_watermark(60),)))])
    early = watch.findings()
    assert "inconsistent_offsets" in [row[0] for row in early] and not watch.reported["log"]
    watch.batch([watch.write(evolve(wrong, operations=(), events=(END,)))])
    assert watch.findings() == early == plain(wrong)


def test_transactions_reach_every_partition(tmp_path: Path) -> None:
    """A transaction that began in an earlier file excuses its records in partitions that were not heard of
    then; its planted absence convicts."""
    logs = [(topic, 0) for topic in "abcdefgh"]
    assert len({shard_of(log) for log in logs}) > 3
    for known in (True, False):
        watch = Watch(tmp_path / str(known))
        Path(watch.folder.root).mkdir()

        begin = evolve(
            append(1, [], 0, None), function=Function.TXN, topic=None, partition=None, acks=None, process=7
        )
        done = evolve(begin, completion_time=900, outcome=Outcome.FAIL)
        failed, reads = [], []
        for n, (topic, _) in enumerate(logs):
            one = append(10 + n, [n], 100, 200, outcome=Outcome.FAIL, process=7, topic=topic)
            failed.append(evolve(one, records=tuple(evolve(r, topic=topic) for r in one.records)))
            seen = read(30 + n, 0, [(0, n)], 300, 400, topic=topic, isolation="read_uncommitted")
            reads.append(seen)
        parts = [(begin,), (*failed, *reads), (done,)] if known else [(*failed, *reads)]
        for number, rows in enumerate(parts):
            events = (END,) if number == len(parts) - 1 else (low_watermark(50 if number == 0 else 500),)
            watch.batch([watch.write(evolve(trace(*rows, concurrent=True), events=events))])
        assert {row[0] for row in watch.findings()} == (set() if known else {"failed_append_visible"})
        assert sorted(row[2] for row in watch.reported["log"]) == sorted(topic for topic, _ in logs)


def test_a_transaction_that_comes_too_late_leaves_its_whole_trace_undecided(tmp_path: Path) -> None:
    """What was in it is not known, in any partition, also of those that are heard of later."""
    watch = Watch(tmp_path, ShardLimits(horizon=100, lateness_ns=50))
    watch.batch([watch.write(trace(append(1, [1], 0, 10, 0), append(2, [2], 500, 510, 1)))])
    late = evolve(append(3, [], 5, 300), function=Function.TXN, topic=None, partition=None)
    watch.batch([watch.write(trace(evolve(late, outcome=Outcome.FAIL)))])
    failed = append(4, [4], 600, 610, outcome=Outcome.FAIL, topic="u")
    seen = read(5, 0, [(0, 4)], 620, 630, topic="u")
    watch.batch([watch.write(evolve(trace(failed, seen), events=(END,)))])
    assert {row[2]: row[4] for row in watch.reported["log"]} == {"t": "unknown", "u": "unknown"}
    assert watch.findings() == []


def test_claims_of_a_profile_that_is_none_judge_nobody(tmp_path: Path) -> None:
    """As the batch form: an assumption broken."""
    watch = Watch(tmp_path)
    watch.batch([watch.write(evolve(trace(append(1, [1], 0, 10, 0), check="wild"), events=(END,)))])
    assert [row[4] for row in watch.reported["log"]] == ["assumption_broken"]


def test_an_ended_trace_takes_nothing_in(tmp_path: Path) -> None:
    """What comes after the end of a trace is quarantined, not judged as a new trace."""
    watch = Watch(tmp_path)
    watch.batch([watch.write(evolve(trace(append(1, [1], 0, 10, 0)), events=(END,)))])
    assert len(watch.memory) == SHARDS and max(map(len, watch.memory.values())) < 64
    watch.batch([watch.write(trace(read(2, 0, [(0, 9)], 20, 30)))])
    assert watch.findings() == [] and len(watch.reported["log"]) == 1
    (reported,) = set(watch.reported["quarantine"])
    assert "expected no more of trace 1" in reported[3]


def test_a_missing_part_makes_its_trace_undecided(tmp_path: Path) -> None:
    """A damaged part of a trace under way is quarantined, and what it may have held convicts nobody; other
    traces of the folder go on."""
    watch = Watch(tmp_path)
    watch.batch([watch.write(trace(append(1, [1], 0, 10, 0)), trace(append(1, [1], 0, 10, 0), trace_id=2))])
    torn = watch.write(trace(append(2, [2], 20, 30, 1)))
    torn.write_bytes(torn.read_bytes()[:-20])
    watch.batch([torn])
    ends = [trace(read(3, 0, [(0, 1), (1, 2)], 40, 50), trace_id=n) for n in (1, 2)]
    watch.batch([watch.write(*(evolve(end, events=(END,)) for end in ends))])
    assert {row[1]: row[4] for row in watch.reported["log"]} == {1: "unknown", 2: "illegal"}
    assert [row[0] for row in watch.findings()] == ["phantom_record"]
    assert "one that was cut" in watch.reported["quarantine"][0][3]


def test_claims_may_not_change_under_way(tmp_path: Path) -> None:
    """A trace whose later part claims something else is an assumption broken."""
    watch = Watch(tmp_path)
    watch.batch([watch.write(trace(append(1, [1], 0, 10, 0), check="strong"))])
    watch.batch([watch.write(evolve(trace(read(2, 0, [], 20, 30, end=0)), events=(END,)))])
    ((*_, decision, _operations, _findings, reason),) = watch.reported["log"]
    assert decision == Decision.ASSUMPTION_BROKEN.value and "makes other claims" in reason


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_quarantined_with_its_reason(tmp_path: Path, name: str) -> None:
    """Whatever arrives, one sentence says what was expected and seen, and nothing is raised."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(FOREIGN[name])
    watch = Watch(tmp_path)
    watch.batch([path])
    ((_, place, _, reason),) = watch.reported["quarantine"]
    assert Path(name).name in place and "expected" in reason and "\n" not in reason
    assert "part-" not in name or Path(name).name in reason
    assert not watch.reported["finding"]


def test_every_column_of_logs_is_documented() -> None:
    """docs/how-to/watch.md lists exactly the columns of the table, with their types."""
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "watch.md").read_text()
    rows = [
        line.strip("|").split("|")
        for line in text.split("### Table `logs`")[1].split("\n#")[0].splitlines()
        if line.startswith("| `")
    ]
    reported = [(name.strip().strip("`"), kind.strip()) for name, kind, _ in rows]
    assert reported == [(field.name, str(field.type)) for field in LOGS]


def test_a_whole_trace_that_contradicts_itself_is_quarantined(tmp_path: Path) -> None:
    """As in mining: the trace is named with what is wrong and not judged, its neighbour is; one under way is
    an assumption broken."""
    twice = trace(append(1, [1], 0, 10, 0), append(1, [2], 20, 30, 1), trace_id=1)
    sound = trace(append(1, [1], 0, 10, 0), trace_id=2)
    watch = Watch(tmp_path)
    watch.batch([watch.write(*(evolve(one, digest="0" * 32) for one in (twice, sound)))])
    ((_, _, trace_id, reason),) = watch.reported["quarantine"]
    assert trace_id == 1 and "contradicts itself: operation 1 shares its op id" in reason
    assert [(row[1], row[4]) for row in watch.reported["log"]] == [(2, "ok")]
    same_value = trace(append(1, [1], 0, 10, 0), append(2, [1], 20, 30, 1), trace_id=3)
    watch.batch([watch.write(evolve(same_value, events=(END,)))])
    assert watch.reported["log"][-1][4] == "assumption_broken"


@pytest.mark.parametrize("before", [False, True], ids=["with checksums", "as before"])
@pytest.mark.parametrize("what", ["null", "dropped", "doubled", "flipped"])
def test_damaged_rows_of_a_part_are_quarantined_and_convict_nobody(
    tmp_path: Path, make, what: str, before: bool
) -> None:
    """A part with a null, a row too few or too many, or a wrong bit: its traces are named, the
    others judged."""
    store = healthy(tmp_path / "in", make)
    path = store.parts()[0].operations
    change = {
        "null": lambda rows: rows.set_column(
            1,
            rows.schema.field(1).with_nullable(True),
            pa.array([None, *rows[1].to_pylist()[1:]], pa.int64()),
        ),
        "dropped": lambda rows: rows.slice(1),
        "doubled": lambda rows: pa.concat_tables([rows.slice(0, 1), rows]),
        "flipped": lambda rows: rows,
    }[what]
    if what != "flipped":
        rewrite(path, change, group=0, as_before=before)
    if before:
        as_before(store)
    if what == "flipped":
        _flip(path)
    folder = Folder(named="in", root=str(store.path))
    news = list(folder.read(str(store.parts()[0].traces), 0))
    refused = [one for one in news if isinstance(one, Unread)]
    judged = {one.trace_id for one in news if isinstance(one, Addressed)}
    named = {one.trace_id for one in refused if one.trace_id >= 0}
    assert refused and {3, 4, 5, 6, 7} & judged and not named & judged
    assert judged | named == set(IDS) or any("traces is judged" in one.reason for one in refused)
    assert what == "flipped" or 0 not in judged


def _flip(path: Path) -> None:
    """A wrong bit in the values of the first row group."""
    column = next(
        one
        for group in [pq.read_metadata(path).row_group(0)]
        for one in map(group.column, range(group.num_columns))
        if one.path_in_schema == "records.list.element.value"
    )
    data = bytearray(path.read_bytes())
    data[column.data_page_offset - 12] ^= 4
    path.write_bytes(data)


def test_a_topic_that_is_deleted_in_a_stream_convicts_nobody(tmp_path: Path) -> None:
    """What follows a deletion may be of another topic of the name; a whole trace is undecided if there was
    one, and judged if the topic was only deleted."""
    before, after = append(1, [1], 0, 10, 0), read(2, 0, [(0, 9)], 950, 960)
    gone = [
        Event(time=time, name=Name.TOPIC_DELETION, topic="t", cause=cause)
        for time, cause in ((500, "requested"), (510, "done"))
    ]
    watch = Watch(tmp_path)
    watch.batch([watch.write(evolve(trace(before), events=tuple(gone)))])
    watch.batch([watch.write(evolve(trace(after), events=(END,)))])
    ((*_, decision, _, findings, reason),) = watch.reported["log"]
    assert (decision, findings) == ("unknown", 0) and "t deleted" in reason
    for events, decided in ((gone[:1], "illegal"), (gone, "unknown")):
        whole = evolve(trace(before, after), events=tuple(events))
        (tmp_path / decided).mkdir()
        watch = Watch(tmp_path / decided)
        watch.batch([watch.write(evolve(whole, digest=digest_of(whole)))])
        assert [row[4] for row in watch.reported["log"]] == [decided]
