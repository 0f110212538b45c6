"""The judges' rules as a subject: each fault is given to the tests that reach it.

Owns: the choice of tests, their limits, what an answer means, and the reasons that
survivors.md gives for survivors. Must not know processes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from attrs import define, field

from fencepost.console.output import Output
from tools.mutation.checkers.choice import Reached, preload, reach_of, tested, tests_digest
from tools.mutation.checkers.table import Checker
from tools.mutation.engine import Result, Subject
from tools.mutation.fault import Fault
from tools.mutation.workers import Call, Ended

REASONS = Path(__file__).with_name("survivors.md")
ROW = re.compile(
    r"^\| `(?P<file>fencepost/[^`]+)` \| (?P<scope>[^|]+) \| `` (?P<change>.+?) `` \| (?P<reason>[^|]+) \|$",
    re.M,
)
"""A survivor in survivors.md: file, function, replacement, reason."""
START_S = 15
"""Processor time allowed for importing and collecting."""
TIMES, LEAST_S = 2, 3.0
"""A fault may make a test take so many times what it takes with every line watched (which is several times
what it takes), and at least so many seconds, before it counts as noticed by time."""
NOTICED, SURVIVED, UNREACHED = "noticed", "survived", "unreached"


def change(fault: Fault) -> str:
    """The replacement, as survivors.md writes it."""
    again = f" ({fault.occurrence + 1})" if fault.occurrence else ""
    return f"{fault.before} -> {fault.after}{again}".replace("|", "¦")


def reasons(text: str) -> dict[tuple[str, str, str], str]:
    """The reasons given for survivors, by file, function and replacement."""
    return {
        (found["file"], found["scope"].strip(), found["change"]): found["reason"].strip()
        for found in ROW.finditer(text)
    }


@define(eq=False, kw_only=True)
class Checkers(Subject):
    """budget_s: of tests for each fault, by what they take while they are watched; again: also what survived
    other tests than those of now; survivors: only what survived and has no reason."""

    name: ClassVar[str] = "checkers"
    outcomes: ClassVar[tuple[str, ...]] = (NOTICED, SURVIVED, UNREACHED)
    left: ClassVar[frozenset[str]] = frozenset({SURVIVED, UNREACHED})
    scores: ClassVar[dict[str, frozenset[str]]] = {"score": frozenset({NOTICED})}
    equivalent: ClassVar[str] = "equivalent"
    target: ClassVar[float | None] = 95.0

    checkers: dict[str, Checker]
    budget_s: float
    again: bool = False
    survivors: bool = False
    # By file and function, by file, and of all: tests that noticed something there. They go first.
    killers: dict[tuple[str, str], Counter[str]] = field(factory=lambda: defaultdict(Counter))
    tests: dict[str, str] = field(factory=dict)
    _reasons: dict[tuple[str, str, str], str] = field(
        factory=lambda: reasons(REASONS.read_text(encoding="utf-8"))
    )

    def chosen(self, sample: int | None, word: str, only: str = "") -> list[Fault]:
        """So many of each checker."""
        every = super().chosen(None, word, only)
        of = {name: {fault.line for fault in faults} for name, faults in self.parts.items()}
        return [
            fault for names in of.values() for fault in [one for one in every if one.line in names][:sample]
        ]

    def reason(self, fault: Fault) -> str:
        """Of the page."""
        return self._reasons.get((fault.file, fault.scope or "module", change(fault)), "")

    def wants(self, fault: Fault, known: Result | None) -> bool:
        """As the options say."""
        if known is None:
            return not self.survivors
        if self.survivors:
            return known.outcome in self.left and not self.reason(fault)
        return self.again and known.outcome in self.left and known.tests != self._tests(fault)

    def work(self, todo: list[Fault], output: Output) -> Iterator[tuple[Fault, Call, int] | Result]:
        """The tests of one checker after the other."""
        preload()
        for name in self.parts:
            mine = [fault for fault in todo if self.part_of(fault) == name]
            if not mine:
                continue
            reached = reach_of(self.checkers[name], self.out)
            if reached.slow:
                output.note(f"{name}: left out as too slow: {', '.join(reached.slow)}")
            for fault in mine:
                tests = self.ordered(fault, reached)
                limits = [max(LEAST_S, TIMES * reached.seconds[test]) for test in tests]
                if tests:
                    call = partial(tested, fault, tuple(zip(tests, limits, strict=True)))
                    yield fault, call, int(START_S + sum(limits))
                else:
                    yield self.found(fault, UNREACHED, tests=self._tests(fault))

    def result(self, fault: Fault, ended: Ended) -> Result:
        """Noticed, by a test that failed or a process that died; else survived."""
        code, failed = ended.answer or (-1, ended.died)
        if code == 0:
            return self.found(fault, SURVIVED, tests=self._tests(fault))
        by = failed or f"exit code {code}"
        for place in ((fault.file, fault.scope), (fault.file, ""), ("", "")):
            self.killers[place][by] += 1
        return self.found(fault, NOTICED, by=by, tests=self._tests(fault))

    def part_of(self, fault: Fault) -> str:
        """The checker whose rule it is."""
        return next(name for name, checker in self.checkers.items() if fault.file in checker.files())

    def ordered(self, fault: Fault, reached: Reached) -> list[str]:
        """The tests of a fault, within the budget: first those that noticed others, then quick ones."""
        tests = reached.tests_of(fault)
        places = ((fault.file, fault.scope), (fault.file, ""), ("", ""))
        often = (test for place in places for test, _ in self.killers[place].most_common(2))
        first = list(dict.fromkeys(test for test in often if test in tests))
        ordered = first + [test for test in tests if test not in first]
        spent = accumulate(reached.seconds[test] for test in ordered)
        return [
            test
            for test, so_far in zip(ordered, spent, strict=True)
            if so_far <= self.budget_s or test in first
        ]

    def _tests(self, fault: Fault) -> str:
        name = self.part_of(fault)
        if name not in self.tests:
            self.tests[name] = tests_digest(self.checkers[name])
        return self.tests[name]
