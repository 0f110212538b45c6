"""model/controller/controller_system.py: what ends. Topic deletion and controlled shutdown: with faults at
any step, and what Kafka itself does not keep."""

import json

import pytest
from attrs import evolve

from fencepost.cli import run as fencepost
from fencepost.model.controller.controller_state import Constants
from fencepost.model.controller.controller_system import Controller
from fencepost.model.explore import After, ExplorationOutcome, explore, render
from fencepost.model.explore.eventually import stays_possible
from fencepost.model.explore.transition_system import Eventually, Limits
from tests.model.acts import acts
from tests.model.symmetry import assert_symmetric

DELETION = Constants(writes=0, deletions=1)
RETURNING = Constants(epochs=1, writes=0, crashes=1, deletions=1)


def prospect(constants: Constants):
    """Whether a deletion can always still end."""
    system = Controller(constants, ())
    return stays_possible(system, system.eventually["DEL-COMPLETE"])


@pytest.mark.parametrize(
    ("constants", "states"),
    [(DELETION, 4_225), (RETURNING, 3_186)],
    ids=["fail-over", "a dead broker returns"],
)
def test_a_deletion_ends(constants, states):
    """Rule (DEL-COMPLETE): whatever has happened, once faults are over a deletion that was asked for comes to
    its end: no component without a way to it."""
    found = prospect(constants)
    assert (found.outcome, found.states, found.stuck) == (ExplorationOutcome.HOLDS, states, 0)


@pytest.mark.parametrize(
    ("protection", "stuck", "last"),
    [("resume_deletions", 923, ("ask_deletion",)), ("offline_without_state", 48, ("notice", 0))],
)
def test_a_deletion_is_stuck_without(protection, stuck, last):
    """Rule (KAFKA-1681, KAFKA-6650): without the protection there are states from which no deletion ends, and
    a shortest way to one is told."""
    found = prospect(evolve(DELETION, drop={protection}))
    assert (found.outcome, found.stuck, found.path[-1].action) == (ExplorationOutcome.VIOLATED, stuck, last)


