"""Histories in files, and general linearizability of small ones, mined as `fencepost check` judges them."""

from pathlib import Path
from shutil import copy

import pyarrow.parquet as pq
import pytest
from attrs import evolve
from mining_results import findings_in, plain, verdicts_in

from fencepost.checkers.judges import DEFAULT_CHECKS
from fencepost.checkers.linearizability import judge_trace
from fencepost.checkers.models import model_named
from fencepost.checkers.verdict import Decision
from fencepost.mining.inputs.history_files import told_apart
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.mine import mine
from fencepost.mining.model_check import MODEL_CHECK, ModelQuestion
from fencepost.mining.spark_judge import Settings, judge_splits
from fencepost.traces import jsonlines
from fencepost.traces.errors import FencepostError
from fencepost.traces.importers import import_file
from fencepost.traces.operations import Outcome

STALE = Path(__file__).parents[2] / "checkers" / "linearizability" / "histories" / "stale-read.edn"
REGISTER = ModelQuestion(name="cas-register")


def judge_files(
    inputs: list[Path], out: Path, *, checks: tuple[str, ...], model: ModelQuestion | None = None
):
    """All histories of the inputs in one task, in this process."""
    stores, files = told_apart(inputs, "auto")
    splits = (*(work_of(stores).splits if stores else ()), *files)
    result = judge_splits(
        splits, Settings(checks=checks, profile=None, folder=out, model=model), attempt="here"
    )
    for folder in (out / "files").iterdir():
        folder.rename(out / folder.name)
    return result


def test_json_lines_have_the_verdicts_of_a_folder(tmp_path: Path, mixed) -> None:
    """A file of JSON lines is mined with the plain checker's verdicts and certificates; nothing replays
    it."""
    jsonlines.write_traces(tmp_path / "all.jsonl", mixed)
    judge_files([tmp_path / "all.jsonl"], tmp_path / "out", checks=DEFAULT_CHECKS)
    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain(mixed)
    rows = pq.read_table(tmp_path / "out" / "findings").to_pylist()
    assert {row["source"] for row in rows} == {str(tmp_path / "all.jsonl")}
    assert {row["replay"] for row in rows} == {""}


def test_a_register_is_held_against_its_model(tmp_path: Path) -> None:
    """An EDN history has a row for its model check, with the general judge's verdict and certificate; a
    broken one lands in quarantine."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    copy(STALE, tmp_path / "in" / "deep")
    (tmp_path / "in" / "torn.edn").write_text("{:type :invoke, :f :read, :value")
    result = judge_files([tmp_path / "in"], tmp_path / "out", checks=("log",), model=REGISTER)
    plainly = judge_trace(import_file(STALE), model_named("cas-register"))
    (row,) = [
        row for row in pq.read_table(tmp_path / "out" / "verdicts").to_pylist() if row["check"] == MODEL_CHECK
    ]
    assert (row["decision"], row["anomaly"]) == ("illegal", plainly.anomaly)
    (finding,) = pq.read_table(tmp_path / "out" / "findings").to_pylist()
    assert finding["operations"] == list(plainly.findings[0].operations)
    (bad,) = result.counts.quarantined
    assert "torn.edn" in bad.reason


def test_models_ask_of_row_groups_too_and_only_of_small_traces(tmp_path: Path, campaign: Path, mixed) -> None:
    """Every trace of a folder has a row for the model; one of more operations than are asked about is
    unknown, and says so."""
    question = ModelQuestion(name="log", operations=5)
    judge_files([campaign], tmp_path, checks=("log",), model=question)
    for (trace_id, check), (decision, anomaly, reason) in verdicts_in(tmp_path).items():
        if check == MODEL_CHECK:
            trace = mixed[trace_id]
            plainly = question.judge(trace)
            assert (decision, anomaly, reason) == (plainly.decision.value, plainly.anomaly, plainly.reason)
            assert ("at most 5" in reason) == (len(trace.operations) > 5)
    assert len(verdicts_in(tmp_path)) == 2 * len(mixed)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    """The same file twice, a folder without any, and a model that means nothing are the caller's mistakes."""
    copy(STALE, tmp_path)
    with pytest.raises(FencepostError, match="each file of histories once"):
        told_apart([tmp_path, tmp_path / STALE.name], "auto")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FencepostError, match="a folder of traces or files"):
        told_apart([tmp_path / "empty"], "auto")
    with pytest.raises(FencepostError):
        mine([tmp_path], tmp_path / "out", model=ModelQuestion(name="no-such-model"))
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_files_and_folders_are_mined_together(tmp_path: Path, campaign: Path, mixed, spark) -> None:
    """A folder of traces and a foreign history in one mining on Spark: each has its rows, the model check
    counts as a check."""
    copy(STALE, tmp_path)
    summary = mine(
        [campaign, tmp_path / STALE.name], tmp_path / "out", checks=("log",), spark=spark, model=REGISTER
    )
    assert summary.traces == {str(campaign): len(mixed), str(tmp_path / STALE.name): 1}
    assert summary.illegal[str(tmp_path / STALE.name)] == 1
    assert sum(summary.decisions[MODEL_CHECK].values()) == len(mixed) + 1


def test_a_file_of_brackets_does_not_end_a_mining(tmp_path: Path) -> None:
    """Rule: of files with nesting without end, in a line or in a value, each is quarantined or undecided,
    and the others are judged."""
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "in").mkdir()
    good = copy(STALE, tmp_path / "in")
    (tmp_path / "in" / "line.jsonl").write_text(f'{{"type":"trace","trace_id":{deep}}}\n')
    trace = '{"type":"trace","trace_id":1,"plan":"","seed":1,"software_version":"v"}\n'
    row = (
        '{"type":"operation","op_id":0,"process":0,"function":"write","invoke_time":0,"outcome":"ok",'
        '"completion_time":1,"argument":"%s"}\n'
    )
    (tmp_path / "in" / "value.jsonl").write_text(trace + row % deep)
    (tmp_path / "in" / "rows.json").write_text(f'[{{"process":0,"type":"invoke","f":"read","value":{deep}}}]')
    result = judge_files([tmp_path / "in"], tmp_path / "out", checks=("log",), model=REGISTER)
    assert {Path(bad.source).name for bad in result.counts.quarantined} == {"line.jsonl", "rows.json"}
    assert all("64 levels" in bad.reason for bad in result.counts.quarantined)
    assert result.counts.traces[str(good)] == 1
    rows = {
        row["check"]: row
        for row in pq.read_table(tmp_path / "out" / "verdicts").to_pylist()
        if "value" in row["source"]
    }
    assert rows[MODEL_CHECK]["decision"] == "assumption_broken" and "64 levels" in rows[MODEL_CHECK]["reason"]


def test_a_history_in_which_nothing_succeeded_proves_nothing() -> None:
    """Rule: a model asked in mining is as strict as in `fencepost check`: a vacuous history is no Ok."""
    trace = import_file(STALE)
    nothing = evolve(trace, operations=tuple(evolve(one, outcome=Outcome.FAIL) for one in trace.operations))
    for history in (nothing, evolve(trace, operations=())):
        verdict = REGISTER.judge(history)
        assert verdict.decision is Decision.ASSUMPTION_BROKEN and "proves nothing" in verdict.reason
