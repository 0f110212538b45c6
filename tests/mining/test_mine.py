"""Mining on Spark answers what the plain checker answers, and its output is whole or not there."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from attrs import evolve

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.mining import mine as mining
from fencepost.mining.mine import mine
from fencepost.mining.results.checkpoint import Work
from fencepost.mining.results.result_rows import RESULTS, SCHEMAS
from fencepost.report.figure import library
from fencepost.traces.anomalies import first_by_rank
from fencepost.traces.errors import EnvironmentError_, ExitCode, FencepostError
from fencepost.traces.store import TraceStore
from tests.checkers import lab
from tests.mining.mining_results import findings_in, plain, verdicts_in

pytestmark = pytest.mark.spark


def test_spark_and_the_plain_checker_agree_trace_by_trace(
    campaign: Path, mixed, tmp_path: Path, spark
) -> None:
    """Every trace of a mixed campaign, sealed or still in a journal, has the same verdicts and certificates
    on Spark."""
    told: list[tuple[int, int]] = []
    summary = mine(
        [campaign], tmp_path / "out", spark=spark, progress=lambda done, all_: told.append((done, all_))
    )
    verdicts = {trace.trace_id: judge(trace) for trace in mixed}

    assert (verdicts_in(tmp_path / "out"), findings_in(tmp_path / "out")) == plain(mixed)
    rows = pq.read_table(tmp_path / "out" / "findings").to_pylist()
    for row in rows:
        headline = first_by_rank(
            {one.anomaly for verdict in verdicts[row["trace_id"]] for one in verdict.findings}
        )
        other = "" if row["anomaly"] == headline else f" --anomaly {row['anomaly']}"
        assert row["replay"] == f"fencepost replay {campaign} --trace {row['trace_id']}{other}"
    assert summary.anomalies == dict(sorted(Counter(row["anomaly"] for row in rows).items(), key=_rank))
    assert summary.exit_code is ExitCode.FINDINGS
    assert told[-1][0] == told[-1][1] == summary.splits > 3


def _rank(item: tuple[str, int]) -> int:
    from fencepost.traces.anomalies import BY_NAME

    return BY_NAME[item[0]].rank


def test_the_summary_is_written_and_adds_up(campaign: Path, mixed, tmp_path: Path, spark) -> None:
    """Totals by input, check and anomaly add up, each anomaly has a sample with its proof, and summary.json
    says the same."""
    summary = mine([campaign], tmp_path / "out", spark=spark)
    assert summary.traces == {str(campaign): len(mixed)}
    illegal = sum(trace.profile not in ("legal", "no_events", "too_weak") for trace in mixed)
    assert summary.illegal == {str(campaign): illegal}
    assert all(sum(summary.decisions[check].values()) == len(mixed) for check in DEFAULT_CHECKS)
    assert [sample.finding.anomaly for sample in summary.samples] == list(summary.anomalies)
    assert all(sample.proof and sample.replay for sample in summary.samples)
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == json.loads(summary.to_json())
    text = summary.plain()
    for sample in summary.samples:
        assert all(line in text for line in (*sample.proof, sample.replay, sample.finding.expected))
    assert f"trace {summary.samples[0].trace_id} of {campaign}, t-0" in text
    for result in RESULTS:
        assert pq.read_table(tmp_path / "out" / result).schema.equals(SCHEMAS[result])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_two_campaigns_are_mined_together(campaign: Path, mixed, make, tmp_path: Path, spark) -> None:
    """Trace ids of two inputs may be equal; results keep them apart by source."""
    lab.stored(tmp_path / "legal", [make(number, "legal") for number in range(4)])
    summary = mine([campaign, tmp_path / "legal"], tmp_path / "out", spark=spark)
    assert summary.traces == {str(campaign): len(mixed), str(tmp_path / "legal"): 4}
    assert summary.illegal[str(tmp_path / "legal")] == 0
    sources = {row["source"] for row in pq.read_table(tmp_path / "out" / "findings").to_pylist()}
    assert sources == {str(campaign)}


def test_a_truncated_part_lands_in_quarantine(make, tmp_path: Path, spark) -> None:
    """A truncated file is in the quarantine table with its reason and in the exit code; the rest is
    judged."""
    store = lab.stored(tmp_path / "in", [make(number, "legal") for number in range(3)])
    lab.stored(store, [make(9, "legal")], sealed=False)
    broken = store.parts()[0].operations
    broken.write_bytes(broken.read_bytes()[:-30])
    summary = mine([tmp_path / "in"], tmp_path / "out", spark=spark)
    (row,) = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
    assert "expected a whole Parquet file" in row["reason"]
    assert (
        f"Could not be read, and is in quarantine (1):\n  {row['place']}: {row['reason']}" in summary.plain()
    )
    assert (summary.exit_code, summary.quarantined, sum(summary.traces.values())) == (
        ExitCode.QUARANTINED,
        1,
        1,
    )


def test_nothing_readable_is_its_own_exit_code(tmp_path: Path, make) -> None:
    """An input of nothing but unreadable files ends with exit code 2, without starting Spark."""
    store = lab.stored(tmp_path / "in", [make(1, "legal")])
    store.parts()[0].traces.write_bytes(b"no")
    assert mine([tmp_path / "in"], tmp_path / "out").exit_code is ExitCode.USAGE
    assert mine([TraceStore.create(tmp_path / "empty").path], tmp_path / "out2").exit_code is ExitCode.USAGE


def test_a_folder_in_use_is_refused(campaign: Path, tmp_path: Path, spark) -> None:
    """Results never mix with what was there, nor with a mining that did not end, unless it is to go on."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(FencepostError, match="expected a new or an empty folder"):
        mine([campaign], tmp_path / "used", spark=spark)
    Work(out=tmp_path / "begun").begin(
        {"inputs": ["elsewhere"], "checks": ["log"], "profile": None}, resume=False
    )
    with pytest.raises(FencepostError, match="continue it"):
        mine([campaign], tmp_path / "begun", spark=spark)
    with pytest.raises(FencepostError, match="the question that this mining began with"):
        mine([campaign], tmp_path / "begun", spark=spark, resume=True)


