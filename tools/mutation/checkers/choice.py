"""Which tests run which line of a checker's rules, and pytest in a forked process.

Owns: what a process of a fault does. Third-party packages are imported before processes are forked;
`fencepost` and the tests are imported in each process anew, with one module from the mutated source. Kernels
run uncompiled: compiling costs more than these tests do. A test that starts a Python of its own meets the
unmutated source there. Must not know how faults are found or what answers mean.
"""

import os
import sys
import tempfile
from collections import defaultdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from attrs import field, frozen

from fencepost.traces.errors import EnvironmentError_
from tools.ledger import TOP, digest
from tools.mutation.checkers.plugin import AT_IMPORT, Choice, Reach, quick_hypothesis
from tools.mutation.checkers.table import Checker
from tools.mutation.fault import Fault, module_of
from tools.mutation.planting import plant
from tools.mutation.workers import in_a_child

WARM = ("hypothesis.stateful", "numba", "numpy", "pyarrow.parquet", "pytest", "rich.table", "rich_click")
"""Third-party packages that processes find imported already."""
OURS = ("fencepost", "tests", "conftest")
QUIET = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark", "-p", "no:randomly"),
    "--assert=plain",
)
"""Plain assertions: pytest would load every module of ours itself, and pass the planted one over."""
BASELINE_S = 1800
"""Of processor time, for all tests of a checker with every line watched."""
SHOWN = 300
"""Characters of what pytest printed."""


@frozen(kw_only=True)
class Watched:
    """What a checker's tests do without a fault."""

    code: int
    # The first that failed.
    test: str
    said: str
    # File, line, test.
    reach: tuple[tuple[str, int, str], ...] = ()
    times: dict[str, float] = field(factory=dict)


@frozen(kw_only=True)
class Reached:
    """by_line: tests by file and line; seconds: of each test; slow: those that are left out."""

    by_line: dict[tuple[str, int], frozenset[str]]
    seconds: dict[str, float]
    slow: tuple[str, ...]

    def tests_of(self, fault: Fault) -> list[str]:
        """The tests that run the fault, quick ones first."""
        lines = range(fault.lines[0], fault.lines[1] + 1)
        found = frozenset().union(*(self.by_line.get((fault.file, line), frozenset()) for line in lines))
        everyone = fault.at_import or AT_IMPORT in found
        chosen = [test for test in self.seconds if (everyone or test in found) and test not in self.slow]
        return sorted(chosen, key=lambda test: (self.seconds[test], test))


def preload() -> None:
    """In the parent, once."""
    for name in WARM:
        import_module(name)


def _pytest(paths: tuple[str, ...], plugin: object, *more: str) -> tuple[int, str]:
    """The exit code, and the end of what it printed. Whatever of ours is imported is imported again."""
    import numba
    import pytest

    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    os.chdir(TOP)
    if str(TOP) not in sys.path:
        sys.path.insert(0, str(TOP))
    os.environ.update(NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")
    numba.config.DISABLE_JIT = True
    quick_hypothesis()
    with tempfile.TemporaryFile() as said:
        for number in (1, 2):
            os.dup2(said.fileno(), number)
        code = pytest.main([*more, *paths, *QUIET, "--tb=no", "-o", "timeout=0"], plugins=[plugin])
        sys.stdout.flush()
        said.seek(0)
        return int(code), said.read().decode(errors="replace").strip()[-SHOWN:]


def watched(paths: tuple[str, ...], files: frozenset[str]) -> Watched:
    """In a forked process: the tests without a fault, with every line of these files watched."""
    reach = Reach(TOP, files)
    reach.begin()
    code, said = _pytest(paths, reach)
    sys.settrace(None)
    rows = [(file, line, test) for (file, line), tests in reach.lines.items() for test in sorted(tests)]
    failed = next(iter(reach.failed), "")
    return Watched(code=code, test=failed, said=said, reach=tuple(rows), times=reach.seconds)


def tested(fault: Fault, tests: tuple[tuple[str, float], ...]) -> tuple[int, str]:
    """In a forked process: the exit code of a fault's tests, and the first that failed. tests: in order, and
    the seconds of processor time after which each ends the process."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    origin = str(TOP / fault.file)
    try:
        plant(module_of(fault.file), fault.applied((TOP / fault.file).read_bytes()), origin)
    except SyntaxError as error:
        return 1, str(error)
    choice = Choice({test: (number, limit) for number, (test, limit) in enumerate(tests)})
    paths = tuple(dict.fromkeys(test.split("::")[0] for test, _ in tests))
    code, _ = _pytest(paths, choice, "-x")
    return code, choice.failed


def paths_of(checker: Checker) -> tuple[str, ...]:
    """The checker's test files and folders that exist."""
    found = [path for pattern in checker.tests for path in sorted(TOP.glob(pattern))]
    return tuple(os.path.relpath(path, TOP) for path in found)


def tests_digest(checker: Checker) -> str:
    """Of everything that decides which test runs which line."""
    found: set[Path] = {TOP / file for file in checker.files()}
    for path in (TOP / place for place in (*paths_of(checker), "tests/checkers")):
        found.update(path.glob("*.py") if path.is_dir() else [path])
    return digest(found)


def reach_of(checker: Checker, out: Path) -> Reached:
    """Run the checker's tests without a fault; or what that gave the last time, if nothing changed since.
    Raises EnvironmentError_ if they fail."""
    kept, source = out / f"{checker.name}.reach.json", tests_digest(checker)
    answer: Any = None
    if kept.exists():
        known, answer = msgspec.json.decode(kept.read_bytes(), type=tuple[str, Watched])
        answer = answer if known == source else None
    if answer is None:
        ended = in_a_child(partial(watched, paths_of(checker), frozenset(checker.files())), BASELINE_S)
        answer = ended.answer
        if answer is None or answer.code:
            raise EnvironmentError_(
                expected="tests that pass without a fault",
                seen=ended.died or answer.test or answer.said,
                where=f"the tests of {checker.name}",
            )
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(msgspec.json.encode((source, answer)))
    by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
    for file, line, test in answer.reach:
        by_line[file, line].add(test)
    slow = tuple(sorted(test for test, seconds in answer.times.items() if seconds > checker.slowest_s))
    return Reached(
        by_line={place: frozenset(tests) for place, tests in by_line.items()}, seconds=answer.times, slow=slow
    )
