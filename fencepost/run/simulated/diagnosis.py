"""The state of a cluster that does not go on, out of the trace, in the moment at which a wait is given up.

Owns which events say it. Must not look into a broker or a client, or know what follows from what they said.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
from attrs import define, field

from fencepost.run.simulated.cluster_of_run import FaultyCluster
from fencepost.traces.decoding import from_json
from fencepost.traces.diagnosis import Belief, BrokerSeen, Diagnosis, PartitionSeen, Refusal, WaitingOperation
from fencepost.traces.events import REPLICA_DELETED, Event, Name

Key = tuple[str, int]
"""Topic and partition."""
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})
MOST_PARTITIONS = 3
"""Partitions that are described; a lane of a timeline has room for as many."""
MOST_REFUSALS = 12
"""Kinds of refusal by broker that are described: some for each of three brokers."""
HEALED = "heal"
"""The phase since which repeated refusals count: before it there were faults that explain them."""
REPEATED = frozenset({Name.CONTROL_REQUEST_REFUSED, Name.FETCH_REFUSED, Name.FOLLOWER_FAILED})
"""What is asked again after it was refused."""


def diagnose(cluster: FaultyCluster, keys: Iterable[tuple[str, int]]) -> Diagnosis:
    """The state at the end. keys: the partitions of clients; those with which nothing is the matter are left
    out, unless the oldest operation waits for them."""
    said = said_of(cluster.events)
    oldest = _oldest(cluster)
    seen = [_partition(cluster, key, said) for key in keys]
    waited = None if oldest is None else (oldest.topic, oldest.partition)
    wrong = [one for one in seen if _is_wrong(one) or (one.topic, one.partition) == waited]
    state = cluster.observed_state
    return Diagnosis(
        partitions=tuple(wrong[:MOST_PARTITIONS]),
        left_out=max(0, len(wrong) - MOST_PARTITIONS),
        brokers=tuple(_broker(cluster, broker, said) for broker in cluster.broker_ids),
        controller=state.controller,
        controller_epoch=state.controller_epoch,
        acting=tuple(said.acting),
        refusals=tuple(_refusals(cluster.events)),
        waiting=(*_groups(cluster.events), *_transactions(cluster.events)),
        oldest=oldest,
    )


class GroupSaid(msgspec.Struct, frozen=True):
    """The detail of a group's phase."""

    group: str = ""
    members: tuple[str, ...] = ()
    why: str = ""


class TransactionSaid(msgspec.Struct, frozen=True):
    """The detail of a transaction's phase, or of a marker."""

    transactional_id: str = ""
    producer_id: int = -1
    partitions: tuple[str, ...] = ()


Said_ = TypeVar("Said_", GroupSaid, TransactionSaid)


@define
class Said:
    """What brokers said last, out of the trace."""

    # By broker and partition: its role, and what it wrote or proposed as leader.
    roles: dict[tuple[int, Key], Event] = field(factory=dict)
    changes: dict[tuple[int, Key], Event] = field(factory=dict)
    registrations: dict[int, int] = field(factory=dict)
    knows: dict[int, tuple[int, ...]] = field(factory=dict)
    running: dict[int, bool] = field(factory=dict)
    # Brokers that were elected and have not resigned.
    acting: dict[int, None] = field(factory=dict)
    states: dict[Key, Event] = field(factory=dict)

    def learn(self, event: Event) -> None:
        """Take one event in."""
        key, node = (event.topic or "", event.partition), event.node
        if event.name in (Name.BECAME_LEADER, Name.BECAME_FOLLOWER):
            self.roles[node, key] = event
            self.changes.pop((node, key), None)
        elif event.name in (Name.ISR_PROPOSED, Name.ISR_UPDATED, Name.ISR_REFUSED):
            self.changes[node, key] = event
        elif event.name is Name.PARTITION_STATE:
            self.states[key] = event
        elif event.name is Name.ASSIGNMENT and not event.replicas:
            self.states.pop(key, None)
        elif event.name is Name.MARK and event.cause == REPLICA_DELETED:
            self.roles.pop((node, key), None)
            self.changes.pop((node, key), None)
        elif event.name is Name.BROKER_ZNODE:
            self.registrations[node] = event.broker_epoch
        elif event.name is Name.LIVE_BROKERS:
            self.knows[node] = event.replicas
        elif event.name is Name.CONTROLLER_ELECTED:
            self.acting[node] = None
        elif event.name is Name.CONTROLLER_RESIGNED:
            self.acting.pop(node, None)
        elif event.name is Name.BROKER_STARTED:
            self._ended(node)
            self.running[node] = True

    def _ended(self, node: int) -> None:
        self.acting.pop(node, None)
        self.knows.pop(node, None)
        for place in [place for place in self.roles if place[0] == node]:
            del self.roles[place]


def said_of(events: Iterable[Event]) -> Said:
    """What brokers said last. events: of the trace so far."""
    said = Said()
    for event in events:
        said.learn(event)
    return said


def _broker(cluster: FaultyCluster, broker: int, said: Said) -> BrokerSeen:
    process = "up" if broker not in cluster.stopped() else "down"
    if cluster.world.hosts[broker].paused:
        process = "paused"
    return BrokerSeen(
        broker=broker,
        process=process,
        broker_epoch=said.registrations.get(broker, -1),
        knows=said.knows.get(broker, ()),
    )


def _partition(cluster: FaultyCluster, key: Key, said: Said) -> PartitionSeen:
    topic, number = key
    state = said.states.get(key, Event(time=0, name=Name.PARTITION_STATE))
    return PartitionSeen(
        topic=topic,
        partition=number,
        replicas=cluster.observed_state.assignments.get(key, ()),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.zk_version,
        written_by=state.node,
        beliefs=tuple(
            _belief(cluster, broker, key, role, said)
            for (broker, of), role in sorted(said.roles.items(), key=lambda item: item[0][0])
            if of == key
        ),
    )


