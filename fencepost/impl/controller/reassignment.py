"""Partition reassignment (C12): from the old replicas to the target replicas, without ever having fewer
replicas than before.

Owns the order. A new controller continues from ZooKeeper's content, at whichever step its predecessor died:

    1. /admin/reassign_partitions names the target; impossible entries are removed
    2. AR := old + target in the topic's node
    3. the leader epoch is raised: leader and new replicas get AR, the new ones begin to fetch
    4. wait, by a watch on the partition's state, until the whole target is in the ISR
    5. one write of the state: a leader within the target, the ISR without the old replicas. A late fetch of
       one of them cannot restore it (KAFKA-1097): until the leader has AR = target, its ISR writes fail
       because of the version; from then on it refuses the fetch
    6. the old replicas get StopReplica with deletion, and answer
    7. AR := target in the topic's node
    8. the entry is removed, the node with the last one; all brokers get the new AR

Kafka does not wait for the responses of step 6. A controller that dies then leaves replicas that are never
deleted.
"""

from collections.abc import Collection

from fencepost.impl.controller import elections, topic_deletion
from fencepost.impl.controller.guards import Targets
from fencepost.impl.controller.legal_transitions import ReplicaPhase
from fencepost.impl.controller.shared_state import ControllerState
from fencepost.impl.controller.strategies import Choice
from fencepost.impl.core.procedures import ZooKeeperSteps
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.zookeeper import interface as zk
from fencepost.impl.zookeeper import znodes
from fencepost.impl.zookeeper.grouping import JUTE_MAXBUFFER, REQUEST_BYTES, write_size
from fencepost.impl.zookeeper.znodes import LeaderAndIsr
from fencepost.traces.events import Name
from fencepost.traces.kafka_names.outcomes import ErrorCode

ATTEMPTS = 16
"""Rounds of changing entries. Reason: a round fails only because an admin tool writes the node."""
FENCE_BYTES = 256
"""More bytes than the fence of a write takes in a request."""

# ---- step 1


def reassignments_requested(controller: ControllerState, *, resuming: bool = False) -> ZooKeeperSteps:
    """Start the new entries. KAFKA-6193: all are known before any is removed, so a removal keeps the others.
    resuming: at failover."""
    yield zk.Exists(znodes.REASSIGN, watch=True)
    reply = yield zk.GetData(znodes.REASSIGN)
    if not isinstance(reply, zk.Data):
        return
    context = controller.context
    refused: Targets = {}
    targets = _decode(controller, reply.data)
    origins = znodes.decode_origins(reply.data) if targets else {}
    for key, target in targets.items():
        if key in context.reassigning:
            continue
        accepted = resuming and key in origins
        reason = why_not(controller, key, target, resuming=resuming, accepted=accepted)
        if reason:
            refused[key] = target
            controller.broker_context.record(Name.MARK, key, cause="reassignment_refused", detail=reason)
        else:
            context.reassigning[key] = target
            origin = origins.get(key) if resuming else context.assignments[key]
            if origin is not None:
                context.origins[key] = origin
    if refused or _asks_for_nothing(reply.data):
        yield from remove_entries(controller, refused)
    yield from begin(controller, [key for key in sorted(context.reassigning) if key not in context.stopping])
    controller.channels.flush(context)


def _asks_for_nothing(data: bytes) -> bool:
    """Whether a predecessor emptied the node and died before it removed it."""
    return data == znodes.encode_reassignments({})


def _decode(controller: ControllerState, data: bytes) -> Targets:
    try:
        return znodes.decode_reassignments(data)
    except znodes.BadZnodeError as error:
        controller.broker_context.record(Name.MARK, cause="reassignment_refused", detail=str(error))
        return {}


def why_not(
    controller: ControllerState,
    key: TopicPartition,
    target: tuple[int, ...],
    *,
    resuming: bool,
    accepted: bool = False,
) -> str:
    """Why a reassignment is impossible; "" if it is possible.

    A reassignment that the predecessor may have begun (AR contains the target) survives the death of a target
    broker. If AR *is* the target, the predecessor may have died between steps 1 and 2 of one that only adds
    replicas. Then no leader knows of them yet, and they would never be in sync (found by the swarm, profile
    chaos, seed 408). accepted: the predecessor wrote the entry itself, after these checks. AR may have been
    extended for another target, and refusing the entry now would leave it extended.
    """
    context = controller.context
    if key not in context.assignments:
        return "the partition does not exist"
    if key.topic in context.deleting:
        return "the topic is being deleted"
    if not target or len(set(target)) < len(target):
        return "the target is empty or names a broker twice"
    assigned = context.assignments[key]
    state = context.states.get(key)
    in_sync = state is not None and set(target) <= set(state.isr)
    if assigned == target and (in_sync or not resuming):
        return "these are its replicas already"
    begun = accepted or (resuming and set(target) <= set(assigned))
    dead = [broker for broker in target if broker not in context.live_brokers]
    return f"brokers {dead} are not alive" if dead and not begun else ""


