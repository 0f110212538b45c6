"""Election strategies and state machines: pure functions and tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.impl.controller.channels import Channels
from fencepost.impl.controller.legal_transitions import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionPhase,
    ReplicaPhase,
)
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import LeaderElection
from fencepost.impl.controller.writer import ControllerWriter
from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.core.core_interface import RecordEvent
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness
from fencepost.traces.plan import ClusterOptions

REPLICAS = st.permutations((1, 2, 3, 4)).map(tuple)
SOME = st.lists(st.integers(1, 4), unique=True, max_size=4).map(tuple)
KEY = TopicPartition("t", 0)


@given(REPLICAS, SOME.filter(bool), SOME, st.booleans())
def test_offline_election_is_clean_whenever_it_can_be(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: tuple[int, ...], unclean: bool
) -> None:
    """Rule (C8): a live ISR member leads if there is one, the first in assignment order; else nobody, or if
    allowed the first live replica, alone."""
    choice = LeaderElection().offline(assignment, isr, live, unclean=unclean)
    clean = [replica for replica in assignment if replica in live and replica in isr]
    if clean:
        assert choice == (clean[0], tuple(member for member in isr if member in live))
    elif unclean and live:
        leader = next(replica for replica in assignment if replica in live)
        assert choice == (leader, (leader,))
    else:
        assert choice is None


@given(REPLICAS, SOME, SOME)
def test_the_preferred_replica_leads_only_alive_and_in_sync(
    assignment: tuple[int, ...], isr: tuple[int, ...], live: tuple[int, ...]
) -> None:
    """Rule (C8): the first replica, and the ISR stays as it is."""
    choice = LeaderElection().preferred(assignment, isr, live)
    able = assignment[0] in live and assignment[0] in isr
    assert choice == ((assignment[0], isr) if able else None)


@given(SOME.filter(bool), SOME)
def test_an_isr_is_never_emptied(isr: tuple[int, ...], gone: tuple[int, ...]) -> None:
    """Rule (KAFKA-708): whoever goes, a member stays, and nobody is added."""
    kept = LeaderElection().keep_last_isr_member(isr, gone)
    assert kept and set(kept) <= set(isr)
    assert len(kept) == 1 or not set(kept) & set(gone)


def test_every_state_has_its_row_and_leads_somewhere() -> None:
    """Rule (C7): the tables are whole: Kafka's states, each reachable from NonExistent."""
    for table, states, first in (
        (PARTITION_TRANSITIONS, PartitionPhase, PartitionPhase.NON_EXISTENT),
        (REPLICA_TRANSITIONS, ReplicaPhase, ReplicaPhase.NON_EXISTENT),
    ):
        assert set(table) == set(states)
        reached, frontier = {first}, [first]
        while frontier:
            for state in table[frontier.pop()] - reached:
                reached.add(state)
                frontier.append(state)
        assert reached == set(states)


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ([PartitionPhase.ONLINE], 1),
        ([PartitionPhase.OFFLINE], 1),
        ([PartitionPhase.NEW, PartitionPhase.NEW], 1),
        ([PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.NEW], 1),
        ([PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.NON_EXISTENT], 1),
        ([PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE, PartitionPhase.ONLINE], 0),
        ([PartitionPhase.NEW, PartitionPhase.OFFLINE, PartitionPhase.NON_EXISTENT], 0),
    ],
)
def test_an_illegal_move_is_refused_and_changes_nothing(path: list[PartitionPhase], refused: int) -> None:
    """Rule (C7): the state machine stays where it is and counts what it refused."""
    broker_context = BrokerContext(1, ClusterOptions(), Disk(node=1, randomness=Randomness(1)))
    state = ControllerState(
        broker_context, ControllerWriter(broker_context), Channels(broker_context), LeaderElection()
    )
    before = PartitionPhase.NON_EXISTENT
    for phase in path:
        moved = state.move(KEY, phase)
        before = phase if moved else before
        assert state.phases.get(KEY, PartitionPhase.NON_EXISTENT) is before
    assert state.refused == refused
    assert refusals(state) == refused


def refusals(state: ControllerState) -> int:
    """How many refused transitions were logged."""
    return sum(
        isinstance(effect, RecordEvent) and effect.at(0, 0).cause == "illegal_transition_refused"
        for effect in state.broker_context.outbox
    )


@pytest.mark.parametrize("current", ReplicaPhase)
@pytest.mark.parametrize("phase", ReplicaPhase)
def test_a_replica_moves_by_the_table_and_not_otherwise(current: ReplicaPhase, phase: ReplicaPhase) -> None:
    """Rule (C7): of all pairs of states, those of the table are taken; the others are refused, logged with
    both states, counted, and change nothing."""
    broker_context = BrokerContext(1, ClusterOptions(), Disk(node=1, randomness=Randomness(1)))
    state = ControllerState(
        broker_context, ControllerWriter(broker_context), Channels(broker_context), LeaderElection()
    )
    if current is not ReplicaPhase.NON_EXISTENT:
        state.replicas[2][KEY] = current
    legal = phase in REPLICA_TRANSITIONS[current]
    assert state.move_replica(KEY, 2, phase) is legal
    assert state.replica_phase(KEY, 2) is (phase if legal else current)
    assert state.refused == refusals(state) == (not legal)
    if not legal:
        (record,) = broker_context.outbox
        assert isinstance(record, RecordEvent) and record.at(0, 0).detail == f"{current} -> {phase}"
