"""The steps of brokers in the group model, on the values of the slots that they read.

Owns the offsets partition's elections, loads and unloads, its log, and its leader's decisions for the group:
the end of a rebalance, silent members, retention. Must not know which slots exist, or members' steps.
"""

from typing import Any

from fencepost.model.explore.transition_system import EnabledActions
from fencepost.model.group import coordinator_steps as coordinator
from fencepost.model.group.group_state import (
    COMMIT,
    COMPLETING,
    DEAD,
    EMPTY,
    EXPIRED,
    NONE,
    PREPARING,
    REMOVED,
    STABLE,
    Acked,
    Broker,
    Constants,
    Leaders,
    ModelGroup,
    OffsetsLog,
    Used,
    of,
)


def writes(broker: Broker, leaders: Leaders) -> bool:
    """Whether an append of this broker counts: it leads in the current epoch.

    Args:
        broker: the broker.
        leaders: the leaders by epoch.

    Returns:
        whether it does.
    """
    return broker.leads and broker.epoch == len(leaders) - 1


def appended(log: OffsetsLog, record: tuple[Any, ...]) -> OffsetsLog:
    """The log with one more record at its end."""
    return log._replace(records=(*log.records, record))


def acknowledged(acked: Acked, partition: int, number: int, epoch: int) -> Acked:
    """Record an acknowledged commit. The newest commit counts, in the order of sending.

    Args:
        acked: the acknowledged commits.
        partition: the partition.
        number: the commit.
        epoch: the coordinator epoch.

    Returns:
        the acknowledged commits with it.
    """
    if number <= acked[partition][0]:
        return acked
    return (*acked[:partition], (number, epoch), *acked[partition + 1 :])


# ---- the offsets partition


def elect(
    constants: Constants, number: int, broker: Broker, leaders: Leaders, log: OffsetsLog
) -> EnabledActions:
    """A clean election of another broker, which has followed the current leader: it has all durable records,
    and some or none of the others."""
    if len(leaders) > constants.epochs or leaders[-1] == number or broker.epoch < len(leaders) - 1:
        return
    for end in range(log.durable, len(log.records) + 1):
        kept = OffsetsLog(log.records[:end], end)
        yield ("elect", number, end), ((*leaders, number), kept)


def learn(constants: Constants, number: int, broker: Broker, leaders: Leaders) -> EnabledActions:
    """LeaderAndIsr arrives, late or never; an older one is refused (leader_epoch_fencing). The load or unload
    that it requests runs later.

    Args:
        constants: the bounds.
        number: the broker's number.
        broker: the broker.
        leaders: the leaders by epoch.

    Returns:
        the enabled actions.
    """
    for epoch in range(broker.epoch + 1, len(leaders)):
        after = broker._replace(epoch=epoch, leads=leaders[epoch] == number, tasks=broker.tasks | 1 << epoch)
        yield ("learn", number, epoch), (after,)


def run_task(
    constants: Constants, number: int, broker: Broker, leaders: Leaders, log: OffsetsLog
) -> EnabledActions:
    """Run a load or unload. coordinator_epoch_order (KAFKA-10614): it makes older ones void. apply_whole_load
    (KAFKA-5600): each batch that was read is applied.

    Args:
        constants: the bounds.
        number: the broker's number.
        broker: the broker.
        leaders: the leaders by epoch.
        log: the log of the offsets partition.

    Returns:
        the enabled actions.
    """
    for epoch in of(broker.tasks):
        done = (2 << epoch) - 1 if constants.keeps("coordinator_epoch_order") else 1 << epoch
        after = broker._replace(tasks=broker.tasks & ~done, loaded=epoch)
        if leaders[epoch] != number:
            yield ("unload", number, epoch), (after._replace(group=()),)
            continue
        records = log.records[: log.durable]
        if not constants.keeps("apply_whole_load"):
            records = records[:1] if len(records) < 2 else records[:-1]
        group = coordinator.loaded(constants.partitions, records)
        yield ("load", number, epoch), (after._replace(group=group),)