def remove_entries(controller: ControllerState, done: Targets) -> ZooKeeperSteps:
    """Remove these entries from the node, if they still have these targets; with the last ones, remove the
    node.

    A node of version 0, as it was created, is emptied before it is removed:

    1. the removal is applied and its reply lost; the request is sent again
    2. meanwhile an operator has created the next node, which begins at version 0 too
    3. the second removal finds another version, and the new request stays (found by the swarm, profile
       reassignment, seed 294)

    Args:
        controller: the active controller.
        done: the entries to remove.

    Returns:
        the steps.
    """
    context = controller.context
    for _ in range(ATTEMPTS):
        reply = yield zk.GetData(znodes.REASSIGN)
        if not isinstance(reply, zk.Data):
            return
        entries = _decode(controller, reply.data)
        removed = [key for key, target in done.items() if entries.get(key) == target]
        if entries and not removed:
            return
        pending = controller.guards.keep_pending(entries, removed)
        version = reply.stat.version
        remove = not pending and version > 0
        origins = znodes.decode_origins(reply.data) if pending else {}
        data = znodes.encode_reassignments(pending, origins)
        change: zk.SetData | zk.Delete = zk.SetData(znodes.REASSIGN, data, version)
        if remove:
            change = zk.Delete(znodes.REASSIGN, version)
        written = yield from controller.writer.write(context, change)
        gone = isinstance(written, zk.Failed) and written.error is zk.ZooKeeperError.NO_NODE
        if gone or (isinstance(written, zk.MultiDone) and (pending or remove)):
            return


def reassign(controller: ControllerState, targets: Targets) -> ZooKeeperSteps:
    """Request these targets, as the admin tool does, or others than before. A running reassignment continues
    to its new target from its current state. To cancel one, request the replicas that it began with. Returns
    why it could not be written; "" if it was."""
    context = controller.context
    moved = [key for key in targets if key in context.reassigning]
    for _ in range(ATTEMPTS):
        reply = yield zk.GetData(znodes.REASSIGN)
        entries: Targets = {}
        origins: Targets = {}
        if isinstance(reply, zk.Data):
            entries = _decode(controller, reply.data)
            origins = znodes.decode_origins(reply.data) if entries else {}
        origins |= {
            key: context.origins[key] if key in context.origins else context.assignments[key]
            for key in targets
            if key in context.origins or key not in context.reassigning
        }
        data = znodes.encode_reassignments(entries | targets, origins)
        write: zk.Create | zk.SetData = zk.Create(znodes.REASSIGN, data)
        if isinstance(reply, zk.Data):
            write = zk.SetData(znodes.REASSIGN, data, reply.stat.version)
        if write_size(write)[0] + REQUEST_BYTES > JUTE_MAXBUFFER - FENCE_BYTES:
            return (
                f"{len(entries | targets)} partitions are too many for one ZooKeeper node; ask for fewer "
                f"at a time"
            )
        written = yield from controller.writer.write(context, write)
        if isinstance(written, zk.MultiDone):
            break
    else:
        return "another client keeps changing the reassignments; try again"
    for key in moved:
        context.reassigning[key] = targets[key]
    yield from reassignments_requested(controller)
    return ""


# ---- steps 2 to 4


