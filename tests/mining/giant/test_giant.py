"""Giant histories, and traces that are cut over row groups: the verdicts and certificates of the plain
checker, whatever the files are like."""

from itertools import islice
from pathlib import Path
from random import Random

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from log_histories import append, read, trace
from long_histories import long_trace
from loose_files import write_loose
from mining_results import findings_in, plain, verdicts_in

from fencepost.checkers.judges import CHECKS, DEFAULT_CHECKS, judge
from fencepost.checkers.log.accounts import counts_of_trace
from fencepost.mining import mine as mining
from fencepost.mining.giant import fold as giant
from fencepost.mining.giant import repeats
from fencepost.mining.giant.checks import BEARING
from fencepost.mining.giant.verdict import Judging, task_result
from fencepost.mining.inputs import regroup, ungrouped_parts
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.mine import mine
from fencepost.mining.spark_judge import Settings, judge_splits
from fencepost.report.record_counts import MOST_LOST, LogReport, LogTotals
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Outcome
from fencepost.traces.schema import TABLES
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace
from tests.checkers import lab
from tests.selfcheck.amounts import amount


def here(function, items):
    """Spread over nothing."""
    return [function(item) for item in items]


def judge_loose(path: Path, out: Path, *, giant: int, checks=DEFAULT_CHECKS, **more):
    """What mining does, without Spark."""
    prepared = ungrouped_parts.prepare([path], work_of([path]), giant=giant)
    prepared = regroup.regroup(prepared, out, here)
    settings = Settings(checks=checks, profile=None, folder=out)
    results = [judge_splits(prepared.found.splits, settings, attempt="here")] if prepared.found.splits else []
    for number, one in enumerate(prepared.giants):
        results.append(
            task_result(one, Judging(settings=settings, spread=here, **more)(one), settings, f"g{number}")
        )
    for folder in (out / "files").iterdir():
        folder.rename(out / folder.name)
    return prepared, results


@pytest.mark.parametrize("seed", range(3))
def test_cut_and_shuffled_files_change_nothing(tmp_path: Path, mixed, seed: int, monkeypatch) -> None:
    """Rows of traces shuffled over parts and row groups give the plain checker's verdicts and certificates,
    for giants and for small ones."""
    rng = Random(seed)
    monkeypatch.setattr(ungrouped_parts, "BATCH_ROWS", rng.choice((3, 7, 1000)))
    monkeypatch.setattr(regroup, "BUCKET_OPERATIONS", rng.choice((10, 50, 1000)))
    monkeypatch.setattr(regroup, "GROUP_OPERATIONS", rng.choice((5, 1000)))
    some = mixed[7 * seed : 7 * seed + 14]
    write_loose(tmp_path / "in", some, rng, parts=rng.randrange(1, 4), rows=rng.choice((2, 5, 40)))
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=rng.choice((3, 5, 6, 100)))
    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain(some)
    assert prepared.regrouped + len(prepared.giants) == len(some)


def test_records_of_giants_are_counted_as_those_of_small_ones(tmp_path: Path, mixed) -> None:
    """Rule: however a history is cut over files, its records are counted, and its lost ones are listed, as
    `check` does; one that is too large to be taken as a whole is not counted."""
    mixed = mixed[:9]
    write_loose(tmp_path / "in", mixed, Random(5), parts=2, rows=8)
    prepared, results = judge_loose(tmp_path / "in", tmp_path / "out", giant=3)
    assert len(prepared.giants) == len(mixed)
    counts = {one.trace_id: counts_of_trace(one) for one in mixed}
    wanted = LogTotals()
    for trace_id, one in counts.items():
        wanted.add(str(tmp_path / "in"), trace_id, LogReport.of(one, MOST_LOST), MOST_LOST)
    found = LogTotals()
    for result in results:
        found.merge(result.counts.records, MOST_LOST)
    assert found.as_dict() == wanted.as_dict() and found.as_dict()["acknowledged"]["all"] > 20
    lost = pq.read_table(tmp_path / "out" / "lost").to_pylist()
    listed = [(trace_id, one.offset) for trace_id, mine in counts.items() for one in mine.lost_values]
    assert sorted((row["trace_id"], row["offset"]) for row in lost) == sorted(listed) and listed
    write_loose(tmp_path / "one", mixed[:1], Random(5), parts=1, rows=8)
    _, results = judge_loose(tmp_path / "one", tmp_path / "large", giant=3, closer=2)
    assert not any(result.counts.records.as_dict()["acknowledged"]["all"] for result in results)


