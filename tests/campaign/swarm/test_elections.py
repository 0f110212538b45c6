"""The profile elections: leadership moves faster than replicas follow, by knobs alone."""

from alone import alone

from fencepost.campaign.swarm.bounds import QUICK
from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.traces.events import Name

SEEDS = range(40)


def test_most_faults_hit_leaders_within_round_trips():
    """Rule: every kind that ends leaders occurs and is off in some plans, leaders are hit most, sessions are
    short, brokers may be near."""
    plans = [alone(seed, "quick") for seed in SEEDS]
    faults = [fault for plan in plans for fault in plan.faults]
    kinds = set(QUICK)
    assert {fault.kind for fault in faults} >= kinds
    assert all(any(kind not in {fault.kind for fault in plan.faults} for plan in plans) for kind in kinds)
    assert sum(fault.target.startswith("leader") for fault in faults) * 2 > len(faults)
    assert all(2_000 <= plan.cluster.zookeeper_session_timeout_ms <= 5_000 for plan in plans)
    assert any(plan.network.latency_min_us < 2_001 for plan in plans)


def test_faults_of_few_kinds_and_requests():
    """Rule: `--faults` narrows this profile as any other, and what operators ask for stays."""
    assert {fault.kind for seed in SEEDS for fault in alone(seed, "quick", faults=("pause",)).faults} == {
        "pause"
    }
    asked = {fault.kind for seed in SEEDS for fault in alone(seed, "quick", faults=("reassign_back",)).faults}
    assert asked == {"reassign_back"}


def test_leadership_moves_and_nothing_is_found():
    """Rule: elections are frequent, logs part and are cut, and the healthy implementation shows nothing."""
    elections = cuts = 0
    for seed in range(4):
        trace = run(alone(seed, "quick"))
        elections += sum(event.name is Name.BECAME_LEADER for event in trace.events)
        cuts += sum(event.name is Name.TRUNCATED for event in trace.events)
        assert not [finding for verdict in judge(trace) for finding in verdict.findings], seed
    assert elections > 12 and cuts > 0
