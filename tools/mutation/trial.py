"""One checker's faults, each given to the tests that reach it.

Owns: the choice of tests, limits, what an answer means. Must not know processes or what is printed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from attrs import define, field, frozen

from fencepost.traces.errors import EnvironmentError_
from tools.mutation.bench import Answer, Task
from tools.mutation.checkers import TOP, Checker
from tools.mutation.faults import Fault
from tools.mutation.ledger import Ledger, Result
from tools.mutation.plugin import AT_IMPORT
from tools.mutation.pool import Pool

START_S = 15
"""Processor time allowed for importing and collecting."""
TIMES = 5
"""A fault may make its tests so many times slower before it counts as noticed by time."""
BASELINE_S = 1800


@frozen(kw_only=True)
class Reached:
    """What the tests do without a fault. by_line: tests by file and line; seconds: of each test; slow: those that are left out."""

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


def paths_of(checker: Checker, top: Path = TOP) -> tuple[str, ...]:
    """The checker's test files and folders that exist."""
    found = [path for pattern in checker.tests for path in sorted(top.glob(pattern))]
    return tuple(str(path.relative_to(top)) for path in found)


def reach(pool: Pool, checker: Checker) -> Reached:
    """Run the checker's tests without a fault, every line watched. Raises EnvironmentError_ if they fail."""
    task = Task(paths=paths_of(checker), watch=tuple(checker.files()), cpu_s=BASELINE_S)
    pool.ask(pool.idle()[0], task, "baseline")
    ((_, answer),) = pool.answers()
    if answer.code != 0:
        raise EnvironmentError_(
            expected="tests that pass without a fault",
            seen=answer.test or answer.died or answer.said.strip()[-300:] or f"exit code {answer.code}",
            where=f"the tests of {checker.name}",
        )
    by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
    for file, line, test in answer.reach:
        by_line[file, line].add(test)
    slow = tuple(sorted(test for test, seconds in answer.times.items() if seconds > checker.slowest_s))
    return Reached(
        by_line={place: frozenset(tests) for place, tests in by_line.items()}, seconds=answer.times, slow=slow
    )


def outcome(answer: Answer) -> tuple[str, str]:
    """(noticed or survived, by what)."""
    if answer.code == 0:
        return "survived", ""
    if answer.died:
        return "noticed", answer.died
    return "noticed", answer.test or f"exit code {answer.code}"


@define(eq=False)
class Trial:
    """Faults of one checker under trial. killers: by file and function, tests that noticed something there; they go first."""

    pool: Pool
    reached: Reached
    ledger: Ledger
    digests: dict[str, str]
    sources: dict[str, bytes]
    killers: dict[tuple[str, str], Counter[str]] = field(factory=lambda: defaultdict(Counter))

    def run(self, faults: list[Fault], heard: Callable[[int, Result], None]) -> None:
        """Try every fault; each result is written, then told."""
        todo = list(reversed(faults))
        done = 0
        while todo or any(bench.given is not None for bench in self.pool.benches):
            for bench in self.pool.idle():
                while todo and bench.given is None:
                    fault = todo.pop()
                    tests = self._ordered(fault)
                    if tests:
                        self.pool.ask(bench, self._task(fault, tests), fault)
                    else:
                        done += 1
                        heard(done, self._keep(fault, "unreached", "", 0.0))
            if any(bench.given is not None for bench in self.pool.benches):
                for fault, answer in self.pool.answers():
                    what, by = outcome(answer)
                    if what == "noticed":
                        self.killers[fault.file, fault.scope][by] += 1
                    done += 1
                    heard(done, self._keep(fault, what, by, answer.seconds))

    def _ordered(self, fault: Fault) -> list[str]:
        tests = self.reached.tests_of(fault)
        often = self.killers[fault.file, fault.scope]
        first = [test for test, _ in often.most_common(2) if test in tests]
        return first + [test for test in tests if test not in first]

    def _task(self, fault: Fault, tests: list[str]) -> Task:
        limit = START_S + TIMES * sum(self.reached.seconds[test] for test in tests)
        after = fault.applied(self.sources[fault.file]).decode()
        return Task(file=fault.file, after=after, tests=tuple(tests), cpu_s=int(limit))

    def _keep(self, fault: Fault, what: str, by: str, seconds: float) -> Result:
        source = self.digests[fault.file]
        result = Result(name=fault.name, source=source, outcome=what, by=by, seconds=round(seconds, 3))
        self.ledger.add(result)
        return result
