"""The steps of the replicas and the controller in the replication model, on the values of the slots that they
read.

Owns the actions and their effect on a state. Each guard that is a registered protection is named at its
place. Must not know which slots exist.
"""

from fencepost.model.explore.transition_system import EnabledActions
from fencepost.model.replication import epoch_truncation as cache
from fencepost.model.replication import guards
from fencepost.model.replication.replication_state import (
    DOWN,
    GONE,
    NOBODY,
    Committed,
    Constants,
    Listed,
    LogRecord,
    Quorum,
    Replica,
    Used,
    log_start_offset,
)


def members(isr: int, replicas: int) -> list[int]:
    """The replicas of a bit set."""
    return [replica for replica in range(replicas) if isr >> replica & 1]


def no_ends(constants: Constants, leader: int, epoch_start_offset: int) -> tuple[int, ...]:
    """A new leader's knowledge of log ends: the start of its own epoch, and nothing about the others."""
    return tuple(epoch_start_offset if r == leader else -1 for r in range(constants.replicas))


def entered(constants: Constants, epochs: cache.Epochs, epoch: int, start_offset: int) -> cache.Epochs:
    """A cache with this epoch. Records of the old format have no epochs, so their cache stays empty."""
    return epochs if constants.old_format else cache.assign(epochs, epoch, start_offset)


# ---- the controller


def control(constants: Constants, quorum: Quorum) -> EnabledActions:
    """Steps of the controller. An election keeps the ISR, or removes the old leader (it failed). A shrink
    removes a failed follower, and raises the epoch too.

    Args:
        constants: the bounds.
        quorum: ZooKeeper's states.

    Returns:
        the enabled actions.
    """
    leader, isr = quorum[-1]
    if not guards.follows(len(quorum) - 1, len(quorum)) or len(quorum) > constants.epochs:
        return
    now = members(isr, constants.replicas)
    for replica in now:
        for after in sorted({isr, isr & ~(1 << leader)}):
            if guards.may_elect(replica, now, members(after, constants.replicas)):
                yield ("elect", replica, after), ((*quorum, (replica, after)),)
        if replica != leader:
            shrunk = (leader, isr & ~(1 << replica))
            yield ("shrink_by_controller", replica), ((*quorum, shrunk),)


# ---- roles


def role(constants: Constants, number: int, replica: Replica, quorum: Quorum) -> EnabledActions:
    """Any LeaderAndIsr that was ever sent may arrive, or never; fencing decides.

    broker_epoch_fencing (KIP-380): after a restart only requests for this incarnation count, so none that is
    older than ZooKeeper's current epoch.

    Args:
        constants: the bounds.
        number: the replica's number.
        replica: the replica.
        quorum: ZooKeeper's states.

    Returns:
        the enabled actions.
    """
    if replica.leader == DOWN:
        floor = len(quorum) - 2 if constants.keeps("broker_epoch_fencing") else -1
        yield ("restart", number), (replica._replace(leader=NOBODY, epoch=floor),)
        return
    fenced = constants.keeps("leader_epoch_fencing")
    for epoch, (leader, _) in enumerate(quorum):
        if epoch == replica.epoch or not guards.may_learn(replica.epoch, epoch, fenced=fenced):
            continue
        if leader == number:
            yield ("become_leader", number, epoch), (_as_leader(constants, number, replica, epoch),)
        else:
            after = replica._replace(epoch=epoch, leader=leader, truncating=bool(replica.log), ends=())
            yield ("become_follower", number, epoch), (after,)


def _as_leader(constants: Constants, number: int, replica: Replica, epoch: int) -> Replica:
    entries, end = replica.epochs, len(replica.log)
    if constants.keeps("assign_epoch_on_election"):
        entries = entered(constants, entries, epoch, end)
    return replica._replace(
        epochs=entries, epoch=epoch, leader=number, truncating=False, ends=no_ends(constants, number, end)
    )


# ---- as a leader


def append(constants: Constants, number: int, leader: Replica, used: Used) -> EnabledActions:
    """Append one record of the leader's epoch at its log end."""
    values, crashes, lost = used
    bounds = constants
    if len(leader.log) >= bounds.log_size or values >= bounds.values:
        return
    after = leader._replace(
        log=(*leader.log, (leader.epoch, values)),
        epochs=entered(constants, leader.epochs, leader.epoch, len(leader.log)),
    )
    yield ("append", number), (after, (values + 1, crashes, lost))


