"""The guards of the data path: when an action is allowed. Pure functions on offsets, epochs and ISRs.

Owns the conditions of docs/spec/cluster.md R. Its users (the explorable system in replication_system.py, the
map from real events in refinement/) own the effects. A guard that is a registered protection has it as an
argument, so that a variant is a parameter and never a copy.
"""

from collections.abc import Collection, Iterable

NO_LEADER = -1


def may_elect(
    leader: int, isr_before: Collection[int], isr_after: Collection[int], *, unclean: bool = False
) -> bool:
    """A clean election takes a leader from the ISR and adds no broker to the ISR. There may be no leader (-1)
    while the last member is kept (KAFKA-708).

    unclean: the topic allows a leader from outside, which is then the whole ISR.
    """
    if not isr_after or (leader != NO_LEADER and leader not in isr_after):
        return False
    if all(replica in isr_before for replica in isr_after):
        return True
    return unclean and set(isr_after) == {leader}


def follows(epoch_before: int, epoch: int) -> bool:
    """Each election raises the leader epoch by one."""
    return epoch == epoch_before + 1


def may_learn(known_epoch: int, epoch: int, *, same_incarnation: bool = True, fenced: bool = True) -> bool:
    """leader_epoch_fencing (KAFKA-1188): LeaderAndIsr is applied only with a higher leader epoch. A restarted
    broker has forgotten its own."""
    return epoch > known_epoch or not same_incarnation or not fenced


def may_serve(leader_epoch: int, follower_epoch: int, *, fenced: bool = True) -> bool:
    """fetch_fencing (KIP-320): a leader answers only a follower of its own epoch.

    Args:
        leader_epoch: the leader's epoch.
        follower_epoch: the epoch in the fetch.
        fenced: whether the protection exists.

    Returns:
        whether it answers.
    """
    return leader_epoch == follower_epoch or not fenced


def may_append(log_end_offset: int, offset: int, last_epoch: int, epoch: int) -> bool:
    """Records are appended at the log end, and epochs never decrease along a log.

    Args:
        log_end_offset: the end of the log.
        offset: the offset of the new record.
        last_epoch: the epoch of the last record.
        epoch: the epoch of the new record.

    Returns:
        whether the append is allowed.
    """
    return offset == log_end_offset and epoch >= last_epoch


def may_truncate(shared: int, log_end_offset: int, new_end_offset: int) -> bool:
    """A truncation by epoch removes at least one record, and none that both replicas have (the first `shared`
    records)."""
    return shared <= new_end_offset < log_end_offset


def in_sync_end_offset(end_offsets: Iterable[int]) -> int:
    """The offset up to which every member of the ISR has the log (-1 for a member that has not fetched in
    this epoch): the highest legal high watermark."""
    return min(end_offsets)


def may_delete(end_offset: int, high_watermark: int, *, committed_only: bool = True) -> bool:
    """below_high_watermark (KAFKA-5634): retention removes only records below the high watermark, up to the
    high watermark itself.

    Args:
        end_offset: the offset after the removed records.
        high_watermark: the replica's high watermark.
        committed_only: whether the protection exists.

    Returns:
        whether it is allowed.
    """
    return end_offset <= high_watermark or not committed_only


def may_begin(
    known: int, start_offset: int, end_offset: int, high_watermark: int, *, interrupted: bool
) -> bool:
    """A log may begin at its known start or below (the checkpoint may be older). It may also begin where a
    step that a fault interrupted moved its start to, which is at most the highest high watermark that a
    leader had shown."""
    return start_offset <= end_offset and (
        start_offset <= known or (interrupted and start_offset <= high_watermark)
    )


def may_advance(before: int, after: int, in_sync_end: int) -> bool:
    """The leader's high watermark never decreases, and never exceeds what the ISR has.

    Args:
        before, after: the old and the new high watermark.
        in_sync_end: the offset up to which every ISR member has the log.

    Returns:
        whether it is allowed.
    """
    return before <= after <= in_sync_end


def may_join_isr(
    end_offset: int, high_watermark: int, epoch_start_offset: int, *, after_epoch_start: bool = True
) -> bool:
    """isr_expand_after_epoch_start (KAFKA-7128): a follower may join at the high watermark *and* at the start
    of the current leader epoch. A new leader's high watermark lags, the start of its epoch does not.

    Args:
        end_offset: the follower's log end.
        high_watermark: the leader's high watermark.
        epoch_start_offset: the leader's log end at the start of its epoch.
        after_epoch_start: whether the protection exists.

    Returns:
        whether it may join.
    """
    return end_offset >= high_watermark and (end_offset >= epoch_start_offset or not after_epoch_start)
