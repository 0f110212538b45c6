"""The adversary and the log: nothing promised is lost, nothing is invented, whatever the disk does; and the same on real files."""

import shutil
import tempfile

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.campaign.machines.disk_machine import DiskMachine
from fencepost.campaign.machines.log_machine import LogMachine
from fencepost.impl.runtime.files import RealFiles

SETTINGS = settings(
    max_examples=150,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class RealMachine(LogMachine):
    """On real files."""

    def make_files(self):
        self.where = tempfile.mkdtemp(prefix="fencepost-log-")
        return RealFiles(self.where)

    def teardown(self):
        super().teardown()
        shutil.rmtree(self.where)


def test_the_log_survives_the_simulated_disk():
    """Rule: flushed records survive, the rest is a clean prefix, nothing is invented, and an error of the disk ends the service until recovery."""
    run_state_machine_as_test(DiskMachine, settings=SETTINGS)


def test_the_same_machine_on_real_files():
    """Rule: what holds on the simulated disk holds on real files, crashes of the process included."""
    run_state_machine_as_test(RealMachine, settings=settings(SETTINGS, max_examples=12))
