"""Logs: appends, truncations, recoveries and the final dump.

Owns the guards of APPENDED, TRUNCATED, LOG_RECOVERED and REPLICA_LOG. Must not know high watermarks.
"""

from fencepost.model.refinement.mismatch_words import (
    begins_elsewhere,
    ends_elsewhere,
    not_following,
    not_leading,
)
from fencepost.model.refinement.refinement_state import (
    POWER_LOSS,
    Mismatch,
    PartitionState,
    ReplicaView,
    Term,
)
from fencepost.model.replication import guards
from fencepost.traces.events import Event


def appended(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """append (a leader, in its own epoch) or fetch (a follower, records that its leader had).

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view = partition.replica(event.node)
    leads = event.cause == "leader"
    action = "append" if leads else "fetch"
    wrong = _at_log_end(partition, view, position, action, event)
    if wrong is None:
        take = _as_leader if leads else _as_follower
        wrong = take(partition, view, position, event)
    log, view.cut = view.log, False
    log.append(event.offset, event.leader_epoch, event.values)
    if event.end_offset > log.end_offset:
        log.resize(event.end_offset)  # compaction left a gap
    if leads:
        term = partition.terms.get(event.leader_epoch)
        if term is not None and term.leader == event.node:
            term.logs[-1].append(event.offset, event.leader_epoch, event.values)
    elif view.leader_epoch is not None:
        reach = partition.reach(view.leader_epoch, event.node)
        reach.now = max(reach.now, log.end_offset)
    return wrong


def _at_log_end(
    partition: PartitionState, view: ReplicaView, position: int, action: str, event: Event
) -> Mismatch | None:
    log, end = view.log, view.log.end_offset
    last_epoch = log.last_epoch
    if event.cause == "follower":
        if end == view.log_start_offset:
            last_epoch = -1  # it removed all its records, so its former ones are not compared
        if end == view.log_start_offset and event.offset >= 0:
            end = min(end, event.offset)  # the leader's log starts inside a batch (KAFKA-6975)
        if partition.compacted:
            end = max(end, event.offset)
    if guards.may_append(end, event.offset, last_epoch, event.leader_epoch):
        return None
    return Mismatch(
        position=position,
        action=action,
        expected=f"an append at the log end {log.end_offset}, of leader epoch {last_epoch} or later",
        seen=f"broker {event.node} appended at {event.offset} in leader epoch {event.leader_epoch}",
        offset=event.offset,
    )


def _as_leader(partition: PartitionState, view: ReplicaView, position: int, event: Event) -> Mismatch | None:
    if view.leader == event.node and view.leader_epoch == event.leader_epoch:
        return None
    return not_leading(position, "append", event.node, event.leader_epoch, event.offset)


def _as_follower(
    partition: PartitionState, view: ReplicaView, position: int, event: Event
) -> Mismatch | None:
    term = partition.term_of(view, event.node)
    if term is None:
        return not_following(position, "fetch", event)
    epochs, values = [event.leader_epoch] * len(event.values), list(event.values)
    at, before = event.offset, max(event.offset - 1, 0)
    held_from = max(
        term.log_start_offset, view.log_start_offset
    )  # if either side removed the previous record, it is not compared
    differences: list[int] = []
    for log in term.logs:
        difference = log.first_difference(at, epochs, values)
        if difference is None and before >= held_from:
            difference = log.first_difference(before, view.log.epochs[before:at], view.log.values[before:at])
        if difference is None:
            log.learn(at, epochs, values)
            return None
        differences.append(difference)
    offset = max(differences)
    held = "the record before it differs"
    if offset >= at:
        held = f"it appended value {event.values[offset - at]} of leader epoch {event.leader_epoch} there"
    return Mismatch(
        position=position,
        action="fetch",
        expected=f"a log that is a prefix of what leader {term.leader} of epoch {view.leader_epoch} holds",
        seen=f"broker {event.node} differs from it at offset {offset}: {held}",
        because=term.position,
        offset=offset,
    )


def truncated(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """truncate: by epoch, and never a record that the leader has too. (out_of_range: cause full.)

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view = partition.replica(event.node)
    end = view.log.end_offset
    wrong = _truncation(partition, position, event, end)
    if event.cause == "full":
        view.log.start_over(event.offset)
    else:
        view.log.resize(event.offset)
    view.cut = True
    view.high_watermark = min(view.high_watermark, event.offset)
    if view.leader_epoch is not None:
        partition.reach(view.leader_epoch, event.node).now = event.offset
    return wrong


def _shared(view: ReplicaView, term: Term, leader: ReplicaView) -> int:
    """How much of a log its leader surely holds, from offset 0 on. Nothing where that ends at the leader's
    log start: the leader has none of it any more, and a batch that contains its log start goes as a whole.
    A crash may take the log start back, but not the epochs below it, which went with it for good."""
    shared = min(view.log.shared_prefix(log) for log in term.logs)
    return 0 if shared <= max(term.log_start_offset, leader.highest_start) else shared


def _truncation(partition: PartitionState, position: int, event: Event, end: int) -> Mismatch | None:
    view, term = partition.replica(event.node), partition.followed(event.node)
    if event.cause == "high_watermark":
        return Mismatch(
            position=position,
            action="truncate",
            expected="a truncation by leader epoch (KIP-101): each leader enters its epoch when elected, so "
            "the high watermark never decides",
            seen=f"broker {event.node} cut its log from {event.end_offset} to its high watermark "
            f"{event.offset}",
            offset=event.offset,
        )
    if term is None or event.leader_epoch != view.leader_epoch:
        return not_following(position, "truncate", event)
    if event.end_offset != end:
        return ends_elsewhere(position, "truncate", event.node, end, event.end_offset)
    if event.cause == "full":
        return _full_truncation(term, position, event, end)
    shared = _shared(view, term, partition.replica(term.leader))
    if guards.may_truncate(shared, end, event.offset):
        return None
    return Mismatch(
        position=position,
        action="truncate",
        expected=f"no record to be cut that leader {term.leader} of epoch {view.leader_epoch} holds too: "
        f"those below offset {shared}",
        seen=f"broker {event.node} cut its log from {end} to {event.offset}",
        because=term.position,
        offset=event.offset,
    )


def _full_truncation(term: Term, position: int, event: Event, end: int) -> Mismatch | None:
    """out_of_range: only for a log of which the leader has no offset any more (KAFKA-7414)."""
    if end <= event.offset <= term.log_start_offset:
        return None
    return Mismatch(
        position=position,
        action="out_of_range",
        expected=f"a log that ends at or below the start of the log of leader {term.leader} "
        f"({term.log_start_offset}) to start over there",
        seen=f"broker {event.node} dropped its log, which ended at {end}, and started over at {event.offset}",
        because=term.position,
        offset=event.offset,
    )


def log_start(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """No action: the logs of the model keep all their records.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view = partition.replica(event.node)
    view.log_start_offset = event.log_start_offset
    view.highest_start = max(view.highest_start, event.log_start_offset)
    term = partition.terms.get(event.leader_epoch)
    if term is not None and term.leader == event.node:
        term.log_start_offset = max(term.log_start_offset, event.log_start_offset)
    return None


def log_recovered(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """restart: the log is unchanged, apart from the step that a fault interrupted. Only this event reports a
    log start that such a step moved.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view = partition.replica(event.node)
    wrong, start = None, event.log_start_offset
    if not _may_recover(partition, event):
        wrong = ends_elsewhere(position, "restart", event.node, view.log.end_offset, event.offset)
    elif start >= 0 and not guards.may_begin(
        view.log_start_offset, start, event.offset, partition.shown, interrupted=bool(view.interrupted)
    ):
        wrong = begins_elsewhere(position, event, view.log_start_offset, partition.shown)
    view.log.resize(event.offset)
    if start >= 0:
        view.log_start_offset = start
    view.interrupted = ""
    view.high_watermark = min(max(event.high_watermark, 0), event.offset)
    return wrong


def _may_recover(partition: PartitionState, event: Event) -> bool:
    """A power loss removes what was not synced. Where a compacted log was cut, no batch may be left that says
    where it ended. A step that a fault interrupts after its file calls leaves no event: an append then makes
    the log longer, a truncation (which must have been a legal one) shorter."""
    view = partition.replica(event.node)
    end = view.log.end_offset
    emptied = partition.compacted and view.cut and event.offset < end
    if event.offset == end or emptied or view.interrupted == POWER_LOSS:
        return True
    if not view.interrupted or event.offset > end:
        return bool(view.interrupted)
    epoch, leader = view.role_before or (-1, event.node)
    term = partition.terms.get(epoch)
    if term is None or leader == event.node:
        return False
    return guards.may_truncate(_shared(view, term, partition.replica(term.leader)), end, event.offset)


def replica_log(partition: PartitionState, position: int, event: Event) -> Mismatch | None:
    """The final dump is the result of the appends and truncations.

    Args:
        partition: the abstraction; it is updated.
        position: the position of the event.
        event: the event.

    Returns:
        the mismatch, or None.
    """
    view = partition.replica(event.node)
    log = view.log
    if event.end_offset > log.end_offset or view.interrupted == POWER_LOSS:
        # The step that was running at the end of the run left no event; or the log was not opened since its
        # disk lost something.
        log.resize(event.end_offset)
    if event.end_offset != log.end_offset:
        return ends_elsewhere(position, "final log", event.node, log.end_offset, event.end_offset)
    difference = log.first_difference(
        event.offset, [event.leader_epoch] * len(event.values), list(event.values)
    )
    if difference is None:
        return None
    return Mismatch(
        position=position,
        action="final log",
        expected="the records that were appended and not truncated since",
        seen=f"broker {event.node} holds another one at offset {difference}",
        offset=difference,
    )
