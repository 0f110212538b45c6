"""The state of a coordinator's groups in the words of the model, and what a log says of them.

Owns the translation, and the comparison field by field. Must not know steps.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import fields

from fencepost.campaign.observed.justified import Reason
from fencepost.campaign.observed.steps.group_model import EMPTY, STABLE, GroupModel, Kept, MemberModel
from fencepost.campaign.observed.steps.written import batches_from
from fencepost.impl.coordinator.records import GroupKey, OffsetKey, decode_group, decode_key, decode_offset
from fencepost.impl.messages.topic_partition import TopicPartition

LOADED = ("phase", "generation", "protocol_type", "protocol", "leader", "members", "offsets")
"""Fields that the log of a group holds."""


def model_of(group: Any) -> GroupModel:
    """What a coordinator holds of a group, as the model has it.

    Args:
        group: the coordinator's.
    """
    return GroupModel(
        group.group_id,
        phase=group.phase.value,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        members={
            known: MemberModel(
                one.member_id,
                one.group_instance_id,
                one.client_id,
                one.client_host,
                one.rebalance_timeout_ms,
                one.session_timeout_ms,
                one.protocols,
                one.assignment,
                None if one.join is None else (one.join.source, one.join.correlation_id),
                None if one.sync is None else (one.sync.source, one.sync.correlation_id),
            )
            for known, one in group.members.items()
        },
        pending=set(group.pending),
        offsets={key: _kept(one) for key, one in group.offsets.items()},
        expiring=set(group.expiring),
        open={number: {key: _kept(one) for key, one in kept.items()} for number, kept in group.open.items()},
        delaying=group.delaying,
        newcomer=group.newcomer,
        remaining_ms=group.remaining_ms,
        since_ms=group.since_ms,
    )


def _kept(stored: Any) -> Kept:
    return Kept(value_of(stored.value), stored.stands_at)


def value_of(value: Any) -> tuple[int, int, str, int, int]:
    """A committed offset as the model has it.

    Args:
        value: of the coordinator, or of a record.
    """
    return (
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp_ms,
        value.expires_at_ms,
    )


def count(group: GroupModel, key: TopicPartition, kept: Kept) -> None:
    """An offset counts, unless a later record does.

    Args:
        group: whose it is.
        key: the partition.
        kept: the offset.
    """
    known = group.offsets.get(key)
    if known is None or known.at < kept.at:
        group.offsets[key] = kept


def differences(expected: GroupModel, seen: GroupModel) -> Iterator[Reason]:
    """In which fields a group is not what its model says.

    Args:
        expected: by the model.
        seen: at the coordinator.

    Yields:
        of what, expected, seen.
    """
    for one in fields(GroupModel):
        wanted, there = getattr(expected, one.name), getattr(seen, one.name)
        if one.name == "members":
            wanted, there = list(wanted.items()), list(there.items())
        elif one.name == "open":
            wanted = {number: kept for number, kept in wanted.items() if kept}
            there = {number: kept for number, kept in there.items() if kept}
        if wanted != there:
            yield f"{one.name} of group {expected.group_id}", wanted, there


def wrongly_loaded(log: Any, groups: Mapping[str, Any]) -> Iterator[Reason]:
    """What a coordinator serves when it begins, and its log says otherwise.

    Args:
        log: of a partition of __consumer_offsets.
        groups: of the coordinator, by name.

    Yields:
        of what, expected, seen.
    """
    for name, expected in held_by(log).items():
        if not expected.generation and not expected.offsets:
            continue
        now = model_of(groups[name]) if name in groups else GroupModel(name)
        for field in LOADED:
            wanted, seen = getattr(expected, field), getattr(now, field)
            if wanted != seen or (field == "members" and list(wanted) != list(seen)):
                yield f"{field} of group {name} that is loaded", wanted, seen


def held_by(log: Any) -> dict[str, GroupModel]:
    """What all records of a partition of __consumer_offsets say together: the last one of each key counts,
    and of a transaction if it committed, as of the place where its records are.

    Args:
        log: of the partition.
    """
    groups: dict[str, GroupModel] = {}
    opened: dict[int, list[tuple[OffsetKey, Kept]]] = {}
    for batch in batches_from(log, log.log_start_offset):
        if batch.commits is not None:
            for of, kept in opened.pop(batch.producer_id, ()):
                if batch.commits:
                    count(groups.setdefault(of.group, GroupModel(of.group)), of.partition, kept)
            continue
        for record in batch.records:
            key = decode_key(record.key)
            if isinstance(key, GroupKey):
                groups[key.group] = _of_record(
                    key.group, record.value, groups.get(key.group, GroupModel(key.group)).offsets
                )
            elif isinstance(key, OffsetKey):
                offset = None if record.value is None else decode_offset(record.value)
                kept_now = None if offset is None else Kept(value_of(offset), record.offset)
                if batch.producer_id >= 0 and kept_now is not None:
                    opened.setdefault(batch.producer_id, []).append((key, kept_now))
                    continue
                offsets = groups.setdefault(key.group, GroupModel(key.group)).offsets
                offsets.pop(key.partition, None)
                if kept_now is not None:
                    offsets[key.partition] = kept_now
                elif record.value is None:
                    opened = {
                        producer: [one for one in waiting if one[0] != key]
                        for producer, waiting in opened.items()
                    }
    return groups


def _of_record(group_id: str, data: bytes | None, offsets: dict[TopicPartition, Kept]) -> GroupModel:
    value = None if data is None else decode_group(data)
    if value is None:
        return GroupModel(group_id, offsets=offsets)
    members = [
        MemberModel(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.rebalance_timeout_ms,
            one.session_timeout_ms,
            ((value.protocol or "", one.subscription),),
            one.assignment,
        )
        for one in value.members
    ]
    return GroupModel(
        group_id,
        phase=STABLE if members else EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        leader=value.leader,
        members={one.member_id: one for one in members},
        offsets=offsets,
    )
