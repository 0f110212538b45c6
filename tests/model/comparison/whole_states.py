"""All states of a model, by the explorer's rules and by TLC."""

from typing import Any

from fencepost.model.comparison.sameness import spec_of
from fencepost.model.explore.slotted import steps
from fencepost.model.registry import model_of
from fencepost.model.tlc import RunOptions, RunOutcome, check


def states_of_explorer(constants: Any) -> frozenset[Any]:
    """Every reachable state, stored completely: for small constants only. It uses no fingerprints, so it
    checks those too."""
    system = model_of(constants).system(constants, ())
    seen = set(map(system.slots_of, system.initial()))
    frontier = list(seen)
    while frontier:
        slots = frontier.pop()
        for rule in system.rules:
            for _, written in steps(rule, slots):
                put = dict(zip(rule.writes, written, strict=True))
                after = tuple(put.get(slot, value) for slot, value in enumerate(slots))
                if after not in seen:
                    seen.add(after)
                    frontier.append(after)
    return frozenset(map(system.state_of, seen))


def states_of_tlc(constants: Any, options: RunOptions | None = None) -> frozenset[Any]:
    """Every state that TLC dumps, converted into the model's.

    Args:
        constants: the constants of a model.
        options: TLC's options.

    Returns:
        the states.
    """
    read = model_of(constants).twin.state_from_tla
    found: set[Any] = set()
    result = check(
        spec_of(constants), options, unchecked=True, on_state=lambda variables: found.add(read(variables))
    )
    assert result.outcome is RunOutcome.HOLDS, result.reason
    assert len(found) == result.distinct, "the map from TLA+ takes two states for one"
    return frozenset(found)
