"""The result of a run of TLC.

Owns the values. Must not know how they were read or how TLC was run.
"""

from collections.abc import Mapping
from enum import StrEnum

from attrs import Factory, frozen

from fencepost.model.tlc.values import Value, show


class RunOutcome(StrEnum):
    """HOLDS: every reachable state was visited without a violation. VIOLATED: a violation was found. SAMPLED:
    a simulation ended without a violation. UNDECIDED: a limit was reached first. FAILED: the specification,
    its configuration or TLC itself is broken."""

    HOLDS = "holds"
    VIOLATED = "violated"
    SAMPLED = "sampled"
    UNDECIDED = "undecided"
    FAILED = "failed"


class Kind(StrEnum):
    """The kind of statement that was violated."""

    INVARIANT = "invariant"
    ACTION_PROPERTY = "action property"
    TEMPORAL = "temporal property"
    DEADLOCK = "deadlock"
    ASSERTION = "assertion"
    ASSUMPTION = "assumption"


@frozen(kw_only=True)
class Violation:
    """A violation. name: of the invariant or property if TLC reports it ("" otherwise); says: TLC's
    sentence."""

    kind: Kind
    name: str
    says: str


@frozen
class Unread:
    """A variable's value that is not a plain TLA+ value (TLC did not evaluate it); its text."""

    text: str


@frozen(kw_only=True)
class TraceState:
    """One state of a counterexample. number: from 1; action: its name ("" for an initial state); location:
    where the action is in the module."""

    number: int
    action: str
    location: str
    variables: Mapping[str, Value | Unread]

    def __str__(self) -> str:
        lines = [f"{self.number}. {self.action or 'initial state'}"]
        for name, value in self.variables.items():
            lines.append(f"     {name} = {value.text if isinstance(value, Unread) else show(value)}")
        return "\n".join(lines)


@frozen(kw_only=True)
class Counterexample:
    """states: in order. Then stuttering (no further change), or back_to (the number of the next state, in an
    endless loop), or neither."""

    states: tuple[TraceState, ...]
    stuttering: bool = False
    back_to: int | None = None

    def __str__(self) -> str:
        lines = [str(state) for state in self.states]
        if self.stuttering:
            lines.append("and nothing happens any more (stuttering)")
        if self.back_to is not None:
            lines.append(f"and back to state {self.back_to}")
        return "\n".join(lines)


@frozen(kw_only=True)
class RunProgress:
    """The progress of TLC; -1 for values that TLC does not report. diameter: states on the longest path so
    far."""

    diameter: int = -1
    generated: int = -1
    distinct: int = -1
    queue: int = -1


@frozen(kw_only=True)
class Toolbox:
    """The programs that TLC ran with. jar_from: where the jar was found, in words."""

    java: str
    java_version: int
    jar: str
    jar_from: str
    tlc_version: str = ""


@frozen(kw_only=True)
class TlcResult:
    """The result of one run."""

    # The outcome.
    outcome: RunOutcome
    # One sentence that explains the outcome.
    reason: str
    # The violation; None if there is none.
    violation: Violation | None = None
    # The counterexample; None if there is none.
    counterexample: Counterexample | None = None
    # States generated, by TLC's last count; -1 if there was none.
    generated: int = -1
    # Distinct states, by TLC's last count; -1 if there was none.
    distinct: int = -1
    # States in the queue, by TLC's last count; -1 if there was none.
    queue: int = -1
    # The largest depth in states, including the initial state; exact with one worker. -1 if not reported.
    depth: int = -1
    # TLC's error messages.
    errors: tuple[str, ...] = ()
    # TLC's warnings.
    warnings: tuple[str, ...] = ()
    # What the specification printed: the first lines.
    output: tuple[str, ...] = ()
    # The number of further lines.
    output_left_out: int = 0
    # The process's exit code; None if it was stopped. The outcome depends on the messages and the code
    # together, never on the code alone.
    exit_code: int | None = None
    # How long the run took.
    seconds: float = 0.0
    # Java and the jar; None if the run did not start.
    toolbox: Toolbox | None = None
    # The command line.
    command: tuple[str, ...] = Factory(tuple)

    @property
    def steps(self) -> int:
        """Steps of the counterexample (0: the initial state, or no counterexample)."""
        return len(self.counterexample.states) - 1 if self.counterexample else 0
