"""Bugs are those of the rows that tasks wrote, whatever the files, profiles and healthy traces."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.mining.results.result_rows import SCHEMAS
from fencepost.mining.triage import grouping
from fencepost.mining.triage.bugs import read_bugs
from fencepost.mining.triage.triage import triage
from fencepost.mining.triage.triage_rows import ALL

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


def written(folder: Path, tables: dict[str, list[dict[str, Any]]], files: int = 1) -> Path:
    """A mining's folder with these rows, spread over files."""
    for name, rows in tables.items():
        (folder / name).mkdir(parents=True)
        for number in range(files):
            table = pa.Table.from_pylist(rows[number::files], schema=SCHEMAS[name])
            pq.write_table(table, folder / name / f"part-{number}.parquet")
    return folder


def rows_in(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a table, in an order of their own."""
    return sorted((tuple(row.values()) for row in pq.read_table(folder).to_pylist()), key=repr)


@pytest.mark.parametrize(("seed", "clustered"), [(12, 1_500), (15, 2), (5, 3)])
def test_files_and_their_order_do_not_matter(seed: int, clustered: int, tmp_path: Path, monkeypatch) -> None:
    """Rule: groups, names, features and their measures are those of the rows, however tasks wrote them; so is
    the group that a trace is given to whose signature is too rare to be clustered."""
    monkeypatch.setattr(grouping, "MOST_SIGNATURES", clustered)
    evidence, contrast = rows_at_random(seed)
    kept = ("source", "trace_id", "profile", "features")
    spectra = [{name: row[name] for name in kept} | {"state": "bad"} for row in evidence]
    tables = {"evidence": evidence, "contrast": contrast, "spectra": spectra}
    one = written(tmp_path / "one", tables)
    many = written(tmp_path / "many", {name: rows[::-1] for name, rows in tables.items()}, files=3)
    found = triage(one, tables=True)
    assert found == triage(many, tables=True) == read_bugs(many)
    for name in ("groups", "over_represented", "coverage"):
        assert rows_in(one / name) == rows_in(many / name)
    sizes = Counter(bug for *_, bug, _ in rows_in(one / "groups"))
    assert sizes == {bug.number: bug.traces for bug in found.bugs} and sizes.total() == len(evidence)
    assert found.healthy == sum(row["traces"] for row in contrast if row["feature"] == ALL)


def test_random_evidence_is_of_all_kinds() -> None:
    """Rule: the seeds above have several groups, a profile without healthy traces, and one without any."""
    cases = [rows_at_random(seed) for seed in (12, 15, 5)]
    healthy = [{row["profile"] for row in contrast} for _, contrast in cases]
    bad = [{row["profile"] for row in evidence} for evidence, _ in cases]
    kinds = Counter(len({row["anomaly"] for row in evidence}) for evidence, _ in cases)
    assert kinds[2] and any(not one for one in healthy)
    assert any(one and theirs - one for one, theirs in zip(healthy, bad, strict=True))
