"""model/group: what holds with every protection, the shortest way to a violation without each, and what a
fail-over keeps.

The numbers are exact: breadth-first exploration of a fixed system in one process. tests/model/tla holds them
against TLC's.
"""

from collections.abc import Callable

import pytest

from fencepost.model.explore import After, ExplorationOutcome, explore, render
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
    DEAD,
    EMPTY,
    METADATA,
    NONE,
    OWNING,
    STABLE,
    Broker,
    Constants,
    GroupState,
    Member,
    ModelGroup,
    OffsetsLog,
)
from fencepost.model.group.group_system import Groups
from tests.model.acts import acts

STABLE_GROUP = acts("join 0 0, complete_join 0, joined 0 0, assign 0 0 0, replicate 0, sync 0 0")
"""Member 0 owns partition 0 in generation 1 of coordinator 0."""

FAIL_OVER = (("learn", 1, 1), ("load", 1, 1))
"""Of broker 1, once it is elected."""


def after(constants: Constants, *actions: tuple[str | int, ...]) -> GroupState:
    """The state after these actions, each of which must be enabled."""
    (state,) = After(Groups(constants), actions).initial()
    return state


@pytest.mark.parametrize(
    ("constants", "distinct", "depth"),
    [
        (Constants(members=1, epochs=1), 11_783, 27),
        (Constants(members=1, brokers=1, expiries=1), 232, 18),
        (Constants(members=2, brokers=1), 9_020, 21),
        (Constants(members=2, brokers=1, partitions=2, commits=2, generations=1), 6_564, 18),
        (Constants(members=2, generations=1, epochs=1), 71_673, 26),
    ],
    ids=["fail-over", "expiry", "two members", "two partitions", "two members and a fail-over"],
)
def test_all_protections_hold(constants: Constants, distinct: int, depth: int) -> None:
    """Rule: with every protection all invariants hold in every reachable state, and every action is taken."""
    result = explore(Groups(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)
    assert result.never_taken == ()


def test_a_useful_set_of_constants_reaches_everything() -> None:
    """Rule: one member, two generations and a fail-over are not vacuous: every `sometimes` is reached."""
    assert explore(Groups(Constants(members=1, epochs=1))).never_reached == ()


CASES: dict[str, tuple[str, Constants, tuple[tuple[str | int, ...], ...]]] = {
    "generation_fencing": (
        "GENERATION-FENCE",
        Constants(brokers=1, drop={"generation_fencing"}),
        acts("commit 0 0, leave 0 0, complete_join 0, join 0 0, handle_commit 0 0"),
    ),
    "commit_async_not_retried": (
        "OFFSET-SAFE",
        Constants(brokers=1, generations=1, commits=2, drop={"commit_async_not_retried"}),
        acts(
            "commit 0 0, commit 0 0, retry_commit 0, handle_commit 0 0, replicate 0, handle_commit 0 0, "
            "replicate 0"
        ),
    ),
    "apply_whole_load": (
        "OFFSET-SAFE",
        Constants(generations=1, epochs=1, drop={"apply_whole_load"}),
        acts("commit 0 0, handle_commit 0 0, replicate 0, elect 1 2, learn 1 1, load 1 1"),
    ),
    "no_expiry_while_rebalancing": (
        "OFFSET-SAFE",
        Constants(brokers=1, generations=1, expiries=1, drop={"no_expiry_while_rebalancing"}),
        acts("commit 0 0, handle_commit 0 0, session_timeout 0 0, replicate 0, expire_offset 0 0"),
    ),
    "not_coordinator": (
        "OFFSET-SAFE",
        Constants(generations=1, epochs=1, drop={"not_coordinator"}),
        acts("elect 1 1, learn 0 1, learn 1 1, load 1 1, commit 0 0, acknowledge_unwritten 0 0"),
    ),
}


@pytest.mark.parametrize("protection", CASES)
def test_a_dropped_protection_is_missed(protection: str) -> None:
    """Rule: without a protection its invariant falls, by this shortest history from a stable group on."""
    invariant, constants, actions = CASES[protection]
    result = explore(After(Groups(constants), STABLE_GROUP))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, invariant)
    assert result.actions == actions


def test_unordered_tasks_leave_a_leader_without_the_group() -> None:
    """Rule (KAFKA-10614): an unload that runs after a later load takes the group from the broker that
    leads."""
    result = explore(Groups(Constants(members=1, generations=1, epochs=2, drop={"coordinator_epoch_order"})))
    assert (result.invariant, result.distinct) == ("ONE-COORDINATOR", 74)
    assert result.actions == acts("elect 1 0, learn 0 1, elect 0 0, learn 0 2, load 0 2, unload 0 1")


