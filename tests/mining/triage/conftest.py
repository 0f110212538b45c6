"""Runs of two planted bugs and healthy ones, and what mining says of them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # helper modules of this folder

from triage_runs import BAD, HEALTHY, Mined, write

from fencepost.campaign.swarm.swarm import swarm
from fencepost.mining.mine import mine
from fencepost.run.simulated.run import run


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[Mined]:
    """Eight bad runs of two bugs among 24 healthy ones, mined with all tables."""
    bug_of = {seed: bug for bug, seeds in BAD.items() for seed in seeds}
    runs = [run(swarm(seed, "default", (bug,))) for seed, bug in bug_of.items()]
    runs += [run(swarm(seed, "default")) for seed in HEALTHY]
    folder = tmp_path_factory.mktemp("triage")
    write(folder / "in", runs, group_operations=900)
    summary = mine([folder / "in"], folder / "out", spark=spark, tables=True)
    yield Mined(folder / "in", folder / "out", summary, runs, bug_of)
