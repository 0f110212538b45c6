"""The rules of the log machine on real files."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.machines.log.test_log_machine import SETTINGS
from tests.selfcheck.log.real_machine import RealMachine


def test_the_same_machine_on_real_files():
    """Rule: what holds on the simulated disk holds on real files, crashes of the process included."""
    run_state_machine_as_test(RealMachine, settings=settings(SETTINGS, max_examples=12))
