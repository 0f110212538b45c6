"""Controller failover (C6), in order: watches, stale notifications, context, metadata, partitions that need a
leader, then the unfinished work of the predecessor.

One addition to Kafka's order: if a leader registered after its partition's state was last written, it is
another incarnation than the one that was elected. It may know a lower high watermark than it exposed before,
so its epoch is raised (docs/decisions/0001-restarted-leader.md).
"""

from functools import partial

from fencepost.impl.controller import elections, listeners, reassignment, topic_deletion, zookeeper_loading
from fencepost.impl.controller.legal_transitions import PartitionPhase, ReplicaPhase
from fencepost.impl.controller.preferred_election import preferred_election_requested
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.interface import GetChildren, names_of
from fencepost.traces.events import Name


def fail_over(controller: ControllerState) -> ZooKeeperSteps:
    """Take over from the previous controller."""
    context = controller.context
    context.set_live((yield from zookeeper_loading.read_brokers(controller)))
    context.assignments = yield from zookeeper_loading.read_topics(controller)
    yield from _delete_stale_notifications(controller)
    restarted = yield from _load_states(controller)
    yield from _take_up_deletions(controller)
    controller.channels.match(context.live_brokers)
    controller.channels.introduce(context)
    _start_state_machines(controller)
    yield from elections.re_elect(controller, context.served(restarted))
    yield from _put_dead_replicas_offline(controller)
    yield from listeners.elect_all_offline(controller)
    controller.channels.flush(context)
    controller.broker_context.record(Name.MARK, controller_epoch=context.epoch, cause="failed_over")
    yield from _resume(controller)


def _take_up_deletions(controller: ControllerState) -> ZooKeeperSteps:
    """Topics that the predecessor had to delete are out of service from the start."""
    context = controller.context
    if context.admin is None:
        yield from zookeeper_loading.read_admin(controller)
    assert context.admin is not None
    yield from controller.guards.resume_deletions(
        context.admin.delete_topics, partial(_take_out_of_service, controller)
    )


def _take_out_of_service(controller: ControllerState, topics: tuple[str, ...]) -> ZooKeeperSteps:
    context = controller.context
    yield from topic_deletion.take_up(controller, topics, begun=True)
    context.out_of_service.update(context.deleting)
    for topic in context.deleting:
        controller.channels.add_metadata(context.partitions_of(topic))


def _start_state_machines(controller: ControllerState) -> None:
    """All brokers just got all partitions, so only those that host a partition get more about it
    (LeaderAndIsr)."""
    context, live = controller.context, controller.context.live_brokers
    online, offline = PartitionPhase.ONLINE, PartitionPhase.OFFLINE
    served = context.served(context.states)
    controller.phases = dict.fromkeys(context.states, offline)
    controller.phases.update({key: online for key in served if context.states[key].leader in live})
    for replicas, keys in context.by_replicas(served).items():
        controller.channels.add_leader_and_isr(context.alive(replicas), keys, metadata=False)
    known = [key for key in context.assignments if key in context.states or not context.in_service(key)]
    for replicas, keys in context.by_replicas(known).items():
        for broker in replicas:
            phase = ReplicaPhase.ONLINE if broker in live else ReplicaPhase.OFFLINE
            controller.replicas[broker].update(dict.fromkeys(keys, phase))


def _resume(controller: ControllerState) -> ZooKeeperSteps:
    """Resume the work in /admin as of the beginning of this reign; later changes fire watches."""
    admin = controller.context.admin
    assert admin is not None
    if admin.reassign:
        yield from reassignment.reassignments_requested(controller, resuming=True)
    yield from controller.guards.resume_deletions(
        admin.delete_topics, lambda _: topic_deletion.deletions_requested(controller)
    )
    if admin.preferred:
        yield from preferred_election_requested(controller)


def _delete_stale_notifications(controller: ControllerState) -> ZooKeeperSteps:
    listed = yield GetChildren(znodes.ISR_CHANGES, watch=True)
    stale = [f"{znodes.ISR_CHANGES}/{name}" for name in names_of(listed)]
    yield from controller.writer.delete_all(controller.context, stale)


def _load_states(controller: ControllerState) -> ZooKeeperSteps:
    """Read every partition's state. Returns those with a leader that registered after the state was
    written."""
    context = controller.context
    states = yield from controller.writer.read_states(context, sorted(context.assignments))
    return [key for key, state in states.items() if context.live_brokers.get(state.leader, -1) > state.mzxid]


def _put_dead_replicas_offline(controller: ControllerState) -> ZooKeeperSteps:
    """Remove brokers from ISRs that died while there was no controller."""
    context = controller.context
    live = context.live_brokers
    all_alive = {isr: live.keys() >= set(isr) for isr in {state.isr for state in context.states.values()}}
    keys = [
        key
        for key, state in context.states.items()
        if not all_alive[state.isr] and state.leader in live and context.in_service(key)
    ]
    members = {member for key in keys for member in context.states[key].isr}
    gone = controller.guards.dead_replicas_offline(members, live)
    yield from elections.remove_from_isrs(controller, sorted(keys), gone)
