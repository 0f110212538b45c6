"""The one engine: faults of a subject, tried one by one, kept, counted.

Owns the order, the ledger, the counts and the report. Must not know what a fault is put into, nor what
convicts it: that is a Subject (impl/, checkers/, model/). Counts of different outcomes are never added up
except where a subject says which of them are its score.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from attrs import asdict, define, evolve, field, frozen

from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode
from tools.ledger import TOP, Ledger, digest_of
from tools.mutation.fault import Fault, in_order
from tools.mutation.workers import Call, Ended, forked


@frozen(kw_only=True)
class Result:
    """What became of a fault."""

    # Of the fault, in one line.
    name: str
    # Digest of the file without the fault: a result counts only for the text that it was found with.
    source: str
    outcome: str
    # What noticed it: a test, anomalies, an exception.
    by: str = ""
    # Of wall clock.
    seconds: float = 0.0
    # Of the tests that were tried (checkers).
    tests: str = ""
    # Runs until it was convicted, or all; those that were another run than the original's; the run that
    # convicts (impl).
    runs: int = 0
    differed: int = 0
    profile: str = ""
    seed: int = -1


@define(eq=False, kw_only=True)
class Subject(ABC):
    """Into what faults are put, and what has to notice them."""

    name: ClassVar[str]
    # In the order of the report.
    outcomes: ClassVar[tuple[str, ...]]
    # Of these, the fault is still there: nothing noticed it.
    left: ClassVar[frozenset[str]]
    # Of these, it is no fault that counts.
    uncounted: ClassVar[frozenset[str]] = frozenset()
    # By name, the outcomes that count for a score.
    scores: ClassVar[Mapping[str, frozenset[str]]]
    # Reasons that begin with this say that no input tells the fault from the original.
    equivalent: ClassVar[str] = ""
    # Per cent of each part that must be noticed; None: everything that is not equivalent.
    target: ClassVar[float | None] = None

    # The faults of each part.
    parts: dict[str, list[Fault]]
    # Where results are kept, and what was measured before.
    out: Path
    # What decides a result: a ledger that answers another question is refused.
    asked: dict[str, str | int] = field(factory=dict)
    # Digests by file.
    sources: dict[str, str] = field(factory=dict)

    @abstractmethod
    def work(self, todo: list[Fault], output: Output) -> Iterator[tuple[Fault, Call, int] | Result]:
        """Measure the unmutated code; then for each fault what a forked process does, with its seconds of
        processor time, or the result where nothing has to be run."""

    @abstractmethod
    def result(self, fault: Fault, ended: Ended) -> Result:
        """What a fault's process makes of it."""

    def reason(self, fault: Fault) -> str:
        """Why a fault may be left; "" if nobody said so."""
        return ""

    def wants(self, fault: Fault, known: Result | None) -> bool:
        """Whether a fault is tried, by what is known of it."""
        return known is None

    def chosen(self, sample: int | None, word: str, only: str = "") -> list[Fault]:
        """The first of all faults in the order of a word that have a text in their names."""
        faults = [fault for each in self.parts.values() for fault in each if only in fault.name]
        return in_order(faults, word)[:sample]

    def source(self, fault: Fault) -> str:
        """The digest of its file."""
        if fault.file not in self.sources:
            self.sources[fault.file] = digest_of((TOP / fault.file).read_bytes())
        return self.sources[fault.file]

    def found(self, fault: Fault, outcome: str, **more: Any) -> Result:
        """A result of this fault."""
        return Result(name=fault.line, source=self.source(fault), outcome=outcome, **more)

    def ledger(self) -> Ledger[Result]:
        """What is known. Raises FencepostError."""
        name = "-".join([self.name, *(str(value) for value in self.asked.values())])
        return Ledger.open(
            self.out / f"{name}.jsonl",
            Result,
            key=lambda one: (one.name, one.source),
            of=f"mutation of {self.name}",
            asked=self.asked,
        )

    def known(self, ledger: Ledger[Result], fault: Fault) -> Result | None:
        """The result that counts for a fault."""
        return ledger.rows.get((fault.line, self.source(fault)))


def try_them(subject: Subject, todo: list[Fault], ledger: Ledger[Result], jobs: int, output: Output) -> None:
    """Try these faults; each result is written as it comes."""
    done = left = 0
    with output.progress("faults", len(todo)) as bar:

        def keep(result: Result) -> None:
            nonlocal done, left
            ledger.add(result)
            done, left = done + 1, left + (result.outcome in subject.left)
            bar.to(done, f"{left} survived")

        def waiting() -> Iterator[tuple[Fault, Call, int]]:
            for one in subject.work(todo, output):
                if isinstance(one, Result):
                    keep(one)
                else:
                    yield one

        for fault, ended in forked(waiting(), jobs):
            keep(evolve(subject.result(fault, ended), seconds=round(ended.seconds, 3)))


