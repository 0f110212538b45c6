"""Chains of faults: the generator, and the chain that is drawn."""

from collections import Counter
from itertools import pairwise

import pytest
from alone import alone

from fencepost.campaign.swarm.chains import Chain, Link, faults_of_chain
from fencepost.campaign.swarm.draws import Draws
from fencepost.checkers.judges import judge
from fencepost.run.simulated.run import run
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import FOLLOWED, ClusterOptions, Plan, TopicOptions

FOLLOWS = Link(
    kinds=("pause",),
    roles=("{victim}",),
    steps=("became_leader",),
    delay_ms=(5, 9),
    gap_ms=(10, 20),
    along=Link(kinds=("expire_session",), delay_ms=(1, 3)),
)
CHAIN = Chain(label="c", links=(Link(kinds=("crash",)), FOLLOWS), gap_ms=(1_000, 2_000))
PLAN = Plan(seed=0, safety_ms=20_000, cluster=ClusterOptions(brokers=3, topics=(TopicOptions(),)))


def drawn(chain: Chain = CHAIN, plan: Plan = PLAN) -> list[tuple[str, str, str, int, int]]:
    """Kind, target, event, time and delay of each fault of the chain."""
    faults = faults_of_chain(plan, Draws(Randomness(7)), chain)
    assert len({fault.fault_id for fault in faults}) == len(faults)
    return [(one.kind, one.target, one.follows, one.at_ms, one.delay_ms) for one in faults]


def test_links_come_in_their_order_again_and_again() -> None:
    """Rule: each run has the same links, within their spans; one that comes along waits for the same event,
    with the same role, and comes later."""
    rows = drawn()
    runs = [rows[at : at + 3] for at in range(0, len(rows), 3)]
    assert len(runs) >= 8
    for first, second, along in runs:
        assert first[:3] == ("crash", "leader of t-0", "")
        assert (second[0], along[0]) == ("pause", "expire_session")
        assert second[1:4] == along[1:4] and second[2] == "became_leader"
        assert 10 <= second[3] - first[3] <= 20 and 5 <= second[4] <= 9 and 1 <= along[4] - second[4] <= 3
    assert all(later[0][3] - one[0][3] >= 1_000 for one, later in pairwise(runs))
    assert len({run[1][1] for run in runs}) > 1, "each run has a victim of its own"


def test_no_run_begins_when_the_cluster_is_to_recover() -> None:
    """Rule: the last seconds are free; a chain with moments of its own keeps those."""
    assert max(row[3] for row in drawn()) < PLAN.safety_ms - 2_900
    moments = Chain(label="c", links=(Link(kinds=("crash",)),), moments=(4, 19_999))
    assert [row[3] for row in drawn(moments)] == [4, 19_999]


def test_a_request_is_of_a_topic_or_partition_and_clients_keep_theirs() -> None:
    """Rule: what a request is about is any topic or partition; a deletion spares the first topic."""
    topics = (TopicOptions(), TopicOptions(name="u", partitions=2))
    plan = Plan(seed=0, safety_ms=60_000, cluster=ClusterOptions(brokers=3, topics=topics))
    links = (Link(kinds=("delete_topic",)), Link(kinds=("reassign_move",)), Link(kinds=("clean_restart",)))
    rows = drawn(Chain(label="c", links=links, gap_ms=(500, 900)), plan)
    of = {kind: {target for each, target, *_ in rows if each == kind} for kind, *_ in rows}
    assert of["delete_topic"] == {"topic u"}
    assert of["reassign_move"] == {"partition t-0", "partition u-0", "partition u-1"}
    assert of["clean_restart"] == {"leader of t-0"}


def test_drawn_chains_are_of_many_kinds_roles_and_steps() -> None:
    """Rule: a plan has few of each, again and again; all plans together have nearly all steps that there
    are."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        faults = [one for one in alone(seed, "chained").faults if one.fault_id < 1_000]
        kinds, steps = {one.kind for one in faults}, {one.follows for one in faults}
        assert len(kinds) <= 8 and len(steps) <= 5, seed
        seen.update(steps)
    assert {"", "appended", "became_leader", "isr_updated", "truncated", "high_watermark"} <= set(seen)
    assert set(seen) <= {"", *FOLLOWED}


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_found_in_a_healthy_cluster(seed: int) -> None:
    """Rule: a drawn chain shows nothing where no protection is missing."""
    assert not [one for verdict in judge(run(alone(seed, "chained"))) for one in verdict.findings]
