"""model/explore: the compiled explorer of systems in slots answers as the plain one does, alone
and with renamings."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model import explore
from fencepost.model.explore.pairs import tree_of
from fencepost.model.explore.store import Store
from fencepost.model.group.group_state import Constants as OfGroups
from fencepost.model.group.group_system import Groups
from fencepost.model.replication.replication_state import Constants
from fencepost.model.replication.replication_system import Replication
from fencepost.model.transaction.transaction_state import Constants as OfTransactions
from fencepost.model.transaction.transaction_system import Transactions
from fencepost.traces.errors import FencepostError
from tests.model.transaction.needed import without


@frozen(slots=False)
class Philosophers(explore.SlottedSystem):
    """Each takes the fork to the left, then the one to the right, eats, and puts both down. Slots:
    philosophers, then forks."""

    count: int = 3
    # The first one takes the forks in the other order, so that nobody waits for ever.
    careful: bool = False
    forbids: str = "STUCK"

    kinds = property(lambda self: (0,) * self.count + (1,) * self.count)
    symmetries = property(lambda self: () if self.careful else tuple(self._turns()))

    def _turns(self):
        for turn in range(1, self.count):
            moved = tuple((at + turn) % self.count for at in range(self.count))
            yield explore.Symmetry((*moved, *(self.count + at for at in moved)), lambda slot, value: value)

    @property
    def rules(self):
        rules = []
        for at in range(self.count):
            forks = [self.count + at, self.count + (at + 1) % self.count]
            if self.careful and at == 0:
                forks.reverse()
            for held, fork in enumerate(forks):
                rules.append(explore.Rule(("take",), (at, fork), (at, fork), partial(self._take, at, held)))
            rules.append(
                explore.Rule(
                    ("put",),
                    (at,),
                    (at, *forks),
                    partial(self._put, at),
                    explore.Part((at,), lambda held: held == 2),
                )
            )
        return tuple(rules)

    def _take(self, at, held, holding, fork):
        if holding == held and fork == 0:
            yield ("take", at, held), (held + 1, 1)

    def _put(self, at, holding):
        yield ("put", at), (0, 0, 0)

    @property
    def parts(self):
        if self.forbids == "STUCK":
            return {"STUCK": (explore.Part(tuple(range(self.count)), lambda *all: set(all) != {1}),)}
        return {"NEVER-TWO": tuple(explore.Part((at,), lambda held: held != 2) for at in range(self.count))}

    goals = property(
        lambda self: {
            "one eats": (explore.Part((1,), lambda held: held == 2),),
            "all eat": (explore.Part((0, 1, 2), lambda *all: set(all) == {2}),),
        }
    )

    @property
    def step_invariants(self):
        return (
            {}
            if self.forbids == "STUCK"
            else {"NOBODY-PUTS": lambda before, action, after: action[0] != "put"}
        )

    def slots_of(self, state):
        return state

    def state_of(self, slots):
        return tuple(slots)

    def initial(self):
        yield (0,) * (2 * self.count)

    def describe(self, state):
        return str(state)


SYSTEMS = {
    "stuck": Philosophers(),
    "careful": Philosophers(careful=True),
    "states before steps": Philosophers(forbids="NEVER-TWO"),
    "five careful": Philosophers(count=5, careful=True),
    "two replicas": Replication(Constants(epochs=2, replicas=2)),
    "crashes and losses": Replication(Constants(replicas=2, crashes=1, losses=1)),
    "KIP-101": Replication(Constants(epochs=2, replicas=2, crashes=1, drop={"truncate_by_epoch"})),
    "KIP-279": Replication(Constants(epochs=2, replicas=2, drop={"truncate_below_own_epoch"})),
    "KAFKA-1188": Replication(Constants(epochs=2, drop={"leader_epoch_fencing"})),
    "KIP-320": Replication(Constants(epochs=2, replicas=2, drop={"fetch_fencing"})),
    "groups": Groups(OfGroups(members=1, generations=1, epochs=1)),
    "not_coordinator": Groups(OfGroups(members=1, generations=1, epochs=1, drop={"not_coordinator"})),
    "apply_whole_load": Groups(OfGroups(members=1, generations=1, epochs=1, drop={"apply_whole_load"})),
    "transactions": Transactions(OfTransactions(version=2, transactions=1, epochs=1)),
    "a late marker": Transactions(without("no_late_marker", 1)),
    "a partition without a marker": Transactions(without("to_mark", 2)),
    "after a history": explore.After(Replication(Constants(replicas=2)), (("append", 0), ("fetch", 1))),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_both_explorers_answer_alike(name: str) -> None:
    """Rule: outcome, counts, depth, actions taken, `sometimes` and the counterexample are those of the plain
    explorer."""
    plain, compiled = explore.breadth_first.explore(SYSTEMS[name]), explore.explore(SYSTEMS[name])
    one, other = ((of.outcome, of.invariant, of.path, of.distinct, of.depth) for of in (plain, compiled))
    assert one == other
    if plain.outcome is explore.ExplorationOutcome.HOLDS:
        one, other = ((of.taken, of.never_taken, of.never_reached) for of in (plain, compiled))
        assert one == other


def test_a_step_invariant_yields_to_a_state_found_before() -> None:
    """Rule: the first violation in the order of the search is told: of a state found before the step,
    otherwise of the step."""

    @frozen(slots=False)
    class OnlySteps(Philosophers):
        parts = property(lambda self: {})

    result = explore.explore(OnlySteps(forbids="NEVER-TWO"))
    assert (result.outcome, result.invariant) == (explore.ExplorationOutcome.VIOLATED, "NOBODY-PUTS")
    assert result.path == explore.breadth_first.explore(OnlySteps(forbids="NEVER-TWO")).path
    assert explore.explore(Philosophers(forbids="NEVER-TWO")).invariant == "NEVER-TWO"


def _orbits(system: explore.SlottedSystem) -> int:
    """How many states there are if renamed ones count once, by brute force."""
    seen, frontier = set(), list(system.initial())
    while frontier:
        state = frontier.pop()
        if state in seen:
            continue
        seen.add(state)
        frontier += [system.apply(state, action) for action in system.actions(state)]
    return len({min((state, *(system.renamed(state, one) for one in system.symmetries))) for state in seen})


def test_renamed_states_count_as_one() -> None:
    """Rule: with symmetry exactly one state of each orbit is visited, and the outcome stays."""
    system = Replication(Constants(replicas=3, values=1, log_size=1))
    reduced, whole = explore.explore(system, symmetry=True), explore.explore(system)
    assert reduced.distinct == _orbits(system) < whole.distinct
    assert (reduced.outcome, reduced.depth, reduced.never_taken) == (whole.outcome, whole.depth, ())


def test_a_counterexample_under_symmetry_is_a_run() -> None:
    """Rule: the path that is shown is a run of the system itself, as short as without symmetry."""
    system = Replication(Constants(epochs=2, drop={"truncate_by_epoch"}))
    reduced, whole = explore.explore(system, symmetry=True), explore.explore(system)
    assert reduced.distinct < whole.distinct
    assert (len(reduced.path), reduced.invariant) == (len(whole.path), whole.invariant)
    state = reduced.path[0].state
    for step in reduced.path[1:]:
        assert step.action in set(system.actions(state))
        state = system.apply(state, step.action)
        assert state == step.state
    assert not system.invariants[reduced.invariant](state)


def test_renamings_keep_the_replication_model_as_it_is() -> None:
    """Rule: renaming replicas turns steps into steps, or symmetry would hide states."""
    system = Replication(Constants(replicas=3, epochs=1, values=1, crashes=1, losses=1))
    (state,) = system.initial()
    seen, frontier = {state}, [state]
    while frontier and len(seen) < 1_500:
        state = frontier.pop(0)
        after = [system.apply(state, action) for action in system.actions(state)]
        for one in system.symmetries:
            renamed = system.renamed(state, one)
            there = {system.apply(renamed, action) for action in system.actions(renamed)}
            assert there == {system.renamed(behind, one) for behind in after}
            assert all(holds(state) == holds(renamed) for holds in system.invariants.values())
        frontier += [one for one in after if one not in seen]
        seen.update(after)


def test_limits_end_an_exploration_without_an_answer() -> None:
    """Rule: states, depth and memory are limits; what is over them is not decided."""
    system = Replication(Constants(epochs=2))
    assert explore.explore(system, explore.Limits(states=5_000)).outcome is explore.ExplorationOutcome.BOUNDED
    assert explore.explore(system, explore.Limits(depth=4)).depth == 4
    assert explore.explore(system, explore.Limits(memory_mib=1)).outcome is explore.ExplorationOutcome.BOUNDED


def test_a_system_without_slots_is_refused_symmetry() -> None:
    """Rule: what cannot be done is said, not ignored."""
    with pytest.raises(FencepostError, match="slots"):
        explore.explore(explore.After(object(), ()), symmetry=True)


@given(
    st.integers(2, 9).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(0, 5), min_size=width, max_size=width), min_size=1, max_size=200
        )
    )
)
def test_the_store_is_exact(rows: list[list[int]]) -> None:
    """Rule: rows have one number each, in the order of their first appearance, and come back as they were."""
    store = Store.of(len(rows[0]))
    array = np.array(rows, np.int32)
    numbers = np.arange(len(rows), dtype=np.int32)
    store.add(array, numbers, numbers)
    distinct = list(dict.fromkeys(map(tuple, rows)))
    assert len(store) == len(distinct)
    assert [tuple(row) for row in store.rows(0, len(store)).tolist()] == distinct
    assert [rows.index(list(row)) for row in distinct] == store.parent[: len(store)].tolist()


def test_trees_name_every_slot_once() -> None:
    """Rule: each slot and each inner node but the root is a child exactly once."""
    for slots in range(2, 40):
        assert sorted(tree_of(slots).ravel().tolist()) == list(range(2 * slots - 2))


def test_three_replicas_have_five_renamings() -> None:
    """Rule: the renamings are the permutations of the replicas, without the one that changes nothing."""
    places = {one.places[:3] for one in Replication(Constants()).symmetries}
    assert places == set(permutations(range(3))) - {(0, 1, 2)}
