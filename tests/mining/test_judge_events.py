"""The event checks of a task: every trace has the plain checker's verdict, reads
that went back included."""

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
from attrs import evolve
from mining_results import findings_in, judge_here, plain, verdicts_in

from fencepost.checkers.judges import judge
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.results.result_rows import Counts, ResultWriter
from fencepost.mining.spark_judge import Settings, judge_split
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from fencepost.traces.tables import tables_of
from tests.checkers import lab
from tests.checkers.conformance_variants import stories
from tests.checkers.event_tables import bent, bounded
from tests.checkers.liveness.test_live import WRONG, trace_of
from tests.checkers.test_invariants_differential import reads_trace

CHECKS = ("invariants", "conformance")


def test_event_checks_of_a_task_are_the_plain_checkers(tmp_path: Path) -> None:
    """Rule: mined event checks have the plain verdicts and certificates, those that only operations show
    too."""
    legal = stories()
    made = [bent(Random(f"mined {seed}"), legal[seed % len(legal)]) for seed in range(40)]
    made += [bounded(reads_trace(Random(f"mined {seed}"))) for seed in range(40)]
    sound = [trace for trace in (*legal, *made) if not contradictions(tables_of([rows_of(trace)]).operations)]
    traces = [evolve(trace, trace_id=number) for number, trace in enumerate(sound)]
    lab.stored(tmp_path / "in", traces)
    expected = {
        (trace.trace_id, verdict.check): verdict for trace in traces for verdict in judge(trace, CHECKS)
    }
    regressed = {f.anomaly for verdict in expected.values() for f in verdict.findings}
    assert "high_watermark_regressed" in regressed
    found = {}
    counts = Counts()
    with ResultWriter(tmp_path / "out", "part-0-here") as writer:
        for split in work_of([tmp_path / "in"]).splits:
            judge_split(split, Settings(checks=CHECKS, profile=None, folder=tmp_path), writer, counts)
    for name in ("verdicts", "findings"):
        found[name] = read(tmp_path / "out", name)
    assert {
        (row["trace_id"], row["check"]): (row["decision"], row["reason"]) for row in found["verdicts"]
    } == {key: (verdict.decision.value, verdict.reason) for key, verdict in expected.items()}
    fields = ("anomaly", "seen", "expected", "operations", "events")
    told = [(row["trace_id"], *(tuple(row[name]) for name in fields)) for row in found["findings"]]
    plain = [
        (trace_id, *(tuple(getattr(finding, name)) for name in fields))
        for (trace_id, _), verdict in expected.items()
        for finding in verdict.findings
    ]
    assert sorted(told) == sorted(plain)
    assert not counts.quarantined


def read(folder: Path, name: str) -> list[dict]:
    """The rows of a result."""
    return [
        row for path in sorted((folder / name).glob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]


def test_what_doctor_recorded_is_judged_as_check_does(tmp_path: Path) -> None:
    """Rule: a store of doctor's, a trace for each anomaly of a live cluster, has the findings that `check`
    gives, with the same words and events."""
    traces = [evolve(trace_of(events), trace_id=number) for number, events in enumerate(WRONG.values())]
    store = TraceStore.create(tmp_path / "in")
    with store.writer("doctor") as writer:
        for trace in traces:
            writer.append(trace)
    seal(store)
    judge_here(tmp_path / "in", tmp_path / "out")
    verdicts, findings = plain(traces)
    assert {name for _, _, name, *_ in findings} == set(WRONG)
    assert verdicts_in(tmp_path / "out") == verdicts and findings_in(tmp_path / "out") == findings
