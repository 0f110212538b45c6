"""What brokers do in the group model, on the values of the slots that they read.

Owns: the offsets partition's elections, loads and unloads, its log, and what its leader decides for the
group: the end of a rebalance, silent members, retention. Must not know which slots there are, nor members'
steps.
"""

from typing import Any

from fencepost.model.explore.system import EnabledActions
from fencepost.model.group import coordinator as coordinator
from fencepost.model.group.state import (
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
    """Whether what it appends counts: it leads, in the present epoch."""
    return broker.leads and broker.epoch == len(leaders) - 1


def appended(log: OffsetsLog, record: tuple[Any, ...]) -> OffsetsLog:
    """The log with one more record at its end."""
    return log._replace(records=(*log.records, record))


def acknowledged(acked: Acked, partition: int, number: int, epoch: int) -> Acked:
    """The newest commit counts, in the order of sending."""
    if number <= acked[partition][0]:
        return acked
    return (*acked[:partition], (number, epoch), *acked[partition + 1 :])


# ---- the offsets partition


def elect(
    constants: Constants, number: int, broker: Broker, leaders: Leaders, log: OffsetsLog
) -> EnabledActions:
    """A clean election of another broker, which has followed the present leader: what is durable it holds, of
    the rest some records or none."""
    if len(leaders) > constants.epochs or leaders[-1] == number or broker.epoch < len(leaders) - 1:
        return
    for end in range(log.durable, len(log.records) + 1):
        kept = OffsetsLog(log.records[:end], end)
        yield ("elect", number, end), ((*leaders, number), kept)


def learn(constants: Constants, number: int, broker: Broker, leaders: Leaders) -> EnabledActions:
    """LeaderAndIsr, late or never; an older one is refused (leader_epoch_fencing). The load or unload that it
    asks for runs later."""
    for epoch in range(broker.epoch + 1, len(leaders)):
        after = broker._replace(epoch=epoch, leads=leaders[epoch] == number, tasks=broker.tasks | 1 << epoch)
        yield ("learn", number, epoch), (after,)


def run_task(
    constants: Constants, number: int, broker: Broker, leaders: Leaders, log: OffsetsLog
) -> EnabledActions:
    """coordinator_epoch_order (KAFKA-10614): a load or unload makes older ones void. apply_whole_load
    (KAFKA-5600): each batch read is applied."""
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
    """The next record becomes durable; a commit is acknowledged."""
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
    """Everybody has joined, or the rebalance timed out. A group that became empty is written at once, another
    one with its assignment."""
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
    """A member is silent; one that waits for the answer to JoinGroup is not."""
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
    """Retention. Offsets that nobody may consume any more are gone for good: no promise holds for them.
    Nothing expires while a write is under way."""
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
