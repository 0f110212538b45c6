"""What runs inside the pytest of a fault: which tests reach which line, and the choice and order of tests.

Must not know faults or processes. Hypothesis does not shrink here: that a test fails is all that is asked.
"""

import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from attrs import define, field
from hypothesis import Phase, settings

AT_IMPORT = ""
"""Stands for every test: the line runs when modules are imported, or in what tests share."""


def quick_hypothesis() -> None:
    """No shrinking, no database, the same examples each time."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(
        "mutation", settings(phases=phases, database=None, derandomize=True, deadline=None)
    )
    settings.load_profile("mutation")


CALLS, LINES = 300, 3_000
"""Of one function by one test, and of one call, that are watched: kernels run uncompiled, and watching costs
several times what they do."""


@define(eq=False)
class Reach:
    """Watches the lines of some files."""

    top: Path
    files: frozenset[str]
    watch: bool = True
    test: str = AT_IMPORT
    # (file, line) -> tests that reached it.
    lines: dict[tuple[str, int], set[str]] = field(factory=lambda: defaultdict(set))
    # What each test took.
    seconds: dict[str, float] = field(factory=dict)
    # Those that did.
    failed: list[str] = field(factory=list)
    _known: dict[str, str] = field(factory=dict)
    _calls: Counter[CodeType] = field(factory=Counter)
    _left: int = LINES

    def begin(self) -> None:
        """From here on lines are watched, in every thread."""
        if self.watch:
            threading.settrace(self._call)
            sys.settrace(self._call)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        file = self._known.get(name)
        if file is None:
            path = Path(name)
            inside = path.is_relative_to(self.top)
            file = str(path.relative_to(self.top)) if inside else "-"
            file = self._known[name] = file if file in self.files else "-"
        if file == "-":
            return None
        self._calls[frame.f_code] += 1
        if self._calls[frame.f_code] > CALLS:
            return None
        self._left = LINES
        self.lines[file, frame.f_lineno].add(self.test)
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.lines[self._known[frame.f_code.co_filename], frame.f_lineno].add(self.test)
        self._left -= 1
        return self._line if self._left > 0 else None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.test = item.nodeid
        self._calls.clear()
        started = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - started
        self.test = AT_IMPORT

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


@define(eq=False)
class Choice:
    """Runs only some tests, in their order; one that takes longer than its processor time ends the
    process."""

    # Place and seconds.
    order: dict[str, tuple[int, float]]
    # The first that did.
    failed: str = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid][0])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        signal.setitimer(signal.ITIMER_PROF, self.order[item.nodeid][1])
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (import)"