def percent(part: int, whole: int) -> float:
    """Of nothing: 0."""
    return round(100 * part / whole, 1) if whole else 0.0


def counts_of(subject: Subject, faults: list[Fault], ledger: Ledger[Result]) -> dict[str, Any]:
    """What the results of some faults add up to."""
    known = [(fault, one) for fault in faults if (one := subject.known(ledger, fault)) is not None]
    counted = [(fault, one) for fault, one in known if one.outcome not in subject.uncounted]
    by = Counter(one.outcome for _, one in known)
    survivors = [
        {**asdict(one), "line": fault.lines[0], "kind": fault.kind, "reason": subject.reason(fault)}
        for fault, one in counted
        if one.outcome in subject.left
    ]
    same = sum(bool(one["reason"]) and one["reason"].startswith(subject.equivalent) for one in survivors)
    scores = {
        name: percent(sum(by[outcome] for outcome in outcomes), len(counted) - same)
        for name, outcomes in subject.scores.items()
    }
    of_all = percent(sum(by[outcome] for outcome in next(iter(subject.scores.values()))), len(counted))
    return {
        "faults": len(faults),
        "tried": len(known),
        "outcomes": {outcome: by[outcome] for outcome in subject.outcomes},
        "equivalent": same,
        **scores,
        "of all": of_all,
        "seconds": round(sum(one.seconds for _, one in known), 1),
        "survivors": survivors,
    }


def report(subject: Subject, chosen: list[Fault], ledger: Ledger[Result], output: Output) -> ExitCode:
    """Say what is known of the chosen faults. Returns: FINDINGS if a part is below the target, or, without a
    target, if a fault is left without a reason."""
    names = {fault.line for fault in chosen}
    of = {
        part: counts_of(subject, [fault for fault in faults if fault.line in names], ledger)
        for part, faults in subject.parts.items()
    }
    rows = table("survivor", "outcome", "reason")
    sums = table(
        "part",
        ">faults",
        ">tried",
        *(f">{name}" for name in (*subject.outcomes, "equivalent", *subject.scores)),
    )
    for part, one in of.items():
        for survivor in one["survivors"]:
            style = "" if survivor["reason"] else "yellow"
            add_row(rows, survivor["name"], survivor["outcome"], survivor["reason"], style=style)
        cells = (*one["outcomes"].values(), one["equivalent"], *(one[name] for name in subject.scores))
        add_row(sums, part, one["faults"], one["tried"], *cells)
    if rows.row_count:
        output.say(rows, "")
    output.say(sums)
    total = counts_of(subject, chosen, ledger)
    first = next(iter(subject.scores))
    left = [one for one in total["survivors"] if not one["reason"]]
    short = any(one[first] < subject.target for one in of.values()) if subject.target else bool(left)
    output.emit({"subject": subject.name, "target": subject.target, **total, "parts": of})
    return ExitCode.FINDINGS if short else ExitCode.NOTHING_FOUND


def examine(
    subject: Subject,
    *,
    sample: int | None,
    word: str,
    only: str,
    listed: bool,
    reported: bool,
    jobs: int,
    output: Output,
) -> ExitCode:
    """Try what is not known, and report. Goes on where the last one ended.

    Args:
        subject: whose faults.
        sample: so many faults, all for None.
        word: of the sample.
        only: a text that a fault's name must have.
        listed: name the faults, and try nothing.
        reported: try nothing.
        jobs: processes.
        output: of the command.
    """
    chosen = subject.chosen(sample, word, only)
    if listed:
        for fault in chosen:
            output.say(fault.line)
        output.emit({"faults": [fault.line for fault in chosen]})
        return ExitCode.NOTHING_FOUND
    ledger, interrupted = subject.ledger(), False
    todo = [fault for fault in chosen if subject.wants(fault, subject.known(ledger, fault))]
    if todo and not reported:
        try:
            try_them(subject, todo, ledger, jobs, output)
        except KeyboardInterrupt:
            interrupted = True
            output.note("interrupted; every result is kept, the same line goes on")
    code = report(subject, chosen, ledger, output)
    return ExitCode.INTERRUPTED if interrupted else code
