"""Names of messages are data: a class may be renamed, and no seed changes its run."""

from typing import get_args

from fencepost.campaign.swarm.swarm import swarm
from fencepost.impl.messages import broker_api
from fencepost.impl.messages.names import NAMES
from fencepost.impl.zookeeper.interface import REQUESTS, ZooKeeperRequest
from fencepost.run.simulated.run import run
from fencepost.sim.zookeeper import FRAMES

TABLES = (NAMES, REQUESTS, FRAMES)


def test_every_message_has_a_name_of_its_own() -> None:
    assert set(NAMES) == set(get_args(broker_api.Message))
    assert set(get_args(ZooKeeperRequest)) <= set(REQUESTS)
    for table in TABLES:
        assert len(set(table.values())) == len(table)


def test_a_renamed_class_changes_no_run() -> None:
    plan = swarm(7, "default+transactions")
    before = run(plan).digest
    kinds = [kind for table in TABLES for kind in table]
    names = [(kind.__name__, kind.__qualname__) for kind in kinds]
    try:
        for number, kind in enumerate(kinds):
            kind.__name__ = kind.__qualname__ = f"Renamed{number}"
        assert run(plan).digest == before
    finally:
        for kind, (name, qualified) in zip(kinds, names, strict=True):
            kind.__name__, kind.__qualname__ = name, qualified
