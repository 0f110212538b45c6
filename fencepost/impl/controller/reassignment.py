"""Partition reassignment (C12): from the old replicas to the target ones, without ever having fewer than there were.

Owns the order, which a new controller takes up from what stands in ZooKeeper, whichever step its predecessor died at:

    1. /admin/reassign_partitions names the target; entries that cannot be done are removed
    2. AR := old + target in the topic's node
    3. the leader epoch is raised: leader and new replicas learn of AR, the new ones begin to fetch
    4. wait, by a watch on the partition's state, until the whole target is in the ISR
    5. one write of the state: a leader within the target, the ISR without the old replicas. A late fetch of one of them cannot bring it back
       (KAFKA-1097): until the leader has heard of AR = target its ISR writes meet another version, from then on it refuses the fetch
    6. the old replicas are told to stop and delete, and answer
    7. AR := target in the topic's node
    8. the entry is removed, the node with the last one; everybody learns of the new AR

Kafka does not wait for the answers of step 6, so that a controller that dies then leaves replicas behind that nobody will ever delete.
"""

from fencepost.impl import znodes
from fencepost.impl.controller import elections, topic_deletion
from fencepost.impl.controller.machines import ReplicaPhase
from fencepost.impl.controller.state import ControllerState
from fencepost.impl.controller.strategies import Choice
from fencepost.impl.controller.writer import Steps
from fencepost.impl.messages import TopicPartition
from fencepost.impl.znodes import LeaderAndIsr
from fencepost.impl.zookeeper import Data, Delete, Exists, GetData, MultiDone, SetData, ZooKeeperError
from fencepost.traces.events import Name
from fencepost.traces.outcomes import ErrorCode

ATTEMPTS = 16
"""Rounds of removing entries: each is lost to an admin tool that writes the node."""

Targets = dict[TopicPartition, tuple[int, ...]]

# ---- step 1


def reassignments_requested(controller: ControllerState, *, resuming: bool = False) -> Steps:
    """Take up the entries that are new. KAFKA-6193: all are known before any is removed, so that a removal keeps the others. resuming: at fail-over."""
    yield Exists(znodes.REASSIGN, watch=True)
    reply = yield GetData(znodes.REASSIGN)
    if not isinstance(reply, Data):
        return
    context = controller.context
    refused = []
    for key, target in _decode(controller, reply.data).items():
        if key in context.reassigning:
            continue
        reason = why_not(controller, key, target, resuming=resuming)
        if reason:
            refused.append(key)
            controller.shell.record(Name.MARK, key, cause="reassignment_refused", detail=reason)
        else:
            context.reassigning[key] = target
    yield from remove_entries(controller, refused)
    for key in sorted(context.reassigning):
        if key not in context.stopping:
            yield from begin(controller, key)
    controller.channels.flush(context)


def _decode(controller: ControllerState, data: bytes) -> Targets:
    try:
        targets = znodes.decode_reassignments(data)
        if not all(isinstance(broker, int) for target in targets.values() for broker in target):
            raise TypeError("broker ids are integers")
        return targets
    except (ValueError, KeyError, TypeError) as error:
        controller.shell.record(Name.MARK, cause="reassignment_refused", detail=repr(error))
        return {}


def why_not(
    controller: ControllerState, key: TopicPartition, target: tuple[int, ...], *, resuming: bool
) -> str:
    """Why a reassignment cannot be done; empty if it can. One that the predecessor may have begun (AR holds the target) survives the death of a
    target broker."""
    context = controller.context
    if key not in context.assignments:
        return "the partition does not exist"
    if key.topic in context.deleting:
        return "the topic is being deleted"
    if not target or len(set(target)) < len(target):
        return "the target is empty or names a broker twice"
    assigned = context.assignments[key]
    if assigned == target:
        return "these are its replicas already"
    begun = resuming and set(target) <= set(assigned)
    dead = [broker for broker in target if broker not in context.live_brokers]
    return f"brokers {dead} are not alive" if dead and not begun else ""


def remove_entries(controller: ControllerState, keys: list[TopicPartition]) -> Steps:
    """Take these entries out of the node; the last ones take the node with them."""
    context = controller.context
    for _ in range(ATTEMPTS if keys else 0):
        reply = yield GetData(znodes.REASSIGN)
        if not isinstance(reply, Data):
            return
        pending = keep_pending(_decode(controller, reply.data), keys)
        version = reply.stat.version
        if pending:
            change: SetData | Delete = SetData(znodes.REASSIGN, znodes.encode_reassignments(pending), version)
        else:
            change = Delete(znodes.REASSIGN, version)
        written = yield from controller.writer.write(context, change)
        if isinstance(written, MultiDone) or written.error is ZooKeeperError.NO_NODE:
            return


def keep_pending(entries: Targets, removed: list[TopicPartition]) -> Targets:
    """Protection KAFKA-6193: only what was asked for is removed, whatever else is pending stays in the node, where the next controller finds it."""
    return {key: target for key, target in entries.items() if key not in removed}


