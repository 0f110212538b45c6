"""Claims of a run against a real system, from what was recorded (docs/reference/claims.md).

Owns where loss begins after an unclean election. Must not know how anything was observed.

A leader outside the ISR continues the log that it has. So what it lacks is lost from its epoch's first offset
on. If it also has records of an epoch that others had cut off, loss begins earlier: where the epochs between
its last one and its own had put other records.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from attrs import evolve

from fencepost.record.claims import EVERYTHING, derive_claims
from fencepost.record.observed_state import Key, ObservedState
from fencepost.traces.operations import ACKS_ALL, ACKS_LEADER, Function, Operation, Outcome, Record
from fencepost.traces.plan import Plan
from fencepost.traces.trace import Claims, LossRange


class Election(Protocol):
    """A change of leader: recorded by the cluster itself (systems/apache_kafka/inside/unclean_elections.py),
    or seen
    from outside (observer.py)."""

    @property
    def key(self) -> Key:
        """Topic and partition."""
        ...

    @property
    def leader(self) -> int:
        """The new one."""
        ...

    @property
    def leader_epoch(self) -> int:
        """Its epoch."""
        ...

    @property
    def clean(self) -> bool:
        """Whether it had everything that was committed."""
        ...

    @property
    def start_offset(self) -> int:
        """Where its epoch began, as it said; -1: it did not say."""
        ...


def claims_of_run(
    plan: Plan,
    operations: tuple[Operation, ...],
    elections: Sequence[Election],
    *,
    reader: int,
    stuck: bool,
    may_repeat: bool,
    power_lost: Mapping[Key, Mapping[int, tuple[int, int]]] = MappingProxyType({}),
) -> Claims:
    """The claims.

    Parameters:
      plan: the run's, for its clients' options and its topic's.
      operations: the whole history.
      elections: that were recorded.
      reader: the process of the final reads.
      stuck: whether the cluster made no progress after the faults.
      power_lost: the offsets [start, end) that replicas which lost power may have lost, by partition and
        broker: what they had written, and no sync had made durable. Kafka relies on replication, not on
        fsync: what was acknowledged is on `min.insync.replicas` brokers, so that it may be lost if so many
        lost power.
      may_repeat: whether a producer without idempotence sent something again whose outcome it did not know.
    """
    claims = derive_claims(plan, ObservedState(), operations, stuck=stuck)
    unclean = {topic.name for topic in plan.cluster.topics if topic.unclean_leader_election}
    losses = tuple(
        loss_of(one, operations, reader) for one in elections if not one.clean and one.key[0] in unclean
    )
    copies = {topic.name: topic.min_insync_replicas for topic in plan.cluster.topics}
    losses += tuple(
        LossRange(
            topic=topic,
            partition=partition,
            start=min(start for start, _ in nodes.values()),
            end=max(end for _, end in nodes.values()),
            reason=f"{_brokers(nodes)} lost power with records that were not synced, and "
            f"min.insync.replicas is {copies[topic]}",
        )
        for (topic, partition), nodes in sorted(power_lost.items())
        if len(nodes) >= copies[topic] and any(start < end for start, end in nodes.values())
    )
    duplicates = claims.duplicates and may_repeat
    reasons = claims.reasons if duplicates == claims.duplicates else ()
    reasons = (*reasons, *(loss.reason for loss in losses))
    if any(one.acks == ACKS_LEADER for one in operations):
        reasons = (*reasons, "acks=1 acknowledges what was not replicated")
    return evolve(
        claims,
        loss=(*claims.loss, *losses),
        duplicates=duplicates,
        dense=not (duplicates or losses),
        acks_1_may_lose=True,
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _brokers(nodes: Collection[int]) -> str:
    return ("broker " if len(nodes) == 1 else "brokers ") + ", ".join(map(str, sorted(nodes)))


def loss_of(election: Election, operations: Iterable[Operation], reader: int) -> LossRange:
    """Where an election outside the ISR allows loss: from its epoch's first offset on, or from the first
    record of an epoch that it skipped."""
    seen = list(_records(operations, election.key, None))
    final = list(_records(operations, election.key, reader))
    begins = [record.offset for record in final if record.leader_epoch >= election.leader_epoch]
    before = [record for record in final if record.leader_epoch < election.leader_epoch]
    start = min(begins, default=1 + max((record.offset for record in before), default=-1))
    if election.start_offset >= 0:
        start = election.start_offset
    last = max((record.leader_epoch for record in before if record.offset < start), default=-1)
    skipped = [record.offset for record in seen if last < record.leader_epoch < election.leader_epoch]
    return LossRange(
        topic=election.key[0],
        partition=election.key[1],
        start=min([start, *skipped]),
        end=EVERYTHING,
        reason=f"broker {election.leader} was elected outside the ISR, in epoch {election.leader_epoch}",
    )


def _records(operations: Iterable[Operation], key: Key, reader: int | None) -> Iterable[Record]:
    """Records of a partition with their leader epochs, as read; reader: by this process only."""
    for operation in operations:
        if operation.function is not Function.POLL or operation.outcome is not Outcome.OK:
            continue
        if reader is not None and operation.process != reader:
            continue
        for record in operation.records:
            if (record.topic, record.partition) == key and record.leader_epoch >= 0:
                yield record


def acknowledged_by_all(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """The history as if every acknowledgement had been one of all replicas: what the control acks-1 is judged
    by."""
    return tuple(evolve(one, acks=ACKS_ALL) if one.acks == ACKS_LEADER else one for one in operations)


def demanded(claims: Claims, control: str) -> Claims:
    """The claims as if Kafka promised what it does not: what a control is judged by (swarm/real_systems.py:
    CONTROLS)."""
    if control == "acks-1":
        reason = "a control: acks=1 is judged as acks=all"
        return evolve(claims, acks_1_may_lose=False, reasons=(*claims.reasons, reason))
    if control in ("unclean", "min-isr-1", "lying-fsync"):
        return evolve(claims, loss=(), dense=not claims.duplicates)
    if control == "duplicates":
        return evolve(claims, duplicates=False, dense=not claims.loss)
    return claims
