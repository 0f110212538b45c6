"""Controller fail-over (C6), in order: watches, stale notifications, context, metadata, whatever needs a leader, then what the predecessor left under way.

One addition to Kafka's order: a leader that registered after its partition's state was last written is another incarnation than the one that was elected. It
may know a lower high watermark than it exposed before, so its epoch is raised (docs/decisions/0001-restarted-leader.md).
"""

from fencepost.impl import znodes
from fencepost.impl.controller import elections, listeners, loading, reassignment, topic_deletion
from fencepost.impl.controller.machines import PartitionPhase, ReplicaPhase
from fencepost.impl.controller.preferred_election import preferred_election_requested
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.zookeeper import Children, GetChildren


def fail_over(controller: ControllerState) -> Steps:
    """Take over from whoever was controller before."""
    context = controller.context
    context.set_live((yield from loading.read_brokers(controller)))
    context.assignments = yield from loading.read_topics(controller)
    yield from _delete_stale_notifications(controller)
    restarted = yield from _load_states(controller)
    yield from _take_up_deletions(controller)
    controller.channels.match(context.live_brokers)
    controller.channels.add_metadata(context.states)
    controller.channels.flush(context, metadata_always=True)
    _start_state_machines(controller)
    for key in filter(context.in_service, restarted):
        yield from elections.re_elect(controller, key)
    yield from _put_dead_replicas_offline(controller)
    yield from listeners.elect_all_offline(controller)
    controller.channels.flush(context)
    yield from _resume(controller)


def _take_up_deletions(controller: ControllerState) -> Steps:
    """KAFKA-1681: what the predecessor was asked to delete is out of service from the start."""
    context = controller.context
    if context.admin is None:
        yield from loading.read_admin(controller)
    assert context.admin is not None
    if context.admin.delete_topics:
        yield from topic_deletion.take_up(controller, context.admin.delete_topics)
        context.out_of_service.update(context.deleting)
        for topic in context.deleting:
            controller.channels.add_metadata(context.partitions_of(topic))


def _start_state_machines(controller: ControllerState) -> None:
    context = controller.context
    for key in sorted(context.states):
        live = context.states[key].leader in context.live_brokers and context.in_service(key)
        controller.phases[key] = PartitionPhase.ONLINE if live else PartitionPhase.OFFLINE
        if context.in_service(key):
            controller.channels.add_leader_and_isr(context.live_replicas(key), key)
    for key, replicas in context.assignments.items():
        if key in context.states or not context.in_service(key):
            for broker in replicas:
                live = broker in context.live_brokers
                controller.replicas[key, broker] = ReplicaPhase.ONLINE if live else ReplicaPhase.OFFLINE


def _resume(controller: ControllerState) -> Steps:
    """What stood below /admin when this reign began; what came since has its watch."""
    admin = controller.context.admin
    assert admin is not None
    if admin.reassign:
        yield from reassignment.reassignments_requested(controller, resuming=True)
    if admin.delete_topics:
        yield from topic_deletion.deletions_requested(controller)
    if admin.preferred:
        yield from preferred_election_requested(controller)


def _delete_stale_notifications(controller: ControllerState) -> Steps:
    listed = yield GetChildren(znodes.ISR_CHANGES, watch=True)
    assert isinstance(listed, Children), listed
    for name in listed.names:
        yield from controller.writer.delete(controller.context, f"{znodes.ISR_CHANGES}/{name}")


def _load_states(controller: ControllerState) -> Steps:
    """Read every partition's state; returns those whose leader registered after its state was written."""
    context = controller.context
    restarted: list[TopicPartition] = []
    for key in sorted(context.assignments):
        state = yield from controller.writer.read_state(context, key)
        if state is not None and context.live_brokers.get(state.leader, -1) > state.mzxid:
            restarted.append(key)
    return restarted


def _put_dead_replicas_offline(controller: ControllerState) -> Steps:
    """KAFKA-3143: brokers that died while nobody watched leave the ISRs now."""
    context = controller.context
    for key, state in sorted(context.states.items()):
        dead = [member for member in state.isr if member not in context.live_brokers]
        if dead and state.leader in context.live_brokers and context.in_service(key):
            yield from elections.remove_from_isr(controller, key, dead)
