"""Whether the symmetry of a model is one, state by state."""

from fencepost.model.controller.controller_system import Controller


def assert_symmetric(system: Controller, most: int, *, deepest_first: bool = False) -> None:
    """The renamed state has as many successors, and they are the renamed successors. most: states looked at,
    the shallowest first unless it is said."""
    (swap,) = system.symmetries
    seen = set(system.initial())
    frontier = list(seen)
    while frontier and len(seen) < most:
        state = frontier.pop(-1 if deepest_first else 0)
        after = {system.apply(state, action) for action in system.actions(state)}
        other = system.renamed(state, swap)
        assert {system.renamed(one, swap) for one in after} == {
            system.apply(other, action) for action in system.actions(other)
        }
        frontier += sorted(after - seen)
        seen |= after
