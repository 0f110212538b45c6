"""One checker's faults, each given to the tests that reach it.

Owns: the choice of tests, limits, what an answer means. Must not know processes or what is printed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import accumulate
from math import inf
from pathlib import Path

import msgspec
from attrs import define, field, frozen

from fencepost.traces.errors import EnvironmentError_
from tools.mutation.bench import Answer, Task
from tools.mutation.checkers import TOP, Checker
from tools.mutation.faults import Fault
from tools.mutation.ledger import Ledger, Result, digest
from tools.mutation.plugin import AT_IMPORT
from tools.mutation.pool import Pool

START_S = 15
"""Processor time allowed for importing and collecting."""
TIMES, LEAST_S = 2, 3.0
"""A fault may make a test take so many times what it takes with every line watched (which is several times
what it takes), and at least so many seconds, before it counts as noticed by time."""
BASELINE_S = 1800


@frozen(kw_only=True)
class Reached:
    """What the tests do without a fault. by_line: tests by file and line; seconds: of each test; slow: those
    that are left out."""

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


def tests_digest(checker: Checker) -> str:
    """Of everything that decides which test runs which line."""
    found: set[Path] = {TOP / file for file in checker.files()}
    for path in (TOP / place for place in (*paths_of(checker), "tests/checkers")):
        found.update(path.glob("*.py") if path.is_dir() else [path])
    return digest(b"".join(path.read_bytes() for path in sorted(found)))


def reach(pool: Pool, checker: Checker, kept: Path) -> Reached:
    """Run the checker's tests without a fault, every line watched; or what that gave the last time, if
    nothing changed since. Raises EnvironmentError_ if they fail."""
    source = tests_digest(checker)
    if kept.exists():
        known, answer = msgspec.json.decode(kept.read_bytes(), type=tuple[str, Answer])
        if known == source:
            return _reached(checker, answer)
    answer = _baseline(pool, checker)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(msgspec.json.encode((source, answer)))
    return _reached(checker, answer)


def _baseline(pool: Pool, checker: Checker) -> Answer:
    task = Task(paths=paths_of(checker), watch=tuple(checker.files()), cpu_s=BASELINE_S)
    pool.ask(pool.idle()[0], task, "baseline")
    ((_, answer),) = pool.answers()
    assert isinstance(answer, Answer)
    if answer.code != 0:
        raise EnvironmentError_(
            expected="tests that pass without a fault",
            seen=answer.test or answer.died or answer.said.strip()[-300:] or f"exit code {answer.code}",
            where=f"the tests of {checker.name}",
        )
    return answer


def _reached(checker: Checker, answer: Answer) -> Reached:
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
    """Faults of one checker under trial. budget_s: of tests for each fault, by what they take while they are
    watched.

    killers: by file and function, by file, and of all, tests that noticed something there; they go first.
    """

    pool: Pool
    reached: Reached
    ledger: Ledger
    digests: dict[str, str]
    sources: dict[str, bytes]
    tests: str = ""
    budget_s: float = inf
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
                        for place in ((fault.file, fault.scope), (fault.file, ""), ("", "")):
                            self.killers[place][by] += 1
                    done += 1
                    heard(done, self._keep(fault, what, by, answer.seconds))

    def _ordered(self, fault: Fault) -> list[str]:
        tests = self.reached.tests_of(fault)
        places = ((fault.file, fault.scope), (fault.file, ""), ("", ""))
        often = (test for place in places for test, _ in self.killers[place].most_common(2))
        first = list(dict.fromkeys(test for test in often if test in tests))
        ordered = first + [test for test in tests if test not in first]
        spent = accumulate(self.reached.seconds[test] for test in ordered)
        return [
            test
            for test, so_far in zip(ordered, spent, strict=True)
            if so_far <= self.budget_s or test in first
        ]

    def _task(self, fault: Fault, tests: list[str]) -> Task:
        limits = [max(LEAST_S, TIMES * self.reached.seconds[test]) for test in tests]
        after = fault.applied(self.sources[fault.file]).decode()
        chosen = tuple(zip(tests, limits, strict=True))
        return Task(file=fault.file, after=after, tests=chosen, cpu_s=int(START_S + sum(limits)))

    def _keep(self, fault: Fault, what: str, by: str, seconds: float) -> Result:
        source = self.digests[fault.file]
        result = Result(
            name=fault.name, source=source, outcome=what, by=by, seconds=round(seconds, 3), tests=self.tests
        )
        self.ledger.add(result)
        return result
