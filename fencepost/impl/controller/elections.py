"""Procedures that elect partition leaders and shrink ISRs for the controller (C8).

Each reads from top to bottom: choose, raise the leader epoch by one, write by CAS; on a conflict read and
choose again.
"""

from collections.abc import Callable, Collection

from fencepost.impl.controller.legal_transitions import PartitionPhase
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import NO_LEADER, Choice
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper.znodes import LeaderAndIsr

ATTEMPTS = 16
"""Rounds of one CAS. Reason: a round fails only because of an ISR change by the leader, and there are few."""

Strategy = Callable[[LeaderAndIsr], Choice | None]
KeyedStrategy = Callable[[TopicPartition, LeaderAndIsr], Choice | None]


def create(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Elect the first leaders of new partitions: the first live replica. All live replicas are in sync,
    because all are empty.

    Args:
        controller: the active controller.
        keys: the new partitions.

    Returns:
        the steps.
    """
    context = controller.context
    electable = context.electable()
    states = {}
    for key in keys:
        if key not in controller.phases:
            controller.move(key, PartitionPhase.NEW)
        controller.adopt_replicas(key)
        live = tuple(replica for replica in context.assignments[key] if replica in electable)
        if live:
            states[key] = LeaderAndIsr(
                leader=live[0], leader_epoch=0, controller_epoch=context.epoch, isr=live
            )
    created = yield from controller.writer.create_states(context, states)
    stood = []
    for key, state in states.items():
        if key in created:
            controller.move(key, PartitionPhase.ONLINE)
            controller.settle_replicas(key)
            controller.channels.add_leader_and_isr(state.isr, (key,))
        elif key in context.states:
            controller.settle_replicas(key)
            stood.append(key)
        # otherwise without a state: its topic is gone by now
    yield from elect_offline_together(controller, stood)


def elect(controller: ControllerState, key: TopicPartition, strategy: Strategy) -> ZooKeeperSteps:
    """Apply a strategy to one partition; without a candidate nothing is written.

    Args:
        controller: the active controller.
        key: the partition.
        strategy: chooses leader and ISR.

    Returns:
        the steps; their result is whether a leader was written.
    """
    written = yield from elect_together(controller, (key,), lambda _, state: strategy(state))
    return key in written


def elect_together(
    controller: ControllerState, keys: Collection[TopicPartition], strategy: KeyedStrategy
) -> ZooKeeperSteps:
    """As `elect`, for many partitions in few round trips. Partitions with a conflicting write are chosen
    again.

    Args:
        controller: the active controller.
        keys: the partitions.
        strategy: chooses leader and ISR of a partition.

    Returns:
        the steps; their result is the partitions written.
    """
    context = controller.context
    written: dict[TopicPartition, None] = {}
    for _ in range(ATTEMPTS):
        states = {}
        for key in keys:
            current = context.states[key]
            choice = strategy(key, current)
            if choice is not None:
                states[key] = _next_state(context.epoch, current, choice)
        if not states:
            break
        done = yield from controller.writer.update_states(context, states)
        _written(controller, {key: states[key] for key in done})
        written.update(done)
        keys = [key for key in states if key not in done]
    return written


def _next_state(controller_epoch: int, current: LeaderAndIsr, choice: Choice) -> LeaderAndIsr:
    leader, isr = choice
    return LeaderAndIsr(
        leader=leader, leader_epoch=current.leader_epoch + 1, controller_epoch=controller_epoch, isr=isr
    )


def _written(controller: ControllerState, states: dict[TopicPartition, LeaderAndIsr]) -> None:
    for key, state in states.items():
        controller.move(key, PartitionPhase.ONLINE if state.leader != NO_LEADER else PartitionPhase.OFFLINE)
    for replicas, keys in controller.context.by_replicas(states).items():
        controller.channels.add_leader_and_isr(controller.context.alive(replicas), keys)


def elect_offline_together(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Elect leaders of partitions without a live leader. Without a candidate a partition has no leader and
    keeps its last ISR member.

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps.
    """
    context, election = controller.context, controller.election
    electable, live = context.electable(), context.live_brokers

    def strategy(key: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        if state.leader in live:
            return None
        unclean = controller.broker_context.topic_options(key.topic).unclean_leader_election
        choice = election.offline(context.assignments[key], state.isr, electable, unclean=unclean)
        if choice is None and state.leader != NO_LEADER:
            gone = [member for member in state.isr if member not in live]
            return NO_LEADER, election.keep_last_isr_member(state.isr, gone)
        return choice

    yield from elect_together(controller, keys, strategy)


def re_elect(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Raise the epochs of partitions with a leader that returned as another incarnation. What it exposed
    before may be ahead of what it knows now.

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps.
    """
    context = controller.context

    def strategy(_: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        isr = tuple(member for member in state.isr if member in context.live_brokers)
        return (state.leader, isr) if state.leader in isr else None

    yield from elect_together(controller, keys, strategy)


def elect_preferred(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Move leaderships to the preferred replicas, if these may lead.

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps; their result is the partitions written.
    """
    context = controller.context
    electable = context.electable()

    def strategy(key: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        choice = controller.election.preferred(context.assignments[key], state.isr, electable)
        return choice if choice and choice[0] != state.leader else None

    return (yield from elect_together(controller, keys, strategy))


def elect_unclean(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Elect leaders of partitions without a live one, in sync or not, regardless of the topics' options: an
    operator requested it (KIP-460).

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps; their result is the partitions written.
    """
    context = controller.context
    electable = context.electable()

    def strategy(key: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        if state.leader in context.live_brokers:
            return None
        return controller.election.offline(context.assignments[key], state.isr, electable, unclean=True)

    return (yield from elect_together(controller, keys, strategy))


def remove_from_isrs(
    controller: ControllerState, keys: Collection[TopicPartition], gone: Collection[int]
) -> ZooKeeperSteps:
    """Remove dead followers from the ISRs of partitions with a live leader.

    Args:
        controller: the active controller.
        keys: the partitions.
        gone: ids of the dead brokers.

    Returns:
        the steps.
    """

    def strategy(_: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        dead = [member for member in state.isr if member in gone and member != state.leader]
        return (state.leader, controller.election.keep_last_isr_member(state.isr, dead)) if dead else None

    yield from elect_together(controller, keys, strategy)
