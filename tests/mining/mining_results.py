"""Verdicts and findings as mining wrote them and as the plain checker gives them, in one form."""

from pathlib import Path

import pyarrow.parquet as pq

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.spark_judge import Settings, judge_splits


def verdicts_in(out: Path) -> dict[tuple[int, str], tuple]:
    rows = pq.read_table(out / "verdicts").to_pylist()
    found = {
        (row["trace_id"], row["check"]): (row["decision"], row["anomaly"], row["reason"]) for row in rows
    }
    assert len(found) == len(rows)
    return found


def findings_in(out: Path) -> list[tuple]:
    if not (out / "findings").exists():
        return []
    return sorted(
        (
            *(
                row[name]
                for name in (
                    "trace_id",
                    "check",
                    "anomaly",
                    "partition",
                    "offset",
                    "expected",
                    "seen",
                    "uncertainty_ns",
                )
            ),
            tuple(row["operations"]),
            tuple(row["events"]),
        )
        for row in pq.read_table(out / "findings").to_pylist()
    )


def plain(traces) -> tuple[dict, list]:
    """Verdicts and findings of the plain checker, in the form of the two functions above."""
    verdicts = {trace.trace_id: judge(trace) for trace in traces}
    by_check = {
        (trace_id, verdict.check): (verdict.decision.value, verdict.anomaly, verdict.reason)
        for trace_id, found in verdicts.items()
        for verdict in found
    }
    findings = [
        (
            trace_id,
            f.check,
            f.anomaly,
            f.partition,
            f.offset,
            f.expected,
            f.seen,
            f.uncertainty_ns,
            f.operations,
            f.events,
        )
        for trace_id, found in verdicts.items()
        for verdict in found
        for f in verdict.findings
    ]
    return by_check, sorted(findings)


def judge_here(path: Path, out: Path, *, checks=DEFAULT_CHECKS, profile=None):
    """All splits of a folder in one task, in this process."""
    result = judge_splits(
        work_of([path]).splits, Settings(checks=checks, profile=profile, folder=out), attempt="here"
    )
    for folder in (out / "files").iterdir() if (out / "files").exists() else ():
        folder.rename(out / folder.name)
    return result
