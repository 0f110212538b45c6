"""The main job on real input: recorded runs, healthy and with each bug planted, mined together."""

from itertools import islice
from pathlib import Path

import pytest
from attrs import evolve
from mining_results import findings_in, plain, verdicts_in

from fencepost.bugs import BUGS
from fencepost.campaign.swarm.swarm import swarm
from fencepost.mining.mine import mine
from fencepost.run.simulated.run import run
from fencepost.traces.sealing import seal
from fencepost.traces.store import TraceStore
from tests.bugs.found import FOUND
from tests.checkers import lab
from tests.selfcheck.amounts import amount

pytestmark = pytest.mark.spark

HEALTHY = range(amount(2, 12))
BUGS_OF = dict(islice(FOUND.items(), 0, None, amount(8, 1)))
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
        lab.stored(store, some, sealed=False)
        if some[-1] is not traces[-1]:
            seal(store)
    mine([tmp_path / "in"], tmp_path / "out", spark=spark)
    findings = findings_in(tmp_path / "out")
    assert (verdicts_in(tmp_path / "out"), findings) == plain(traces)
    named = {anomaly for _, _, anomaly, *_ in findings}
    for bug in BUGS_OF:
        assert named & BUGS[bug].anomalies, bug
    assert not {trace_id for trace_id, *_ in findings} & set(HEALTHY)
