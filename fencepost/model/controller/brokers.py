"""The brokers' handling of requests: one part of the controller model's actions.

Owns which requests a broker obeys, and a leader's changes of the ISR. Must not know how a controller decides.
"""

from fencepost.model.controller.controller_state import (
    NONE,
    Constants,
    Host,
    Led,
    Membership,
    Partition,
    Replica,
    RequestBatch,
    Sent,
    members,
)
from fencepost.model.explore.transition_system import EnabledActions


def deliver(
    constants: Constants, number: int, host: Host, replica: Replica, sent: Sent, led: Led
) -> EnabledActions:
    """C2: a request arrives.

    broker_epoch_fencing (KIP-380): it is for this incarnation. controller_epoch_fencing (KAFKA-532): no
    higher controller epoch was obeyed.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        replica: its replica.
        sent: all requests that were ever sent.
        led: every leader so far.

    Returns:
        the enabled actions.
    """
    if not host.running:
        return
    seen = set()
    for batch in sent:
        meant_for = batch.live[number]
        if meant_for == NONE or (constants.keeps("broker_epoch_fencing") and meant_for < host.incarnation):
            continue
        if constants.keeps("controller_epoch_fencing") and batch.controller_epoch < replica.obeyed:
            continue
        after = _applied(constants, replica._replace(obeyed=batch.controller_epoch), batch)
        going = (batch.leaving,) if constants.shutdowns else ()
        action = ("deliver", number, meant_for, *batch[:5], *going)
        if after == replica or action in seen:
            continue
        seen.add(action)
        leads = {(after.leader_epoch, number, host.born)} if after.leader == number else set()
        yield action, (after, tuple(sorted({*led, *leads})))


def lose_request(constants: Constants, number: int, sent: Sent, membership: Membership) -> EnabledActions:
    """Without resend_until_answered (KAFKA-2729): a LeaderAndIsr is lost and not sent again. With the
    protection this is no step, because the request will arrive.

    Args:
        constants: the bounds.
        number: the broker.
        sent: all requests that were ever sent.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if membership.unheard >= constants.unheard:
        return
    after = membership._replace(unheard=membership.unheard + 1)
    for batch in sent:
        if batch.replicas and batch.live[number] != NONE:
            live = (*batch.live[:number], NONE, *batch.live[number + 1 :])
            kept = {*sent} - {batch}
            if any(incarnation != NONE for incarnation in live):
                kept.add(batch._replace(live=live))
            going = (batch.leaving,) if constants.shutdowns else ()
            action = ("lose_request", number, *batch[:5], *batch.live, *going)
            yield action, (tuple(sorted(kept)), after)


def _applied(constants: Constants, replica: Replica, batch: RequestBatch) -> Replica:
    """The effect of a request.

    leader_epoch_fencing (KAFKA-1188): LeaderAndIsr only with a higher leader epoch. stop_replica_fencing
    (KIP-570): StopReplica not with a lower one. The leader epoch of a deleted replica is remembered, so that
    an older request does not create it again. The set of stopping brokers is also updated in the same leader
    epoch, unless the request is older.
    """
    if batch.replicas:
        if constants.keeps("leader_epoch_fencing") and batch.leader_epoch <= replica.leader_epoch:
            same = batch.leader_epoch == replica.leader_epoch and batch.version >= replica.version >= 0
            return replica._replace(leaving=batch.leaving) if same else replica
        return Replica(
            replica.obeyed,
            batch.leader_epoch,
            batch.leader,
            batch.version,
            batch.replicas,
            True,
            batch.leaving,
        )
    if constants.keeps("stop_replica_fencing") and batch.leader_epoch < replica.leader_epoch:
        return replica
    latest = max(batch.leader_epoch, replica.leader_epoch)
    return Replica(replica.obeyed, latest, NONE, NONE, 0, False)


def shrink_isr(
    constants: Constants,
    number: int,
    host: Host,
    replica: Replica,
    zookeeper: Partition,
    membership: Membership,
) -> EnabledActions:
    """R8: a follower lags. The ISR change is a compare-and-set at the version that the leader knows; a
    deposed leader does not know the current one.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        replica: its replica.
        zookeeper: ZooKeeper's state of the partition.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if not _may_change_isr(constants, number, host, replica, zookeeper):
        return
    for other in members(zookeeper.isr, constants.brokers):
        if other != number:
            yield (
                ("shrink_isr", number, other),
                _isr_written(replica, zookeeper, zookeeper.isr & ~(1 << other), membership),
            )


def shrink_isr_unheard(
    constants: Constants,
    number: int,
    host: Host,
    replica: Replica,
    zookeeper: Partition,
    membership: Membership,
) -> EnabledActions:
    """As `shrink_isr`, and the reply is lost: the leader continues with the version that it knew.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        replica: its replica.
        zookeeper: ZooKeeper's state of the partition.
        membership: ZooKeeper's membership.

    Returns:
        the enabled actions.
    """
    if membership.unheard < constants.unheard:
        for action, (_, written) in shrink_isr(constants, number, host, replica, zookeeper, membership):
            lost = membership._replace(unheard=membership.unheard + 1)
            yield ("shrink_isr_unheard", *action[1:]), (written, lost)


def accept_own_isr_write(
    constants: Constants, number: int, host: Host, replica: Replica, zookeeper: Partition
) -> EnabledActions:
    """accept_own_isr_write (KAFKA-1382): the leader's next write fails because of the version, and it reads
    its own write. In its own leader epoch no other broker changes the ISR.

    Args:
        constants: the bounds.
        number: the broker.
        host: its process.
        replica: its replica.
        zookeeper: ZooKeeper's state of the partition.

    Returns:
        the enabled actions.
    """
    if (
        host.running
        and replica.leader == number
        and zookeeper.leader_epoch == replica.leader_epoch
        and zookeeper.version > replica.version
    ):
        yield ("accept_own_isr_write", number), (replica._replace(version=zookeeper.version),)


def expand_isr(
    constants: Constants,
    number: int,
    other: int,
    host: Host,
    replica: Replica,
    its: Host,
    follower: Replica,
    zookeeper: Partition,
    membership: Membership,
) -> EnabledActions:
    """A follower of the same leader epoch has caught up. assigned_replicas_only (KAFKA-1097): it is among the
    replicas in the leader's last request. staying_isr_members_only (KAFKA-14140): it is not stopping by the
    leader's last request."""
    if (
        _may_change_isr(constants, number, host, replica, zookeeper)
        and its.running
        and follower.leader == number
        and follower.leader_epoch == replica.leader_epoch
        and not zookeeper.isr >> other & 1
        and (replica.replicas >> other & 1 or not constants.keeps("assigned_replicas_only"))
        and (not replica.leaving >> other & 1 or not constants.keeps("staying_isr_members_only"))
    ):
        yield (
            ("expand_isr", number, other),
            _isr_written(replica, zookeeper, zookeeper.isr | 1 << other, membership),
        )


def _may_change_isr(
    constants: Constants, number: int, host: Host, replica: Replica, zookeeper: Partition
) -> bool:
    return (
        host.running
        and replica.leader == number
        and replica.version == zookeeper.version
        and zookeeper.version < constants.writes
    )


def _isr_written(
    replica: Replica, zookeeper: Partition, isr: int, membership: Membership
) -> tuple[Replica, Partition]:
    """A later process of this leader registers after this write, so the stamp may grow with it."""
    version = zookeeper.version + 1
    written = zookeeper._replace(isr=isr, version=version, stamp=membership.registered)
    return replica._replace(version=version), written