# ---- steps 2 to 4


def begin(controller: ControllerState, key: TopicPartition) -> Steps:
    """Begin, or go on under a new controller or with a broker that returned."""
    context = controller.context
    target = context.reassigning[key]
    state = yield from controller.writer.read_state(context, key, watch=True)
    if state is None:
        return  # no replica was ever alive; its first leader will be elected first
    if set(target) <= set(state.isr):
        yield from move_to_target(controller, key)
    else:
        yield from grow(controller, key)


def grow(controller: ControllerState, key: TopicPartition) -> Steps:
    """Steps 2 and 3."""
    context = controller.context
    old = context.assignments[key]
    both = (*old, *(broker for broker in context.reassigning[key] if broker not in old))
    written = yield from controller.writer.update_assignment(context, key, both)
    if not written:
        return
    context.assignments[key] = both
    controller.adopt_replicas(key)
    controller.settle_replicas(key)

    def strategy(state: LeaderAndIsr) -> Choice | None:
        """The same leader in a new epoch, so that it obeys and learns of AR."""
        return (state.leader, state.isr) if state.leader in context.live_brokers else None

    raised = yield from elections.elect(controller, key, strategy)
    if not raised:
        yield from elections.elect_offline(controller, key)


def state_changed(controller: ControllerState, key: TopicPartition) -> Steps:
    """Step 4: the state of a partition that is reassigned was written: is the target in the ISR?"""
    context = controller.context
    if key not in context.reassigning or key in context.stopping:
        return
    state = yield from controller.writer.read_state(context, key, watch=True)
    if state is not None and set(context.reassigning[key]) <= set(state.isr):
        yield from move_to_target(controller, key)
    controller.channels.flush(context)


# ---- steps 5 and 6


def move_to_target(controller: ControllerState, key: TopicPartition) -> Steps:
    """Step 5, then ask for step 6."""
    context = controller.context
    target, both = context.reassigning[key], context.assignments[key]
    context.assignments[key] = target

    def strategy(state: LeaderAndIsr) -> Choice | None:
        return controller.election.reassignment(target, state.isr, context.electable(), state.leader)

    moved = yield from elections.elect(controller, key, strategy)
    if not moved:
        context.assignments[key] = (
            both  # nobody of the target can lead now: the watch on the state, or a broker, calls again
        )
        return
    old = [broker for broker in both if broker not in target]
    context.stopping[key] = dict.fromkeys(old)
    for broker in old:
        controller.settle_replica(key, broker)
        _stop_and_delete(controller, key, broker)
    yield from retire_if_stopped(controller, key)


def _stop_and_delete(controller: ControllerState, key: TopicPartition, broker: int) -> None:
    if broker not in controller.context.live_brokers:
        del controller.context.stopping[key][broker]
        controller.replicas.pop((key, broker), None)  # nobody will ever say what became of it
        return
    if controller.replica_phase(key, broker) is not ReplicaPhase.OFFLINE:
        controller.move_replica(key, broker, ReplicaPhase.OFFLINE)
    controller.move_replica(key, broker, ReplicaPhase.DELETION_STARTED)
    epoch = controller.context.states[key].leader_epoch
    controller.channels.add_stop_replica(broker, key, epoch, delete=True)


def on_stopped(controller: ControllerState, key: TopicPartition, broker: int, error: ErrorCode) -> Steps:
    """An old replica's broker answered. One that refused obeys a later epoch than this controller knows, which its successor will see to."""
    if broker not in controller.context.stopping.get(key, {}):
        return
    if error is ErrorCode.NONE:
        controller.move_replica(key, broker, ReplicaPhase.DELETION_SUCCESSFUL, ReplicaPhase.NON_EXISTENT)
        del controller.context.stopping[key][broker]
    yield from retire_if_stopped(controller, key)


def brokers_changed(controller: ControllerState, gone: set[int], new: set[int]) -> Steps:
    """Old replicas whose brokers died are not waited for; one that returned is told again; a target that returned goes on catching up."""
    context = controller.context
    for key in sorted(context.reassigning):
        if key in context.stopping:
            for broker in sorted((gone | new) & set(context.stopping[key])):
                _stop_and_delete(controller, key, broker)
            yield from retire_if_stopped(controller, key)
        elif new & {*context.reassigning[key], *context.assignments[key]}:
            yield from begin(controller, key)


# ---- steps 7 and 8


def retire_if_stopped(controller: ControllerState, key: TopicPartition) -> Steps:
    """Steps 7 and 8, once no old replica is left. A deletion of the topic that waited for this one goes on."""
    context = controller.context
    if context.stopping[key]:
        return
    target = context.reassigning[key]
    yield from controller.writer.update_assignment(context, key, target)
    yield from remove_entries(controller, [key])
    del context.reassigning[key], context.stopping[key]
    controller.channels.add_metadata((key,))
    controller.shell.record(Name.MARK, key, controller_epoch=context.epoch, isr=target, cause="reassigned")
    yield from topic_deletion.resume(controller)
