"""ZooKeeper's state of a partition: elections, and the ISR changes of leaders.

Owns the guards of PARTITION_STATE and ISR_UPDATED. Must not know logs beyond the ends that a leader may know.
"""

from fencepost.model.refinement.mismatch_words import not_leading
from fencepost.model.refinement.refinement_state import Mismatch, PartitionState, QuorumState
from fencepost.model.replication import guards
from fencepost.traces.events import Event


def partition_state(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """elect or shrink_by_controller (the epoch grows), or shrink_isr or expand_isr (it does not).

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    before = partition.quorum.get(partition.epoch)
    isr = tuple(sorted(event.isr))
    wrong: Mismatch | None = None
    if before is None:
        partition.quorum[event.leader_epoch] = QuorumState(event.leader, [isr], position)
    elif event.leader_epoch == partition.epoch:
        wrong = _leader_writes(partition, position, event, before, isr)
        before.isrs.append(isr)
    else:
        wrong = _controller_writes(partition, position, event, before, isr)
        partition.quorum[event.leader_epoch] = QuorumState(event.leader, [isr], position)
    partition.epoch, partition.zk_version = event.leader_epoch, event.zk_version
    return wrong


def _controller_writes(
    partition: PartitionState, position: int, event: Event, before: QuorumState, isr: tuple[int, ...]
) -> Mismatch | None:
    previous = before.isrs[-1]
    skipped = skips_an_epoch(partition, position, event)
    if skipped is not None or guards.may_elect(event.leader, previous, isr):
        return skipped
    unclean = partition.unclean()
    if guards.may_elect(event.leader, previous, isr, unclean=unclean):
        return None
    clean = "" if unclean else " (unclean leader election is off)"
    return Mismatch(
        position=position,
        action="elect",
        expected=f"a leader from the ISR {list(previous)}, nobody added to it, and never an empty one{clean}",
        seen=f"leader {event.leader}, ISR {list(isr)} in leader epoch {event.leader_epoch}",
        because=before.position,
    )


def _leader_writes(
    partition: PartitionState, position: int, event: Event, before: QuorumState, isr: tuple[int, ...]
) -> Mismatch | None:
    epoch, previous = event.leader_epoch, before.isrs[-1]
    added = [member for member in isr if member not in previous]
    action = "expand_isr" if added else "shrink_isr"
    if event.leader != before.leader or event.node != before.leader or event.leader not in isr:
        return Mismatch(
            position=position,
            action=action,
            expected=f"within leader epoch {epoch}, writes by its leader {before.leader} alone, which stays "
            f"in the ISR",
            seen=f"broker {event.node} wrote leader {event.leader}, ISR {list(isr)}",
            because=before.position,
        )
    overwritten = overwrites(partition, position, event, action)
    if overwritten is not None:
        return overwritten
    term = partition.terms.get(epoch)
    if term is None:
        return not_leading(position, action, event.node, epoch)
    for member in added:
        end = partition.known_end(epoch, member)
        if not guards.may_join_isr(end, term.high_watermark, term.start_offset):
            return Mismatch(
                position=position,
                action=action,
                expected=(
                    f"broker {member} to join the ISR at or past the high watermark {term.high_watermark} "
                    f"and the start {term.start_offset} of leader epoch {epoch}"
                ),
                seen=f"its log end was {end}" if end >= 0 else f"it has not fetched in leader epoch {epoch}",
                because=term.position,
                offset=max(end, 0),
            )
    return None


def skips_an_epoch(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """An election raises the leader epoch by one, whoever keeps the state (ZooKeeper, or a KRaft controller).

    Args:
        partition: the abstraction, as it was before the event.
        position: the position of the event.
        event: a state of the partition in another leader epoch.

    Returns:
        the mismatch, or None.
    """
    epoch = partition.epoch
    if guards.follows(epoch, event.leader_epoch):
        return None
    return Mismatch(
        position=position,
        action="elect",
        expected=f"leader epoch {epoch + 1}: each election raises it by one",
        seen=f"leader epoch {event.leader_epoch} after {epoch}",
        because=partition.quorum[epoch].position,
    )


def overwrites(partition: PartitionState, position: int, event: Event, action: str) -> Mismatch | None:
    """A change within a leader epoch is a compare-and-set on the version before it (of the znode, or KRaft's
    partition epoch). A version of -1 was not recorded.

    Args:
        partition: the abstraction, as it was before the event.
        position: the position of the event.
        event: a state of the partition in the same leader epoch.
        action: what the change is.

    Returns:
        the mismatch, or None.
    """
    if partition.zk_version < 0 or event.zk_version in (-1, partition.zk_version + 1):
        return None
    return Mismatch(
        position=position,
        action=action,
        expected=f"a compare-and-set on version {partition.zk_version}",
        seen=f"a write that made version {event.zk_version}",
        because=partition.quorum[partition.epoch].position,
    )


def isr_updated(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """A leader's change was accepted: ZooKeeper has, or had, this ISR in that epoch.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view, state = partition.replica(event.node), partition.quorum.get(event.leader_epoch)
    if view.leader != event.node or view.leader_epoch != event.leader_epoch:
        return not_leading(position, "shrink_isr", event.node, event.leader_epoch)
    if state is not None and tuple(sorted(event.isr)) in state.isrs:
        return None
    return Mismatch(
        position=position,
        action="shrink_isr",
        expected=f"an ISR that ZooKeeper held in leader epoch {event.leader_epoch}",
        seen=f"leader {event.node} took ISR {sorted(event.isr)} as accepted",
        because=state.position if state else -1,
    )
