"""Procedures that elect partition leaders and shrink ISRs on behalf of the controller (C8).

Each reads top to bottom: choose, raise the leader epoch by one, write by CAS, on a conflict read and choose again.
"""

from collections.abc import Callable, Collection
from functools import partial

from fencepost.impl.controller.machines import PartitionPhase
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.strategies import NO_LEADER, Choice
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.znodes import LeaderAndIsr

ATTEMPTS = 16
"""Rounds of one CAS: each is lost to an ISR change of the leader, of which there are few."""

Strategy = Callable[[LeaderAndIsr], Choice | None]
KeyedStrategy = Callable[[TopicPartition, LeaderAndIsr], Choice | None]


def create(controller: ControllerState, key: TopicPartition) -> Steps:
    """Give a new partition its first leader: the first live replica; all live ones are in sync, since all are empty."""
    context = controller.context
    if key not in controller.phases:
        controller.move(key, PartitionPhase.NEW)
    controller.adopt_replicas(key)
    electable = context.electable()
    live = tuple(replica for replica in context.assignments[key] if replica in electable)
    if not live:
        return
    state = LeaderAndIsr(leader=live[0], leader_epoch=0, controller_epoch=context.epoch, isr=live)
    created = yield from controller.writer.create_state(context, key, state)
    if not created:
        if key in context.states:
            controller.settle_replicas(key)
            yield from elect_offline(controller, key)
        return  # without a state: its topic is gone by now
    controller.move(key, PartitionPhase.ONLINE)
    controller.settle_replicas(key)
    controller.channels.add_leader_and_isr(live, key)


def elect(controller: ControllerState, key: TopicPartition, strategy: Strategy) -> Steps:
    """Apply a strategy to one partition; nothing is written if it has no candidate. Returns whether a leader was written."""
    context = controller.context
    for _ in range(ATTEMPTS):
        state = _next_state(controller, context.states[key], strategy(context.states[key]))
        if state is None:
            return False
        written = yield from controller.writer.update_state(context, key, state)
        if written:
            _written(controller, key, state)
            return True
    return False


def elect_together(
    controller: ControllerState, keys: Collection[TopicPartition], strategy: KeyedStrategy
) -> Steps:
    """As `elect`, for many partitions in few round trips; one whose write met a conflict is elected by itself. Returns the partitions written."""
    context = controller.context
    states = {}
    for key in keys:
        state = _next_state(controller, context.states[key], strategy(key, context.states[key]))
        if state is not None:
            states[key] = state
    written = yield from controller.writer.update_states(context, states)
    for key in written:
        _written(controller, key, states[key])
    for key in states:
        if key not in written:
            again = yield from elect(controller, key, partial(strategy, key))
            if again:
                written.append(key)
    return written


def _next_state(
    controller: ControllerState, current: LeaderAndIsr, choice: Choice | None
) -> LeaderAndIsr | None:
    if choice is None:
        return None
    leader, isr = choice
    return LeaderAndIsr(
        leader=leader,
        leader_epoch=current.leader_epoch + 1,
        controller_epoch=controller.context.epoch,
        isr=isr,
    )


def _written(controller: ControllerState, key: TopicPartition, state: LeaderAndIsr) -> None:
    controller.move(key, PartitionPhase.ONLINE if state.leader != NO_LEADER else PartitionPhase.OFFLINE)
    controller.channels.add_leader_and_isr(controller.context.live_replicas(key), key)


def elect_offline(controller: ControllerState, key: TopicPartition) -> Steps:
    """Find a leader for a partition whose leader is gone; without a candidate it is left without a leader, its last ISR member kept."""
    context = controller.context
    unclean = controller.shell.topic_options(key.topic).unclean_leader_election

    def strategy(state: LeaderAndIsr) -> Choice | None:
        live = context.live_brokers
        if state.leader in live:
            return None
        choice = controller.election.offline(
            context.assignments[key], state.isr, context.electable(), unclean=unclean
        )
        if choice is None and state.leader != NO_LEADER:
            gone = [member for member in state.isr if member not in live]
            return NO_LEADER, controller.election.keep_last_isr_member(state.isr, gone)
        return choice

    yield from elect(controller, key, strategy)


def re_elect(controller: ControllerState, key: TopicPartition) -> Steps:
    """Raise the epoch of a partition whose leader came back as another incarnation: what it exposed before may be ahead of what it knows now."""
    context = controller.context

    def strategy(state: LeaderAndIsr) -> Choice | None:
        isr = tuple(member for member in state.isr if member in context.live_brokers)
        return (state.leader, isr) if state.leader in isr else None

    yield from elect(controller, key, strategy)


def elect_preferred(controller: ControllerState, key: TopicPartition) -> Steps:
    """Move leadership to the preferred replica, if it may lead."""
    context = controller.context

    def strategy(state: LeaderAndIsr) -> Choice | None:
        choice = controller.election.preferred(context.assignments[key], state.isr, context.electable())
        return choice if choice and choice[0] != state.leader else None

    yield from elect(controller, key, strategy)


def remove_from_isr(controller: ControllerState, key: TopicPartition, gone: Collection[int]) -> Steps:
    """Take dead followers out of the ISR of a partition whose leader lives."""

    def strategy(state: LeaderAndIsr) -> Choice | None:
        dead = [member for member in state.isr if member in gone and member != state.leader]
        return (state.leader, controller.election.keep_last_isr_member(state.isr, dead)) if dead else None

    yield from elect(controller, key, strategy)