def test_the_command_line_tells_what_is_stuck(capsys):
    """Rule: --eventually ends with 1 and the way to a state from which a deletion cannot end; 0 if there is
    none; a model without such a statement says so."""
    deletion = ["model", "explore", "controller", "--constant", "writes=0", "--constant", "deletions=1"]
    assert fencepost([*deletion, "--eventually"]) == 0
    assert "DEL-COMPLETE stays possible from all 4,225 states" in capsys.readouterr().out
    assert fencepost([*deletion, "--eventually", "--drop", "KAFKA-1681", "--check", "ASSIGN", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["stuck"] for one in told["eventually"]] == [0, 0, 923]
    assert told["eventually"][2] == {
        "name": "DEL-COMPLETE",
        "outcome": "violated",
        "states": 3_662,
        "stuck": 923,
    }
    assert fencepost(["model", "explore", "group", "--eventually", "--depth", "3"]) == 2
    assert "a model that says what must stay possible" in capsys.readouterr().err


def test_a_prospect_has_limits():
    """Rule: what was not visited whole is not decided; and a state without any step is stuck."""
    system = Controller(DELETION, ())
    assert (
        stays_possible(system, system.eventually["DEL-COMPLETE"], Limits(states=100)).outcome
        is ExplorationOutcome.BOUNDED
    )
    nothing = Eventually((), frozenset())
    assert stays_possible(Controller(Constants(epochs=0, sessions=0), ()), nothing).stuck > 0


@pytest.mark.parametrize(
    ("protection", "constants", "steps"),
    [("broker_epoch_fencing", RETURNING, 14), ("leader_epoch_fencing", evolve(DELETION, epochs=1), 12)],
)
def test_a_replica_comes_back_from_the_dead(protection, constants, steps):
    """Rule (DEL-COMPLETE): an old LeaderAndIsr that is obeyed after the deletion leaves a log behind, and the
    invariant sees it."""
    result = explore(Controller(evolve(constants, drop={protection}), ("DEL-COMPLETE",)))
    assert (result.invariant, len(result.actions)) == ("DEL-COMPLETE", steps)


def test_what_a_reassignment_left_behind_outlives_the_topic():
    """Rule (accepted hazard): nobody waits for the old replica's answer after a reassignment, so its log may
    outlive a deletion that comes next."""
    result = explore(
        Controller(Constants(epochs=1, sessions=0, writes=4, spare=1, reassignments=1, deletions=1))
    )
    assert (result.invariant, len(result.actions)) == ("DEL-COMPLETE", 20)
    assert [action[0] for action in result.actions[-4:]] == [
        "deliver",
        "deleted",
        "remove_state",
        "remove_topic",
    ]


def test_a_late_stop_replica_meets_the_same_leader_epoch():
    """Rule (accepted hazard): a fail-over while a replica is added again: the successor tells the old leader
    epoch, and the predecessor's StopReplica, which a broker that has not heard of the successor obeys,
    carries no lower one."""
    constants = Constants(spare=1, writes=5, reassignments=2)
    prefix = acts(
        "elect 0, ask 2, load 0, expire 0, grow 0, raise_epoch 0, deliver 0 0 1 1 0 1 3, deliver 1 0 1 1 0 1 "
        "3, expand_isr 0 1, see_state 0, move 0 1, deliver 0 0 1 2 1 3 2, stop_old 0, retire 0, remove_entry "
        "0, ask 1"
    )
    result = explore(After(Controller(constants), prefix))
    assert result.invariant == "COMMIT-SAFE"
    assert result.actions == acts(
        "see_target 0, grow 0, elect 1, load 1, deliver 1 0 2 2 1 3 3, expand_isr 1 0, deliver 0 0 1 2 -1 -1 "
        "0"
    )


def test_a_zombie_controller_brings_a_replica_back():
    """Rule (accepted hazard): a broker that restarted has forgotten which controller epochs it obeyed, so a
    zombie's LeaderAndIsr leaves a log of a topic that was deleted; the stray log is nobody's."""
    constants = Constants(brokers=3, spare=1, writes=0, sessions=2, crashes=1, deletions=1)
    prefix = acts("elect 2, expire 2, elect 0, load 2, ask_deletion, load 0, delete_replicas 0")
    result = explore(After(Controller(constants, ("DEL-COMPLETE",)), prefix))
    assert result.invariant == "DEL-COMPLETE"
    assert result.actions[-4:] == (
        ("crash", 1), ("restart", 1), ("see_brokers", 2), ("deliver", 1, 1, 1, 0, 0, 0, 3),
    )  # fmt: skip
    assert len(prefix) + len(result.actions) == 18


def test_a_zombie_controller_lets_a_stopping_broker_back_in():
    """Rule (accepted hazard): a leader that has not heard of the new controller yet obeys the old one, who
    knows of nobody that stops."""
    constants = Constants(brokers=3, shutdowns=1)
    prefix = acts("elect 2, expire 2, elect 0, load 0, ask_shutdown 1, begin_shutdown 0 1 0")
    result = explore(After(Controller(constants, ("STOP-SAFE",)), prefix))
    assert result.invariant == "STOP-SAFE"
    assert result.actions == acts(
        "shrink_dead 0, deliver 1 0 2 1 0 1 7 2, load 2, deliver 0 0 1 1 0 1 7 0, expand_isr 0 1"
    )


def test_a_controller_that_did_not_hear_of_its_election():
    """Rule (KAFKA-13407): a broker that finds its own name in /controller is the controller; without, the
    znode names one and nobody controls, for ever."""
    unheard = Constants(writes=0, unheard=1)
    result = explore(Controller(unheard))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, 517, 9)
    system = Controller(unheard, ())
    assert stays_possible(system, system.eventually["LIVE"]).outcome is ExplorationOutcome.HOLDS
    system = Controller(evolve(unheard, drop={"names_me"}), ())
    found = stays_possible(system, system.eventually["LIVE"])
    assert (found.states, found.stuck, found.path[-1].action) == (313, 58, ("elect_unheard", 0))


def test_a_leader_that_did_not_hear_of_its_write():
    """Rule (KAFKA-1382): a leader accepts what it wrote itself; without, it goes on with an old version and
    never changes the ISR again."""
    unheard = Constants(epochs=1, unheard=1)
    result = explore(Controller(unheard))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, 4_159, 13)
    system = Controller(unheard, ())
    assert stays_possible(system, system.eventually["LIVE-ISR"]).outcome is ExplorationOutcome.HOLDS
    system = Controller(evolve(unheard, drop={"accept_own_isr_write"}), ())
    found = stays_possible(system, system.eventually["LIVE-ISR"])
    assert (found.states, found.stuck, found.path[-1].action) == (4_145, 232, ("shrink_isr_unheard", 0, 1))


def test_a_shutdown_takes_every_step():
    """Rule: the smallest useful constants move leaders, let brokers stop, and take them back; only a second
    controller is missing."""
    result = explore(Controller(Constants(epochs=1, shutdowns=1)))
    assert result.never_taken == ("moved",)


def test_a_counterexample_tells_what_ends():
    """Rule: a person can follow a deletion and a shutdown in a counterexample."""
    system = Controller(Constants(writes=0, deletions=1, drop={"offline_without_state"}))
    text = render(system, explore(system))
    assert "assignment: [0, 1], to be deleted" in text
    assert "no state; replicas ['DeletionSuccessful', 'DeletionSuccessful']" in text
    system = Controller(Constants(epochs=1, shutdowns=1, drop={"staying_isr_members_only"}))
    text = render(system, explore(system))
    assert "asked to stop" in text
    assert "stopping [0]" in text


def test_renaming_keeps_deletion_and_shutdown():
    """Rule: brokers may change their numbers also while replicas are deleted and brokers stop: the verdict
    and the depth are the same."""
    system = Controller(Constants(epochs=1, sessions=1, writes=1, deletions=1, shutdowns=1))
    assert_symmetric(system, 3_000, deepest_first=True)
