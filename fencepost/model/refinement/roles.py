"""Roles: which broker leads and which follow in which leader epoch, and the state that a restart discards.

Owns the guards of BECAME_LEADER and BECAME_FOLLOWER. Must not know how ZooKeeper reached its state.
"""

from fencepost.model.refinement.mismatch_words import above_end, ends_elsewhere
from fencepost.model.refinement.refinement_state import POWER_LOSS, Mismatch, PartitionState, Term
from fencepost.model.replication import guards
from fencepost.traces.events import Event


def became_leader(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """become_leader: ZooKeeper named it, its epoch grows, and it starts at the end of its log.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    epoch = event.leader_epoch
    wrong = _takes_role(partition, position, event, "become_leader", event.node)
    view = partition.replica(event.node)
    state = partition.quorum.get(epoch)
    if wrong is None and event.isr and state is not None and tuple(sorted(event.isr)) not in state.isrs:
        wrong = Mismatch(
            position=position,
            action="become_leader",
            expected=f"an ISR that ZooKeeper held in leader epoch {epoch}: "
            f"{[list(isr) for isr in state.isrs]}",
            seen=f"ISR {sorted(event.isr)}",
            because=state.position,
        )
    _enter_term(partition, position, event)
    view.leader_epoch, view.leader = epoch, event.node
    view.high_watermark = event.high_watermark
    return wrong


def _enter_term(partition: PartitionState, position: int, event: Event) -> None:
    epoch = event.leader_epoch
    view = partition.replica(event.node)
    start = view.log.end_offset
    term = partition.terms.get(epoch)
    if term is None or term.leader != event.node:
        term = Term(
            event.node, start, event.high_watermark, position, [view.log.copy()], view.log_start_offset
        )
        partition.terms[epoch] = term
        term.reaches = _carried(partition, event.node, view.leader_epoch, epoch)
        return
    term.start_offset = min(term.start_offset, start)
    term.log_start_offset = max(term.log_start_offset, view.log_start_offset)
    if term.logs[-1].end_offset != start:
        term.logs.append(view.log.copy())


def _carried(partition: PartitionState, node: int, previous: int | None, epoch: int) -> dict[int, int]:
    """A leader that gets a new epoch keeps its knowledge of its followers (Kafka's isNewLeader), if no other
    broker led in between."""
    if previous is None or previous not in partition.terms or partition.terms[previous].leader != node:
        return {}
    between = range(previous, epoch)
    if any(partition.quorum[e].leader != node for e in between if e in partition.quorum):
        return {}
    if partition.replica(node).leader != node:
        return {}
    members = set(partition.reaches.get(previous, {})) | set(partition.terms[previous].reaches)
    return {member: partition.known_end(previous, member) for member in sorted(members)}


def became_follower(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """become_follower: of the leader that ZooKeeper named, at a leader epoch above its own.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    wrong = _takes_role(partition, position, event, "become_follower", event.leader)
    view = partition.replica(event.node)
    view.leader_epoch, view.leader = event.leader_epoch, event.leader
    view.high_watermark = event.high_watermark
    reach = partition.reach(event.leader_epoch, event.node)
    reach.settled, reach.now = reach.end_offset, view.log.end_offset
    return wrong


def _takes_role(
    partition: PartitionState, position: int, event: Event, action: str, leader: int
) -> Mismatch | None:
    """The guards of both roles: the leader that ZooKeeper named, fencing by leader epoch, and an unchanged
    log."""
    epoch = event.leader_epoch
    state = partition.quorum.get(epoch)
    if state is None or state.leader != leader or (action == "become_follower" and leader == event.node):
        named = f"named {state.leader}" if state else "does not know that epoch"
        return Mismatch(
            position=position,
            action=action,
            expected="the leader that ZooKeeper named in that leader epoch",
            seen=f"broker {event.node} took {leader} as the leader of epoch {epoch}, for which ZooKeeper "
            f"{named}",
            because=state.position if state else -1,
        )
    view = partition.replica(event.node)
    known = view.leader_epoch
    if not guards.may_learn(known if known is not None else -1, epoch, same_incarnation=known is not None):
        return Mismatch(
            position=position,
            action=action,
            expected=f"a leader epoch above {known}, which broker {event.node} had learned since its start",
            seen=f"leader epoch {epoch}",
        )
    if event.high_watermark > view.log.end_offset:
        return above_end(position, action, event, view.log.end_offset)
    return ends_elsewhere(position, action, event.node, view.log.end_offset, event.offset)


def broker_started(partition: PartitionState, node: int) -> None:
    """A new incarnation of the broker `node` has no role in `partition`."""
    view = partition.replicas.get(node)
    if view is not None:
        if view.leader_epoch is not None:
            view.role_before = view.leader_epoch, view.leader
        view.leader_epoch, view.leader = None, guards.NO_LEADER


def interrupted(partition: PartitionState, node: int, fault: str) -> None:
    """A fault of the host. If it stopped the process during a step, that step left no event. A power loss has
    precedence."""
    view = partition.replica(node)
    if view.interrupted != POWER_LOSS:
        view.interrupted = fault
