"""A rest is longer than any reaction may take that is owed in it."""

import pytest
from attrs import evolve

from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.swarm.rests import AWAY_IDS, OUTSIDE_IDS, REST_MS
from fencepost.campaign.swarm.subset import SCHEDULES
from fencepost.campaign.swarm.swarm import swarm
from fencepost.campaign.swarm.transaction_draws import FIRST_OPERATION, FIRST_READ, LEFT_MS
from fencepost.checkers.liveness import ROWS
from fencepost.checkers.liveness.forms import Form
from fencepost.record.settings import MILLISECOND, settings_of
from fencepost.run.faults.table import FAULTS
from fencepost.traces.plan_json import plan_to_json

LONGEST_MS = 10_000
ALWAYS = evolve(PROFILES["default"], rests=100, **dict.fromkeys(SCHEDULES, 0))
BOUNDED = (Form.HOLD, Form.FOLLOW, Form.NEVER)
"""Forms whose bound is a part of a calm; that of a cause says how far back one is looked for."""


@pytest.fixture(scope="module")
def plans():
    """Plans with rests, of groups and transactions too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "default", ALWAYS)
        return [
            swarm(seed, f"default+{feature}")
            for feature in ("producers", "groups", "transactions")
            for seed in range(40)
        ]


def test_no_bound_is_longer_than_ten_seconds(plans):
    for plan in plans:
        settings = settings_of(plan_to_json(plan), ())
        longest = max((row.bound(settings), row.name) for row in ROWS if row.form in BOUNDED)
        assert longest[0] <= LONGEST_MS * MILLISECOND, (plan.seed, longest)
    assert REST_MS[0] >= LONGEST_MS


def test_in_a_rest_no_fault_begins_but_that_of_a_broker_that_stays_away(plans):
    """Faults end with their burst; what is asked for and stops in order goes on where nothing breaks."""
    bursts = [plan for plan in plans if any(fault.fault_id >= AWAY_IDS for fault in plan.faults)]
    assert len(bursts) >= 12
    for plan in bursts:
        begins = sorted((fault.at_ms, fault.duration_ms) for fault in plan.faults if fault.duration_ms)
        away = [fault for fault in plan.faults if AWAY_IDS <= fault.fault_id < AWAY_IDS + 3]
        for one in away:
            within = [at for at, _ in begins if one.at_ms + 1 < at < one.at_ms + REST_MS[0]]
            assert not within, (plan.seed, one, within)


def test_calm_is_quick_and_loses_nothing(plans):
    for plan in plans:
        net = plan.network
        assert net.latency_max_us <= 50_000
        assert not (net.loss_ppm or net.duplicate_ppm or net.reorder_ppm or net.late_ppm)


def test_a_replica_outside_the_isr_is_the_only_one_left_for_a_rest():
    """Rule (unclean.leader.election.enable): it comes back when all others have gone, and they stay away."""
    plans = [swarm(seed, "default+unclean") for seed in range(30)]
    found = [[fault for fault in plan.faults if OUTSIDE_IDS <= fault.fault_id < 3_200] for plan in plans]
    assert sum(map(bool, found)) >= 8
    for plan, faults in zip(plans, found, strict=True):
        for first in (fault for fault in faults if fault.fault_id % 10 == 0):
            others = [fault for fault in faults if 0 < fault.fault_id - first.fault_id < 10]
            assert len(others) == plan.cluster.topics[0].replication_factor - 1
            back_ms = first.at_ms + first.duration_ms
            assert all(one.at_ms < back_ms <= one.at_ms + one.duration_ms - 5_000 for one in others)


def test_transactions_are_left_open_in_calm_until_their_time_is_over():
    """Rule (transaction.timeout.ms): only the coordinator can end them, and nothing keeps it from that."""
    plans = [swarm(seed, "default+transactions") for seed in range(30)]
    crashes = range(FIRST_READ - 10, FIRST_READ)
    left = [
        (plan, next(one.at_ms for one in plan.operations if one.op_id == FIRST_READ - 1))
        for plan in plans
        if any(one.op_id in crashes for one in plan.operations)
    ]
    assert len(left) >= 6
    for plan, at_ms in left:
        back_ms = at_ms + plan.transform.transaction_timeout_ms + LEFT_MS
        mine = [one.at_ms for one in plan.operations if FIRST_OPERATION <= one.op_id < FIRST_READ - 10]
        assert plan.safety_ms >= back_ms and not any(at_ms <= one < back_ms for one in mine)
        broken = [one for one in plan.faults if FAULTS[one.kind].ask is None]
        assert not any(one.at_ms < back_ms and one.at_ms + one.duration_ms > at_ms for one in broken)
