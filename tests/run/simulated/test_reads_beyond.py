"""Runs with a broker that serves more than is committed: its answers convict it before anything is lost."""

import pytest

from fencepost.campaign.swarm.swarm import swarm
from fencepost.checkers.judges import judge
from fencepost.impl.messages.broker_api import FetchRequest
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.replication.partition import Partition
from fencepost.run.simulated.run import run


def up_to_the_log_end(self: LeaderRole, partition: Partition, request: FetchRequest, stable: int) -> int:
    """Whatever is in the leader's log."""
    return partition.log.log_end_offset


def up_to_the_high_watermark(
    self: LeaderRole, partition: Partition, request: FetchRequest, stable: int
) -> int:
    """Open transactions, too."""
    return partition.high_watermark


def found(profile: str) -> set[str]:
    """The reads that the invariants convict."""
    return {
        finding.expected
        for verdict in judge(run(swarm(8, profile)), ("invariants",))
        for finding in verdict.findings
        if finding.anomaly == "read_outside_bounds"
    }


@pytest.mark.parametrize(
    ("plants", "profile", "bound"),
    [
        (up_to_the_log_end, "default", "high watermark"),
        (up_to_the_high_watermark, "transactions", "last stable offset"),
    ],
)
def test_a_broker_that_serves_too_much_is_convicted_by_its_answers(
    monkeypatch, plants, profile, bound
) -> None:
    """The same run of the correct broker has no such finding."""
    assert not found(profile)
    monkeypatch.setattr(LeaderRole, "readable_end", plants)
    assert any(bound in expected for expected in found(profile))