def list_offsets(constants: Constants, number: int, leader: Replica, listed: Listed) -> EnabledActions:
    """offset_not_available (KIP-207): a new leader's high watermark lags, so it does not return it before it
    has reached the start of the epoch."""
    may_tell = not constants.keeps("offset_not_available") or leader.high_watermark >= leader.ends[number]
    if len(listed) < constants.lists and may_tell:
        yield ("list_offsets", number), ((*listed, (leader.epoch, leader.high_watermark)),)


def may_advance(constants: Constants, number: int, leader: Replica, quorum: Quorum) -> bool:
    """Whether every member of the ISR is known to have more.

    Args:
        constants: the bounds.
        number: the leader's number.
        leader: the leader.
        quorum: ZooKeeper's states.

    Returns:
        whether the high watermark may advance.
    """
    if leader.leader != number:
        return False
    end = _in_sync_end(constants, number, leader, quorum)
    return end > leader.high_watermark and guards.may_advance(leader.high_watermark, end, end)


def advance(
    constants: Constants, number: int, leader: Replica, quorum: Quorum, committed: Committed
) -> EnabledActions:
    """Advance the high watermark; the records below it are exposed.

    Args:
        constants: the bounds.
        number: the leader's number.
        leader: the leader.
        quorum: ZooKeeper's states.
        committed: the exposed records.

    Returns:
        the enabled actions.
    """
    end = _in_sync_end(constants, number, leader, quorum)
    exposed = [
        (*record[:2], min(record[2], leader.epoch)) if offset < end else record
        for offset, record in enumerate(committed)
    ]
    exposed += [(epoch, value, leader.epoch) for epoch, value in leader.log[len(exposed) : end]]
    yield ("advance_high_watermark", number), (leader._replace(high_watermark=end), tuple(exposed))


def _in_sync_end(constants: Constants, number: int, leader: Replica, quorum: Quorum) -> int:
    isr = quorum[leader.epoch][1]
    return guards.in_sync_end_offset(
        len(leader.log) if member == number else leader.ends[member]
        for member in members(isr | 1 << number, constants.replicas)
    )


def change_isr(constants: Constants, number: int, leader: Replica, quorum: Quorum) -> EnabledActions:
    """An ISR change by compare-and-set; that of a deposed leader fails because of the version."""
    if leader.epoch != len(quorum) - 1:
        return
    elected, isr = quorum[-1]
    for follower in range(constants.replicas):
        if follower == number:
            continue
        if isr >> follower & 1:
            shrunk = (elected, isr & ~(1 << follower))
            yield ("shrink_isr", number, follower), ((*quorum[:-1], shrunk),)
        elif leader.ends[follower] >= 0 and guards.may_join_isr(
            leader.ends[follower],
            leader.high_watermark,
            leader.ends[number],
            after_epoch_start=constants.keeps("isr_expand_after_epoch_start"),
        ):
            yield ("expand_isr", number, follower), ((*quorum[:-1], (elected, isr | 1 << follower)),)


# ---- as a follower


def follow(
    constants: Constants, number: int, other: int, follower: Replica, leader: Replica
) -> EnabledActions:
    """One round with its leader: truncate until the logs agree, then fetch."""
    by_epoch = constants.keeps("truncate_by_epoch")
    if follower.truncating and not by_epoch:
        yield (
            ("truncate", number),
            (_cut(follower, min(follower.high_watermark, len(follower.log)), True), leader),
        )
        return
    if leader.leader != other or not guards.may_serve(
        leader.epoch, follower.epoch, fenced=constants.keeps("fetch_fencing")
    ):
        return
    if follower.truncating:
        yield ("truncate", number), (_truncated(constants, follower, leader), leader)
    elif len(follower.log) < (start := log_start_offset(leader.log)):
        yield ("start_over", number), (_started_over(constants, follower, start), leader)
    elif len(follower.log) > len(leader.log):
        yield ("out_of_range", number), (_cut(follower, len(leader.log), True), leader)
    else:
        yield ("fetch", number), _fetched(constants, number, follower, leader)