def test_a_giant_is_cut_where_its_topic_was_deleted(tmp_path: Path) -> None:
    """Rule: a topic that was created again begins anew; what is too large to be taken whole is undecided."""
    before = [append(1, [1], 0, 10, 0), read(2, 0, [(0, 1)], 20, 30)]
    after = [append(3, [3], 900, 910, 0), read(4, 0, [(0, 3)], 950, 960)]
    gone = tuple(
        Event(time=time, name=Name.TOPIC_DELETION, topic="t", cause=cause)
        for time, cause in ((500, "requested"), (510, "done"))
    )
    for name, events, closer, wanted in (
        ("again", gone, 100, "ok"),
        ("large", gone, 2, "unknown"),
        ("same", (), 100, "illegal"),
    ):
        history = attrs.evolve(trace(*before, *after), events=events)
        write_loose(tmp_path / name, [history], Random(5), parts=2, rows=2)
        judge_loose(tmp_path / name, tmp_path / f"{name} out", giant=3, checks=("log",), closer=closer)
        verdicts = verdicts_in(tmp_path / f"{name} out")
        assert verdicts[history.trace_id, "log"][0] == wanted, verdicts


SENT = [append(n, [n], 0, 1, n) for n in range(10)]
HALF = read(20, 0, [(n, n) for n in range(5)], 2, 3)
BY_LEADER = append(30, [30], 0, 1, 10, acks=1)
WEAK = [
    trace(*SENT, HALF),
    trace(*SENT),
    trace(read(1, 0, [], 0, 1)),
    trace(*SENT, HALF, read(21, 5, [], 0, 0, 0)),
    trace(*SENT, HALF, duplicates=True),
    trace(*SENT, HALF, read(21, 0, [], 4, 5, 10)),
    trace(*SENT, read(22, 0, [(n, n) for n in range(10)], 2, 3), BY_LEADER),
    trace(*SENT, read(22, 0, [(n, n) for n in range(10)], 2, 3), BY_LEADER, acks_1_may_lose=True),
    attrs.evolve(trace(*SENT, HALF), plan="{}"),
]


@pytest.mark.parametrize("giant", [3, 100])
def test_a_giant_history_is_as_weak_as_a_small_one(tmp_path: Path, giant: int) -> None:
    """Unread records, no read, no append: Assumption broken in the plain check's words, by slot ranges and by
    row group; Ok where the plain check says so."""
    some = [attrs.evolve(one, trace_id=n) for n, one in enumerate(WEAK)]
    write_loose(tmp_path / "in", some, Random(1), parts=2, rows=4)
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=giant, checks=("log",))
    assert bool(prepared.giants) is (giant == 3)
    wanted = {one.trace_id: judge(one, ("log",))[0] for one in some}
    decisions = [verdict.decision.value for verdict in wanted.values()]
    assert decisions.count("assumption_broken") == 6
    found = {row["trace_id"]: row for row in pq.read_table(tmp_path / "out" / "verdicts").to_pylist()}
    for trace_id, verdict in wanted.items():
        told_of = found[trace_id]
        assert (told_of["decision"], told_of["reason"] or "") == (verdict.decision.value, verdict.reason)


def test_many_records_make_a_giant_as_many_operations_do(tmp_path: Path) -> None:
    """Rule: few operations may have more records than fit in memory as one value; then slot ranges judge them
    too. Planted: counted by operations alone, they are regrouped into one row group."""
    sent = [append(n, list(range(50 * n, 50 * n + 50)), 10 * n, 10 * n + 5, 50 * n) for n in range(20)]
    shown = read(90, 0, [(n, n) for n in range(1_000)], 300, 310)
    made = trace(*sent, shown, trace_id=0)
    for most, giants in ((100, 1), (1_000, 0)):
        folder = tmp_path / f"{most}"
        write_loose(folder / "in", [made], Random(1), parts=1, rows=4)
        prepared, _ = judge_loose(folder / "in", folder / "out", giant=most)
        assert len(prepared.giants) == giants
        assert verdicts_in(folder / "out") == plain([made])[0]


