"""model/controller/controller_system.py: what holds with every protection, and the shortest way to a
violation without each.

The numbers are exact: breadth-first exploration of a fixed system in one process.
"""

import pytest
from attrs import evolve

from fencepost.model.controller.controller_state import CONTROL_PLANE, Constants
from fencepost.model.controller.controller_system import Controller
from fencepost.model.explore import ExplorationOutcome, explore, render
from fencepost.traces.protections import BY_NAME
from tests.model.acts import acts
from tests.model.symmetry import assert_symmetric


@pytest.mark.parametrize(
    ("constants", "distinct", "depth"),
    [
        (Constants(), 6_052, 15),
        (Constants(sessions=2, writes=1), 25_151, 17),
        (Constants(epochs=1, crashes=1), 3_998, 13),
        (Constants(spare=1, writes=4, reassignments=1), 19_707, 26),
        (Constants(spare=1, epochs=1, writes=5, reassignments=2), 11_020, 27),
        (Constants(writes=0, deletions=1), 4_225, 20),
        (Constants(epochs=1, writes=0, crashes=1, deletions=1), 3_186, 18),
        (Constants(epochs=1, shutdowns=1), 16_329, 14),
    ],
)
def test_all_protections_hold(constants: Constants, distinct: int, depth: int) -> None:
    """Rule: with every protection all invariants hold in every reachable state."""
    result = explore(Controller(constants))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, distinct, depth)


def test_the_model_reaches_what_it_is_about() -> None:
    """Rule: the smallest useful constants take every action, and have zombies, two controllers and two
    leaders at once, and no leader at all."""
    result = explore(Controller(Constants()))
    assert (result.never_taken, result.never_reached) == ((), ())


CASES = {
    "fenced_zookeeper_write": (
        Constants(sessions=2, writes=1),
        "CTRL-FENCE",
        (("elect", 0), ("expire", 0), ("load", 0), ("elect", 1), ("elect_leader", 0, 1)),
    ),
    "controller_epoch_fencing": (
        Constants(),
        "CTRL-FENCE",
        (("elect", 0), ("load", 0), ("deliver", 0, 0, 1, 0, 0, 0, 3), ("deliver", 0, 0, 0, 0, 0, 0, 3)),
    ),
    "epoch_read_in_election_only": (
        Constants(),
        "CTRL-FENCE",
        (("elect", 0), ("expire", 0), ("elect", 1), ("adopt_epoch", 0)),
    ),
    "leader_epoch_fencing": (
        Constants(),
        "EPOCH-MONO",
        acts(
            "elect 0, load 0, expire 0, see_brokers 0, elect_leader 0 1, deliver 1 0 1 1 1 1 3, deliver 1 0 "
            "1 0 0 0 3"
        ),
    ),
    "broker_epoch_fencing": (
        Constants(epochs=1, crashes=1),
        "EPOCH-MONO",
        (("expire", 0), ("crash", 0), ("restart", 0), ("deliver", 0, 0, 0, 0, 0, 0, 3)),
    ),
    "re_elect": (
        Constants(epochs=1, crashes=1),
        "EPOCH-MONO",
        acts("expire 0, crash 0, restart 0, elect 0, load 0, deliver 0 1 1 0 0 0 3"),
    ),
    "reset_on_resign": (
        Constants(spare=1, epochs=3, sessions=2, writes=0, reassignments=1),
        "ASSIGN",
        acts(
            "ask 2, elect 1, expire 1, elect 0, expire 0, load 0, load 1, refuse 0, notice 1, elect 1, load "
            "1, grow 1"
        ),
    ),
    "assigned_replicas_only": (
        Constants(spare=1, epochs=1, sessions=0, writes=4, reassignments=1),
        "ISR-IN-AR",
        acts(
            "elect 0, ask 2, load 0, grow 0, raise_epoch 0, deliver 0 0 1 1 0 1 3, deliver 1 0 1 1 0 1 3, "
            "expand_isr 0 1, see_state 0, move 0 1, deliver 0 0 1 2 1 3 2, stop_old 0, retire 0, deliver 1 0 "
            "1 2 1 3 2, expand_isr 1 0"
        ),
    ),
    "stop_replica_fencing": (
        Constants(spare=1, epochs=1, sessions=0, writes=5, reassignments=2),
        "COMMIT-SAFE",
        acts(
            "elect 0, ask 2, load 0, grow 0, raise_epoch 0, deliver 0 0 1 1 0 1 3, deliver 1 0 1 1 0 1 3, "
            "expand_isr 0 1, see_state 0, move 0 1, stop_old 0, retire 0, remove_entry 0, ask 1, see_target "
            "0, grow 0, raise_epoch 0, deliver 0 0 1 3 1 4 3, deliver 1 0 1 3 1 4 3, expand_isr 1 0, deliver "
            "0 0 1 2 -1 -1 0"
        ),
    ),
    "keep_last_isr_member": (
        Constants(epochs=1),
        "ISR-NONEMPTY",
        (("expire", 0), ("shrink_isr", 0, 1), ("elect", 1), ("load", 1), ("no_leader", 1, -1)),
    ),
    "resume_deletions": (
        Constants(writes=0, deletions=1),
        "DEL-COMPLETE",
        (("elect", 0), ("ask_deletion",), ("load", 0)),
    ),
    "offline_without_state": (
        Constants(writes=0, deletions=1),
        "DEL-COMPLETE",
        acts(
            "elect 0, ask_deletion, load 0, expire 0, delete_replicas 0, deliver 0 0 1 1 -1 -1 0, deleted 0 "
            "0, deliver 1 0 1 1 -1 -1 0, deleted 0 1, remove_state 0, elect 1, load 1"
        ),
    ),
    "last_in_sync_stays": (
        Constants(epochs=1, shutdowns=1),
        "COMMIT-SAFE",
        acts("elect 0, shrink_isr 0 1, load 0, ask_shutdown 0, begin_shutdown 0 0 0, elect_leader 0 1"),
    ),
    "shutdown_fencing": (
        Constants(epochs=1, shutdowns=1),
        "INCARNATION",
        acts("expire 0, ask_shutdown 0, notice 0, elect 0, load 0, begin_shutdown 0 0 0"),
    ),
    "staying_isr_members_only": (
        Constants(epochs=1, shutdowns=1),
        "STOP-SAFE",
        acts(
            "elect 0, load 0, ask_shutdown 0, begin_shutdown 0 0 0, elect_leader 0 1, deliver 0 0 1 1 1 1 3 "
            "1, deliver 1 0 1 1 1 1 3 1, expand_isr 1 0"
        ),
    ),
}


