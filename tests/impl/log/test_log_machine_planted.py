"""The log machine counts because it fails on purpose: each bug that is planted here is found, and the log without it is not complained about.

Bugs that take too many steps to be met here within seconds (KAFKA-4529, KAFKA-5490, a page cache trusted after a failed sync) are planted in
test_cleaner.py and test_segmented_recovery.py.
"""

import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.campaign.machines.disk_machine import DiskMachine
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.layout import CLEAN_SHUTDOWN
from fencepost.impl.log.log_checkpoints import take_clean_shutdown_marker
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.recovery import LogRecovery
from fencepost.impl.log.retention import Retention
from fencepost.impl.log.segmented_log import LogOfflineError, SegmentedLog

SETTINGS = settings(
    max_examples=4_000,
    stateful_step_count=50,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    print_blob=False,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class NoChecksums(LogRecovery):
    def recover_segment(self, segment):
        expected = None if self.options.compact else segment.base_offset
        return segment.recover(expected, self._see, check_crc=False)


class MarkerGoesLast(LogDirectory):
    def take_marker_first(self):
        self.clean = self.files.exists(CLEAN_SHUTDOWN)

    def loaded(self):
        take_clean_shutdown_marker(self.files)


class DeletesWhatIsNotCommitted(Retention):
    def below_high_watermark(self, end_offset, high_watermark):
        return True


class ProducersFirst(SegmentedLog):
    def _append(self, data, headers):
        SegmentedLog.update_producers(self, data, headers)
        super()._append(data, headers)

    def update_producers(self, data, headers):
        pass


class FlushesNothing(SegmentedLog):
    def flush(self):
        with self.in_service("flush"):
            self.recovery_point = self.log_end_offset


class GoesOnAfterErrors(SegmentedLog):
    @contextmanager
    def in_service(self, what):
        try:
            yield
        except OSError as error:
            raise LogOfflineError(expected="a log", seen=str(error), where=what) from error


class CompactsWhatIsNotCommitted(Cleaner):
    def clean_below(self, high_watermark):
        return self.log.segments.active.base_offset


PLANTED = {
    "recovery compares no checksums": ({"recovery_type": NoChecksums}, "CRC-32C"),
    "KAFKA-10471": ({"directory_type": MarkerGoesLast}, "taken for clean"),
    "retention above the high watermark": ({"retention_type": DeletesWhatIsNotCommitted}, "deleted too much"),
    "KAFKA-6683": ({"log_type": ProducersFirst}, "[Pp]roducer"),
    "a flush that syncs nothing": ({"log_type": FlushesNothing}, "lost: "),
    "a log that goes on after an error of the disk": (
        {"log_type": GoesOnAfterErrors},
        "appended at|lost|hole|bad",
    ),
    "KAFKA-13194": ({"cleaner_type": CompactsWhatIsNotCommitted}, "hole: "),
}
"""Of each bug: the part that has it, and what the machine complains of."""


def complaint(error: BaseException) -> str:
    """What was raised, inside whatever Hypothesis wrapped around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


def hunt(name: str) -> str:
    """What the machine complains of with this bug planted; "" if it finds nothing."""
    machine = type("Planted", (DiskMachine,), dict(PLANTED[name][0]))
    try:
        run_state_machine_as_test(machine, settings=SETTINGS)
    except BaseException as error:
        return complaint(error)
    return ""


@pytest.mark.parametrize("name", PLANTED)
def test_the_machine_finds_a_planted_bug(name):
    """Rule: nothing is trusted until it has failed on purpose, and for the right reason.

    In a process of its own: Hypothesis also draws constants out of whatever modules are loaded, so that the examples would depend on
    which tests ran before.
    """
    told = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
    assert re.search(PLANTED[name][1], told.stdout), told.stdout


if __name__ == "__main__":
    sys.stdout.write(hunt(sys.argv[1]))