@pytest.mark.spark
def test_giants_and_cut_traces_on_spark(tmp_path: Path, mixed, make, spark, monkeypatch) -> None:
    """On Spark the same; the summary says what was judged how, and names a history that is not counted."""
    last = make(499, "legal").operations[-1]
    reads = [
        attrs.evolve(
            last, op_id=100 + n, invoke_time=last.invoke_time + n, completion_time=last.invoke_time + n + 5
        )
        for n in range(60)
    ]
    long = make(499, "legal")
    some = [*mixed[:4], attrs.evolve(long, operations=(*long.operations, *reads))]
    write_loose(tmp_path / "in", some, Random(1), parts=2, rows=20)
    monkeypatch.setattr(mining, "WHOLE_OPERATIONS", 50)
    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark, giant=50)
    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain(some)
    assert summary.shapes.startswith(
        "1 giant history by slot ranges, 4 small ones by row group; 4 traces regrouped first"
    )
    assert summary.shapes in summary.plain()
    assert summary.uncounted == (f"{tmp_path / 'in'} trace 499",)
    assert f"records of 1 giant history are not counted: {tmp_path / 'in'} trace 499" in summary.plain()
    assert not (tmp_path / "out" / ".work").exists()


@pytest.mark.parametrize("seed", range(amount(2, 6)))
def test_what_is_too_large_for_the_plain_check_has_its_verdict_all_the_same(
    tmp_path: Path, seed: int, monkeypatch
) -> None:
    """A suspected history that cannot be examined as a whole has the plain check's verdict and every finding
    of it, in every word, cut into whatever files, row groups, batches and slot ranges; and so have checks
    with nothing to look at in it."""
    rng = Random(seed)
    monkeypatch.setattr(ungrouped_parts, "BATCH_ROWS", rng.choice((7, 40, 1000)))
    monkeypatch.setattr(giant, "RANGE_SLOTS", rng.choice((4, 16, 1 << 14)))
    many = (long_trace(Random(n)) for n in range(100 * seed, 100 * seed + 100))
    bent = islice((made for made in many if judge(made, ("log",))[0].findings), 3)
    some = [attrs.evolve(made, trace_id=n) for n, made in enumerate(bent)]
    write_loose(tmp_path / "in", some, rng, parts=rng.randrange(1, 4), rows=rng.choice((11, 50)))
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=10, closer=2)
    assert len(prepared.giants) == 3
    told, plainly = (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")), plain(some)
    open_ = {key for key, verdict in told[0].items() if "bear on the check" in verdict[2]}
    assert {check for _, check in open_} <= {"kafka", "invariants"}  # appends with acks=1, leader epochs
    assert told[0] == plainly[0] | {key: told[0][key] for key in open_}
    assert told[1] == [row for row in plainly[1] if row[:2] not in open_]
    assert any(row[1] == "log" for row in told[1])


def test_a_closer_look_reads_few_row_groups_again(tmp_path: Path, monkeypatch) -> None:
    """Only row groups that may hold what is wanted are read again; without those, findings are missing."""
    made = attrs.evolve(long_trace(Random(5), appends=300, reads=300), trace_id=3)
    plainly = judge(made, ("log",))[0]
    assert plainly.findings
    write_loose(tmp_path / "in", [made], Random(2), parts=1, rows=30)
    read, places = [], giant.LogWork.places

    def spied(work, wanted):
        read.append(places(work, wanted))
        return read[-1]

    monkeypatch.setattr(giant.LogWork, "places", spied)
    for out in ("all", "none"):
        judge_loose(tmp_path / "in", tmp_path / out, giant=2, checks=("log",), closer=2)
        monkeypatch.setattr(giant, "_may_hold", lambda share, wanted: False)
    assert 0 < len(read[0]) < 10
    assert findings_in(tmp_path / "all") == [row for row in plain([made])[1] if row[1] == "log"]
    assert len(findings_in(tmp_path / "none")) < len(plainly.findings)


@pytest.mark.parametrize("kind", ["lost_write", "two_leaders", "no_events", "too_weak", "legal"])
def test_checks_with_little_to_look_at_judge_whatever_is_too_large(tmp_path: Path, make, kind: str) -> None:
    """A history without consumers and groups has the plain verdict of every check; events are judged by what
    few operations they need."""
    trace = make(3, kind)
    write_loose(tmp_path / "in", [trace], Random(2), parts=2, rows=2)
    judge_loose(tmp_path / "in", tmp_path / "out", giant=2, closer=0)
    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain([trace])


def _showing(trace: Trace) -> Trace:
    """And two polls of which the later one shows a lower end in the same leader epoch."""
    last = trace.operations[-1]
    told = [
        attrs.evolve(
            last,
            op_id=200 + n,
            invoke_time=5_000 + 10 * n,
            completion_time=5_005 + 10 * n,
            end_offset=9 - n,
            offset=3,
            records=(),
            leader_epoch=1,
            strong=False,
        )
        for n in range(2)
    ]
    return attrs.evolve(trace, operations=(*trace.operations, *told))


def test_ends_with_leader_epochs_are_judged_alone(tmp_path: Path, make) -> None:
    """The invariants see every end that is shown with its leader epoch, and say how many there are where they
    are too many."""
    trace = _showing(make(3, "legal"))
    assert judge(trace, ("invariants",))[0].anomaly == "high_watermark_regressed"
    for closer, wanted in ((2, "illegal"), (1, "unknown")):
        write_loose(tmp_path / f"in{closer}", [trace], Random(2), parts=2, rows=2)
        judge_loose(
            tmp_path / f"in{closer}",
            tmp_path / f"out{closer}",
            giant=2,
            closer=closer,
            checks=("invariants",),
        )
        decision, _, reason = verdicts_in(tmp_path / f"out{closer}")[3, "invariants"]
        assert decision == wanted
    assert reason.startswith("2 of 9 operations bear on the check invariants (replies that show an end")
    found = [row for row in plain([trace])[1] if row[1] == "invariants"]
    assert findings_in(tmp_path / "out2") == found


@pytest.mark.parametrize("check", ["kafka", "groups"])
def test_consumers_and_groups_of_what_is_too_large_are_unknown(tmp_path: Path, make, check: str) -> None:
    """A check that needs the whole history for one operation says so, and how many there are; never that all
    is well."""
    trace = make(3, "legal")
    poll = attrs.evolve(trace.operations[-1], group="g", member="m", generation=1)
    trace = attrs.evolve(trace, operations=(*trace.operations[:-1], poll))
    write_loose(tmp_path / "in", [trace], Random(2), parts=2, rows=2)
    judge_loose(tmp_path / "in", tmp_path / "out", giant=2, closer=2, checks=(check,))
    decision, _, reason = verdicts_in(tmp_path / "out")[3, check]
    assert decision == "unknown"
    assert reason.startswith(f"1 of {len(trace.operations)} operations bear on the check {check}")


@pytest.mark.parametrize("closer", [2, 1000])
@pytest.mark.parametrize("what", ["op id", "value", "time"])
def test_what_no_row_group_tells_alone(tmp_path: Path, make, what: str, closer: int, monkeypatch) -> None:
    """An op id or a value that stands twice is found though row groups, and spans of numbers, lie between; a
    giant that contradicts itself is quarantined."""
    monkeypatch.setattr(repeats, "IDS_AT_ONCE", 2)
    trace = make(3, "legal")
    first, *others, last = trace.operations
    if what == "op id":
        bent = attrs.evolve(last, op_id=first.op_id)
    elif what == "time":
        bent = attrs.evolve(last, completion_time=last.invoke_time - 1)
    else:
        again = attrs.evolve(first.records[0], offset=-1)
        bent = attrs.evolve(
            first, op_id=98, outcome=Outcome.UNKNOWN, completion_time=None, offset=None, records=(again,)
        )
    trace = attrs.evolve(trace, operations=(first, *others, bent))
    write_loose(tmp_path / "in", [trace], Random(3), parts=1, rows=2)
    _, (result,) = judge_loose(tmp_path / "in", tmp_path / "out", giant=2, checks=("log",), closer=closer)
    if what == "value":
        assert verdicts_in(tmp_path / "out") == {
            key: told for key, told in plain([trace])[0].items() if key[1] == "log"
        }
    else:
        (bad,) = result.counts.quarantined
        assert (
            bad.reason
            == f"the trace contradicts itself: {contradictions(tables_of([rows_of(trace)]).operations)[3]}"
        )


def test_a_row_group_of_whole_traces_with_a_giant_in_it(tmp_path: Path, make, mixed) -> None:
    """A giant that shares its row group with small traces is judged by ranges, those by row group; an id that
    stood before is quarantined once."""
    store = TraceStore.create(tmp_path / "in")
    for number, some in enumerate(
        ([make(5, "legal")], [make(3, "lost_write"), make(5, "phantom_record"), make(6, "legal")])
    ):
        other = lab.stored(tmp_path / f"{number}", some)
        (sealed,) = other.parts()
        for table in TABLES:
            sealed.of(table).rename(part_at(store.path, number).of(table))
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=6, checks=("log",))
    assert [one.trace_id for one in prepared.giants] == [3]
    told = {trace_id: decision for (trace_id, _), (decision, _, _) in verdicts_in(tmp_path / "out").items()}
    assert told == {5: "ok", 3: "illegal", 6: "ok"}
    assert [one.trace_id for one in prepared.found.unreadable] == [5]


