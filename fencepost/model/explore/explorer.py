"""`explore`: one entry for every system, with the fastest explorer that the system supports.

Owns the choice. Must not know how an explorer works.
"""

from collections.abc import Callable

from attrs import evolve

from fencepost.model.explore import breadth_first
from fencepost.model.explore.breadth_first import After
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.transition_system import ExplorationOutcome, Limits, Result, State, System
from fencepost.traces.errors import FencepostError

MOST_WORKERS = 64
ALONE_FIRST = 50_000
"""States that one process visits before others are started. Reason: that takes less than a second, and
starting processes takes several."""


def explore(
    system: System[State],
    limits: Limits | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    workers: int = 1,
    symmetry: bool = False,
) -> Result:
    """Visit the states of a system, nearest first, until all are visited, an invariant fails or a limit is
    reached.

    With one worker the counterexample is the first shortest one in the order of the actions. With more it is
    equally short, and the same every time for that number of workers. Small explorations run in one process.
    More than one worker and symmetry need a system in slots (slotted.py).

    Args:
        system: the system.
        limits: where to stop.
        on_progress: called from time to time with the number of distinct states and the depth.
        workers: the number of processes.
        symmetry: count states that differ only by a renaming as one; a system in slots defines the renamings.

    Returns:
        the result.

    Raises:
        FencepostError: if the system does not support the options, or a process dies.
    """
    limits = limits or Limits()
    base = system.system if isinstance(system, After) else system
    if not isinstance(base, SlottedSystem):
        if workers > 1 or symmetry:
            raise FencepostError(
                expected="a system in slots (fencepost.model.explore.SlottedSystem)",
                seen=type(base).__name__,
                where="an exploration with several workers or symmetry",
            )
        return breadth_first.explore(system, limits, on_progress)
    if not 1 <= workers <= MOST_WORKERS:
        raise FencepostError(
            expected=f"1 to {MOST_WORKERS} workers", seen=str(workers), where="the exploration"
        )
    from fencepost.model.explore.compiled import Exploration
    from fencepost.model.explore.workers import explore_by_workers

    start = tuple(system.initial())
    symmetries = base.symmetries if symmetry else ()
    few = limits.states is None or limits.states > ALONE_FIRST
    alone = evolve(limits, states=ALONE_FIRST) if workers > 1 and few else limits
    result = Exploration(base, start, alone, symmetries).run(on_progress)
    if alone is limits or result.outcome is not ExplorationOutcome.BOUNDED:
        return result
    return explore_by_workers(base, start, limits, workers, symmetry=symmetry, on_progress=on_progress)
