"""Controlled shutdown at the controller (C11): leaders move before their broker stops, so that no partition
is without a leader.

Owns steps 2 to 4 of five:

    1. SIGTERM: the broker asks the controller (impl/broker/controlled_shutdown.py)
    2. the controller moves leaders to other ISR members and stores them, in few ZooKeeper round trips;
       followers leave their ISRs likewise
    3. it sends LeaderAndIsr and UpdateMetadata to all brokers, and StopReplica to the one that leaves, one
       request of each per broker
    4. it answers with the partitions that could not be moved (3 and 4 may overlap)
    5. the broker stops, or asks again
"""

import json

from fencepost.impl.controller import elections
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import Choice
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    TopicPartition,
)
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode


def controlled_shutdown(controller: ControllerState, request: ControlledShutdownRequest) -> ZooKeeperSteps:
    """Steps 2 to 4. Returns the response.

    Args:
        controller: the active controller.
        request: the request of the stopping broker.

    Returns:
        the steps; their result is the response.
    """
    context, broker = controller.context, request.broker_id
    live_epoch = context.live_brokers.get(broker)
    if live_epoch is None:
        return refusal(request, ErrorCode.STALE_BROKER_EPOCH)
    error = controller.guards.shutdown_fencing(live_epoch, request.broker_epoch)
    if error is not ErrorCode.NONE:
        return refusal(request, error)
    context.shutting_down[broker] = request.broker_epoch
    keys = [key for key in context.partitions_on(broker) if _movable(controller, key)]
    leads = [key for key in keys if context.states[key].leader == broker]
    yield from _move_leaders(controller, leads)
    follows = [key for key in keys if context.states[key].leader != broker]
    # a leader may have added it again since: the known ISR is as old as the last notification
    moved = set(leads)
    outside = [key for key in follows if key not in moved and broker not in context.states[key].isr]
    if outside:
        yield from controller.writer.read_states(context, outside)
    yield from _leave_isrs(controller, follows, broker)
    for key in follows:
        controller.channels.add_stop_replica(broker, key, context.states[key].leader_epoch, delete=False)
    controller.channels.flush(context, metadata_always=True)
    remaining = tuple(key for key in keys if context.states[key].leader == broker)
    controller.broker_context.record(
        Name.MARK,
        controller_epoch=context.epoch,
        broker_epoch=request.broker_epoch,
        leader=broker,
        cause="controlled_shutdown",
        detail=json.dumps(
            {
                "known_broker_epoch": live_epoch,
                "moved": len(leads) - len(remaining),
                "remaining": len(remaining),
            }
        ),
    )
    return ControlledShutdownResponse(
        correlation_id=request.correlation_id, error=ErrorCode.NONE, remaining=remaining
    )


def refusal(request: ControlledShutdownRequest, error: ErrorCode) -> ControlledShutdownResponse:
    """The response if nothing was done.

    Args:
        request: the request of the stopping broker.
        error: the reason.

    Returns:
        the response.
    """
    return ControlledShutdownResponse(correlation_id=request.correlation_id, error=error)


def _movable(controller: ControllerState, key: TopicPartition) -> bool:
    """The partitions that can be moved. Partitions with one replica stop with their broker; those of a topic
    under deletion need no leader (KAFKA-2937)."""
    context = controller.context
    return key in context.states and len(context.assignments[key]) > 1 and context.in_service(key)


def _move_leaders(controller: ControllerState, keys: list[TopicPartition]) -> ZooKeeperSteps:
    context = controller.context

    def strategy(key: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        if state.leader not in context.shutting_down:
            return None
        return controller.election.controlled_shutdown(
            context.assignments[key], state.isr, context.electable(), state.leader
        )

    yield from elections.elect_together(controller, keys, strategy)


def _leave_isrs(controller: ControllerState, keys: list[TopicPartition], broker: int) -> ZooKeeperSteps:
    def strategy(_: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        if broker not in state.isr or state.leader == broker:
            return None
        return state.leader, controller.election.keep_last_isr_member(state.isr, (broker,))

    yield from elections.elect_together(controller, keys, strategy)