def test_a_trace_with_rows_that_cannot_be_read_is_not_judged(tmp_path: Path, make) -> None:
    """Where a row group of cut traces is rotten, the traces that may have rows in it are quarantined, never
    judged by the rest of their rows."""
    some = [make(number, "legal") for number in range(6)]
    write_loose(tmp_path / "in", some, Random(4), parts=1, rows=3)
    (path,) = (tmp_path / "in" / "operations").glob("*.parquet")
    column = pq.read_metadata(path).row_group(0).column(1)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + 30] = b"\xff" * 30
    path.write_bytes(data)
    statistics = pq.read_metadata(path).row_group(0).column(0).statistics
    cut = set(range(statistics.min, statistics.max + 1))
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=100, checks=("log",))
    assert {one.trace_id for one in prepared.found.unreadable} == {-1} | cut
    judged = (
        {trace_id: told[0] for (trace_id, _), told in verdicts_in(tmp_path / "out").items()}
        if len(cut) < 6
        else {}
    )
    assert judged == {trace.trace_id: "ok" for trace in some if trace.trace_id not in cut}


@pytest.mark.parametrize("giant", [3, 1000])
def test_events_of_unknown_names_are_left_out_of_giants_too(tmp_path: Path, mixed, giant: int) -> None:
    """Rule: an event of a name that this version does not know costs that event, named once, whatever the
    size of its history."""
    some = [trace for trace in mixed if trace.events][:4]
    write_loose(tmp_path / "in", some, Random(3), parts=1, rows=7)
    (path,) = (tmp_path / "in" / "events").glob("*.parquet")
    table = pq.read_table(path)
    names = table["name"].to_pylist()
    of = table["trace_id"].to_pylist()[0]
    names[0] = "teleported"
    index = table.schema.get_field_index("name")
    pq.write_table(table.set_column(index, table.schema.field(index), [names]), path)
    _, results = judge_loose(tmp_path / "in", tmp_path / "out", giant=giant)
    (left,) = [one for result in results for one in result.counts.quarantined]
    assert (left.trace_id, "teleported" in left.reason) == (of, True)
    assert {trace_id for trace_id, _ in verdicts_in(tmp_path / "out")} == {trace.trace_id for trace in some}


