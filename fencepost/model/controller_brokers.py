"""What a broker does with what it is told: one part of the controller model's actions.

Owns: which requests it obeys, and a leader's changes of the ISR. Must not know how a controller decides.
"""

from collections.abc import Iterator

from fencepost.model.controller_state import (
    NONE,
    Batch,
    Constants,
    Host,
    Led,
    Membership,
    Partition,
    Replica,
    Sent,
    members,
)
from fencepost.model.explore.system import Action, Value

Steps = Iterator[tuple[Action, tuple[Value, ...]]]
"""Enabled actions, each with the values that it writes."""


def deliver(constants: Constants, number: int, host: Host, replica: Replica, sent: Sent, led: Led) -> Steps:
    """C2: a request arrives.

    broker_epoch_fencing (KIP-380): it is meant for this incarnation. controller_epoch_fencing (KAFKA-532): no higher controller epoch was obeyed.
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
        action = ("deliver", number, meant_for, *batch[:-1])
        if after == replica or action in seen:
            continue
        seen.add(action)
        leads = {(after.leader_epoch, number, host.born)} if after.leader == number else set()
        yield action, (after, tuple(sorted({*led, *leads})))


def _applied(constants: Constants, replica: Replica, batch: Batch) -> Replica:
    """leader_epoch_fencing (KAFKA-1188): LeaderAndIsr only with a higher leader epoch. stop_replica_fencing (KIP-570): StopReplica not with a lower one. Of a
    replica that was deleted the leader epoch is remembered, so that an older request does not bring it back."""
    if batch.replicas:
        if constants.keeps("leader_epoch_fencing") and batch.leader_epoch <= replica.leader_epoch:
            return replica
        return Replica(replica.obeyed, batch.leader_epoch, batch.leader, batch.version, batch.replicas, True)
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
) -> Steps:
    """R8: a follower lags; compare-and-set at the version that the leader knows, which a deposed one does not."""
    if not _may_change_isr(constants, number, host, replica, zookeeper):
        return
    for other in members(zookeeper.isr, constants.brokers):
        if other != number:
            yield (
                ("shrink_isr", number, other),
                _isr_written(replica, zookeeper, zookeeper.isr & ~(1 << other), membership),
            )


def expand_isr(
    constants: Constants, number: int, other: int, host: Host, replica: Replica, its: Host, follower: Replica, zookeeper: Partition, membership: Membership
) -> Steps:  # fmt: skip
    """A follower of the same leader epoch has caught up. assigned_replicas_only (KAFKA-1097): it is one of those that the leader was told."""
    if (
        _may_change_isr(constants, number, host, replica, zookeeper)
        and its.running
        and follower.leader == number
        and follower.leader_epoch == replica.leader_epoch
        and not zookeeper.isr >> other & 1
        and (replica.replicas >> other & 1 or not constants.keeps("assigned_replicas_only"))
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
