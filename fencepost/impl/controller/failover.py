"""Controller fail-over (C6), in order: watches, stale notifications, context, metadata, then whatever needs a leader.

One addition to Kafka's order: a leader that registered after its partition's state was last written is another incarnation than the one that was elected. It
may know a lower high watermark than it exposed before, so its epoch is raised (docs/decisions/0001-restarted-leader.md).
"""

from fencepost.impl import znodes
from fencepost.impl.controller import elections, listeners
from fencepost.impl.controller.machines import PartitionPhase
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.zookeeper import Children, GetChildren


def fail_over(controller: ControllerState) -> Steps:
    """Take over from whoever was controller before."""
    context = controller.context
    context.live_brokers = yield from listeners.read_brokers(controller)
    context.assignments = yield from listeners.read_topics(controller)
    yield from _delete_stale_notifications(controller)
    restarted = yield from _load_states(controller)
    controller.channels.match(context.live_brokers)
    controller.channels.add_metadata(context.states)
    controller.channels.flush(context, metadata_always=True)
    for key in sorted(context.states):
        live = context.states[key].leader in context.live_brokers
        controller.phases[key] = PartitionPhase.ONLINE if live else PartitionPhase.OFFLINE
        controller.channels.add_leader_and_isr(context.live_replicas(key), key)
    for key in restarted:
        yield from elections.re_elect(controller, key)
    yield from _put_dead_replicas_offline(controller)
    yield from listeners.elect_all_offline(controller)
    controller.channels.flush(context)


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
        if dead and state.leader in context.live_brokers:
            yield from elections.remove_from_isr(controller, key, dead)
