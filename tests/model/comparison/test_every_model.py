"""What the comparison of the explorer with TLC asks of every model alike: states have one form on each side,
protections have one name, and a useful set of constants reaches everything."""

import pytest
from attrs import evolve

from fencepost.model.controller.controller_state import CONTROL_PLANE
from fencepost.model.controller.controller_system import Controller
from fencepost.model.explore import explore
from fencepost.model.group.group_state import OF_GROUPS
from fencepost.model.group.group_state import Constants as OfGroups
from fencepost.model.group.group_system import Groups
from fencepost.model.registry import shipped
from fencepost.model.replication.replication_state import DATA_PATH
from fencepost.model.replication.replication_system import Replication
from fencepost.model.tla import FOLDER, SIZES, controller, files_of, group, replication, transaction
from fencepost.model.tlc import show
from fencepost.model.transaction.transaction_state import OF_TRANSACTIONS
from fencepost.model.transaction.transaction_system import Transactions
from fencepost.traces.errors import FencepostError
from tests.model.comparison import test_sameness
from tests.model.comparison.reaching import reaches_all
from tests.model.comparison.whole_states import states_of_explorer

PROTECTIONS = {
    "Controller": CONTROL_PLANE,
    "Group": OF_GROUPS,
    "Replication": DATA_PATH,
    "Transaction": OF_TRANSACTIONS,
}
FORMS = {
    "replication": (replication, Replication, evolve(test_sameness.TINY, drop={"broker_epoch_fencing"})),
    "reassigned": (controller, Controller, test_sameness.REASSIGNED),
    "stopped": (controller, Controller, evolve(test_sameness.STOPPED, writes=0)),
    "retention": (group, Groups, test_sameness.EXPIRING),
    "a static member": (group, Groups, test_sameness.STATIC),
    "two partitions": (group, Groups, OfGroups(brokers=1, partitions=2, generations=1)),
    "a deposed coordinator": (transaction, Transactions, test_sameness.DEPOSED),
    "no guards": (transaction, Transactions, test_sameness.UNGUARDED),
    "a successor": (transaction, Transactions, test_sameness.SUCCESSOR),
}


@pytest.mark.parametrize("module", PROTECTIONS)
def test_only_its_own_protections_can_be_dropped(module):
    """Rule: a name that is not registered, or guards something else, is the caller's mistake in one
    sentence."""
    constants, own = shipped(module.lower()).constants, PROTECTIONS[module]
    foreign = min(set().union(*PROTECTIONS.values()) - own)
    for name, said in ((foreign, foreign), ("typo", r"typo \(not registered\)")):
        with pytest.raises(FencepostError, match=said):
            constants(drop={name})
    assert constants(drop=own).drop == own


@pytest.mark.parametrize("module", PROTECTIONS)
def test_protections_have_one_name(module):
    """Rule: the module's protections are those that the Python model can drop, and each shipped file is where
    it should be."""
    text = (FOLDER / f"{module}.tla").read_text()
    listed = text[text.index("Protections ==") : text.index("ASSUME")]
    assert all(f'"{name}"' in listed for name in PROTECTIONS[module])
    assert listed.count('"') == 2 * len(PROTECTIONS[module])
    assert all(file.is_file() for size in SIZES for file in files_of(module, size))


@pytest.mark.parametrize(("twin", "system", "constants"), FORMS.values(), ids=FORMS)
def test_a_state_has_one_form_on_each_side(twin, system, constants):
    """Rule: the map between states of Python and TLA+ loses nothing, and fingerprints lose no state."""
    states = states_of_explorer(constants)
    told = {show(tuple(twin.state_to_tla(state).values())) for state in states}
    assert len(told) == len(states) == explore(system(constants, ())).distinct
    assert all(twin.state_from_tla(twin.state_to_tla(state)) == state for state in states)


@pytest.mark.java
@pytest.mark.parametrize(
    ("module", "constants", "all_of_them"),
    [*((module, None, True) for module in PROTECTIONS), ("Controller", {"LastEpoch": "0"}, False)],
)
def test_what_a_useful_set_of_constants_reaches(module, constants, all_of_them, tmp_path):
    """Rule: the small configuration is not vacuous: each `never` of the module is refuted; and of one without
    controllers not all are."""
    assert reaches_all(module, tmp_path, constants) is all_of_them