def _results(out: Path) -> dict[str, list]:
    return {result: sorted(map(str, pq.read_table(out / result).to_pylist())) for result in RESULTS}


def test_an_interrupted_mining_leaves_what_was_judged_and_goes_on(
    campaign: Path, tmp_path: Path, spark
) -> None:
    """Ctrl-C leaves valid results of the tasks that had ended; resumed, only the others are judged, and
    everything is there once."""
    whole = mine([campaign], tmp_path / "whole", spark=spark)

    def interrupted(done: int, total: int) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine([campaign], tmp_path / "out", spark=spark, progress=interrupted)
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert 0 <= told["unfinished"] <= whole.splits - 2
    found = _results(tmp_path / "out")
    assert set(found["verdicts"]) <= set(_results(tmp_path / "whole")["verdicts"])
    assert len(found["verdicts"]) == sum(told["traces"].values()) * len(DEFAULT_CHECKS)

    seen: list[tuple[int, int]] = []
    again = mine(
        [campaign], tmp_path / "out", spark=spark, resume=True, progress=lambda *one: seen.append(one)
    )
    assert evolve(again, out="") == evolve(whole, out="")
    assert all(total <= told["unfinished"] for _, total in seen)
    assert _results(tmp_path / "out") == _results(tmp_path / "whole")
    assert not (tmp_path / "out" / ".work").exists()


def test_a_mining_that_failed_leaves_nothing(campaign: Path, tmp_path: Path, spark, monkeypatch) -> None:
    """Our own mistake in a task is told in one sentence and leaves nothing where nothing was judged."""
    with monkeypatch.context() as broken:
        broken.setattr(mining, "_Task", _Fails)
        with pytest.raises(EnvironmentError_, match="ZeroDivisionError") as caught:
            mine([campaign], tmp_path / "out", spark=spark)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


class _Fails:
    """A task that dies."""

    def __init__(self, settings) -> None:
        self.settings = settings

    def __call__(self, lists):
        yield 1 // 0


def test_an_attempt_that_was_given_up_doubles_nothing(
    campaign: Path, mixed, tmp_path: Path, monkeypatch, spark
) -> None:
    """Files of attempts that Spark did not accept are not in the results."""
    real = mining._commit

    def with_leftovers(work, results, unreadable):
        name = next(name for result in results for name in result.files if name.startswith("verdicts/"))
        for folder in (work.folder / "files", work.out):
            (folder / "verdicts").mkdir(exist_ok=True)
            data = (work.folder / "files" / name).read_bytes()
            (folder / "verdicts" / "part-abc-999999.parquet").write_bytes(data)
        real(work, results, unreadable)

    monkeypatch.setattr(mining, "_commit", with_leftovers)
    mine([campaign], tmp_path / "out", spark=spark)
    assert pq.read_table(tmp_path / "out" / "verdicts").num_rows == len(mixed) * len(DEFAULT_CHECKS)


def test_statistics_and_page_tell_what_was_counted(campaign: Path, mixed, tmp_path: Path, spark) -> None:
    """Every trace counts once per profile, and each anomaly by profile adds up; the page shows each anomaly's
    smallest example, drawn."""
    summary = mine([campaign], tmp_path / "out", spark=spark)
    rows = pq.read_table(tmp_path / "out" / "statistics").to_pylist()
    profiles = {
        row["value"]: row["traces"] for row in rows if row["dimension"] == "profile" and not row["anomaly"]
    }
    assert profiles == dict(Counter(trace.profile for trace in mixed))
    by_profile = Counter[str]()
    for row in rows:
        if row["dimension"] == "profile" and row["anomaly"]:
            by_profile[row["anomaly"]] += row["traces"]
    assert dict(by_profile) == dict(summary.traces_with)
    html = (tmp_path / "out" / "index.html").read_text()
    for sample in summary.samples:
        assert (
            f"<h3>{sample.finding.anomaly} in trace {sample.trace_id}, found by {sample.finding.check}</h3>"
            in html
        )
    drawn = {(sample.source, sample.trace_id) for sample in summary.samples}
    assert html.count("data-figure role") == len(drawn)
    assert len(list((tmp_path / "out").glob("index-example-*.html"))) == len(drawn)
    ours = html.replace(library(), "")  # which has addresses in it; the page's policy lets it ask for none
    assert len(ours) < len(html) and "http://" not in ours and "https://" not in ours