def _truncated(constants: Constants, follower: Replica, leader: Replica) -> Replica:
    """undefined_has_no_end (KAFKA-6857): if neither has epochs, the leader knows no end, and the follower
    truncates to its high watermark."""
    answers = (
        cache.end_offset_for if constants.keeps("truncate_below_own_epoch") else cache.end_offset_for_kip_101
    )
    asked = cache.latest_epoch(follower.epochs)
    answer = answers(leader.epochs, len(leader.log), asked)
    if asked < 0 and not leader.epochs and not constants.keeps("undefined_has_no_end"):
        answer = (-1, len(leader.log))
    end, done = cache.next_truncation(follower.epochs, len(follower.log), follower.high_watermark, answer)
    return _cut(follower, end, done)


def _started_over(constants: Constants, follower: Replica, start: int) -> Replica:
    """high_watermark_follows_log_start (KAFKA-9491): a follower that ends below its leader's log removes all
    its records and continues at the leader's log start."""
    follows = constants.keeps("high_watermark_follows_log_start")
    return follower._replace(
        log=(GONE,) * start, epochs=(), high_watermark=start if follows else follower.high_watermark
    )


# ---- every replica


def high_watermark_within_log(constants: Constants, log: tuple[LogRecord, ...], offset: int) -> int:
    """high_watermark_within_log (KAFKA-3978): the high watermark stays within [log start, log end], whatever
    a checkpoint or a leader says."""
    if not constants.keeps("high_watermark_within_log"):
        return offset
    return max(log_start_offset(log), min(offset, len(log)))


def delete_oldest(constants: Constants, number: int, replica: Replica) -> EnabledActions:
    """Retention, on a leader or a follower.

    Args:
        constants: the bounds.
        number: the replica's number.
        replica: the replica.

    Returns:
        the enabled actions.
    """
    end = log_start_offset(replica.log) + 1
    if replica.leader == DOWN or end > min(len(replica.log), constants.log_starts):
        return
    if guards.may_delete(end, replica.high_watermark, committed_only=constants.keeps("below_high_watermark")):
        log = (GONE,) * end + replica.log[end:]
        after = replica._replace(log=log, epochs=cache.truncate_start(replica.epochs, end))
        yield ("delete_oldest", number), (after,)


def crash(constants: Constants, number: int, replica: Replica, used: Used) -> EnabledActions:
    """The process dies, and some records at the end of its log are lost.

    keep_checkpointed (KAFKA-1647): the high watermark that it had read stays in its checkpoint, even if it
    has had no role since. Without the protection, a start begins at 0.

    Args:
        constants: the bounds.
        number: the replica's number.
        replica: the replica.
        used: the used part of the bounds.

    Returns:
        the enabled actions.
    """
    values, crashes, lost_before = used
    if replica.leader == DOWN or crashes >= constants.crashes:
        return
    forgets = replica.leader == NOBODY and not constants.keeps("keep_checkpointed")
    checkpointed = 0 if forgets else replica.high_watermark
    for lost in range(min(len(replica.log), constants.losses - lost_before) + 1):
        end = len(replica.log) - lost
        after = Replica(
            replica.log[:end],
            cache.truncate(replica.epochs, end) if lost else replica.epochs,
            high_watermark_within_log(constants, replica.log[:end], checkpointed),
            -1,
            DOWN,
            False,
            (),
        )
        yield ("crash", number, lost), (after, (values, crashes + 1, lost_before + lost))


def leads(leader: int, replica: Replica) -> bool:
    """Whether this is the leader that the replica follows."""
    return replica.leader == leader


def _cut(follower: Replica, end: int, done: bool) -> Replica:
    return follower._replace(
        log=follower.log[:end],
        epochs=cache.truncate(follower.epochs, end),
        high_watermark=min(follower.high_watermark, end),
        truncating=not done and end > 0,
    )


def _fetched(
    constants: Constants, number: int, follower: Replica, leader: Replica
) -> tuple[Replica, Replica]:
    """Follower and leader after a fetch."""
    end = len(follower.log)
    ends = (*leader.ends[:number], end, *leader.ends[number + 1 :])
    log, entries = follower.log, follower.epochs
    if end < len(leader.log):
        record = leader.log[end]
        log, entries = (*log, record), entered(constants, entries, record[0], end)
    watermark = high_watermark_within_log(constants, log, min(leader.high_watermark, len(log)))
    after = follower._replace(log=log, epochs=entries, high_watermark=watermark)
    return after, leader._replace(ends=ends)
