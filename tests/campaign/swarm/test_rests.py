"""A rest is longer than any reaction may take that is owed in it."""

import pytest
from attrs import evolve

from fencepost.campaign.swarm.profiles import PROFILES
from fencepost.campaign.swarm.rests import AWAY_IDS, REST_MS
from fencepost.campaign.swarm.subset import SCHEDULES
from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.liveness import ROWS
from fencepost.checkers.liveness.forms import Form
from fencepost.record.settings import MILLISECOND, settings_of
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
            for seed in range(100)
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
    assert len(bursts) >= 30
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
