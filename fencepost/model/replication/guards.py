"""The guards of the data path: when an action is allowed. Pure functions on offsets, epochs and ISRs.

Owns the *when* of docs/spec/cluster.md R; both users (the explorable system in system.py, the map from real
events in refinement/) own the *what*. A guard that is a registered protection takes it as an argument, so
that a variant is a parameter and never a copy.
"""

from collections.abc import Collection, Iterable

NO_LEADER = -1


def may_elect(
    leader: int, isr_before: Collection[int], isr_after: Collection[int], *, unclean: bool = False
) -> bool:
    """A clean election takes a leader from the ISR and adds nobody to it; nobody may lead (-1) while the last
    member is kept (KAFKA-708).

    unclean: the topic allows a leader from outside, who is then the whole ISR.
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
    """leader_epoch_fencing (KAFKA-1188): LeaderAndIsr is applied only with a higher leader epoch. A broker
    that restarted has forgotten its own."""
    return epoch > known_epoch or not same_incarnation or not fenced


def may_serve(leader_epoch: int, follower_epoch: int, *, fenced: bool = True) -> bool:
    """fetch_fencing (KIP-320): a leader answers a follower of its own epoch only."""
    return leader_epoch == follower_epoch or not fenced


def may_append(log_end_offset: int, offset: int, last_epoch: int, epoch: int) -> bool:
    """Records go to the log end, and epochs never decrease along a log."""
    return offset == log_end_offset and epoch >= last_epoch


def may_truncate(shared: int, log_end_offset: int, new_end_offset: int) -> bool:
    """A truncation by epoch cuts something, and nothing that both replicas hold (the first `shared`
    records)."""
    return shared <= new_end_offset < log_end_offset


def in_sync_end_offset(end_offsets: Iterable[int]) -> int:
    """What every member of the ISR holds (-1 for a member that has not fetched in this epoch): the highest
    legal high watermark."""
    return min(end_offsets)


def may_delete(end_offset: int, high_watermark: int, *, committed_only: bool = True) -> bool:
    """below_high_watermark (KAFKA-5634): retention takes only what lies below the high watermark, to its
    end."""
    return end_offset <= high_watermark or not committed_only


def may_begin(
    known: int, start_offset: int, end_offset: int, high_watermark: int, *, interrupted: bool
) -> bool:
    """A log is opened where it was known to begin, or below (no checkpoint had told yet); or where a step
    that a fault interrupted moved its start to, which is nowhere beyond the highest high watermark that a
    leader had shown."""
    return start_offset <= end_offset and (
        start_offset <= known or (interrupted and start_offset <= high_watermark)
    )


def may_advance(before: int, after: int, in_sync_end: int) -> bool:
    """The leader's high watermark never goes down, and never past what the ISR holds."""
    return before <= after <= in_sync_end


def may_join_isr(
    end_offset: int, high_watermark: int, epoch_start_offset: int, *, after_epoch_start: bool = True
) -> bool:
    """isr_expand_after_epoch_start (KAFKA-7128): at the high watermark *and* at the start of the current
    leader epoch: a new leader's high watermark lags, its epoch's start does not."""
    return end_offset >= high_watermark and (end_offset >= epoch_start_offset or not after_epoch_start)