def replicate(
    constants: Constants, number: int, broker: Broker, leaders: Leaders, log: OffsetsLog, acked: Acked
) -> EnabledActions:
    """The next record becomes durable; a commit is acknowledged.

    Args:
        constants: the bounds.
        number: the broker's number.
        broker: the broker.
        leaders: the leaders by epoch.
        log: the log of the offsets partition.
        acked: the acknowledged commits.

    Returns:
        the enabled actions.
    """
    if not writes(broker, leaders) or log.durable == len(log.records):
        return
    record = log.records[log.durable]
    if record[0] == COMMIT:
        acked = acknowledged(acked, record[2], record[3], broker.epoch)
    group = broker.group
    if isinstance(group, ModelGroup):
        broker = broker._replace(group=coordinator.written(group, record))
    yield ("replicate", number), (broker, log._replace(durable=log.durable + 1), acked)


# ---- the coordinator


def complete_join(
    constants: Constants, number: int, broker: Broker, leaders: Leaders, log: OffsetsLog
) -> EnabledActions:
    """All members have joined, or the rebalance timed out. A group that became empty is written at once,
    another one with its assignment.

    Args:
        constants: the bounds.
        number: the broker's number.
        broker: the broker.
        leaders: the leaders by epoch.
        log: the log of the offsets partition.

    Returns:
        the enabled actions.
    """
    group = broker.group
    if not isinstance(group, ModelGroup) or group.state != PREPARING:
        return
    if group.generation >= constants.generations:
        return
    after = coordinator.completed(group)
    if after.state == EMPTY:
        if not writes(broker, leaders):
            return
        log = appended(log, coordinator.metadata(after))
    yield ("complete_join", number), (broker._replace(group=after), log)


def session_timeout(constants: Constants, number: int, broker: Broker) -> EnabledActions:
    """A member is silent; a member that waits for the response to JoinGroup is not.

    Args:
        constants: the bounds.
        number: the broker's number.
        broker: the broker.

    Returns:
        the enabled actions.
    """
    group = broker.group
    if isinstance(group, ModelGroup) and group.state in (PREPARING, COMPLETING, STABLE):
        for member in of(group.members & ~group.joined):
            after = coordinator.without(member, group)
            yield ("session_timeout", number, member), (broker._replace(group=after),)


def expire(
    constants: Constants,
    number: int,
    broker: Broker,
    leaders: Leaders,
    log: OffsetsLog,
    acked: Acked,
    used: Used,
) -> EnabledActions:
    """Retention. Offsets that no member may consume any more are removed; no guarantee holds for them.
    Nothing expires during a write.

    Args:
        constants: the bounds.
        number: the broker's number.
        broker: the broker.
        leaders: the leaders by epoch.
        log: the log of the offsets partition.
        acked: the acknowledged commits.
        used: the used part of the bounds.

    Returns:
        the enabled actions.
    """
    group, (commits, expiries) = broker.group, used
    if not isinstance(group, ModelGroup) or not writes(broker, leaders) or log.durable < len(log.records):
        return
    if coordinator.may_expire(group, guarded=constants.keeps("no_expiry_while_rebalancing")):
        for partition, offset in enumerate(group.offsets):
            if offset != NONE and expiries < constants.expiries:
                record = (EXPIRED, partition)
                after = broker._replace(group=coordinator.with_offset(group, record))
                forgotten = (*acked[:partition], (NONE, NONE), *acked[partition + 1 :])
                yield (
                    ("expire_offset", number, partition),
                    (
                        after,
                        appended(log, record),
                        forgotten if group.state == EMPTY else acked,
                        (commits, expiries + 1),
                    ),
                )
    if constants.expiries and group.state == EMPTY and group.generation and max(group.offsets) < 0:
        after = broker._replace(group=group._replace(state=DEAD))
        yield ("remove_group", number), (after, appended(log, (REMOVED,)), acked, used)