def _belief(cluster: FaultyCluster, broker: int, key: Key, role: Event, said: Said) -> Belief:
    """What a broker said of its replica: its role, and as leader its last change of the ISR."""
    change = said.changes.get((broker, key))
    leads = role.name is Name.BECAME_LEADER
    proposed = change is not None and change.name is Name.ISR_PROPOSED
    taken = change is not None and change.name is Name.ISR_UPDATED
    replica = cluster.observed_state.partition(key).replica(broker)
    return Belief(
        broker=broker,
        leader=broker if leads else role.leader,
        leader_epoch=role.leader_epoch,
        isr=change.isr if taken and change is not None else role.isr,
        zk_version=change.zk_version if taken and change is not None else role.zk_version,
        pending_isr=change.isr if proposed and change is not None else None,
        high_watermark=replica.high_watermark,
        log_end_offset=replica.end,
    )


def _is_wrong(seen: PartitionSeen) -> bool:
    """Whether ZooKeeper lacks a leader or a member of the ISR, or a broker has another role."""
    role = (seen.leader, seen.leader_epoch)
    return (
        seen.leader < 0
        or set(seen.isr) != set(seen.replicas)
        or {belief.broker for belief in seen.beliefs} != set(seen.replicas)
        or any((belief.leader, belief.leader_epoch) != role for belief in seen.beliefs)
    )


def _refusals(events: list[Event]) -> list[Refusal]:
    """Of each broker and kind. Of what is asked again and again, only since the faults ended; a role or an
    ISR that was refused once, at any time, may be what is missing still."""
    healed = next((e.time for e in reversed(events) if e.name is Name.PHASE and e.cause == HEALED), 0)
    found: dict[tuple[int, str], Refusal] = {}
    for event in events:
        says = _refused(event)
        if not says or (event.time < healed and event.name in REPEATED):
            continue
        before = found.pop((event.node, says), None)
        count = 1 if before is None else before.count + 1
        found[event.node, says] = Refusal(broker=event.node, says=says, last=event.time, count=count)
    return list(found.values())[-MOST_REFUSALS:]


def _refused(event: Event) -> str:
    """A refusal in words; "" for any other event."""
    where = f"{event.topic}-{event.partition}"
    if event.name is Name.MARK and event.cause == "leader_not_alive":
        return (
            f"refused to follow broker {event.leader} in epoch {event.leader_epoch} of {where}: it had not "
            f"heard that broker {event.leader} is alive"
        )
    if event.name is Name.ISR_REFUSED:
        return f"ZooKeeper refused its ISR change of {where}: another version of the state"
    if event.name is Name.CONTROL_REQUEST_REFUSED:
        return f"refused a {event.cause} of controller epoch {event.controller_epoch}: {event.detail}"
    if event.name is Name.FETCH_REFUSED:
        return f"refused fetches of {where} in leader epoch {event.leader_epoch}: {event.detail}"
    if event.name is Name.FOLLOWER_FAILED:
        return f"stopped to follow broker {event.leader} of {where}: {event.detail}"
    return ""


def _groups(events: Iterable[Event]) -> Iterator[str]:
    """Groups that are in the middle of a rebalance: since when, why, and for whom they wait."""
    last: dict[str, tuple[Event, GroupSaid]] = {}
    for event in events:
        if event.name is Name.GROUP_PHASE:
            said = _detail(event, GroupSaid)
            last[said.group] = event, said
    for group, (event, said) in sorted(last.items()):
        if event.cause in REBALANCING:
            members = ", ".join(said.members) or "nobody"
            why = f" ({said.why})" if said.why else ""
            yield (
                f"group {group} is in {event.cause} since {event.time / 1e9:.3f} s at broker "
                f"{event.node}{why}; its members are {members}"
            )


def _transactions(events: Iterable[Event]) -> Iterator[str]:
    """Transactions that are open, or decided and not complete: since when, and which partitions lack the
    marker."""
    last: dict[str, tuple[Event, TransactionSaid]] = {}
    marked: dict[int, set[str]] = {}
    for event in events:
        if event.name is Name.MARKER_WRITTEN:
            producer = _detail(event, TransactionSaid).producer_id
            marked.setdefault(producer, set()).add(f"{event.topic}-{event.partition}")
        elif event.name is Name.TRANSACTION_PHASE:
            said = _detail(event, TransactionSaid)
            if event.cause.startswith("Prepare"):
                marked.pop(said.producer_id, None)
            last[said.transactional_id] = event, said
    for name, (event, said) in sorted(last.items()):
        lacking = sorted(set(said.partitions) - marked.get(said.producer_id, set()))
        if event.cause == "Ongoing":
            yield f"transaction of {name} is open since {event.time / 1e9:.3f} s"
        elif event.cause.startswith("Prepare"):
            yield (
                f"transaction of {name} is in {event.cause} since {event.time / 1e9:.3f} s at broker "
                f"{event.node}; no marker in {', '.join(lacking) or 'no partition'}"
            )


def _detail(event: Event, form: type[Said_]) -> Said_:
    try:
        found: Said_ = from_json(event.detail or "{}", form)
    except msgspec.DecodeError:
        return form()
    return found


def _oldest(cluster: FaultyCluster) -> WaitingOperation | None:
    """Of the planned ones that are under way."""
    if not cluster.invoked:
        return None
    planned, since = min(cluster.invoked.values(), key=lambda entry: (entry[1], entry[0].op_id))
    return WaitingOperation(
        op_id=planned.op_id,
        process=planned.process,
        function=planned.function,
        topic=planned.topic,
        partition=planned.partition,
        since=since,
    )
