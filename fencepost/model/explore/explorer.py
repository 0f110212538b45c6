"""`explore`: one entry for every system, each by the fastest explorer that it allows.

Owns: the choice. Must not know how any of them works.
"""

from collections.abc import Callable

from attrs import evolve

from fencepost.model.explore import breadth_first
from fencepost.model.explore.breadth_first import After
from fencepost.model.explore.slotted import SlottedSystem
from fencepost.model.explore.system import ExplorationOutcome, Limits, Result, State, System
from fencepost.traces.errors import FencepostError

MOST_WORKERS = 64
ALONE_FIRST = 50_000
"""States that one process visits before others are started: that takes less than a second, and starting
processes takes several."""


def explore(
    system: System[State],
    limits: Limits | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    workers: int = 1,
    symmetry: bool = False,
) -> Result:
    """Visit the states of `system`, nearest first, until all are visited, an invariant fails or a limit is
    met.

    on_progress: is given the number of distinct states and the depth, now and then. workers: processes.
    symmetry: count states that differ only in the names of what is alike (a system in slots says what that
    is) as one. More than one worker and symmetry need a system in slots (slotted.py). With one worker the
    counterexample is the first shortest one in the order of the actions; with more it is as short, and the
    same every time for that number of workers. What one process ends soon, one process does. Raises
    FencepostError.
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
