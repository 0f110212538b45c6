"""`explore`: one entry for every system, with the fastest explorer that the system supports.

Owns the choice. Must not know how an explorer works.
"""

from collections.abc import Callable

from fencepost.model.explore import breadth_first
from fencepost.model.explore.breadth_first import After
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.transition_system import Limits, Result, State, System
from fencepost.traces.errors import FencepostError


def explore(
    system: System[State],
    limits: Limits | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    symmetry: bool = False,
) -> Result:
    """Visit the states of a system, nearest first, until all are visited, an invariant fails or a limit is
    reached.

    The counterexample is the first shortest one in the order of the actions.

    Args:
        system: the system.
        limits: where to stop.
        on_progress: called from time to time with the number of distinct states and the depth.
        symmetry: count states that differ only by a renaming as one; slotted.py defines the renamings.

    Returns:
        the result.

    Raises:
        FencepostError: if the system does not support the options.
    """
    limits = limits or Limits()
    base = system.system if isinstance(system, After) else system
    if not isinstance(base, SlottedSystem):
        if symmetry:
            raise FencepostError(
                expected="a system in slots (fencepost.model.explore.SlottedSystem)",
                seen=type(base).__name__,
                where="an exploration with symmetry",
            )
        return breadth_first.explore(system, limits, on_progress)
    from fencepost.model.explore.compiled import Exploration

    symmetries = base.symmetries if symmetry else ()
    return Exploration(base, tuple(system.initial()), limits, symmetries).run(on_progress)
