"""How `fencepost model explore` reports its results, to a person and as JSON.

Owns the words. Must not know options, nor how the exploration works.
"""

from typing import TYPE_CHECKING, Any

import attrs

from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.model.explore.transition_system import Limits, Result


def stays_possible_told(
    system: Any, limits: "Limits", output: Output
) -> tuple[ExitCode, list[dict[str, Any]]]:
    """Report what must stay possible, and the path to where it does not. system: the model with its bounds;
    limits: of the exploration; output: for the report. Returns the exit code and the rows for --json."""
    from fencepost.model.explore import ExplorationOutcome, Result, render
    from fencepost.model.explore.eventually import stays_possible

    rows, code = [], ExitCode.NOTHING_FOUND
    for name, wanted in system.eventually.items():
        found = stays_possible(system, wanted, limits)
        rows.append(
            {"name": name, "outcome": str(found.outcome), "states": found.states, "stuck": found.stuck}
        )
        if found.outcome is ExplorationOutcome.HOLDS:
            output.say(f"{name} stays possible from all {found.states:,} states")
            continue
        if found.outcome is ExplorationOutcome.BOUNDED:
            output.say(f"{name}: undecided, a limit came first")
            code = code or ExitCode.UNDECIDED
            continue
        code = ExitCode.FINDINGS
        path = Result(
            outcome=found.outcome,
            distinct=found.states,
            depth=len(found.path) - 1,
            transitions=0,
            invariant=name,
            path=found.path,
        )
        output.say(
            f"{name} is not possible any more from {found.stuck:,} of {found.states:,} states; the nearest:",
            render(system, path),
        )
    return code, rows


def bounds_of(constants: Any) -> dict[str, Any]:
    """A model's constants by name."""
    return {**attrs.asdict(constants), "drop": sorted(constants.drop)}


def explored(result: "Result", system: Any) -> dict[str, Any]:
    """The --json form of an exploration. result: of the exploration; system: the model with its bounds."""
    return {
        "outcome": str(result.outcome),
        "distinct": result.distinct,
        "depth": result.depth,
        "transitions": result.transitions,
        "taken": dict(result.taken),
        "never_taken": result.never_taken,
        "never_reached": result.never_reached,
        "invariant": result.invariant,
        "counterexample": [
            {"action": step.action, "state": system.describe(step.state).splitlines()} for step in result.path
        ],
    }


def note_unreached(result: "Result", output: Output) -> None:
    """Report actions and `sometimes` that a complete exploration never reached. output: for the note."""
    for what, names in (("never taken", result.never_taken), ("never reached", result.never_reached)):
        if names and result.outcome == "holds":
            output.say(f"{what}: {', '.join(names)}")
