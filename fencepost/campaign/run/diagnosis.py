"""The state of a cluster that does not go on, looked at in the moment at which a wait is given up.

Owns which parts of brokers, controllers and clients are looked at. Must not know what follows from them. It
only reads: a run that fails is the same run with it.
"""

from collections.abc import Iterable, Iterator

from fencepost.campaign.run.cluster import FaultyCluster
from fencepost.impl.broker.broker import Broker
from fencepost.impl.client.client import Client
from fencepost.impl.messages.names import name_of
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.sim.world import FIRST_CLIENT_NODE
from fencepost.traces.diagnosis import (
    Belief,
    BrokerSeen,
    Diagnosis,
    PartitionSeen,
    PendingRequest,
    Refusal,
    WaitingOperation,
)
from fencepost.traces.events import Event, Name
from fencepost.traces.outcomes import NO_ERROR

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
    cores = {broker: cluster.world.hosts[broker].core for broker in cluster.broker_ids}
    oldest = _oldest(cluster)
    seen = [_partition(cluster, key, cores) for key in keys]
    waited = None if oldest is None else (oldest.topic, oldest.partition)
    wrong = [one for one in seen if _is_wrong(one) or (one.topic, one.partition) == waited]
    state = cluster.observed_state
    return Diagnosis(
        partitions=tuple(wrong[:MOST_PARTITIONS]),
        left_out=max(0, len(wrong) - MOST_PARTITIONS),
        brokers=tuple(_broker(cluster, broker, core) for broker, core in cores.items()),
        controller=state.controller,
        controller_epoch=state.controller_epoch,
        acting=tuple(broker for broker, core in cores.items() if core and core.controller.state.active),
        pending=tuple(_pending(cores)),
        refusals=tuple(_refusals(cluster.events)),
        oldest=oldest,
    )


def _broker(cluster: FaultyCluster, broker: int, core: Broker | None) -> BrokerSeen:
    if core is None:
        process = "down"
    else:
        process = "paused" if cluster.world.hosts[broker].paused else "up"
    registrations = (e for e in reversed(cluster.events) if e.name is Name.BROKER_ZNODE and e.node == broker)
    last = next(registrations, None)
    return BrokerSeen(
        broker=broker,
        process=process,
        broker_epoch=-1 if last is None else last.broker_epoch,
        knows=() if core is None else core.metadata.live_brokers,
    )


def _partition(
    cluster: FaultyCluster, key: tuple[str, int], cores: dict[int, Broker | None]
) -> PartitionSeen:
    topic, number = key
    state = next(
        (
            event
            for event in reversed(cluster.events)
            if event.name is Name.PARTITION_STATE and (event.topic, event.partition) == key
        ),
        Event(time=0, name=Name.PARTITION_STATE),
    )
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
            Belief(
                broker=broker,
                leader=replica.leader,
                leader_epoch=replica.leader_epoch,
                isr=replica.isr,
                zk_version=replica.zk_version,
                pending_isr=replica.pending_isr,
                high_watermark=replica.high_watermark,
                log_end_offset=replica.log.log_end_offset,
            )
            for broker, core in cores.items()
            if core is not None
            and (replica := core.replicas.partitions.get(TopicPartition(topic, number))) is not None
        ),
    )


def _is_wrong(seen: PartitionSeen) -> bool:
    """Whether ZooKeeper lacks a leader or a member of the ISR, or a broker believes something else."""
    role = (seen.leader, seen.leader_epoch)
    return (
        seen.leader < 0
        or set(seen.isr) != set(seen.replicas)
        or {belief.broker for belief in seen.beliefs} != set(seen.replicas)
        or any((belief.leader, belief.leader_epoch) != role for belief in seen.beliefs)
    )


def _pending(cores: dict[int, Broker | None]) -> Iterator[PendingRequest]:
    for broker, core in cores.items():
        if core is None or not core.controller.state.active:
            continue
        for channel in core.controller.state.channels.channels.values():
            if channel.queue:
                yield PendingRequest(
                    controller=broker,
                    broker=channel.broker,
                    kind=name_of(channel.queue[0]),
                    queued=len(channel.queue) - 1,
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


def _oldest(cluster: FaultyCluster) -> WaitingOperation | None:
    """Of the planned ones that are under way."""
    if not cluster.invoked:
        return None
    planned, since = min(cluster.invoked.values(), key=lambda entry: (entry[1], entry[0].op_id))
    host = cluster.world.hosts.get(FIRST_CLIENT_NODE + planned.process)
    core = None if host is None else host.core
    attempt = core.current if isinstance(core, Client) else None
    return WaitingOperation(
        op_id=planned.op_id,
        process=planned.process,
        function=planned.function,
        topic=planned.topic,
        partition=planned.partition,
        since=since,
        asked=-1 if attempt is None else attempt.node,
        error="" if attempt is None or attempt.error is NO_ERROR else attempt.error.value,
    )
