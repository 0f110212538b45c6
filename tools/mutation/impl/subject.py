"""The implementation as a subject: which runs are worth a trial, and what they make of a fault.

Must not know processes. This module imports nothing of impl/: mutants replace it.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

from attrs import define, field

from fencepost.console.output import Output
from tools.ledger import TOP
from tools.mutation.engine import Result, Subject
from tools.mutation.fault import Fault
from tools.mutation.impl.runs import Work, measured, mutant, preload_judges, preload_runs, warm
from tools.mutation.impl.subjects import AREAS, files_of
from tools.mutation.impl.trial import Outcome, places
from tools.mutation.workers import Call, Ended

PAGE = Path(__file__).with_name("equivalent.md")
LOG = "log"
"""The area that the log machine judges, too."""
NEVER_ANOTHER = "it never gives another value"
WARM = 3
"""Healthy runs, for what is compiled."""


def equivalents(page: str) -> dict[str, str]:
    """Mutants that no run can tell from the original, with the reason, from the table of
    equivalent.md."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| `` ") and len(cells) == 2:
            found[cells[0].removeprefix("| `` ").removesuffix(" ``")] = cells[1].removesuffix("|").strip()
    return found


@define(eq=False, kw_only=True)
class Implementation(Subject):
    """profiles: of the swarm, in turn; first, seeds: of its runs; patience: see try_it; examples: of the log
    machine."""

    name: ClassVar[str] = "impl"
    outcomes: ClassVar[tuple[str, ...]] = tuple(outcome.value for outcome in Outcome)
    left: ClassVar[frozenset[str]] = frozenset({Outcome.SURVIVED, Outcome.UNREACHED})
    uncounted: ClassVar[frozenset[str]] = frozenset({Outcome.BROKEN})
    scores: ClassVar[dict[str, frozenset[str]]] = {
        "score": frozenset({Outcome.JUDGED, Outcome.NO_PROGRESS}),
        "score with the log machine": frozenset({Outcome.JUDGED, Outcome.NO_PROGRESS, Outcome.LOG_MACHINE}),
    }

    profiles: tuple[str, ...]
    first: int
    seeds: int
    patience: int
    examples: int
    # The faults that are measured: the whole sample, so that an interrupted one is measured once.
    sample: list[Fault] = field(factory=list)
    _equivalents: dict[str, str] = field(factory=lambda: equivalents(PAGE.read_text(encoding="utf-8")))

    def chosen(self, sample: int | None, word: str, only: str = "") -> list[Fault]:
        """As for every subject; what healthy runs come to is measured for these."""
        self.sample = super().chosen(sample, f"{word or 0} ", only)
        return self.sample

    def reason(self, fault: Fault) -> str:
        """Of the page: why no run can tell it from the original."""
        return self._equivalents.get(fault.line, "")

    def work(self, todo: list[Fault], output: Output) -> Iterator[tuple[Fault, Call, int] | Result]:
        """What the swarm comes to, then the runs that each fault can change."""
        preload_judges()
        runs = tuple(places(self.profiles, self.first, self.seeds))
        output.note(f"measuring what {len(runs)} healthy runs come to")
        files = tuple(file for area in AREAS for file in files_of(area))
        reached = measured(files, runs, tuple(self.sample), self.out)
        on_log = {fault.line for fault in self.parts.get(LOG, ())} if self.examples else set()
        imported = preload_runs(runs[:WARM], log_machine=any(fault.line in on_log for fault in todo))
        warm(tuple((*runs[number], reached.digests[number]) for number in range(min(WARM, len(runs)))))
        for fault in todo:
            come, numbers = reached.of(fault.file, fault.lines), reached.of_fault(fault)
            idle = (Outcome.SURVIVED, NEVER_ANOTHER) if come else (Outcome.UNREACHED, "")
            examples = self.examples if fault.line in on_log else 0
            if not numbers and not examples:
                yield self.found(fault, idle[0].value, by=idle[1])
                continue
            work = Work(
                fault=fault,
                source=(TOP / fault.file).read_bytes(),
                runs=tuple((*runs[number], reached.digests[number]) for number in numbers),
                early=reached.is_early(fault),
                passed=bool(numbers) and min(numbers) > min(come),
                patience=self.patience,
                idle=idle,
                examples=examples,
            )
            yield fault, partial(mutant, work, imported), 0

    def result(self, fault: Fault, ended: Ended) -> Result:
        """A process that dies without a word ran out of memory: it never ended."""
        nothing = Outcome.NO_PROGRESS, 0, "out of memory", "", -1, 0
        outcome, tried, by, profile, seed, differed = ended.answer or nothing
        return self.found(
            fault, outcome.value, runs=tried, by=by, profile=profile, seed=seed, differed=differed
        )
