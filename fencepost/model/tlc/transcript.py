"""The messages of TLC in one run.

Owns the meaning of TLC's codes, and the resulting outcome. Must not know processes or files.

A run is exhaustive only if TLC said so (2193) with an empty queue. The exit code alone decides nothing: TLC
2.15 ends a simulation that found a violation with 0.
"""

import re
from collections.abc import Callable, Mapping

from attrs import define, evolve, field

from fencepost.model.tlc.result import (
    Counterexample,
    Kind,
    RunOutcome,
    RunProgress,
    TlcResult,
    TraceState,
    Violation,
)
from fencepost.model.tlc.tlc_frames import BUG, ERROR, WARNING, TlcMessage
from fencepost.model.tlc.tlc_states import read_trace_state, read_variables

MOST_OUTPUT = 1_000
"""The most lines of the specification's output and of TLC's own unframed lines that are kept; the others are
counted."""
MOST_MESSAGES = 50
"""The most errors and warnings that are kept."""
MOST_STATES = 100_000
"""The most states of a counterexample that are kept. Reason: TLC's own limit is 65,536."""

VERSION, SUCCESS, DEPTH, PROGRESS, STATS, SIMULATED = 2262, 2193, 2194, 2200, 2199, 2209
STATE, STATE_OLD, STUTTERING, BACK_TO_STATE = 2217, 2216, 2218, 2122
FINISHED, PARSING, PARSED = 2186, 2220, 2219
HEADINGS = frozenset({2121, 2264, 2103, 2120})
"""Messages of class error that only introduce the following ones."""
OUT_OF_MEMORY = frozenset({1001, 1002})
VIOLATIONS: Mapping[int, Kind] = {
    2110: Kind.INVARIANT,
    2107: Kind.INVARIANT,
    2108: Kind.ACTION_PROPERTY,
    2112: Kind.ACTION_PROPERTY,
    2114: Kind.DEADLOCK,
    2116: Kind.TEMPORAL,
    2132: Kind.ASSERTION,
    2104: Kind.ASSUMPTION,
}
BY_INITIAL_STATE = frozenset({2107, 2108})
EXIT_OF_VIOLATION: Mapping[int, str] = {
    10: "an assumption",
    11: "a deadlock",
    12: "safety",
    13: "liveness",
    14: "an assertion",
}

_COUNTS = re.compile(
    r"(?:Progress\((?P<diameter>-?[\d,]+)\).*?: )?(?P<generated>-?[\d,]+) states? generated\b[^,]*"
    r"(?:\([^)]*\))?, (?P<distinct>-?[\d,]+) distinct states? found(?: \([^)]*\))?, (?P<queue>-?[\d,]+) "
    r"states? left on queue",
    re.DOTALL,
)
_DEPTH = re.compile(r"search is ([\d,]+)")
_NAMED = re.compile(r"(?:Invariant|Action property|Property|Temporal property) (\S+) is violated")
_BACK = re.compile(r"\s*(\d+):")
_VERSION = re.compile(r"TLC2 Version (\S+)")
_NOISE = re.compile(r"Parsing file |Semantic processing of module |[*\s]*\Z")
_RATE = re.compile(r" \([\d,]+ d?s/min\)")


def _number(text: str | None) -> int:
    return int(text.replace(",", "")) if text else -1


def read_counts(text: str) -> RunProgress | None:
    """The counts in a progress line or in the final statistics."""
    match = _COUNTS.search(_RATE.sub("", text))
    if match is None:
        return None
    return RunProgress(
        diameter=_number(match["diameter"]),
        generated=_number(match["generated"]),
        distinct=_number(match["distinct"]),
        queue=_number(match["queue"]),
    )


