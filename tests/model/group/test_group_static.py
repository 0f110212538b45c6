"""model/group/group_system.py with a static member (KIP-345): two processes with one group.instance.id, the
later one in the place of the earlier."""

import pytest
from attrs import evolve

from fencepost.model.explore import ExplorationOutcome, explore
from fencepost.model.group.group_state import Constants
from fencepost.model.group.group_system import Groups
from fencepost.traces.errors import FencepostError
from tests.model.acts import acts

FAIL_OVER = Constants(members=2, generations=1, commits=0, epochs=1, statics=1)


@pytest.mark.parametrize(
    ("constants", "distinct", "depth"),
    [
        (FAIL_OVER, 6_192, 22),
        (Constants(members=2, brokers=1, statics=1), 4_726, 25),
        (Constants(members=3, brokers=1, generations=1, statics=1), 6_464, 20),
    ],
    ids=["fail-over", "two generations", "with another member"],
)
def test_a_static_member_is_one(constants, distinct, depth):
    """Rule (ONE-INSTANCE): no group has both processes, before and after a fail-over; the one that was
    replaced stays out of its generation."""
    result = explore(Groups(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)


def test_it_is_replaced_without_a_rebalance():
    """Rule (KIP-345): in a stable group the later process gets the assignment in the same generation."""
    system = Groups(evolve(FAIL_OVER, epochs=0, brokers=1))
    state = next(iter(system.initial()))
    for action in acts(
        "join 0 0, complete_join 0, joined 0 0, assign 0 0 0, replicate 0, sync 0 0, replace_static 1 0, "
        "joined 1 0, replicate 0, sync 1 0, heartbeat 0 0"
    ):
        assert action in set(system.actions(state)), action
        state = system.apply(state, action)
    earlier, later = state.members
    assert (later.generation, later.assigned, earlier.assigned) == (1, 1, 0)
    assert ("join", 0, 0) not in set(system.actions(state))


CASES = {
    "persist_static_member": acts(
        "join 0 0, complete_join 0, joined 0 0, assign 0 0 0, replicate 0, elect 1 1, learn 1 1, load 1 1, "
        "replace_static 1 0, joined 1 0, sync 1 0"
    ),
    "replace_static_member": (("join", 0, 0), ("join", 1, 0)),
}


@pytest.mark.parametrize("protection", CASES)
def test_a_dropped_protection_is_missed(protection):
    """Rule (KAFKA-10284, KAFKA-8500): without the protection two members have one instance id, by this
    shortest history."""
    result = explore(Groups(evolve(FAIL_OVER, drop={protection})))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, "ONE-INSTANCE")
    assert result.actions == CASES[protection]


def test_the_pair_keeps_its_numbers():
    """Rule: the two processes are not alike; other members are."""
    assert Groups(FAIL_OVER).symmetries == ()
    assert len(Groups(Constants(members=4, statics=1)).symmetries) == 1


def test_a_pair_takes_two():
    """Rule: a static member without a second process is the caller's mistake in one sentence."""
    with pytest.raises(FencepostError, match="statics"):
        Constants(members=1, statics=1)
