"""The models as a subject. Must not import a model's rules: a fault replaces them."""

import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

from attrs import define

from fencepost.console.output import Output
from tools.ledger import TOP
from tools.mutation.engine import Result, Subject
from tools.mutation.fault import Fault, module_of
from tools.mutation.finder import faults_of
from tools.mutation.impl.trial import EndlessRunError, on_alarm
from tools.mutation.model.recorded import Answer, answers
from tools.mutation.planting import plant
from tools.mutation.workers import Call, Ended, in_a_child

NO_RULES = ("__init__.py", "_state.py", "_words.py", "recorded_groups.py")
"""Ends of the names of a model's files without rules of the explorer: what a state is, words for people, what
only runs are compared with."""
CPU_S = 60.0
"""Of one mutant: all rows together take the healthy model a few seconds."""
SURVIVED, TOLD, RAISED = "survived", "told apart", "raised"


def mutants_of(model: str) -> list[Fault]:
    """Every fault of the model's rules."""
    folder = TOP / "fencepost" / "model" / model
    names = [path.relative_to(TOP).as_posix() for path in sorted(folder.glob("*.py"))]
    return [
        fault
        for name in names
        if not name.endswith(NO_RULES)
        for fault in faults_of(name, (TOP / name).read_text(encoding="utf-8"))
        if not fault.at_import
    ]


def told_apart(known: list[Answer]) -> tuple[str, str]:
    """Outcome, and by what: the first answer that is not TLC's."""
    signal.signal(signal.SIGPROF, on_alarm)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        from fencepost.model.comparison.sameness import by_explorer

        for answer in known:
            seen = by_explorer(answer.row.constants, time.monotonic, count=answer.row.count)
            if seen.compared != answer.compared:
                return TOLD, f"{answer.compared} by TLC, {seen.compared} by the explorer"
    except EndlessRunError:
        return TOLD, "the state space has no end"
    except Exception as error:
        return RAISED, repr(error)[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return SURVIVED, ""


def tried(fault: Fault, known: list[Answer]) -> tuple[str, str]:
    """In a process that has imported no model: what becomes of the fault."""
    try:
        source = (TOP / fault.file).read_bytes()
        plant(module_of(fault.file), fault.applied(source), str(TOP / fault.file))
    except SyntaxError as error:
        return RAISED, str(error)
    return told_apart(known)


@define(eq=False, kw_only=True)
class Models(Subject):
    """states: of a row of TLC's tables, at most."""

    name: ClassVar[str] = "model"
    outcomes: ClassVar[tuple[str, ...]] = (TOLD, RAISED, SURVIVED)
    left: ClassVar[frozenset[str]] = frozenset({SURVIVED})
    scores: ClassVar[dict[str, frozenset[str]]] = {"score": frozenset({TOLD})}

    states: int

    def chosen(self, sample: int | None, word: str, only: str = "") -> list[Fault]:
        """As for every subject."""
        return super().chosen(sample, f"{word or 0} ", only)

    def work(self, todo: list[Fault], output: Output) -> Iterator[tuple[Fault, Call, int] | Result]:
        """Each fault meets the answers for its model."""
        known = {model: answers(model, self.states) for model in self.parts}
        for model, each in known.items():
            healthy = in_a_child(partial(told_apart, each)).answer
            assert healthy and healthy[0] == SURVIVED, f"{model} and TLC differ without a fault: {healthy}"
        for fault in todo:
            yield fault, partial(tried, fault, known[Path(fault.file).parent.name]), 0

    def result(self, fault: Fault, ended: Ended) -> Result:
        """A process that dies is an exception, too."""
        outcome, by = ended.answer or (RAISED, "the process ended without an answer")
        return self.found(fault, outcome, by=by)