def begin(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Begin, or continue under a new controller or with a broker that returned. A partition without a state
    never had a live replica: its first leader is elected first."""
    states = yield from controller.writer.read_states(controller.context, keys, watch=True)
    caught_up = {key: None for key, state in states.items() if _caught_up(controller, key, state)}
    yield from move_to_target(controller, caught_up)
    yield from grow(controller, [key for key in states if key not in caught_up])


def _caught_up(controller: ControllerState, key: TopicPartition, state: LeaderAndIsr) -> bool:
    return set(controller.context.reassigning[key]) <= set(state.isr)


def grow(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Steps 2 and 3.

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps.
    """
    context = controller.context
    both = {}
    for key in keys:
        old = context.assignments[key]
        both[key] = (*old, *(broker for broker in context.reassigning[key] if broker not in old))
    written = yield from controller.writer.update_assignments(context, both)
    for key in written:
        context.assignments[key] = both[key]
        controller.adopt_replicas(key)
        controller.settle_replicas(key)

    def strategy(_: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        """The same leader in a new epoch, so that it obeys and gets AR."""
        return (state.leader, state.isr) if state.leader in context.live_brokers else None

    raised = yield from elections.elect_together(controller, written, strategy)
    yield from elections.elect_offline_together(controller, [key for key in written if key not in raised])


def states_changed(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Step 4: the states of partitions under reassignment were written. Is the target in the ISR?

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps.
    """
    context = controller.context
    waiting = [key for key in keys if key in context.reassigning and key not in context.stopping]
    states = yield from controller.writer.read_states(context, waiting, watch=True)
    caught_up = [key for key, state in states.items() if _caught_up(controller, key, state)]
    yield from move_to_target(controller, caught_up)
    controller.channels.flush(context)


# ---- steps 5 and 6


def move_to_target(controller: ControllerState, keys: Collection[TopicPartition]) -> ZooKeeperSteps:
    """Step 5, then request step 6.

    Args:
        controller: the active controller.
        keys: the partitions.

    Returns:
        the steps.
    """
    context = controller.context
    both = {key: context.assignments[key] for key in keys}
    for key in keys:
        target = context.reassigning[key]
        context.assignments[key] = controller.guards.assigned_replicas_only(both[key], target)

    def strategy(key: TopicPartition, state: LeaderAndIsr) -> Choice | None:
        return controller.election.reassignment(
            context.reassigning[key], state.isr, context.electable(), state.leader
        )

    moved = yield from elections.elect_together(controller, keys, strategy)
    for key in keys:
        if (
            key not in moved
        ):  # no broker of the target can lead now: the watch on the state, or a broker, starts this again
            context.assignments[key] = both[key]
            continue
        old = [broker for broker in both[key] if broker not in context.reassigning[key]]
        context.stopping[key] = dict.fromkeys(old)
        for broker in old:
            controller.settle_replica(key, broker)
            _stop_and_delete(controller, key, broker)
    yield from retire_stopped(controller)


def _stop_and_delete(controller: ControllerState, key: TopicPartition, broker: int) -> None:
    if broker not in controller.context.live_brokers:
        del controller.context.stopping[key][broker]
        controller.replicas[broker].pop(key, None)  # its deletion will never be confirmed
        return
    if controller.replica_phase(key, broker) is not ReplicaPhase.OFFLINE:
        controller.move_replica(key, broker, ReplicaPhase.OFFLINE)
    controller.move_replica(key, broker, ReplicaPhase.DELETION_STARTED)
    epoch = controller.context.states[key].leader_epoch
    controller.channels.add_stop_replica(broker, key, epoch, delete=True)


def on_stopped(controller: ControllerState, key: TopicPartition, broker: int, error: ErrorCode) -> None:
    """An old replica's broker answered. If it refused, it obeys a later epoch than this controller's; the
    successor handles the replica."""
    if broker in controller.context.stopping.get(key, {}) and error is ErrorCode.NONE:
        controller.move_replica(key, broker, ReplicaPhase.DELETION_SUCCESSFUL, ReplicaPhase.NON_EXISTENT)
        del controller.context.stopping[key][broker]


def brokers_changed(controller: ControllerState, gone: set[int], new: set[int]) -> ZooKeeperSteps:
    """Do not wait for old replicas of dead brokers. Send the request again to a broker that returned; a
    target that returned continues to catch up.

    Args:
        controller: the active controller.
        gone: ids of brokers that left.
        new: ids of brokers that came.

    Returns:
        the steps.
    """
    context = controller.context
    again = []
    for key in sorted(context.reassigning):
        if key in context.stopping:
            for broker in sorted((gone | new) & set(context.stopping[key])):
                _stop_and_delete(controller, key, broker)
        elif new & {*context.reassigning[key], *context.assignments[key]}:
            again.append(key)
    yield from retire_stopped(controller)
    yield from begin(controller, again)


# ---- steps 7 and 8


def retire_stopped(controller: ControllerState) -> ZooKeeperSteps:
    """Steps 7 and 8, for partitions without an old replica left. A deletion of the topic that waited for them
    continues."""
    context = controller.context
    targets = {key: context.reassigning[key] for key, left in context.stopping.items() if not left}
    if not targets:
        return
    yield from controller.writer.update_assignments(context, targets)
    yield from remove_entries(controller, targets)
    for key, target in targets.items():
        context.assignments[key] = target
        del context.reassigning[key], context.stopping[key]
        context.origins.pop(key, None)
        controller.channels.add_metadata((key,))
        controller.broker_context.record(
            Name.MARK, key, controller_epoch=context.epoch, isr=target, cause="reassigned"
        )
    yield from topic_deletion.resume(controller)
