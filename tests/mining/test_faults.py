"""Faults of the pipeline itself: whatever breaks in input, task or driver, nothing is lost, nothing counts
twice, and the exit code says so."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

from fencepost.checkers.judges import judge
from fencepost.mining import mine as mining
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.mine import mine
from fencepost.mining.results.checkpoint import Work, key_of
from fencepost.mining.results.result_rows import RESULTS
from fencepost.mining.spark_judge import Settings, judge_splits
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.errors import ExitCode
from fencepost.traces.store import TraceStore
from fencepost.traces.tables import tables_of
from tests.checkers import lab

LIMIT_S = 600
"""Generous: of anything that a test waits for."""


def results(out: Path) -> dict[str, list[dict]]:
    """The rows of every result, sorted."""
    return {result: sorted(pq.read_table(out / result).to_pylist(), key=repr) for result in RESULTS}


def changed(trace, number: int, **fields):
    """The trace with another operation `number`."""
    operations = list(trace.operations)
    operations[number] = evolve(operations[number], **fields)
    return evolve(trace, operations=tuple(operations))


CONTRADICTIONS = {
    "completed before it was invoked": lambda trace: changed(
        trace, 1, completion_time=trace.operations[1].invoke_time - 1
    ),
    "is ok but has no completion time": lambda trace: changed(trace, 2, completion_time=None),
    "shares its op id with another operation": lambda trace: changed(trace, 2, op_id=0),
    "names an offset but no topic": lambda trace: changed(trace, 0, topic=None),
    "names an offset but no partition": lambda trace: changed(trace, 3, partition=None),
}
"""How a trace can contradict itself, by what the reason says of an operation."""


def judged_here(path: Path, out: Path, *checks: str) -> tuple[dict[int, set[str]], dict[int, str]]:
    """(checks with a verdict by trace, reasons of quarantine by trace) of a folder judged as one task, in
    this process."""
    settings = Settings(
        checks=checks or ("log", "kafka", "groups", "invariants", "conformance"), profile=None, folder=out
    )
    result = judge_splits(work_of([path]).splits, settings, attempt="here")
    verdicts: dict[int, set[str]] = {}
    for row in pq.read_table(out / "files" / "verdicts").to_pylist():
        verdicts.setdefault(row["trace_id"], set()).add(row["check"])
    return verdicts, {found.trace_id: found.reason for found in result.counts.quarantined}


@pytest.mark.parametrize("what", CONTRADICTIONS)
@pytest.mark.parametrize(
    ("checks", "sealed"), [((), True), (("invariants",), True), (("invariants",), False)]
)
def test_a_trace_that_contradicts_itself_is_quarantined_alone(
    make, tmp_path: Path, what: str, checks, sealed: bool
) -> None:
    """In columns of a row group and in a journal, whatever is asked: the trace has no verdict but a reason,
    its neighbours have theirs."""
    traces = [make(number, "legal") for number in range(5)]
    traces[2] = CONTRADICTIONS[what](traces[2])
    verdicts, reasons = judged_here(
        lab.stored(tmp_path / "in", traces, sealed=sealed).path, tmp_path / "out", *checks
    )
    assert sorted(verdicts) == [0, 1, 3, 4]
    assert list(reasons) == [2]
    assert reasons[2].startswith("the trace contradicts itself: operation ") and reasons[2].endswith(what)


def test_it_is_found_where_traces_are_judged_one_by_one(make, tmp_path: Path) -> None:
    """Beside a trace that cannot be read, so that the row group is not judged as a whole, a contradiction is
    found all the same."""
    traces = [make(number, "legal") for number in range(4)]
    traces[2] = CONTRADICTIONS["completed before it was invoked"](traces[2])
    store = lab.stored(tmp_path / "in", traces)
    path = store.parts()[0].operations
    table = pq.read_table(path)
    names = ["teleport" if number == 0 else name for number, name in enumerate(table["outcome"].to_pylist())]
    index = table.schema.get_field_index("outcome")
    pq.write_table(table.set_column(index, table.schema.field(index), [names]), path)
    verdicts, reasons = judged_here(store.path, tmp_path / "out")
    assert (sorted(verdicts), sorted(reasons)) == ([1, 3], [0, 2])
    assert "teleport" in reasons[0] and "completed before" in reasons[2]


def test_a_trace_id_that_stands_in_two_parts_is_judged_once(make, tmp_path: Path) -> None:
    """Parts of two campaigns copied into one folder share ids: of each the first is judged, the second is in
    quarantine, and the others are untouched."""
    store = lab.stored(tmp_path / "in", [make(number, "legal") for number in range(4)])
    other = lab.stored(tmp_path / "other", [make(number, "lost_write") for number in (2, 3, 4)], sealed=True)
    for table in ("traces", "operations", "events"):
        os.link(other.parts()[0].of(table), store.parts()[0].of(table).with_name("part-00009.parquet"))
    lab.stored(store, [make(3, "lost_write")], sealed=False)
    verdicts, reasons = judged_here(store.path, tmp_path / "out")
    assert sorted(verdicts) == [0, 1, 2, 3, 4]
    assert {
        row["trace_id"] for row in pq.read_table(tmp_path / "out" / "files" / "findings").to_pylist()
    } == {4}
    assert {number: "earlier row group" in reason for number, reason in reasons.items()} == {2: True, 3: True}
    store.journals()[0].unlink()
    assert [split.repeated for split in work_of([store.path]).splits] == [
        (),
        (2, 3),
    ]  # seen in the footers alone


def test_the_first_contradiction_is_told_of_traces_in_any_order(make) -> None:
    """Rows of traces that stand in another order than their ids, or mixed, are told apart."""
    traces = [make(number, "legal") for number in (7, 3, 5)]
    traces[1] = CONTRADICTIONS["shares its op id with another operation"](traces[1])
    rows = tables_of([rows_of(trace) for trace in traces]).operations
    mixed = rows.take(pa.array(list(range(0, rows.num_rows, 2)) + list(range(1, rows.num_rows, 2))))
    told = {3: "operation 0 shares its op id with another operation"}
    assert contradictions(rows) == contradictions(mixed) == told
    assert contradictions(rows.slice(0, 0)) == {}


def test_op_ids_as_far_apart_as_integers_go_are_told_apart(make) -> None:
    """The quick way through one number per operation is not taken where that number would not fit."""
    traces = [make(number, "legal") for number in (0, 2**61)]
    far = [changed(changed(trace, 0, op_id=-(2**63)), 1, op_id=2**63 - 1) for trace in traces]
    assert contradictions(tables_of([rows_of(trace) for trace in far]).operations) == {}
    far[1] = changed(far[1], 2, op_id=2**63 - 1)
    told = {2**61: f"operation {2**63 - 1} shares its op id with another operation"}
    assert contradictions(tables_of([rows_of(trace) for trace in far]).operations) == told


def test_what_the_log_check_calls_broken_is_told_in_the_same_words(make) -> None:
    """The plain checker says of such a trace what the quarantine says of it."""
    for what in list(CONTRADICTIONS)[:3]:
        trace = CONTRADICTIONS[what](make(1, "legal"))
        (verdict,) = judge(trace, ("log",))
        assert verdict.decision.value == "assumption_broken"
        assert verdict.reason == contradictions(tables_of([rows_of(trace)]).operations)[1]


def test_an_unknown_operation_may_name_no_completion_and_no_offset(make) -> None:
    """What clients may well not know contradicts nothing."""
    trace = changed(make(1, "legal"), 0, outcome="unknown", completion_time=None, offset=None, topic=None)
    assert contradictions(tables_of([rows_of(trace)]).operations) == {}


@pytest.mark.spark
def test_bad_input_beside_good_changes_nothing_of_the_good(make, tmp_path: Path, spark) -> None:
    """With parts cut at several lengths, of another version, foreign, and every contradiction added,
    verdicts, findings and statistics are those of the clean folder; each bad piece is in quarantine once, and
    the exit code is 4."""
    good = [make(number, ("legal", "no_events")[number % 2]) for number in range(12)]
    store = lab.stored(tmp_path / "in", good)
    clean = mine([tmp_path / "in"], tmp_path / "clean", spark=spark)
    assert clean.exit_code is ExitCode.NOTHING_FOUND

    bad = [change(make(100 + number, "lost_write")) for number, change in enumerate(CONTRADICTIONS.values())]
    lab.stored(tmp_path / "in", bad)
    reasons = {trace.trace_id: what for trace, what in zip(bad, CONTRADICTIONS, strict=True)}
    spoilers = (_cut(0), _cut(1), _cut(-30), _another_version, _foreign)
    for number in range(len(spoilers)):
        lab.stored(tmp_path / "in", [make(200 + number, "lost_write")])
    expected = []
    for number, (part, spoil) in enumerate(zip(store.parts()[-len(spoilers) :], spoilers, strict=True)):
        said = spoil(part.traces if number == 1 else part.operations)
        expected.append((str(part.traces.resolve()), said))

    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark)
    quarantine = results(tmp_path / "out")["quarantine"]
    assert {row["trace_id"] for row in quarantine} == {-1, *reasons}
    assert len(quarantine) == len(bad) + len(expected) == summary.quarantined
    for row in quarantine:
        if row["trace_id"] >= 0:
            assert reasons[row["trace_id"]] in row["reason"]
    whole = sorted(
        (str(Path(row["place"]).resolve()), row["reason"]) for row in quarantine if row["trace_id"] < 0
    )
    for (place, reason), (where, said) in zip(whole, sorted(expected), strict=True):
        assert place == where and said in reason
    assert summary.exit_code is ExitCode.QUARANTINED
    for result in ("findings", "verdicts", "statistics"):
        assert results(tmp_path / "out")[result] == results(tmp_path / "clean")[result]


def _cut(length: int):
    def cut(path: Path) -> str:
        path.write_bytes(path.read_bytes()[:length])
        return "expected a whole Parquet file"

    return cut


def _another_version(path: Path) -> str:
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"fencepost.schema_version": b"7"}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return "expected schema version 1, saw schema version 7"


def _foreign(path: Path) -> str:
    pq.write_table(pa.table({"weather": ["rain"]}), path)
    return "Parquet without the key fencepost.schema_version"


def test_an_input_without_traces_is_told(tmp_path: Path, make) -> None:
    """An empty folder of traces, and parts without a row, end with exit code 2 and whole, empty tables,
    without Spark."""
    TraceStore.create(tmp_path / "none")
    store = lab.stored(tmp_path / "hollow", [make(0, "legal")])
    for table in ("traces", "operations", "events"):
        path = store.parts()[0].of(table)
        rows = pq.read_table(path)
        pq.write_table(rows.slice(0, 0), path)
    for name in ("none", "hollow"):
        summary = mine([tmp_path / name], tmp_path / f"out-{name}")
        assert (summary.exit_code, summary.quarantined, summary.traces) == (ExitCode.USAGE, 0, {})
        assert all(rows == [] for rows in results(tmp_path / f"out-{name}").values())


@pytest.mark.parametrize("lost", ["answer", "file", "end of a file"])
def test_work_that_is_not_whole_is_done_again(make, tmp_path: Path, lost: str) -> None:
    """After a loss of power an answer or a file of results may be there by name only: its task counts as not
    done."""
    splits = work_of([lab.stored(tmp_path / "in", [make(1, "lost_write")]).path]).splits
    work = Work(out=tmp_path / "out")
    work.begin({}, resume=False)
    settings = Settings(checks=("log",), profile=None, folder=work.folder)
    result = judge_splits(splits, settings, attempt="here")
    assert work.done([key_of(splits)]) == {key_of(splits): result}
    path = work.path_of(result.files[0])
    if lost == "answer":
        (work.folder / "done" / f"{key_of(splits)}.json").write_bytes(b"")
    elif lost == "file":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9])
    assert work.done([key_of(splits)]) == {}


class DiesOnce(mining._Task):
    """The worker of the first task dies by SIGKILL when its files are written, before Spark hears of it."""

    def __call__(self, lists):
        yield from super().__call__(lists)
        try:
            (self.settings.folder.parent / "died").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.spark
def test_a_task_that_dies_once_is_done_again_and_doubles_nothing(
    campaign: Path, tmp_path: Path, spark, monkeypatch
) -> None:
    """A Python worker killed behind its last write costs a second attempt; the results are those of a clean
    run, row by row."""
    whole = mine([campaign], tmp_path / "whole", spark=spark)
    monkeypatch.setattr(mining, "_Task", DiesOnce)
    summary = mine([campaign], tmp_path / "out", spark=spark)
    assert (tmp_path / "out" / "died").exists()
    assert evolve(summary, out="") == evolve(whole, out="")
    assert results(tmp_path / "out") == results(tmp_path / "whole")


@pytest.mark.spark
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_driver_that_ends_in_the_middle_goes_on(
    number: int, code: int, long: Path, clean: Path, tmp_path: Path, spark
) -> None:
    """Interrupted by Ctrl-C in a terminal, which every process gets, mining leaves one sentence, no process,
    and valid results of what was judged; killed, it leaves its work; resumed, everything is there once, as in
    a clean run."""
    out, program = tmp_path / "out", "from fencepost.cli import main; main()"
    command = [sys.executable, "-c", program, "mine", str(long), "--out", str(out), "--master", "local[1]"]
    driver = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + LIMIT_S
    while (
        len(list((out / ".work" / "done").glob("*.json"))) < 2
        and driver.poll() is None
        and time.monotonic() < end
    ):
        time.sleep(0.02)
    if number == signal.SIGINT:
        from ended_drivers import after_ctrl_c  # a worker imports this module for DiesOnce, without helpers

        said, told = after_ctrl_c(driver)
        assert said == ""
    else:
        driver.send_signal(number)
        told = driver.communicate(timeout=LIMIT_S)[1]
    assert driver.returncode == code, told
    judged = {row["trace_id"] for row in results(clean)["verdicts"]}
    if number == signal.SIGINT:
        assert "--resume continues" in told and "Traceback" not in told and "rror" not in told, told
        kept = results(out)["verdicts"]
        assert json.loads((out / "summary.json").read_text())["unfinished"] > 0
        assert 0 < len({row["trace_id"] for row in kept}) < len(judged)
        assert {repr(row) for row in kept} <= {repr(row) for row in results(clean)["verdicts"]}
    done = len(list((out / ".work" / "done").glob("*.json")))
    asked: list[int] = []
    mine([long], out, spark=spark, resume=True, progress=lambda _, total: asked.append(total))
    assert asked[-1] < len(work_of([long]).splits) - done + 2  # one more may have ended while the driver died
    assert results(out) == results(clean)
    assert not (out / ".work").exists()


def test_a_mining_that_was_killed_before_its_question_begins_again(tmp_path):
    """Rule: a kill between the making of the working folder and the first file in it leaves a folder that the
    next call takes, with --resume or without."""
    for resume in (False, True):
        out = tmp_path / str(resume)
        work = Work(out=out)
        work.folder.mkdir(parents=True)
        work.begin({"checks": ["log"]}, resume=resume)
        work.begin({"checks": ["log"]}, resume=True)
        assert [path.name for path in work.folder.iterdir()] == ["asked.json"]
