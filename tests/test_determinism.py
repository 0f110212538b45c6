"""The same seed gives the same run, in any process on any machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PING_WORLD = Path(__file__).parent / "sim" / "ping_world.py"


def log_of(seed: int, hash_seed: str) -> list[str]:
    """The toy world's log, from a process of its own."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    result = subprocess.run(
        [sys.executable, str(PING_WORLD), str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.splitlines()


def test_a_world_of_pings_and_all_faults_is_the_same_in_two_processes():
    """Nothing of the simulated world depends on hash order, addresses or the process: the logs are equal line
    by line."""
    first, second = log_of(5, "1"), log_of(5, "4711")
    assert first == second
    told = "\n".join(first)
    for sign in ("Pong", "PowerLossReport", "ZooKeeperSessionExpired", "CONNECTION_LOSS", "by_expiry=True"):
        assert sign in told, f"the toy run never showed {sign}"
    assert len(first) > 10_000


def test_another_seed_gives_another_world():
    """The seed matters: two seeds do not share their log."""
    assert log_of(5, "0") != log_of(6, "0")


RUN = (
    "from fencepost.run.simulated.run import run; from fencepost.campaign.swarm.swarm import swarm; "
    "print(run(swarm({seed})).digest)"
)


def digest_of(seed: int, hash_seed: str) -> str:
    """The digest of a swarm run, from a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", RUN.format(seed=seed)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()


@pytest.mark.parametrize("seed", [3, 20])
def test_a_run_has_the_same_digest_in_two_processes(seed):
    """The whole of a run, brokers, clients, faults and claims, depends on its plan alone and not on hash
    order or the process."""
    first, second = digest_of(seed, "1"), digest_of(seed, "4711")
    assert first == second and len(first) == 32
