"""The healthy sweep: seeds are counted once, whatever is amiss is kept and told, and only the code as it is
counts."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from fencepost.campaign.driver import campaign_driver
from fencepost.campaign.workers.results import CampaignResult, Job
from tools import healthy
from tools.healthy import Slice, children_memory, ledger_of, source_digest, sum_of


def _swept(out: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    told = CliRunner().invoke(
        healthy.command,
        ["default+calm", "--jobs", "1", "--out", str(out), "--json", *arguments],
        standalone_mode=False,
    )
    assert told.exception is None, told.output
    return told.return_value, msgspec.json.decode(told.stdout)["profiles"]["default+calm"]


@pytest.fixture(autouse=True)
def of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep starts its workers itself, so that their processor time is its children's."""
    monkeypatch.setattr("fencepost.forking._kept", [])


def test_a_sweep_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Three seeds in slices of two; asked for five, it runs what is missing, and a clean slice leaves no
    traces."""
    code, first = _swept(tmp_path, "--seeds", "3", "--slice", "2")
    assert (code, first["runs"], first["amiss"]) == (0, 3, [])
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.jsonl"]
    lines = (tmp_path / "ledger.jsonl").read_bytes()
    code, again = _swept(tmp_path, "--seeds", "3", "--slice", "2")
    assert again == first
    assert (tmp_path / "ledger.jsonl").read_bytes() == lines
    assert first["cpu_s"] > 0


def test_what_is_found_is_told_and_its_traces_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bug planted below the sweep, its seeds stand in the answer and the exit code, and their traces
    stay."""
    drive = campaign_driver.drive

    def planted(campaign: campaign_driver.Campaign, on_progress: object) -> CampaignResult:
        job = Job(profile="default", bugs=("KIP-101",))
        seeds = range(23, 24)  # it shows it
        return drive(
            campaign_driver.Campaign(seeds=seeds, job=job, jobs=1, out=campaign.out, recheck_one_in=0)
        )

    monkeypatch.setattr(healthy, "drive", planted)
    code, told = _swept(tmp_path, "--seeds", "2")
    assert code == 1
    assert [seed for seed, _ in told["amiss"]] == [23]
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert list(folder.iterdir())


def test_a_run_that_means_nothing_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and the exit code is that of something undecided; what is found later outweighs it."""
    results = [
        CampaignResult(seeds=1, finished=1, broken=(0,)),
        CampaignResult(seeds=1, finished=1, anomalies={"stale_read": 1}, failing=((1, "stale_read"),)),
    ]
    monkeypatch.setattr(healthy, "drive", lambda campaign, on_progress: results.pop(0))
    code, told = _swept(tmp_path, "--seeds", "1", "--keep")
    assert (code, told["amiss"]) == (3, [[0, "too weak to mean anything"]])
    code, told = _swept(tmp_path, "--seeds", "2", "--slice", "1", "--keep")
    assert (code, len(told["amiss"])) == (1, 2)


def test_slices_of_other_code_do_not_count(tmp_path: Path) -> None:
    """A row of another source is passed over."""
    one = Slice(
        source="of yesterday", profile="default+calm",
        first=0, runs=9, operations=9, events=9, rechecked=0, amiss=(),
        cpu_s=1.0, wall_s=1.0,
    )  # fmt: skip
    ledger_of(tmp_path).add(one)
    ledger = ledger_of(tmp_path)
    assert sum_of(ledger, source_digest(), "default+calm").runs == 0
    assert sum_of(ledger, "of yesterday", "default+calm").runs == 9


def test_memory_of_children_is_seen() -> None:
    """A child that holds ten million bytes has at least those."""
    import subprocess
    import sys

    with subprocess.Popen(
        [sys.executable, "-c", "held = b'x' * 10_000_000; print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        held = children_memory()
        child.communicate(b"\n")
    if Path("/proc/self/statm").exists():
        assert held > 10_000_000
