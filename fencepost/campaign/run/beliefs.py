"""What each broker believes when a run that went well is over, as events.

Owns which parts of a broker are looked at. Must not know what follows from them: the check `meantime`
compares (checkers/meantime/beliefs.py). It only reads, so that the run is the same with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fencepost.campaign.observed.settings import misapplied
from fencepost.campaign.run.directories import wrong_files
from fencepost.impl.broker.broker import Broker
from fencepost.impl.coordinator.group import Group, Member, StoredOffset
from fencepost.impl.coordinator.places import PlaceLoading
from fencepost.impl.coordinator.records import OFFSETS_TOPIC, GroupValue, MemberValue
from fencepost.impl.coordinator.table import GroupLoad
from fencepost.impl.log.batch.header import CorruptBatchError, read_headers
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.replication.partition import Partition
from fencepost.impl.transaction.records import STATE_TOPIC, TransactionValue
from fencepost.impl.transaction.table import TransactionLoad
from fencepost.traces.events import Belief, Event, Name

LOAD_BYTES = 1 << 30
"""All of an offsets partition at once: a run writes some kilobytes."""


def beliefs_of(brokers: Mapping[int, Broker | None], now: int, *, with_files: bool = True) -> Iterator[Event]:
    """Everything that the running brokers believe.

    Args:
        brokers: by id; None for one that is down.
        now: virtual nanoseconds.
        with_files: also what their files contradict, which takes as long as everything else.

    Yields:
        one event for each broker, each replica, each partition in a cache of metadata or in the active
        controller, each group, and each transactional id.
    """
    for node, core in brokers.items():
        if core is None or core.shutdown.shutting_down:
            continue
        yield _broker(node, core, now)
        for key, partition in sorted(core.replicas.partitions.items()):
            yield _replica(node, key, partition, now, wrong_files(partition.log) if with_files else [])
        for topic, known in sorted(core.metadata.topics.items()):
            for number, state in sorted(known.items()):
                yield Event(
                    time=now,
                    name=Name.BELIEF,
                    node=node,
                    topic=topic,
                    partition=number,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    zk_version=state.zk_version,
                    isr=state.isr,
                    replicas=state.replicas,
                    cause=Belief.METADATA,
                )
        if core.controller.state.active:
            yield from _controller(node, core, now)
        yield from _groups(node, core, now)
        yield from _transactions(node, core, now)


def _detail(facts: dict[str, Any]) -> str:
    return msgspec.json.encode(facts).decode()


def _broker(node: int, core: Broker, now: int) -> Event:
    return Event(
        time=now,
        name=Name.BELIEF,
        node=node,
        broker_epoch=core.broker_context.broker_epoch,
        controller_epoch=core.gate.controller_epoch,
        leader=core.metadata.controller_id,
        replicas=core.metadata.live_brokers,
        isr=core.metadata.shutting_down,
        cause=Belief.BROKER,
        detail=_detail(
            {"configs": core.config.configs, "state": core.broker_context.broker_state}
            | ({"misapplied": wrong} if (wrong := list(misapplied(core))) else {})
        ),
    )


def _replica(node: int, key: TopicPartition, partition: Partition, now: int, files: list[str]) -> Event:
    log = partition.log
    facts: dict[str, Any] = {"epochs": log.epochs.entries}
    if log.producers.producers:
        facts["producers"] = {
            str(number): (one.epoch, one.last_sequence, one.batches[-1].last_offset if one.batches else -1)
            for number, one in sorted(log.producers.producers.items())
        }
    opened = {str(one.producer_id): one.open_since for one in log.producers.producers.values()}
    if opened := {number: since for number, since in sorted(opened.items()) if since >= 0}:
        facts["open"] = opened
    if files:
        facts["files"] = files
    if partition.is_leader:
        facts["followers"] = {str(broker): one.log_end_offset for broker, one in partition.followers.items()}
    return Event(
        time=now,
        name=Name.BELIEF,
        node=node,
        topic=key.topic,
        partition=key.partition,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        controller_epoch=partition.controller_epoch,
        zk_version=partition.zk_version,
        isr=partition.isr,
        replicas=partition.replicas,
        high_watermark=partition.high_watermark,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset,
        cause=Belief.REPLICA,
        detail=_detail(facts),
    )


def _controller(node: int, core: Broker, now: int) -> Iterator[Event]:
    state = core.controller.state
    context = state.context
    channels = state.channels.channels
    yield Event(
        time=now,
        name=Name.BELIEF,
        node=node,
        controller_epoch=context.epoch,
        zk_version=context.epoch_version,
        replicas=tuple(sorted(context.live_brokers)),
        isr=tuple(sorted(context.shutting_down)),
        cause=Belief.CONTROLLER,
        detail=_detail(
            {
                "channels": {str(broker): channels[broker].broker_epoch for broker in sorted(channels)},
                "queued": sum(len(channel.queue) for channel in channels.values()),
                "reassigning": sorted(map(str, context.reassigning)),
                "deleting": sorted(context.deleting),
                "stopping": sorted(str(key) for key, brokers in context.stopping.items() if brokers),
            }
        ),
    )
    for key in sorted(context.assignments):
        known = context.states.get(key)
        yield Event(
            time=now,
            name=Name.BELIEF,
            node=node,
            topic=key.topic,
            partition=key.partition,
            leader=known.leader if known else -1,
            leader_epoch=known.leader_epoch if known else -1,
            zk_version=known.zk_version if known else -1,
            isr=known.isr if known else (),
            replicas=context.assignments[key],
            cause=Belief.CONTROLLED,
            detail=_detail(
                {
                    "phase": state.phases.get(key, ""),
                    "replicas": {
                        str(broker): state.replicas[broker][key]
                        for broker in sorted(state.replicas)
                        if key in state.replicas[broker]
                    },
                }
            ),
        )


# ---- groups


def _groups(node: int, core: Broker, now: int) -> Iterator[Event]:
    table = core.groups.table
    for number, place in sorted(table.places.items()):
        groups = table.of_place(number)
        partition = table.partitions.get(TopicPartition(OFFSETS_TOPIC, number))
        if place.owned_epoch < 0 and not groups:
            continue
        stored: GroupLoad | None = None if partition is None else _stored(core.groups.loading, partition)
        for group in groups:
            yield Event(
                time=now,
                name=Name.BELIEF,
                node=node,
                topic=OFFSETS_TOPIC,
                partition=number,
                leader_epoch=place.owned_epoch,
                cause=Belief.GROUP,
                detail=_detail(
                    {
                        "group": group.group_id,
                        "phase": group.phase,
                        "served": _served(group),
                        "stored": None if stored is None else _in_log(group.group_id, stored),
                    }
                ),
            )


def _served(group: Group) -> dict[str, Any]:
    """What the coordinator answers with."""
    return {
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": _members(group.members.values()),
        "offsets": _offsets(group.offsets.items()),
    }


def _members(members: Iterable[Member | MemberValue]) -> dict[str, tuple[Any, ...]]:
    return {
        one.member_id: (one.group_instance_id, one.client_id, one.session_timeout_ms, one.assignment.hex())
        for one in members
    }


def _offsets(offsets: Iterable[tuple[TopicPartition, StoredOffset]]) -> dict[str, tuple[int, int, str]]:
    return {
        str(key): (stored.stands_at, stored.value.offset, stored.value.metadata)
        for key, stored in sorted(offsets)
    }


def _stored(loading: PlaceLoading, partition: Partition) -> Any:
    """What a coordinator would load from this log; None if it cannot be read."""
    log = partition.log
    load = loading.new_load(0, log.log_start_offset, log.log_end_offset)
    try:
        while load.next_offset < load.end_offset:
            data = log.read(load.next_offset, max_bytes=LOAD_BYTES, end_offset=load.end_offset)
            headers = list(read_headers(data))
            for header in headers:
                loading.apply_batch(load, data, header)
            if not headers:
                break
            load.next_offset = headers[-1].next_offset
    except (CorruptBatchError, OSError):
        return None
    return load


def _in_log(group_id: str, load: GroupLoad) -> dict[str, Any]:
    value = load.groups.get(group_id)
    found: dict[str, Any] = {
        "offsets": _offsets(
            (key, stored)
            for (group, key), stored in load.offsets.items()
            if group == group_id and isinstance(stored, StoredOffset)
        )
    }
    if isinstance(value, GroupValue):
        found |= {
            "generation": value.generation,
            "protocol": value.protocol,
            "leader": value.leader,
            "members": _members(value.members),
        }
    return found


# ---- transactions


def _transactions(node: int, core: Broker, now: int) -> Iterator[Event]:
    coordinator = core.transactions.coordinator
    table = coordinator.table
    for number, place in sorted(table.places.items()):
        transactions = table.of_place(number)
        partition = table.partitions.get(TopicPartition(STATE_TOPIC, number))
        if not transactions:
            continue
        stored: TransactionLoad | None = (
            None if partition is None else _stored(coordinator.loading, partition)
        )
        for one in transactions:
            value = None if stored is None else stored.values.get(one.transactional_id)
            # what the first append would have made durable was refused, and nobody was told of it
            unheard = value is None and one.value.producer_epoch < table.options.first_epoch
            yield Event(
                time=now,
                name=Name.BELIEF,
                node=node,
                topic=STATE_TOPIC,
                partition=number,
                leader_epoch=place.owned_epoch,
                cause=Belief.TRANSACTION,
                detail=_detail(
                    {
                        "transactional_id": one.transactional_id,
                        "settled": one.pending is None
                        and not one.fence_failed
                        and stored is not None
                        and not unheard,
                        "decided": _decided(one.value),
                        "logged": None if value is None else _decided(value),
                    }
                ),
            )


def _decided(value: TransactionValue) -> tuple[Any, ...]:
    """Everything that the next coordinator needs."""
    return (
        value.producer_id,
        value.producer_epoch,
        value.phase.value,
        value.timeout_ms,
        value.started_ms,
        value.updated_ms,
        [str(key) for key in value.partitions],
    )
