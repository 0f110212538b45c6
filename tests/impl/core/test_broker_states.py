"""What a broker is about: Kafka's states and their legal transitions, traced."""

from itertools import pairwise

import pytest

from fencepost.campaign.swarm.swarm import swarm
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.broker_states import BROKER_TRANSITIONS, BrokerState, enter, state_of
from fencepost.impl.core.core_interface import RecordEvent, StopRequested
from fencepost.run.simulated.run import run
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness
from fencepost.traces.events import Name
from fencepost.traces.plan import ClusterOptions
from tests.impl.controller.controller_lab import cluster


def states(lab, node: int) -> list[str]:
    """The states that a broker was in, in order."""
    return [event.cause for event in lab.recorded(Name.BROKER_STATE, node)]


@pytest.mark.parametrize("current", BrokerState)
@pytest.mark.parametrize("state", BrokerState)
def test_a_broker_moves_by_the_table_and_not_otherwise(current: BrokerState, state: BrokerState) -> None:
    """Rule (C9): of all pairs of states, those of the table are taken; the others are refused, logged with
    both states, counted, and change nothing."""
    broker_context = BrokerContext(1, ClusterOptions(), Disk(node=1, randomness=Randomness(1)))
    broker_context.broker_state = current
    legal = state in BROKER_TRANSITIONS[current]
    assert enter(broker_context, state) is legal
    assert state_of(broker_context) is (state if legal else current)
    assert broker_context.refused_states == (not legal)
    (record,) = broker_context.outbox
    assert isinstance(record, RecordEvent)
    told = (record.at(0, 0).name, record.at(0, 0).cause)
    assert told == ((Name.BROKER_STATE, state) if legal else (Name.MARK, "illegal_transition_refused"))


def test_a_broker_lives_through_kafkas_states() -> None:
    """Rule (C9, C11): it starts, serves, controls, is about to stop, shuts down and runs no more; another one
    takes the controller's place."""
    lab = cluster({0: (2, 3)})
    lab.step(1, StopRequested())
    lab.come_to_rest()
    assert states(lab, 1) == [
        "Starting",
        "RunningAsBroker",
        "RunningAsController",
        "PendingControlledShutdown",
        "BrokerShuttingDown",
        "NotRunning",
    ]
    (successor,) = lab.controllers()
    assert states(lab, successor)[-1] == "RunningAsController"


def test_a_controller_that_resigns_is_a_broker_again() -> None:
    """Rule (C9): an expired session ends the reign, and not the broker."""
    lab = cluster({0: (2, 3)})
    lab.expire(1).come_to_rest()
    assert states(lab, 1)[:4] == ["Starting", "RunningAsBroker", "RunningAsController", "RunningAsBroker"]


def test_a_broker_recovers_only_after_an_unclean_end() -> None:
    """Rule (C9, L3): logs that were not closed are recovered before the broker serves."""
    lab = cluster({0: (2, 3)})
    lab.restart(2).come_to_rest()
    assert states(lab, 2) == [
        "Starting",
        "RunningAsBroker",
        "Starting",
        "RecoveringFromUncleanShutdown",
        "RunningAsBroker",
    ]


def test_no_transition_of_a_campaign_is_illegal() -> None:
    """Rule (C9): in runs with faults of all kinds each broker's states follow the table, from the start of
    each process."""
    for seed in (3, 13, 28):
        trace = run(swarm(seed, "default+administered"))
        for node in range(1, 5):
            lives: list[list[BrokerState]] = []
            for event in trace.events:
                if event.node == node and event.name is Name.BROKER_STARTED:
                    lives.append([BrokerState.NOT_RUNNING])
                elif event.node == node and event.name is Name.BROKER_STATE:
                    lives[-1].append(BrokerState(event.cause))
            for life in lives:
                assert all(after in BROKER_TRANSITIONS[before] for before, after in pairwise(life)), life
