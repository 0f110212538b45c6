"""model/controller with LeaderAndIsr that is lost: a leader whose version of the state nobody refreshes
(KAFKA-2729)."""

import pytest
from attrs import evolve

from fencepost.model.controller.controller_state import Constants
from fencepost.model.controller.controller_system import Controller
from fencepost.model.explore import ExplorationOutcome, explore
from fencepost.model.explore.eventually import stays_possible
from tests.model.acts import acts

FLAP = Constants(epochs=1, unheard=1)
MOVE = Constants(spare=1, epochs=1, writes=4, sessions=0, reassignments=1, unheard=1)
NOT_AGAIN = {"resend_until_answered"}


@pytest.mark.parametrize(
    ("constants", "kept", "dropped", "stuck", "actions"),
    [
        (
            FLAP,
            4_159,
            11_579,
            20,
            acts("expire 0, notice 0, elect 0, load 0, elect_leader 0 0, lose_request 0 1 1 0 1 3 1 0"),
        ),
        (
            MOVE,
            200,
            622,
            30,
            acts("elect 0, ask 2, load 0, grow 0, raise_epoch 0, lose_request 0 1 1 0 1 3 0 0"),
        ),
    ],
    ids=["a session that flaps", "a reassignment"],
)
def test_a_leader_keeps_a_stale_version(
    constants: Constants, kept: int, dropped: int, stuck: int, actions: tuple[tuple[object, ...], ...]
) -> None:
    """Rule (KAFKA-2729, LIVE-ISR): a LeaderAndIsr is sent again until it is answered; without, one lost
    request and its leader never changes the ISR again."""
    system = Controller(constants, ())
    held = stays_possible(system, system.eventually["LIVE-ISR"])
    assert (held.outcome, held.states) == (ExplorationOutcome.HOLDS, kept)
    system = Controller(evolve(constants, drop=NOT_AGAIN), ())
    found = stays_possible(system, system.eventually["LIVE-ISR"])
    assert (found.outcome, found.states, found.stuck) == (ExplorationOutcome.VIOLATED, dropped, stuck)
    assert tuple(step.action for step in found.path[1:]) == actions


def test_a_lost_request_breaks_nothing_else() -> None:
    """Rule: what is lost makes no state wrong; only progress ends, so that no invariant of states sees it."""
    result = explore(Controller(evolve(FLAP, drop=NOT_AGAIN)))
    assert (result.outcome, result.distinct, result.depth) == (ExplorationOutcome.HOLDS, 11_579, 13)


def test_a_request_that_is_sent_again_is_never_lost() -> None:
    """Rule: with the protection there is no such action, and as many states as ever."""
    assert "lose_request" not in Controller(FLAP).action_names
    assert explore(Controller(FLAP)).distinct == 4_159
