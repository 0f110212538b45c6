"""Giant histories, and traces that are cut over row groups: the verdicts and certificates of the plain checker, whatever the files are like."""

from pathlib import Path
from random import Random

import attrs
import pyarrow.parquet as pq
import pytest
from loose_files import write_loose
from mining_results import findings_in, plain, verdicts_in

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.mining import giant as giant_steps
from fencepost.mining import loose, regroup
from fencepost.mining.contradictions import contradictions
from fencepost.mining.giant_verdict import Judging, told
from fencepost.mining.judge import Settings, judge_splits
from fencepost.mining.mine import mine
from fencepost.mining.splits import work_of
from fencepost.traces.operations import Outcome
from fencepost.traces.rows import rows_of
from fencepost.traces.schema import TABLES
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore, part_at
from fencepost.traces.tables import tables_of


def here(function, items):
    """Spread over nothing."""
    return [function(item) for item in items]


def judge_loose(path: Path, out: Path, *, giant: int, checks=DEFAULT_CHECKS, **more):
    """What mining does, without Spark."""
    prepared = loose.prepare([path], work_of([path]), giant=giant)
    prepared = regroup.regroup(prepared, out, here)
    settings = Settings(checks=checks, profile=None, folder=out)
    results = [judge_splits(prepared.found.splits, settings, attempt="here")] if prepared.found.splits else []
    for number, one in enumerate(prepared.giants):
        results.append(
            told(one, Judging(settings=settings, spread=here, **more)(one), settings, f"g{number}")
        )
    for folder in (out / "files").iterdir():
        folder.rename(out / folder.name)
    return prepared, results


@pytest.mark.parametrize("seed", range(3))
def test_cut_and_shuffled_files_change_nothing(tmp_path: Path, mixed, seed: int, monkeypatch) -> None:
    """Rows of traces shuffled over parts and row groups give the plain checker's verdicts and certificates, for giants and for small ones."""
    rng = Random(seed)
    monkeypatch.setattr(loose, "BATCH_ROWS", rng.choice((3, 7, 1000)))
    monkeypatch.setattr(regroup, "BUCKET_OPERATIONS", rng.choice((10, 50, 1000)))
    monkeypatch.setattr(regroup, "GROUP_OPERATIONS", rng.choice((5, 1000)))
    some = mixed[7 * seed : 7 * seed + 14]
    write_loose(tmp_path / "in", some, rng, parts=rng.randrange(1, 4), rows=rng.choice((2, 5, 40)))
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=rng.choice((3, 5, 6, 100)))
    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain(some)
    assert prepared.regrouped + len(prepared.giants) == len(some)


@pytest.mark.spark
def test_giants_and_cut_traces_on_spark(tmp_path: Path, mixed, make, spark) -> None:
    """On Spark the same, and the summary says what was judged how."""
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
    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark, giant=50)
    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain(some)
    assert summary.shapes.startswith(
        "1 giant history by slot ranges, 4 small ones by row group; 4 traces regrouped first"
    )
    assert summary.shapes in summary.plain()
    assert not (tmp_path / "out" / ".work").exists()


@pytest.mark.parametrize("kind", ["lost_write", "inconsistent_offsets", "phantom_record", "legal"])
def test_what_is_too_large_for_the_plain_check_has_its_certificate(tmp_path: Path, make, kind: str) -> None:
    """A suspected log that cannot be examined as a whole has the plain check's certificates; other checks say that it is too large."""
    trace = make(3, kind)
    write_loose(tmp_path / "in", [trace], Random(2), parts=2, rows=2)
    judge_loose(tmp_path / "in", tmp_path / "out", giant=2, checks=("log", "kafka"), closer=2)
    plainly = judge(trace, ("log",))[0]
    decision, anomaly, _ = verdicts_in(tmp_path / "out")[3, "log"]
    assert (decision, anomaly) == (plainly.decision.value, plainly.anomaly)
    assert [row for row in plain([trace])[1] if row[1] == "log"] == findings_in(tmp_path / "out")
    assert "takes a history as a whole" in verdicts_in(tmp_path / "out")[3, "kafka"][2]


@pytest.mark.parametrize("what", ["op id", "value", "time"])
def test_what_no_row_group_tells_alone(tmp_path: Path, make, what: str, monkeypatch) -> None:
    """An op id or a value that stands twice is found though row groups, and spans of numbers, lie between; a giant that contradicts itself is quarantined."""
    monkeypatch.setattr(giant_steps, "IDS_AT_ONCE", 2)
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
    _, (result,) = judge_loose(tmp_path / "in", tmp_path / "out", giant=2, checks=("log",))
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
    """A giant that shares its row group with small traces is judged by ranges, those by row group; an id that stood before is quarantined once."""
    store = TraceStore.create(tmp_path / "in")
    for number, some in enumerate(
        ([make(5, "legal")], [make(3, "lost_write"), make(5, "phantom_record"), make(6, "legal")])
    ):
        other = TraceStore.create(tmp_path / f"{number}")
        with other.writer() as writer:
            for one in some:
                writer.append(one)
        seal(other)
        (sealed,) = other.parts()
        for table in TABLES:
            sealed.of(table).rename(part_at(store.path, number).of(table))
    prepared, _ = judge_loose(tmp_path / "in", tmp_path / "out", giant=6, checks=("log",))
    assert [one.trace_id for one in prepared.giants] == [3]
    told = {trace_id: decision for (trace_id, _), (decision, _, _) in verdicts_in(tmp_path / "out").items()}
    assert told == {5: "ok", 3: "illegal", 6: "ok"}
    assert [one.trace_id for one in prepared.found.unreadable] == [5]


def test_a_trace_with_rows_that_cannot_be_read_is_not_judged(tmp_path: Path, make) -> None:
    """Where a row group of cut traces is rotten, the traces that may have rows in it are quarantined, never judged by the rest of their rows."""
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
