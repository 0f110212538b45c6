"""The adversary and the log: nothing promised is lost, nothing is invented, whatever the disk does; and the same on real files."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.campaign.machines.disk_rot import DiskMachine
from fencepost.campaign.machines.real_machine import RealMachine

SETTINGS = settings(
    max_examples=120,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_the_log_survives_the_simulated_disk():
    """Rule: flushed records survive, the rest is a clean prefix, nothing is invented, and an error of the disk ends the service until recovery."""
    run_state_machine_as_test(DiskMachine, settings=SETTINGS)


def test_the_same_machine_on_real_files():
    """Rule: what holds on the simulated disk holds on real files, crashes of the process included."""
    run_state_machine_as_test(RealMachine, settings=settings(SETTINGS, max_examples=12))
