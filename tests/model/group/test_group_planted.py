"""model/group: each invariant has failed on purpose, on a state made by hand or on a model with a planted
fault."""

from collections.abc import Callable

import pytest

from fencepost.model.explore import ExplorationOutcome, explore
from fencepost.model.group import coordinator_steps
from fencepost.model.group.group_invariants import (
    acknowledged_is_read,
    commits_are_of_their_generation,
    generations_grow_along_log,
    own_apart,
    owns_if_leads,
)
from fencepost.model.group.group_state import (
    COMMIT,
    METADATA,
    NONE,
    OWNING,
    STABLE,
    Broker,
    Constants,
    Member,
    ModelGroup,
    OffsetsLog,
)
from fencepost.model.group.group_system import Groups


@pytest.mark.parametrize(
    ("holds", "broken"),
    [
        (
            lambda: acknowledged_is_read(
                Broker(1, True, 0, 1, ModelGroup(STABLE, 1, 1, 0, (0,), (0,))), ((1, 1),)
            ),
            "OFFSET-SAFE",
        ),
        (
            lambda: commits_are_of_their_generation(
                OffsetsLog(((METADATA, 2, 1, (0,), -1), (COMMIT, 1, 0, 0)), 2)
            ),
            "GENERATION-FENCE",
        ),
        (
            lambda: generations_grow_along_log(
                OffsetsLog(((METADATA, 1, 1, (0,), -1), (METADATA, 1, 2, (1,), -1)), 2)
            ),
            "GENERATION-MONO",
        ),
        (lambda: own_apart(*(Member(OWNING, 1, 1, NONE, ()),) * 2), "ONE-CONSUMER"),
        (lambda: owns_if_leads(Broker(1, True, 0, 1, ())), "ONE-COORDINATOR"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_invariant_can_fail(holds: Callable[[], bool], broken: str) -> None:
    """Rule: an invariant that cannot fail says nothing."""
    assert not holds(), broken


def test_an_assignment_handed_out_early_has_two_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (ONE-CONSUMER): a planted coordinator that hands out an assignment before it is durable shares a
    partition after a fail-over."""
    strict = coordinator_steps.may_sync

    def early(number: int, member: Member, group: ModelGroup, state: int) -> bool:
        assigned = group.assignment[0] != NONE
        return strict(number, member, group, group.state if assigned else state)

    monkeypatch.setattr(coordinator_steps, "may_sync", early)
    result = explore(Groups(Constants(members=2, generations=1, commits=0, epochs=1), ("ONE-CONSUMER",)))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, "ONE-CONSUMER")
    assert "elect" in {action[0] for action in result.actions}


@pytest.mark.parametrize(
    ("planted", "steps"), [("loaded", 9), ("completed", 4)], ids=["along the log", "at a coordinator"]
)
def test_a_generation_used_twice_is_found(planted: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule (GENERATION-MONO): a planted coordinator that forgets the generation, at a load or at the end of a
    rebalance, writes it again."""
    right = getattr(coordinator_steps, planted)
    spoil = {
        "loaded": lambda *given: right(*given)._replace(generation=0),
        "completed": lambda group: right(group)._replace(generation=1 - group.generation),
    }
    monkeypatch.setattr(coordinator_steps, planted, spoil[planted])
    result = explore(Groups(Constants(members=1, commits=0, epochs=1), ("GENERATION-MONO",)))
    assert (result.outcome, result.invariant, len(result.actions)) == (
        ExplorationOutcome.VIOLATED,
        "GENERATION-MONO",
        steps,
    )


# ---- how it is explored and told
