"""Overrides of topics: a broker obeys those that it knows, and one that does not is found."""

from collections.abc import Callable

import pytest

from fencepost.campaign.faults.configuration_change import CHANGES
from fencepost.campaign.run.run import Run
from fencepost.checkers.meantime import judge
from fencepost.impl.core import topic_config
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.traces.plan import ClusterOptions, Fault, Plan, PlannedOperation


def found(parameter: int) -> set[str]:
    """What is found of a run in which an operator makes one change."""
    change = Fault(
        fault_id=0, kind="alter_topic", at_ms=500, duration_ms=0, target="topic t", parameter=parameter
    )
    plan = Plan(
        seed=3,
        safety_ms=2_000,
        cluster=ClusterOptions(zookeeper_session_timeout_ms=1_500),
        operations=tuple(
            PlannedOperation(op_id=n, process=0, at_ms=100 * n, function="append") for n in range(1, 15)
        ),
        faults=(change,),
    )
    return {one.anomaly for one in judge(Run(plan).run()).findings}


@pytest.mark.parametrize("parameter", range(1, len(CHANGES)))
def test_a_healthy_broker_obeys(parameter: int) -> None:
    """Rule (AGREED): whatever an operator changes."""
    assert found(parameter) == set()


def _refuses(text: str) -> bool:
    raise ValueError(text)


FAULTS: list[tuple[int, Callable[[pytest.MonkeyPatch], None]]] = [
    (
        3,
        lambda patch: patch.setitem(
            topic_config.SETTINGS,  # type: ignore[arg-type]
            "unclean.leader.election.enable",
            topic_config.Setting("unclean_leader_election", _refuses, ""),
        ),
    ),
    (5, lambda patch: patch.setattr(SegmentedLog, "configure", lambda self, options: None)),
]


@pytest.mark.parametrize(("parameter", "fault"), FAULTS, ids=["value refused", "log not configured"])
def test_an_override_without_effect_is_found(
    parameter: int, fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule (STYLE 12): nothing is trusted until it has failed on purpose."""
    fault(monkeypatch)
    assert found(parameter) == {"stale_belief"}
