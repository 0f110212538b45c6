"""The main job on real input: recorded runs, healthy and with each bug planted, mined together."""

from collections import Counter
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from attrs import evolve

from fencepost.bugs import BUGS
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.mining.mine import mine
from fencepost.run.simulated.run import run
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from tests.bugs.found import FOUND
from tests.selfcheck.amounts import amount

pytestmark = pytest.mark.spark

HEALTHY = range(amount(4, 12))
BUGS_OF = dict(islice(FOUND.items(), 0, None, amount(4, 1)))
"""One planted bug of so many; each is found by the plain checker in tests/bugs."""


def recorded() -> list:
    """Runs of the swarm under trace ids of their own."""
    plans = [swarm(seed) for seed in HEALTHY]
    plans += BUGS_OF.values()
    return [evolve(run(plan), trace_id=number) for number, plan in enumerate(plans)]


def test_spark_and_the_plain_checker_agree_on_a_recorded_mixed_campaign(tmp_path: Path, spark) -> None:
    """Runs of the real simulator, sealed or still in a journal, get the same verdicts and certificates, those
    of planted bugs among them."""
    traces = recorded()
    store = TraceStore.create(tmp_path / "in")
    for some in (traces[:8], traces[8:12], traces[12:]):
        with store.writer() as writer:
            for trace in some:
                writer.append(trace)
        if some[-1] is not traces[-1]:
            seal(store)
    mine([tmp_path / "in"], tmp_path / "out", spark=spark)
    plain = {trace.trace_id: judge(trace) for trace in traces}
    verdicts = pq.read_table(tmp_path / "out" / "verdicts").to_pylist()
    assert Counter(
        (row["trace_id"], row["check"], row["decision"], row["anomaly"]) for row in verdicts
    ) == Counter(
        (number, verdict.check, verdict.decision.value, verdict.anomaly)
        for number, found in plain.items()
        for verdict in found
    )
    findings = pq.read_table(tmp_path / "out" / "findings").to_pylist()
    assert Counter(
        (row["trace_id"], row["anomaly"], row["seen"], tuple(row["operations"])) for row in findings
    ) == Counter(
        (number, finding.anomaly, finding.seen, finding.operations)
        for number, found in plain.items()
        for verdict in found
        for finding in verdict.findings
    )
    named = {row["anomaly"] for row in findings}
    for bug in BUGS_OF:
        assert named & BUGS[bug].anomalies, bug
    assert not {row["trace_id"] for row in findings} & set(HEALTHY)
