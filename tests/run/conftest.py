"""What the tests of runs share."""

import pytest
from attrs import evolve

from fencepost.traces.plan import Plan, PlannedOperation


def _small_plan(**changes: object) -> Plan:
    """One topic of one partition, appends and polls by two clients over ten seconds."""
    operations = tuple(
        PlannedOperation(
            op_id=number, process=number % 2, at_ms=number * 250, function="append" if number % 3 else "poll"
        )
        for number in range(1, 40)
    )
    return evolve(Plan(seed=7, safety_ms=10_000, operations=operations), **changes)


@pytest.fixture
def small_plan():
    """A maker of small plans: small_plan(field=value, ...)."""
    return _small_plan
