"""High watermarks: the values that a leader may expose, and those that a follower may have received.

Owns the guards of HIGH_WATERMARK. Must not know how logs reached their ends.
"""

from fencepost.model.refinement.mismatch_words import (
    above_end,
    ends_in_words,
    not_following,
    not_in_epoch,
    not_leading,
)
from fencepost.model.refinement.refinement_state import Mismatch, PartitionState, ReplicaView
from fencepost.model.replication import guards
from fencepost.traces.events import Event


def high_watermark(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """advance_high_watermark (leader), or the value in a fetch response (follower).

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view = partition.replica(event.node)
    after, end = event.high_watermark, view.log.end_offset
    action = "advance_high_watermark" if event.cause == "leader" else "fetch"
    if view.leader_epoch != event.leader_epoch:
        wrong: Mismatch | None = not_in_epoch(position, action, event, view.leader_epoch)
    elif after > end:
        wrong = above_end(position, action, event, end)
    elif event.cause == "leader":
        wrong = _leader_advances(partition, position, event, view.high_watermark)
    else:
        wrong = _follower_advances(partition, view, position, event)
    view.high_watermark = after
    return wrong


def _leader_advances(partition: PartitionState, position: int, event: Event, before: int) -> Mismatch | None:
    epoch, after = event.leader_epoch, event.high_watermark
    term = partition.terms.get(epoch)
    if term is None or term.leader != event.node:
        return not_leading(position, "advance_high_watermark", event.node, epoch)
    term.high_watermark = max(term.high_watermark, after)
    isr = partition.quorum[epoch].isrs[-1] if epoch in partition.quorum else (event.node,)
    ends = {member: partition.known_end(epoch, member) for member in isr}
    if guards.may_advance(before, after, guards.in_sync_end_offset(ends.values())):
        return None
    return Mismatch(
        position=position,
        action="advance_high_watermark",
        expected=f"a high watermark from {before} up to what every member of the ISR is known to hold in "
        f"epoch {epoch} ({ends_in_words(ends)})",
        seen=f"leader {event.node} moved it to {after}",
        because=term.position,
        offset=after,
    )


def _follower_advances(
    partition: PartitionState, view: ReplicaView, position: int, event: Event
) -> Mismatch | None:
    """A follower gets the high watermark in a fetch response, so it has truncated before: its log is a prefix
    of its leader's."""
    before, after = view.high_watermark, event.high_watermark
    if after <= before:
        return None  # a new leader's may lag, and a truncation lowers it
    term = partition.term_of(view, event.node)
    if term is None:
        return not_following(position, "fetch", event)
    if after > term.high_watermark:
        return Mismatch(
            position=position,
            action="fetch",
            expected=f"at most the high watermark {term.high_watermark} that leader {term.leader} reached "
            f"in epoch {event.leader_epoch}",
            seen=f"follower {event.node} moved its own to {after}",
            because=term.position,
            offset=after,
        )
    own, begin = view.log, max(before, term.log_start_offset)
    epochs, values = own.epochs[begin:], own.values[begin:]
    differences = [log.first_difference(begin, epochs, values) for log in term.logs]
    if None in differences:
        return None
    offset = max(difference for difference in differences if difference is not None)
    return Mismatch(
        position=position,
        action="fetch",
        expected=f"a log that is a prefix of what leader {term.leader} of epoch {event.leader_epoch} holds",
        seen=f"follower {event.node} moved its high watermark to {after} with another record at offset "
        f"{offset}",
        because=term.position,
        offset=offset,
    )
