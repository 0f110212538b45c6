"""What a run of TLC answers.

Owns: the values. Must not know how they were read or how TLC was run.
"""

from collections.abc import Mapping
from enum import StrEnum

from attrs import Factory, frozen

from fencepost.model.tlc.values import Value, show


class RunOutcome(StrEnum):
    """HOLDS: every reachable state was visited and nothing found. VIOLATED: something was found. SAMPLED: a
    simulation ended and found nothing. UNDECIDED: a limit came first. FAILED: the specification, its
    configuration or TLC itself is broken."""

    HOLDS = "holds"
    VIOLATED = "violated"
    SAMPLED = "sampled"
    UNDECIDED = "undecided"
    FAILED = "failed"


class Kind(StrEnum):
    """What kind of statement was violated."""

    INVARIANT = "invariant"
    ACTION_PROPERTY = "action property"
    TEMPORAL = "temporal property"
    DEADLOCK = "deadlock"
    ASSERTION = "assertion"
    ASSUMPTION = "assumption"


@frozen(kw_only=True)
class Violation:
    """kind; name: of the invariant or property where TLC says it ("" otherwise); says: TLC's sentence."""

    kind: Kind
    name: str
    says: str


@frozen
class Unread:
    """A variable's value that is no plain TLA+ value (TLC left it unevaluated); its text."""

    text: str


@frozen(kw_only=True)
class TraceState:
    """One state of a counterexample. number: from 1; action: its name ("" for an initial state); location:
    where the action stands."""

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
    """states: in order; then stuttering (nothing happens any more), or back_to (the number of the state that
    comes next, for ever), or neither."""

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
    """How far TLC is; -1 where TLC does not say. diameter: states on the longest path so far."""

    diameter: int = -1
    generated: int = -1
    distinct: int = -1
    queue: int = -1


@frozen(kw_only=True)
class ActionCoverage:
    """How often an action led to a new state, and how often it was taken at all."""

    action: str
    location: str
    distinct: int
    generated: int


@frozen(kw_only=True)
class Toolbox:
    """What TLC ran on. jar_from: where the jar was found, in words."""

    java: str
    java_version: int
    jar: str
    jar_from: str
    tlc_version: str = ""


@frozen(kw_only=True)
class TlcResult:
    """One run.

    reason: one sentence that explains the outcome. distinct, generated, queue: TLC's last count (-1: it never
    said). depth: states on a longest shortest path, the initial state counted (exact with one worker).
    errors, warnings: TLC's words. output: what the specification printed, the first lines of it. exit_code:
    the process's; the outcome rests on what TLC said and the code together, never on the code alone. None: it
    was stopped.
    """

    outcome: RunOutcome
    reason: str
    violation: Violation | None = None
    counterexample: Counterexample | None = None
    generated: int = -1
    distinct: int = -1
    queue: int = -1
    depth: int = -1
    coverage: tuple[ActionCoverage, ...] = ()
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    output_left_out: int = 0
    exit_code: int | None = None
    seconds: float = 0.0
    toolbox: Toolbox | None = None
    command: tuple[str, ...] = Factory(tuple)

    @property
    def steps(self) -> int:
        """Steps of the counterexample (0: the initial state, or none)."""
        return len(self.counterexample.states) - 1 if self.counterexample else 0
