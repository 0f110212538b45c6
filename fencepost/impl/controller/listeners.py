"""Procedures for the controller's watches and for responses of brokers (C5, C9). Each reads ZooKeeper again
and acts on the result, not on the watch."""

from collections.abc import Sequence

from fencepost.impl.controller import elections, reassignment, topic_deletion
from fencepost.impl.controller.grouped_reads import read_nodes
from fencepost.impl.controller.legal_transitions import ReplicaPhase
from fencepost.impl.controller.preferred_election import balance_leaders
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.zookeeper_loading import list_topics, read_assignments, read_brokers
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import StopReplicaRequest, TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, GetChildren, names_of
from fencepost.traces.kafka_names.outcomes import ErrorCode

ISR_CHANGE_BYTES = 64 * 1024
"""Estimated size of a notification in bytes: a thousand partitions."""


def brokers_changed(controller: ControllerState) -> ZooKeeperSteps:
    """Brokers came, left, or bounced (same id, another epoch: left, then came)."""
    context = controller.context
    before = context.live_brokers
    now = yield from read_brokers(controller)
    gone = sorted(broker for broker in before if broker not in now)
    bounced = sorted(broker for broker in now if broker in before and now[broker] != before[broker])
    new = sorted(broker for broker in now if broker not in before)
    if gone or bounced:
        context.set_live({broker: epoch for broker, epoch in now.items() if before.get(broker) == epoch})
        controller.channels.match(context.live_brokers)
        yield from _went_offline(controller, {*gone, *bounced})
        controller.channels.flush(context, metadata_always=True)
    if new or bounced:
        context.set_live(now)
        controller.channels.match(now)
        yield from _came_online(controller, sorted({*new, *bounced}))
    yield from reassignment.brokers_changed(controller, {*gone, *bounced}, {*new, *bounced})
    yield from topic_deletion.resume(controller)
    controller.channels.flush(context)


def _went_offline(controller: ControllerState, gone: set[int]) -> ZooKeeperSteps:
    context = controller.context
    ineligible = ReplicaPhase.DELETION_INELIGIBLE
    for broker in sorted(gone):
        for key, phase in list(controller.replicas[broker].items()):
            if phase not in (ineligible, ReplicaPhase.DELETION_SUCCESSFUL):
                started = phase is ReplicaPhase.DELETION_STARTED
                controller.move_replica(key, broker, ineligible if started else ReplicaPhase.OFFLINE)
    keys = [key for key in sorted(context.states) if key in context.assignments and context.in_service(key)]
    led = [key for key in keys if context.states[key].leader in gone]
    followed = [
        key
        for key in keys
        if context.states[key].leader not in gone and gone.intersection(context.assignments[key])
    ]
    yield from elections.elect_offline_together(controller, led)
    # a leader may have added one of them again since: the known ISR is as old as the last notification
    outside = [
        key
        for key in followed
        if not gone.intersection(context.assignments[key]) <= {*context.states[key].isr}
    ]
    if outside:
        yield from controller.writer.read_states(context, outside)
    yield from elections.remove_from_isrs(controller, followed, gone)


def _came_online(controller: ControllerState, new: list[int]) -> ZooKeeperSteps:
    context = controller.context
    controller.channels.add_metadata(context.states)
    controller.channels.flush(context, metadata_always=True)  # before any LeaderAndIsr (KAFKA-4443)
    for broker in new:
        keys = list(filter(context.in_service, context.partitions_on(broker)))
        for key in keys:
            if controller.replica_phase(key, broker) is not ReplicaPhase.NON_EXISTENT:
                controller.settle_replica(key, broker)
        controller.channels.add_leader_and_isr((broker,), keys)
    yield from elect_all_offline(controller)
    controller.channels.flush(context)


def unclean_enabled(controller: ControllerState, topic: str) -> ZooKeeperSteps:
    """Hold an unclean election for the topic's partitions without a leader."""
    context = controller.context
    keys = [key for key in context.partitions_of(topic) if key in context.states and context.in_service(key)]
    yield from elections.elect_offline_together(controller, keys)
    controller.channels.flush(context)


