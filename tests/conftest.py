"""Ends every run with what each test folder took, also when xdist spreads the tests over processes."""

import os
import signal
from collections import defaultdict
from typing import Any

import pytest
from attrs import define
from hypothesis.internal.conjecture import providers

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # begun in the background of a shell: programs under test would inherit that, and could not be interrupted
    # by the tests that do so
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Hypothesis draws some values from the constants of the loaded modules. So the examples of a test, and
# whether it finds a planted bug, would depend on the tests that ran before it in the same process.
NO_CONSTANTS = providers.Constants()
setattr(providers, "_get_local_constants", lambda: NO_CONSTANTS)  # noqa: B010  (no setting for it)


# xdist says how wide its terminal is; programs under test have none, and would fold their tables
os.environ.pop("COLUMNS", None)

# A Spark of these tests lives for seconds: the JVM's second compiler costs it more than it gives. So do
# Spark's own launchers.
for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(name, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@define(kw_only=True)
class FolderTimes:
    """What one test folder took. busy: seconds summed over its tests; first, last: wall clock of its earliest
    start and latest end."""

    tests: int = 0
    busy: float = 0.0
    first: float = float("inf")
    last: float = 0.0

    def add(self, report: pytest.TestReport) -> None:
        """Count one phase (set-up, call, tear-down) of one test."""
        self.tests += report.when == "call" or (report.when == "setup" and report.skipped)
        self.busy += report.duration
        self.first = min(self.first, report.start)
        self.last = max(self.last, report.stop)


def folder_of(nodeid: str) -> str:
    """The test folder of a test: the first level below tests/."""
    parts = nodeid.split("::")[0].split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


class FolderSummary:
    """Collects the reports of all workers (xdist replays them in the controlling process)."""

    def __init__(self) -> None:
        self.folders: dict[str, FolderTimes] = defaultdict(FolderTimes)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.folders[folder_of(report.nodeid)].add(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.folders:
            return
        terminalreporter.section("time per test folder")
        terminalreporter.write_line(f"{'folder':<28}{'tests':>7}{'busy s':>9}{'wall s':>9}")
        for name, times in sorted(self.folders.items()):
            wall = times.last - times.first
            terminalreporter.write_line(f"{name:<28}{times.tests:>7}{times.busy:>9.1f}{wall:>9.1f}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FolderSummary(), "fencepost-folder-summary")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests that need Spark go to one worker of xdist (under --dist loadgroup), so that one session
    serves them."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