@pytest.mark.parametrize("protection", CASES)
def test_a_dropped_protection_is_missed(protection: str) -> None:
    """Rule: without a protection its invariant falls, by this shortest history."""
    constants, invariant, actions = CASES[protection]
    result = explore(Controller(evolve(constants, drop={protection})))
    assert (result.outcome, result.invariant) == (ExplorationOutcome.VIOLATED, invariant)
    assert result.actions == actions


def test_every_protection_has_its_case() -> None:
    """Rule: no protection of the model is without a history that misses it (three are missed by runs that
    never end: test_controller_ends.py and test_controller_lost_requests.py); the registry names the
    invariant, or the data that falls with it."""
    assert {*CASES, "names_me", "accept_own_isr_write", "resend_until_answered"} == CONTROL_PLANE
    for name, (_, invariant, _) in CASES.items():
        assert invariant == BY_NAME[name].breaks or (name, BY_NAME[name].breaks) == (
            "broker_epoch_fencing",
            "COMMIT-SAFE",
        )


def test_symmetry_finds_the_same() -> None:
    """Rule: brokers may change their numbers: fewer states, the same verdict and depth."""
    alike = explore(Controller(Constants()), symmetry=True)
    assert (alike.outcome, alike.depth) == (ExplorationOutcome.HOLDS, 15)
    assert alike.distinct <= 6_052
    missed = explore(Controller(Constants(drop={"epoch_read_in_election_only"})), symmetry=True)
    assert (missed.invariant, len(missed.actions)) == ("CTRL-FENCE", 4)


def test_renaming_brokers_turns_steps_into_steps() -> None:
    """Rule: a symmetry is one: the renamed state has as many successors, and they are the renamed
    successors."""
    system = Controller(Constants(crashes=1))
    assert_symmetric(system, 1_500)


def test_a_counterexample_tells_who_is_in_charge() -> None:
    """Rule: a person can follow a counterexample: zombies, who believes to control, what brokers obey."""
    system = Controller(Constants(drop={"epoch_read_in_election_only"}))
    text = render(system, explore(system))
    assert "4. adopt_epoch(0)\n     ZooKeeper: controller 1, controller epoch 2, registered [1]" in text
    assert (
        "0: zombie of incarnation 0, leads epoch 0, obeys controller epoch 0, controller in epoch 2" in text
    )