def elect_all_offline(controller: ControllerState) -> ZooKeeperSteps:
    """Elect a leader for every partition without a live one, if possible."""
    context = controller.context
    keys = context.without_leader()
    new = [key for key in keys if key not in context.states]
    yield from elections.elect_offline_together(controller, [key for key in keys if key in context.states])
    yield from elections.create(controller, new)


def topics_changed(controller: ControllerState) -> ZooKeeperSteps:
    """Topics were created or deleted: elect leaders for new ones."""
    names = yield from list_topics()
    known = {key.topic for key in controller.context.assignments}
    assignments = yield from read_assignments(controller, [name for name in names if name not in known])
    yield from _take_up_partitions(controller, assignments)


def topics_written(controller: ControllerState, topics: Sequence[str]) -> ZooKeeperSteps:
    """Topics' nodes were written: partitions may have been added.

    Args:
        controller: the active controller.
        topics: the topics.

    Returns:
        the steps.
    """
    assignments = yield from read_assignments(controller, topics)
    yield from _take_up_partitions(controller, assignments)


def _take_up_partitions(
    controller: ControllerState, assignments: dict[TopicPartition, tuple[int, ...]]
) -> ZooKeeperSteps:
    """Elect leaders of new partitions. Partitions added to a topic under deletion are refused."""
    context = controller.context
    refused: dict[str, None] = {}
    new = []
    for key in sorted(assignments):
        if key in context.assignments:
            continue
        if key.topic in context.deleting:
            refused[key.topic] = None
        else:
            context.assignments[key] = assignments[key]
            new.append(key)
    yield from elections.create(controller, new)
    for topic in refused:
        yield from topic_deletion.restore_assignment(controller, topic)
    controller.channels.flush(context)


def replicas_stopped(
    controller: ControllerState,
    broker: int,
    request: StopReplicaRequest,
    results: tuple[tuple[TopicPartition, ErrorCode], ...],
) -> ZooKeeperSteps:
    """A broker answered this StopReplica: a deletion or a reassignment may continue.

    The response may have waited in the queue until the broker was another incarnation, or this controller was
    elected again. Then no current work waits for it.
    """
    context = controller.context
    if request.controller_epoch != context.epoch or request.broker_epoch != context.live_brokers.get(broker):
        return
    for key, error in results:
        if not controller.guards.answers_a_deletion(request, key):
            continue
        if key in controller.context.stopping:
            reassignment.on_stopped(controller, key, broker, error)
        elif not controller.context.in_service(key):
            topic_deletion.on_stopped(controller, key, broker, error)
    yield from reassignment.retire_stopped(controller)
    yield from topic_deletion.resume(controller)
    controller.channels.flush(controller.context)


def isr_changed(controller: ControllerState) -> ZooKeeperSteps:
    """Leaders changed ISRs: read the states, send them to all brokers, remove the notifications."""
    context = controller.context
    listed = yield GetChildren(znodes.ISR_CHANGES, watch=True)
    paths = [f"{znodes.ISR_CHANGES}/{name}" for name in names_of(listed)]
    replies = yield from read_nodes(
        controller.broker_context.grouping, dict.fromkeys(paths, ISR_CHANGE_BYTES)
    )
    changed: dict[TopicPartition, None] = {}
    for path, reply in zip(paths, replies, strict=True):
        try:
            named = znodes.decode_partitions(reply.data, path) if isinstance(reply, Data) else []
        except znodes.BadZnodeError as error:
            controller.broker_context.refuse_znode(error)
            continue
        changed |= {key: None for key in named if key in context.assignments}
    yield from controller.writer.read_states(context, changed)
    controller.channels.add_metadata(changed)
    yield from controller.writer.delete_all(context, paths)
    controller.channels.flush(context)


__all__ = [
    "balance_leaders",
    "brokers_changed",
    "elect_all_offline",
    "isr_changed",
    "read_brokers",
    "replicas_stopped",
    "topics_changed",
    "topics_written",
]