def test_it_is_known_which_operations_bear_on_each_check():
    """Rule: of a giant a check gets only the operations that bear on it, so each check that reads operations
    says which do; the log check has its own way."""
    reads = {name for name, check in CHECKS.items() if check.operation_columns}
    assert reads - {"log"} == set(BEARING)


@pytest.mark.parametrize(
    ("table", "column"), [("operations", "trace_id"), ("operations", "op_id"), ("traces", "claims")]
)
@pytest.mark.parametrize("giant", [4, 100])
def test_a_null_in_loose_rows_ends_no_mining(tmp_path: Path, make, table, column: str, giant: int) -> None:
    """What may have rows in a row group with a null where none may be is in quarantine, giant or small; the
    others have their verdicts, and each trace has one of the two."""
    some = [make(number, "legal") for number in range(6)]
    write_loose(tmp_path / "in", some, Random(4), parts=1, rows=3)
    (path,) = (tmp_path / "in" / table).glob("*.parquet")
    rows = pq.read_table(path)
    at = rows.schema.get_field_index(column)
    values = rows[column].to_pylist()
    values[0] = None
    field = rows.schema.field(at).with_nullable(True)
    pq.write_table(rows.set_column(at, field, pa.array(values, field.type)), path, row_group_size=3)
    (tmp_path / "out" / "files").mkdir(parents=True)
    prepared, results = judge_loose(tmp_path / "in", tmp_path / "out", giant=giant, checks=("log",))
    quarantined = [*prepared.found.unreadable, *(one for each in results for one in each.counts.quarantined)]
    told = (
        {trace_id: verdict[0] for (trace_id, _), verdict in verdicts_in(tmp_path / "out").items()}
        if (tmp_path / "out" / "verdicts").exists()
        else {}
    )
    assert set(told.values()) <= {"ok"} and quarantined
    assert {one.trace_id for one in quarantined if one.trace_id >= 0} | set(told) == set(range(6))
