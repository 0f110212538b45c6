"""Records of __consumer_offsets in words and as JSON, for `fencepost log dump`.

Owns how a committed offset and a group's metadata are written. Must not know files. Any other record is
shown as bytes.
"""

from typing import Any

import attrs

from fencepost.impl.coordinator.group_records import (
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group,
    decode_key,
    decode_offset,
)
from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.messages.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from fencepost.report.event_words import printable
from fencepost.traces.kafka_names.internal_topics import OFFSETS_TOPIC


def is_offsets_partition(directory: str) -> bool:
    """Whether a directory of this name holds a partition of __consumer_offsets."""
    name, dash, number = directory.split(".")[0].rpartition("-")
    return name == OFFSETS_TOPIC and bool(dash) and number.isdigit()


def group_record_in_words(record: Record) -> str:
    """The record in words; "" if it is not a group's."""
    key = decode_key(record.key)
    if isinstance(key, OffsetKey):
        value = None if record.value is None else decode_offset(record.value)
        what = "removed" if record.value is None else "unknown version" if value is None else _offset(value)
        return f"      group {printable(key.group)} offset of {printable(str(key.partition))}: {what}"
    if isinstance(key, GroupKey):
        group = None if record.value is None else decode_group(record.value)
        what = "removed" if record.value is None else "unknown version" if group is None else _group(group)
        return f"      group {printable(key.group)}: {what}"
    return ""


def _offset(value: OffsetValue) -> str:
    expires = "" if value.expires_at_ms < 0 else f" until {value.expires_at_ms}"
    note = f" metadata '{printable(value.metadata)}'" if value.metadata else ""
    return f"{value.offset}{expires}{note}"


def _group(value: GroupValue) -> str:
    members = "".join(
        f"; {printable(member.member_id)} has {_assignment(value, member.assignment)}"
        for member in value.members
    )
    return (
        f"generation {value.generation} protocol {value.protocol or 'none'} leader "
        f"{value.leader or 'nobody'}{members}"
    )


def _assignment(value: GroupValue, data: bytes) -> str:
    partitions = decode_assignment(data) if value.protocol_type == PROTOCOL_TYPE else None
    if partitions is None:
        return f"{len(data)} bytes"
    return printable(" ".join(map(str, partitions))) or "nothing"


def group_record_as_dict(record: Record) -> dict[str, Any] | None:
    """The record for a program; None if it is not a group's."""
    key = decode_key(record.key)
    if isinstance(key, OffsetKey):
        offset = None if record.value is None else decode_offset(record.value)
        place = {"topic": key.partition.topic, "partition": key.partition.partition}
        return {"group": key.group} | place | {"committed": None if offset is None else attrs.asdict(offset)}
    if isinstance(key, GroupKey):
        group = None if record.value is None else decode_group(record.value)
        return {"group": key.group, "metadata": None if group is None else _metadata(group)}
    return None


def _metadata(value: GroupValue) -> dict[str, Any]:
    fields = attrs.asdict(value)
    for member, kept in zip(fields["members"], value.members, strict=True):
        partitions = decode_assignment(kept.assignment) or ()
        member["assignment"] = [str(partition) for partition in partitions]
        member["subscription"] = kept.subscription.hex()
    return fields
