"""What both questions of `fencepost check` do with answers: count, say what is unreadable, end.

Owns the loop over the judgements. Must not know what is asked.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import define, field

from fencepost.checkers.verdict import Decision
from fencepost.cli.replay import exit_code_of
from fencepost.console.findings import Findings
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.cli.check.work import Judgement, Question
    from fencepost.mining.inputs.traces import Piece

STYLES = {Decision.OK: "green", Decision.ILLEGAL: "red"}


@define(kw_only=True)
class Answers:
    """What was judged so far."""

    # What is done with the findings of all traces.
    findings: Findings
    # How many traces were judged.
    traces: int = 0
    # Why each unreadable piece of the input could not be read.
    unreadable: list[str] = field(factory=list)
    # How what can be read in two ways was taken.
    taken: list[str] = field(factory=list)
    # Exit codes that apply so far.
    codes: set[ExitCode] = field(factory=set)

    def leave_out(self, reason: str, output: Output) -> None:
        """Report unreadable input. reason: one sentence; output: for the note."""
        self.unreadable.append(reason)
        output.note(f"unreadable, left out: {reason}")

    def of(
        self, pieces: "Sequence[Piece]", question: "Question", jobs: int, output: Output, what: str
    ) -> "Iterator[tuple[int, Judgement]]":
        """(index of the piece, judgement) of every trace that can be read, in the order of the input. jobs:
        processes; output: for notes and the bar; what: its text."""
        from fencepost.cli.check.pool import judged_by_all
        from fencepost.cli.check.work import Judgement
        from fencepost.mining.inputs.traces import Quarantined

        with output.progress(what, len(pieces)) as bar:
            for number, answer in judged_by_all(pieces, question, jobs):
                bar.to(number, f"{self.traces} judged")
                if isinstance(answer, Quarantined):
                    self.leave_out(answer.reason, output)
                elif isinstance(answer, Judgement):
                    self.traces += 1
                    self.taken += answer.taken
                    self.codes.add(exit_code_of(answer.verdict))
                    self.findings.add_all(answer.verdict.findings, f"{answer.source} {answer.trace_id}")
                    for sentence in answer.taken:
                        output.note(sentence)
                    yield number, answer

    @contextmanager
    def interruptible(self, output: Output, what: str) -> Iterator[None]:
        """Inside, Ctrl-C ends the judging, and what was judged so far is reported. what: was judged."""
        try:
            yield
        except KeyboardInterrupt:
            self.codes.add(ExitCode.INTERRUPTED)
            output.note(f"interrupted: {self.traces} {what} were judged")

    @property
    def exit_codes(self) -> set[ExitCode]:
        """Those that apply. Nothing readable is a usage error; something unreadable quarantines."""
        codes = set(self.codes)
        if not self.traces:
            codes.add(ExitCode.USAGE)
        elif self.unreadable:
            codes.add(ExitCode.QUARANTINED)
        return codes