@define
class Transcript:
    """The messages of one run."""

    # Called with TLC's progress.
    on_progress: Callable[[RunProgress], None] | None = None
    # The version of TLC.
    version: str = ""
    # TLC's last counts.
    counts: RunProgress = field(factory=RunProgress)
    # The largest depth in states; -1 if not reported.
    depth: int = -1
    # The first violation.
    violation: Violation | None = None
    # The states of its counterexample.
    states: list[TraceState] = field(factory=list)
    # Whether the counterexample ends with stuttering.
    stuttering: bool = False
    # The number of the state to which the counterexample loops; None if it does not.
    back_to: int | None = None
    # Error messages that are neither a violation nor a heading.
    errors: list[str] = field(factory=list)
    # Warnings.
    warnings: list[str] = field(factory=list)
    # The first lines of the specification's output.
    output: list[str] = field(factory=list)
    # The number of further lines.
    output_left_out: int = 0
    # Whether the parser is running.
    parsing: bool = False
    # The parser's messages.
    parser: list[str] = field(factory=list)
    # TLC reported that there is no error.
    success: bool = False
    # TLC reported its end.
    finished: bool = False
    # Java ran out of memory.
    out_of_memory: bool = False

    def add(self, message: TlcMessage) -> None:
        """Process one message."""
        code = message.code
        if code is None:
            self._print(message.text)
        elif code in VIOLATIONS:
            self._violated(VIOLATIONS[code], message)
        elif code in (STATE, STATE_OLD):
            self._state(message.text)
        elif code == STUTTERING:
            self.stuttering = True
        elif code == BACK_TO_STATE:
            back = _BACK.match(message.text)
            self.back_to = int(back[1]) if back else None
        elif code in (PROGRESS, STATS, SIMULATED):
            self._counts(message.text)
        elif code == DEPTH:
            depth = _DEPTH.search(message.text)
            self.depth = _number(depth[1]) if depth else -1
        elif code == VERSION:
            version = _VERSION.search(message.text)
            self.version = version[1] if version else ""
        elif code == SUCCESS:
            self.success = message.complete
        elif code == FINISHED:
            self.finished = True
        elif code in (PARSING, PARSED):
            self.parsing = code == PARSING
        else:
            self._other(message)

    def _print(self, line: str) -> None:
        if self.parsing:
            if len(self.parser) < MOST_OUTPUT and not _NOISE.match(line):
                self.parser.append(line)
        elif len(self.output) < MOST_OUTPUT:
            self.output.append(line)
        else:
            self.output_left_out += 1

    def _violated(self, kind: Kind, message: TlcMessage) -> None:
        says, _, rest = message.text.partition("\n")
        if kind is Kind.ASSERTION:
            says = message.text
        if self.violation is not None:
            return  # -continue: the first violation counts
        name = _NAMED.search(says)
        self.violation = Violation(kind=kind, name=name[1] if name else "", says=says.strip())
        if message.code in BY_INITIAL_STATE:
            self.states = [TraceState(number=1, action="", location="", variables=read_variables(rest))]

    def _state(self, text: str) -> None:
        state = read_trace_state(text)
        if state is None:
            if "Stuttering" in text:
                self.stuttering = True
            return
        if state.number == len(self.states) + 1 and len(self.states) < MOST_STATES:
            self.states.append(state)

    def _counts(self, text: str) -> None:
        counts = read_counts(text)
        if counts is None:
            return
        if counts.diameter < 0:
            counts = evolve(counts, diameter=self.counts.diameter)
        self.counts = counts
        if self.on_progress is not None:
            self.on_progress(counts)

    def _other(self, message: TlcMessage) -> None:
        if message.code in OUT_OF_MEMORY:
            self.out_of_memory = True
        if message.kind in (ERROR, BUG) and message.code not in HEADINGS and not message.inside:
            if len(self.errors) < MOST_MESSAGES:
                self.errors.append(message.text)
        elif message.kind == WARNING and len(self.warnings) < MOST_MESSAGES:
            self.warnings.append(message.text)

    def result(self, exit_code: int | None, stopped: str | None, *, simulation: bool) -> TlcResult:
        """The result of the run.

        Args:
            exit_code: the process's exit code; None if it was stopped.
            stopped: why the process was ended from outside; "" if it was not.
            simulation: whether the run was a simulation.

        Returns:
            the result.
        """
        outcome, reason = self._outcome(exit_code, stopped, simulation=simulation)
        counterexample = None
        if self.violation is not None and self.states:
            counterexample = Counterexample(
                states=tuple(self.states), stuttering=self.stuttering, back_to=self.back_to
            )
        return TlcResult(
            outcome=outcome,
            reason=reason,
            violation=self.violation,
            counterexample=counterexample,
            generated=self.counts.generated,
            distinct=self.counts.distinct,
            queue=self.counts.queue,
            depth=self.depth,
            errors=tuple(self.errors),
            warnings=tuple(self.warnings),
            output=tuple(self.output),
            output_left_out=self.output_left_out,
            exit_code=exit_code,
        )

    def _outcome(
        self, exit_code: int | None, stopped: str | None, *, simulation: bool
    ) -> tuple[RunOutcome, str]:
        if self.violation is not None:
            return RunOutcome.VIOLATED, " ".join(self.violation.says.split()).rstrip(".")
        if stopped is not None:
            return RunOutcome.UNDECIDED, stopped
        if self.out_of_memory:
            return RunOutcome.UNDECIDED, "TLC ran out of memory"
        if exit_code is not None and exit_code in EXIT_OF_VIOLATION and not self.errors:
            return (
                RunOutcome.FAILED,
                f"TLC's exit code says that {EXIT_OF_VIOLATION[exit_code]} is violated, its output does not",
            )
        if self.errors:
            return RunOutcome.FAILED, " ".join(
                " ".join([self.errors[0], *self.parser[:MOST_MESSAGES]]).split()
            )
        if exit_code != 0 or not self.finished:
            last = next((line.strip() for line in reversed(self.output) if line.strip()), "no output")
            return RunOutcome.FAILED, f"TLC ended with exit code {exit_code} before it was done: {last}"
        if simulation:
            return RunOutcome.SAMPLED, f"{self.counts.generated:,} states sampled, nothing found"
        if self.success and self.counts.queue == 0:
            return RunOutcome.HOLDS, f"all {self.counts.distinct:,} distinct states visited, nothing found"
        return RunOutcome.UNDECIDED, "TLC ended without having visited every state"
