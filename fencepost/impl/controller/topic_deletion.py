"""Topic deletion (C14): every replica is deleted on its broker, then the topic's nodes are removed.

Owns the order. The states of a replica are Offline -> DeletionStarted -> DeletionSuccessful, or
DeletionIneligible while its broker is down.

    1. /admin/delete_topics/T appears; a topic under reassignment waits
    2. all brokers forget the topic (UpdateMetadata); its partitions have no more elections
    3. each live broker gets a StopReplica that deletes; a dead one gets it when it returns
    4. all have answered: the partitions' nodes, the topic's node, its configuration, and last
       /admin/delete_topics/T are removed

At whichever step a controller dies, the node of step 1 still exists, and its successor begins again
(KAFKA-1681). So each step may be repeated.
"""

from fencepost.impl.controller.legal_transitions import PartitionPhase, ReplicaPhase
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.zookeeper_loading import read_topics
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import EPOCH_DURING_DELETE, TopicPartition
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import Data, GetChildren, GetData, MultiDone, SetData, names_of
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

UNDER_WAY = (ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_SUCCESSFUL)


def deletions_requested(controller: ControllerState) -> ZooKeeperSteps:
    """Topics are to be deleted: start. A request for a topic that does not exist is removed."""
    context = controller.context
    listed = yield GetChildren(znodes.DELETE_TOPICS, watch=True)
    yield from take_up(controller, names_of(listed))
    yield from resume(controller)
    controller.channels.flush(context)


def take_up(controller: ControllerState, topics: tuple[str, ...], *, begun: bool = False) -> ZooKeeperSteps:
    """Mark these topics as to be deleted. begun: by another controller, which may have taken the topic's node
    away and left its configuration."""
    context = controller.context
    unknown = {topic for topic in topics if not context.partitions_of(topic)}
    if unknown:
        assignments = yield from read_topics(controller)
        context.assignments.update({key: ids for key, ids in assignments.items() if key.topic in unknown})
    for topic in topics:
        exists = bool(context.partitions_of(topic))
        if exists:
            context.deleting[topic] = None
        else:
            if begun:
                yield from controller.writer.delete(context, znodes.config_path(topic))
            yield from controller.writer.delete(context, znodes.delete_topic_path(topic))


def resume(controller: ControllerState) -> ZooKeeperSteps:
    """Begin deletions that can begin, repeat requests to brokers that returned, and complete finished
    deletions. Extra calls have no effect."""
    context = controller.context
    for topic in list(context.deleting):
        keys = context.partitions_of(topic)
        if any(key in context.reassigning for key in keys):
            continue  # it waits for the reassignment, which needs leaders
        _take_out_of_service(controller, topic)
        for key in keys:
            _delete_replicas(controller, key)
        if _all_deleted(controller, keys):
            yield from _complete(controller, topic, keys)


def _take_out_of_service(controller: ControllerState, topic: str) -> None:
    context = controller.context
    if topic in context.out_of_service:
        return
    context.out_of_service[topic] = None
    controller.channels.add_metadata(context.partitions_of(topic))


def _delete_replicas(controller: ControllerState, key: TopicPartition) -> None:
    if not controller.guards.offline_without_state(has_state=key in controller.context.states):
        return
    if key not in controller.phases:
        controller.move(key, PartitionPhase.NEW)
    if controller.phases[key] is not PartitionPhase.OFFLINE:
        controller.move(key, PartitionPhase.OFFLINE)
    controller.adopt_replicas(key)
    for broker in controller.context.assignments[key]:
        phase = controller.replica_phase(key, broker)
        live = broker in controller.context.live_brokers
        if phase in UNDER_WAY or (phase is ReplicaPhase.DELETION_INELIGIBLE and not live):
            continue
        controller.move_replica(key, broker, ReplicaPhase.OFFLINE)
        if live:
            controller.move_replica(key, broker, ReplicaPhase.DELETION_STARTED)
            controller.channels.add_stop_replica(broker, key, EPOCH_DURING_DELETE, delete=True)
        else:
            controller.move_replica(key, broker, ReplicaPhase.DELETION_INELIGIBLE)


def _all_deleted(controller: ControllerState, keys: list[TopicPartition]) -> bool:
    return all(
        controller.replica_phase(key, broker) is ReplicaPhase.DELETION_SUCCESSFUL
        for key in keys
        for broker in controller.context.assignments[key]
    )


def on_stopped(controller: ControllerState, key: TopicPartition, broker: int, error: ErrorCode) -> None:
    """A broker answered for one replica of a topic under deletion."""
    if controller.replica_phase(key, broker) is ReplicaPhase.DELETION_STARTED:
        deleted = error is ErrorCode.NONE
        controller.move_replica(
            key, broker, ReplicaPhase.DELETION_SUCCESSFUL if deleted else ReplicaPhase.DELETION_INELIGIBLE
        )


def _complete(controller: ControllerState, topic: str, keys: list[TopicPartition]) -> ZooKeeperSteps:
    context, writer = controller.context, controller.writer
    partitions = f"{znodes.topic_path(topic)}/partitions"
    listed = yield GetChildren(partitions)
    doomed = []
    for number in names_of(listed):
        doomed += [f"{partitions}/{number}/state", f"{partitions}/{number}"]
    doomed.append(partitions)
    yield from writer.delete_all(context, [*doomed, znodes.topic_path(topic)])
    yield from writer.delete(context, znodes.config_path(topic))
    yield from writer.delete(context, znodes.delete_topic_path(topic))
    for key in keys:
        for broker in context.assignments[key]:
            controller.move_replica(key, broker, ReplicaPhase.NON_EXISTENT)
        controller.move(key, PartitionPhase.NON_EXISTENT)
        controller.forget_partition(key)
    del context.deleting[topic], context.out_of_service[topic]
    controller.broker_context.record(
        Name.MARK, controller_epoch=context.epoch, cause="topic_deleted", detail=topic
    )


def restore_assignment(controller: ControllerState, topic: str) -> ZooKeeperSteps:
    """Protection KAFKA-6612: partitions added to a topic under deletion are removed from its node again;
    otherwise they would survive it."""
    context = controller.context
    path = znodes.topic_path(topic)
    reply = yield GetData(path)
    if not isinstance(reply, Data):
        return
    known = {key.partition: context.assignments[key] for key in context.partitions_of(topic)}
    written = yield from controller.writer.write(
        context, SetData(path, znodes.encode_topic(known), reply.stat.version)
    )
    if isinstance(written, MultiDone):
        controller.broker_context.record(
            Name.MARK, controller_epoch=context.epoch, cause="partitions_refused", detail=topic
        )
