"""Whether the explorer and TLC see the same system.

Owns the comparison, for some constants of any shipped model. Must not know a model's content, or how either
side explores.

Each side runs twice. One run checks the invariants: do both sides find a violation, and are the shortest
counterexamples equally long? The other run does not check: are there equally many distinct states, and is the
largest depth equal? (If nothing is violated, the first run answers the second question too.) TLC runs with
one worker, because only then depth and counterexamples are exact, and without symmetry, because the explorer
uses none. TLC counts the states on a path, the explorer its steps.
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from fencepost.model.explore import ExplorationOutcome as Explored
from fencepost.model.explore import Limits, explore
from fencepost.model.registry import model_of
from fencepost.model.tla import files_of
from fencepost.model.tlc import RunOptions, RunOutcome, Spec, check
from fencepost.traces.errors import FencepostError

LIMITS = Limits(states=20_000_000)
EXPLORED: Mapping[Explored, str] = {Explored.HOLDS: "holds", Explored.VIOLATED: "violated"}
CHECKED: Mapping[RunOutcome, str] = {RunOutcome.HOLDS: "holds", RunOutcome.VIOLATED: "violated"}


@frozen(kw_only=True)
class Seen:
    """The result of one side."""

    # holds or violated.
    result: str
    # The violated invariant, by the model's name; "" if none.
    invariant: str
    # Steps of the counterexample.
    steps: int
    # Distinct states without checking invariants; -1 if not counted.
    distinct: int = -1
    # The largest depth without checking invariants; -1 if not counted.
    depth: int = -1
    # Seconds of the run that checked the invariants.
    seconds: float = 0.0

    @property
    def compared(self) -> tuple[object, ...]:
        """The values that must be equal. The name of the invariant is not among them: if two fall at the same
        depth, either may be named."""
        return self.result, self.steps, self.distinct, self.depth


@frozen(kw_only=True)
class Comparison:
    """Both sides for some constants."""

    constants: Any
    explorer: Seen
    tlc: Seen

    @property
    def same(self) -> bool:
        """Whether both sides agree on everything that is compared."""
        return self.explorer.compared == self.tlc.compared


def constants_to_tla(constants: Any) -> dict[str, str]:
    """The bounds, as texts for TLC's configuration."""
    told: dict[str, str] = model_of(constants).twin.constants_to_tla(constants)
    return told


def spec_of(constants: Any) -> Spec:
    """The TLA+ twin of the model of these constants, with the constants."""
    module, config = files_of(model_of(constants).module)
    return Spec.at(module, config, constants_to_tla(constants))


def by_explorer(constants: Any, clock: Callable[[], float], *, count: bool = True) -> Seen:
    """The result of the explorer.

    Args:
        constants: the constants of a model.
        clock: a function that returns seconds.
        count: count states even if something is violated.

    Returns:
        the result.
    """
    started = clock()
    model = model_of(constants)
    result = explore(model.system(constants, model.invariants), LIMITS)
    seconds = clock() - started
    if result.outcome not in EXPLORED:
        raise _undecided("the explorer", constants, f"{result.outcome} after {result.distinct:,} states")
    counted = result
    if result.outcome is Explored.VIOLATED and count:
        counted = explore(model.system(constants, ()), LIMITS)
    whole = counted.outcome is Explored.HOLDS
    return Seen(
        result=EXPLORED[result.outcome],
        invariant=result.invariant or "",
        steps=len(result.actions),
        distinct=counted.distinct if whole else -1,
        depth=counted.depth if whole else -1,
        seconds=seconds,
    )


def by_tlc(constants: Any, options: RunOptions | None = None, *, count: bool = True) -> Seen:
    """The result of TLC.

    Args:
        constants: the constants of a model.
        options: TLC's options.
        count: count states even if something is violated.

    Returns:
        the result.
    """
    spec = spec_of(constants)
    result = check(spec, options)
    if result.outcome not in CHECKED:
        raise _undecided("TLC", constants, result.reason)
    counted = result
    if result.outcome is RunOutcome.VIOLATED and count:
        counted = check(spec, options, unchecked=True)
    whole = counted.outcome is RunOutcome.HOLDS
    name = result.violation.name if result.violation else ""
    return Seen(
        result=CHECKED[result.outcome],
        invariant=model_of(constants).twin.INVARIANTS.get(name, name),
        steps=result.steps,
        distinct=counted.distinct if whole else -1,
        depth=counted.depth - 1 if whole else -1,
        seconds=result.seconds,
    )


def compare(
    constants: Any, clock: Callable[[], float], options: RunOptions | None = None, *, count: bool = True
) -> Comparison:
    """Run both sides, one after the other.

    Args:
        constants: the constants of a model.
        clock: a function that returns seconds.
        options: TLC's; with more than one worker depth and steps are not exact.
        count: count states even if something is violated.

    Returns:
        both results.
    """
    return Comparison(
        constants=constants,
        explorer=by_explorer(constants, clock, count=count),
        tlc=by_tlc(constants, options, count=count),
    )


def _undecided(who: str, constants: Any, seen: str) -> FencepostError:
    return FencepostError(expected=f"an answer of {who}", seen=seen, where=str(constants))
