"""Ends every run with what each test folder took, also when xdist spreads the tests over processes."""

import gc
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from fencepost.processes import forking
from fencepost.processes.begin import settle

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # begun in the background of a shell: programs under test would inherit that, and could not be interrupted
    # by the tests that do so
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Hypothesis draws some values from the constants of the loaded modules. So the examples of a test, and
# whether it finds a planted bug, would depend on the tests that ran before it in the same process.
NO_CONSTANTS = providers.Constants()
setattr(providers, "_get_local_constants", lambda: NO_CONSTANTS)  # noqa: B010  (no setting for it)


# A busy machine makes an example slow, and that is no failure. Who chose a profile keeps it (tools/mutation).
if settings.get_current_profile_name() == "default":
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")


# xdist says how wide its terminal is; programs under test have none, and would fold their tables
os.environ.pop("COLUMNS", None)

# A Spark of these tests lives for seconds: the JVM's second compiler costs it more than it gives. So do
# Spark's own launchers.
for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(name, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


# Modules, tests and what they are made of stay. To look for garbage in them costs a fifth of what collecting
# the tests costs, and something in every later search (pytest_collection_finish).
gc.disable()


@define(kw_only=True)
class FolderTimes:
    """What one test folder took."""

    tests: int = 0
    # Seconds summed over its tests.
    busy: float = 0.0
    # Wall clock of its earliest start and latest end.
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

    def __init__(self, seconds: str | None) -> None:
        self.folders: dict[str, FolderTimes] = defaultdict(FolderTimes)
        # Where it is written what each file took; None: nowhere.
        self.seconds = seconds
        self.files: dict[str, float] = defaultdict(float)
        # Tests that did not begin in time, by file.
        self.late: dict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.folders[folder_of(report.nodeid)].add(report)
        file = report.nodeid.partition("::")[0]
        self.files[file] += report.duration
        self.late[file] += report.skipped and LATE in str(report.longrepr)

    def _write_seconds(self, path: Path) -> None:
        known = json.loads(path.read_text()) if path.exists() else {}
        known |= {file: round(took, 2) for file, took in self.files.items() if not self.late[file]}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=0, sort_keys=True))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.folders:
            return
        if self.seconds is not None:
            self._write_seconds(Path(self.seconds))
        if late := {file: count for file, count in sorted(self.late.items()) if count}:
            terminalreporter.section("left out: the time was over")
            for file, count in late.items():
                terminalreporter.write_line(f"{file}: {count} tests")
        terminalreporter.section("time per test folder")
        terminalreporter.write_line(f"{'folder':<28}{'tests':>7}{'busy s':>9}{'wall s':>9}")
        for name, times in sorted(self.folders.items()):
            wall = times.last - times.first
            terminalreporter.write_line(f"{name:<28}{times.tests:>7}{times.busy:>9.1f}{wall:>9.1f}")


LATE = "the time was over"
"""Why a test was skipped that did not begin in time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, help="begin no test later: seconds since 1970")
    parser.addoption("--seconds", help="write what each file took to this file")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whatever a bounded run (tools/check.py) left out in its plan, it also ends in time."""
    until = item.config.getoption("--until")
    if until is not None and time.time() >= until:
        pytest.skip(LATE)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        summary = FolderSummary(config.getoption("--seconds"))
        config.pluginmanager.register(summary, "fencepost-folder-summary")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that needs Spark is in a file that xdist gives to the worker with the session."""
    astray = {
        item.location[0]
        for item in items
        if item.get_closest_marker("spark") and unit_of(item.nodeid) != SPARK
    }
    if astray:
        raise pytest.UsageError(f"TOGETHER in tests/conftest.py lacks files with tests on Spark: {astray}")


@pytest.fixture(scope="session", autouse=True)
def loaded_once() -> Iterator[None]:
    """Workers of campaigns, checks and clusters that this process starts are forked. Those of other processes
    under test are not: `kept` is closed there."""
    with forking.kept():
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What the tests themselves make is collected as in a process of ours."""
    settle()


SPARK = "spark"
TOGETHER = {
    SPARK: ("tests/mining/", "tests/cli/test_demo.py", "tests/cli/test_watch.py"),
    "viewer": ("tests/viewer/",),
}
"""Files that share what is expensive to make, a Spark session or runs of the simulator: one worker gets all
of a group. The groups of xdist (--dist loadgroup) have no effect since pytest 9.2: pytest-xdist 1386."""
FIRST = (
    "mining", "proxy", "kafka", "torture", "campaign", "cli", "model", "checkers", "parity", "systems",
    "blame", "tools", "pytest_plugin",
)  # fmt: skip
"""Folders with tests that take long, which begin first: at the end there are only short ones, and no worker
waits long for another."""


def unit_of(nodeid: str) -> str:
    """What goes to one worker of xdist: the file of a test, or a group of files."""
    path = nodeid.partition("::")[0]
    return next((group for group, paths in TOGETHER.items() if path.startswith(paths)), path)


def _turn(unit: str) -> int:
    """The place of a unit in the order of FIRST."""
    folder = "mining" if unit == SPARK else unit.split("/")[1] if "/" in unit else unit
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Of -n auto: three for two processors, because tests wait for clusters, clients and JVMs."""
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None  # who says how many gets as many
    return (3 * len(os.sched_getaffinity(0)) + 1) // 2 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under --dist loadfile all tests of a unit go to one worker: what they share is made once."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByUnit(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            if config.getoption("--until") is None:
                self.workqueue.move_to_end(min(self.workqueue, key=_turn), last=False)
            super()._assign_work_unit(node)

    return ByUnit(config, log)


def running_context() -> Any:
    """Spark's context of this process, or None."""
    module = sys.modules.get("pyspark.core.context")
    return module.SparkContext._active_spark_context if module is not None else None


@contextmanager
def session_kept(nodeid: str, running: Callable[[], object] = running_context) -> Iterator[None]:
    """A test that stops the Spark session of all tests fails itself, not the next test that needs it."""
    before = running()
    yield
    assert before is None or running() is before, f"{nodeid} stopped the session of all tests"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Each test is held to it."""
    with session_kept(item.nodeid):
        return (yield)