def test_unordered_tasks_leave_two_coordinators() -> None:
    """Rule (KAFKA-10614): a load that runs after a later unload makes a second coordinator, for good."""
    flips = acts("elect 1 0, learn 0 1, learn 1 1, elect 0 0, learn 1 2, unload 1 2")
    constants = Constants(members=1, epochs=2, drop={"coordinator_epoch_order"})
    owners = after(constants, *flips, ("load", 1, 1)).brokers
    assert [broker.group != () for broker in owners] == [True, True]
    assert not owns_if_leads(owners[1])
    ordered = Constants(members=1, epochs=2)
    assert ("load", 1, 1) not in set(Groups(ordered).actions(after(ordered, *flips)))


def test_expiry_of_an_empty_group_breaks_no_promise() -> None:
    """Rule: retention of a group without members, and the end of the group, are no loss."""
    constants = Constants(members=1, brokers=1, expiries=1)
    state = after(
        constants,
        *STABLE_GROUP,
        ("commit", 0, 0),
        ("handle_commit", 0, 0),
        ("replicate", 0),
        ("leave", 0, 0),
        ("complete_join", 0),
        ("replicate", 0),
        ("expire_offset", 0, 0),
        ("replicate", 0),
        ("remove_group", 0),
    )
    assert state.brokers[0].group.state == DEAD
    assert state.acked == ((NONE, NONE),)


# ---- fail-over


def test_what_is_durable_survives_its_coordinator() -> None:
    """Rule (P4): a new coordinator has the stable generation, its members and the acknowledged offsets."""
    constants = Constants(members=1, epochs=1)
    committed = (("commit", 0, 0), ("handle_commit", 0, 0), ("replicate", 0), ("elect", 1, 2))
    state = after(constants, *STABLE_GROUP, *committed, *FAIL_OVER)
    assert state.brokers[1].group == ModelGroup(STABLE, 1, 1, 0, (0,), (0,))
    assert state.brokers[0].group == state.brokers[1].group, "the old one has not heard"


def test_what_was_pending_may_not_survive() -> None:
    """Rule (P4): a commit that was written and not yet acknowledged is lost or kept with the record, never
    half."""
    constants = Constants(members=1, epochs=1)
    pending = (*STABLE_GROUP, ("commit", 0, 0), ("handle_commit", 0, 0))
    cut = after(constants, *pending, ("elect", 1, 1), *FAIL_OVER)
    kept = after(constants, *pending, ("elect", 1, 2), *FAIL_OVER)
    assert (cut.brokers[1].group.offsets, kept.brokers[1].group.offsets) == ((NONE,), (0,))
    assert cut.acked == kept.acked == ((NONE, NONE),)


def test_a_generation_without_an_assignment_is_forgotten() -> None:
    """Rule (P4): a generation that no assignment was written for does not outlive its coordinator, and its
    member is told."""
    constants = Constants(members=1, epochs=1)
    state = after(
        constants, ("join", 0, 0), ("complete_join", 0), ("joined", 0, 0), ("elect", 1, 0), *FAIL_OVER
    )
    assert state.brokers[1].group.state == EMPTY
    assert ("heartbeat", 0, 1) in set(Groups(constants).actions(state))


def test_a_deposed_coordinator_acknowledges_nothing() -> None:
    """Rule: what a coordinator that has not heard of its successor appends never becomes durable."""
    constants = Constants(members=1, epochs=1)
    deposed = after(constants, *STABLE_GROUP, ("commit", 0, 0), ("elect", 1, 1))
    names = {action[0] for action in Groups(constants).actions(deposed)}
    assert "session_timeout" in names, "it goes on with what needs no write"
    assert not names & {"handle_commit", "replicate"}


# ---- the invariants have failed on purpose


def test_members_are_alike() -> None:
    """Rule: with symmetry half as many states stand for all of two members."""
    result = explore(Groups(Constants(members=2, brokers=1)), symmetry=True)
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, 4_521, 21)


def test_a_counterexample_tells_coordinators_and_members() -> None:
    """Rule: a person can follow a counterexample."""
    _, constants, _ = CASES["not_coordinator"]
    system = After(Groups(constants), STABLE_GROUP)
    text = render(system, explore(system))
    assert "OFFSET-SAFE is violated in 6 steps" in text
    assert (
        "broker 0: follows in epoch 1, coordinator of epoch 0: Stable generation 1 members [0], offsets [0]"
        in text
    )
    assert "member 0: Owning generation 1 owns [0], sent commit 0 of generation 1" in text


# model/group: each invariant has failed on purpose, on a state made by hand or on a model with a planted
# fault.


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
