"""Procedures behind the controller's watches and answers (C5, C9): each reads ZooKeeper again and acts on what it finds, not on what the watch said."""

from fencepost.impl import znodes
from fencepost.impl.controller import elections, reassignment, topic_deletion
from fencepost.impl.controller.loading import read_brokers, read_topics
from fencepost.impl.controller.machines import ReplicaPhase
from fencepost.impl.controller.preferred_election import balance_leaders
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.zookeeper import Children, Data, GetChildren, GetData
from fencepost.traces.outcomes import ErrorCode


def brokers_changed(controller: ControllerState) -> Steps:
    """Brokers came, went, or bounced (same id, another epoch: gone, then new)."""
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


def _went_offline(controller: ControllerState, gone: set[int]) -> Steps:
    context = controller.context
    for (key, broker), phase in list(controller.replicas.items()):
        if broker in gone and phase is not ReplicaPhase.DELETION_SUCCESSFUL:
            started = phase is ReplicaPhase.DELETION_STARTED
            ineligible = ReplicaPhase.DELETION_INELIGIBLE
            if phase is not ineligible:
                controller.move_replica(key, broker, ineligible if started else ReplicaPhase.OFFLINE)
    for key in sorted(context.assignments):
        if key not in context.states or not context.in_service(key):
            continue
        if context.states[key].leader in gone:
            yield from elections.elect_offline(controller, key)
        elif gone.intersection(context.states[key].isr):
            yield from elections.remove_from_isr(controller, key, gone)


def _came_online(controller: ControllerState, new: list[int]) -> Steps:
    context = controller.context
    controller.channels.add_metadata(context.states)
    controller.channels.flush(context, metadata_always=True)  # before any LeaderAndIsr (KAFKA-4443)
    for broker in new:
        for key in filter(context.in_service, context.partitions_on(broker)):
            if controller.replica_phase(key, broker) is not ReplicaPhase.NON_EXISTENT:
                controller.settle_replica(key, broker)
            controller.channels.add_leader_and_isr((broker,), key)
    yield from elect_all_offline(controller)
    controller.channels.flush(context)


def elect_all_offline(controller: ControllerState) -> Steps:
    """Every partition without a live leader gets one if it can."""
    for key in controller.context.without_leader():
        if key in controller.context.states:
            yield from elections.elect_offline(controller, key)
        else:
            yield from elections.create(controller, key)


def topics_changed(controller: ControllerState) -> Steps:
    """New topics, and partitions added to one, get leaders; those added to a topic that is being deleted are refused."""
    context = controller.context
    assignments = yield from read_topics(controller)
    refused: dict[str, None] = {}
    for key, replicas in sorted(assignments.items()):
        if key in context.assignments:
            continue
        if key.topic in context.deleting:
            refused[key.topic] = None
        else:
            context.assignments[key] = replicas
            yield from elections.create(controller, key)
    for topic in refused:
        yield from topic_deletion.restore_assignment(controller, topic)
    controller.channels.flush(context)


def replicas_stopped(
    controller: ControllerState, broker: int, results: tuple[tuple[TopicPartition, ErrorCode], ...]
) -> Steps:
    """A broker answered a StopReplica: a deletion or a reassignment may go on."""
    for key, error in results:
        if key in controller.context.stopping:
            yield from reassignment.on_stopped(controller, key, broker, error)
        elif not controller.context.in_service(key):
            topic_deletion.on_stopped(controller, key, broker, error)
    yield from topic_deletion.resume(controller)
    controller.channels.flush(controller.context)


def isr_changed(controller: ControllerState) -> Steps:
    """Leaders changed ISRs: read them, tell everybody, remove the notifications."""
    context = controller.context
    listed = yield GetChildren(znodes.ISR_CHANGES, watch=True)
    assert isinstance(listed, Children), listed
    for name in listed.names:
        path = f"{znodes.ISR_CHANGES}/{name}"
        reply = yield GetData(path)
        if not isinstance(reply, Data):
            continue
        for key in znodes.decode_isr_changes(reply.data):
            if key in context.assignments:
                yield from controller.writer.read_state(context, key)
                controller.channels.add_metadata((key,))
        yield from controller.writer.delete(context, path)
    controller.channels.flush(context)


__all__ = [
    "balance_leaders",
    "brokers_changed",
    "elect_all_offline",
    "isr_changed",
    "read_brokers",
    "read_topics",
    "replicas_stopped",
    "topics_changed",
]
