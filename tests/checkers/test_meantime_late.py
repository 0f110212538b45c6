"""Where messages come late by chance, no judge of the meantime states a bound that one of them may break."""

from attrs import evolve

from fencepost.checkers.meantime.calm import is_asked, row_ns
from fencepost.checkers.meantime.options import options_of
from fencepost.checkers.meantime.recovery import bounds_of
from fencepost.traces.plan import NetworkOptions, Plan
from fencepost.traces.plan_json import plan_to_json


def test_late_messages_leave_no_bound() -> None:
    """Rule (JUSTIFIED): heartbeats that come seconds late end a session without a fault (seed 2000023 of the
    profile transactions, `needless_expulsion`)."""
    plain = Plan(seed=1, network=NetworkOptions())
    late = evolve(plain, network=NetworkOptions(late_ppm=3_000, late_max_us=2_000_000))
    before, after = (options_of(plan_to_json(plan)) for plan in (plain, late))
    assert before is not None and after is not None
    assert is_asked(before.network) and bounds_of(before) is not None
    assert not is_asked(after.network) and bounds_of(after) is None
    assert row_ns(after.network, 4) == row_ns(before.network, 4) + 3 * 2_000_000_000
