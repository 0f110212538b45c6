"""What Spark reduces is what this process counts, whatever the labels, profiles and healthy traces."""

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.mining.results.rows import SCHEMAS
from fencepost.mining.triage import grouping, in_memory
from fencepost.mining.triage.bugs import Bugs
from fencepost.mining.triage.rows import ALL
from fencepost.mining.triage.triage import triage

EPOCH = "leader_epoch_repeated"


def rows_at_random(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of `evidence` and `contrast`: three kinds of bugs with shared and own steps, over profiles, of
    which some have no healthy trace."""
    draw = random.Random(seed)
    profiles = ["calm", "chaos", "haste"][: draw.randint(1, 3)]
    with_healthy = profiles[: draw.randint(0, len(profiles))]
    evidence = []
    for trace_id in range(draw.randint(1, 14)):
        kind = draw.randrange(3)
        steps = {f"own {kind} {n}" for n in range(3)} | {f"shared {draw.randrange(6)}" for _ in range(3)}
        anomaly = draw.choice(["lost_write", EPOCH]) if kind else "lost_write"
        evidence.append(
            {
                "source": draw.choice(["a", "b"]),
                "trace_id": trace_id,
                "profile": draw.choice(profiles),
                "operations": draw.randint(1, 4),
                "anomaly": anomaly,
                "items": sorted({f"between: {one}" for one in steps} | {f"finding: {anomaly}: {kind}"}),
                "features": sorted(
                    {f"step: {one}" for one in steps} | {f"then: own {kind} 0 -> own {kind} 1"}
                ),
                "replay": "",
            }
        )
    contrast = []
    for profile in with_healthy:
        for _ in range(2):
            contrast.append({"profile": profile, "feature": ALL, "traces": draw.randint(1, 30)})
            for n in range(6):
                contrast.append(
                    {"profile": profile, "feature": f"step: shared {n}", "traces": draw.randint(0, 1)}
                )
    return evidence, contrast


def test_the_size_counts_elements_of_lists(tmp_path: Path) -> None:
    """Rule: the bound is on what the tables become: values, not rows or bytes."""
    (tmp_path / "one").mkdir()
    pq.write_table(pa.table({"a": [1, 2], "b": [["x"] * 50, ["x"] * 30]}), tmp_path / "one" / "p.parquet")
    assert in_memory.values_in(tmp_path / "one", tmp_path / "none") == 82


def written(folder: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    """A mining's folder with these rows."""
    for name, rows in tables.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMAS[name]), folder / name / "part-0.parquet")
    return folder


def rows_in(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a table, in an order of their own."""
    return sorted((tuple(row.values()) for row in pq.read_table(folder).to_pylist()), key=repr)


def both(folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Bugs, Bugs]:
    """What is found in memory and on Spark, of copies of a mining's folder; its tables are compared."""
    here, there = folder.with_name("here"), folder.with_name("there")
    for copy in (here, there):
        shutil.copytree(folder, copy)
    found = triage(lambda: pytest.fail("Spark was asked"), here, tables=True)
    monkeypatch.setattr(in_memory, "MOST_VALUES", -1)
    other = triage(lambda: spark, there, tables=True)
    for name in ("groups", "over_represented", "coverage"):
        assert rows_in(here / name) == rows_in(there / name)
    return found, other


@pytest.mark.spark
@pytest.mark.java
@pytest.mark.parametrize(("seed", "clustered"), [(12, 1_500), (15, 2), (5, 3)])
def test_random_evidence_has_the_same_bugs(
    seed: int, clustered: int, tmp_path: Path, spark: Any, monkeypatch
) -> None:
    """Rule: groups, names, features and their measures do not depend on who counts; nor which group a trace
    is given to whose signature is too rare to be clustered."""
    monkeypatch.setattr(grouping, "MOST_SIGNATURES", clustered)
    evidence, contrast = rows_at_random(seed)
    spectra = [
        {"source": row["source"], "trace_id": row["trace_id"], "profile": row["profile"], "state": "bad",
         "features": row["features"]}
        for row in evidence
    ]  # fmt: skip
    folder = written(tmp_path / "in", {"evidence": evidence, "contrast": contrast, "spectra": spectra})
    here, there = both(folder, spark, monkeypatch)
    assert here == there


@pytest.mark.spark
@pytest.mark.java
def test_runs_of_planted_bugs_have_the_same_bugs(planted, tmp_path: Path, spark: Any, monkeypatch) -> None:
    """Rule: so it is with real evidence, whose features pass."""
    shutil.copytree(planted.out, tmp_path / "in")
    here, there = both(tmp_path / "in", spark, monkeypatch)
    assert here == there
    assert any(bug.shares for bug in here.bugs)


def test_random_evidence_is_of_all_kinds() -> None:
    """Rule: the seeds above have several groups, a profile without healthy traces, and one without any."""
    cases = [rows_at_random(seed) for seed in (12, 15, 5)]
    healthy = [{row["profile"] for row in contrast} for _, contrast in cases]
    bad = [{row["profile"] for row in evidence} for evidence, _ in cases]
    kinds = Counter(len({row["anomaly"] for row in evidence}) for evidence, _ in cases)
    assert kinds[2] and any(not one for one in healthy)
    assert any(one and theirs - one for one, theirs in zip(healthy, bad, strict=True))
