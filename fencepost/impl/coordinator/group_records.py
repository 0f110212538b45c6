"""The records of __consumer_offsets in Kafka's formats, and the partition of a group.

Owns the bytes (Kafka's message definitions OffsetCommitKey, OffsetCommitValue, GroupMetadataKey,
GroupMetadataValue; all numbers big-endian, strings after an int16 length, bytes after an int32 length). Must
not know logs. Written: keys 1 and 2, values 3; read: values 0 to 3, and offsets of version 4, in which Kafka
4 writes them. A key or value of an unknown version is decoded as None and skipped, as in Kafka.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache

from attrs import frozen

from fencepost.impl.log.batch.varint import decode_unsigned
from fencepost.impl.messages.group_api import CommittedOffset
from fencepost.impl.messages.topic_partition import TopicPartition

NO_EXPIRY = -1
"""An offset without an expiry time of its own: the retention decides."""
OFFSET_KEY, GROUP_KEY, VALUE = 1, 2, 3
KNOWN_VALUES = range(4)
FLEXIBLE_OFFSET = 4
"""The first version of an offset with a compact string and tags (the id of its topic), which are not read."""
LONGEST_STRING = (1 << 15) - 1
"""The longest string of a record in bytes: its length is an int16."""


@frozen
class OffsetKey:
    """The key of a committed offset."""

    group: str
    partition: TopicPartition


@frozen
class GroupKey:
    """The key of a group's metadata."""

    group: str


@frozen(kw_only=True)
class OffsetValue:
    """A committed offset and the time of the commit (host time, ms)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    # In values of version 1 only.
    expires_at_ms: int = NO_EXPIRY


@frozen(kw_only=True)
class MemberValue:
    """A member of a generation."""

    # The member id.
    member_id: str
    # group.instance.id of a static member; None for a dynamic one.
    group_instance_id: str | None
    # The client id.
    client_id: str
    # The host that it joined from.
    client_host: str
    # How long a rebalance waits for the member.
    rebalance_timeout_ms: int
    # session.timeout.ms.
    session_timeout_ms: int
    # The subscription under the group's protocol.
    subscription: bytes
    # The assignment.
    assignment: bytes


@frozen(kw_only=True)
class GroupValue:
    """A generation with its assignment."""

    # "consumer" for consumers.
    protocol_type: str
    # The generation.
    generation: int
    # The chosen protocol; None if there is none.
    protocol: str | None
    # The member id of the leader; None if there is none.
    leader: str | None
    # When the group entered its state, in host time.
    since_ms: int
    # The members of the generation.
    members: tuple[MemberValue, ...]


@lru_cache(maxsize=1_024)
def java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 code units, 32 bits with sign."""
    units = struct.unpack(f">{len(encoded) // 2}H", encoded) if (encoded := text.encode("utf-16-be")) else ()
    number = 0
    for unit in units:
        number = (31 * number + unit) & 0xFFFFFFFF
    return number - (1 << 32) if number & 0x80000000 else number


def partition_of(group: str, partitions: int) -> int:
    """The partition of __consumer_offsets with a group's records (Utils.abs in Kafka: the smallest integer
    counts as 0)."""
    number = java_hash(group)
    return 0 if number == -(1 << 31) else abs(number) % partitions


# ---- writing


def _string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def fits(*texts: str | None, room: int = 0) -> bool:
    """Whether each of these texts fits into a string of a record. room: bytes that will be added to each."""
    return all(text is None or len(text.encode()) <= LONGEST_STRING - room for text in texts)


def encode_key(key: OffsetKey | GroupKey) -> bytes:
    """The key of a record."""
    if isinstance(key, GroupKey):
        return struct.pack(">h", GROUP_KEY) + _string(key.group)
    place = _string(key.partition.topic) + struct.pack(">i", key.partition.partition)
    return struct.pack(">h", OFFSET_KEY) + _string(key.group) + place


def encode_offset(value: OffsetValue) -> bytes:
    """OffsetCommitValue, version 3."""
    head = struct.pack(">hqi", VALUE, value.offset, value.leader_epoch)
    return head + _string(value.metadata) + struct.pack(">q", value.commit_timestamp_ms)


def offset_records(
    group: str, offsets: Sequence[CommittedOffset], now_ms: int
) -> tuple[list[OffsetValue], list[tuple[bytes, bytes | None]]]:
    """What a commit of these offsets writes: the values, and the records (key, value) in the same order.
    now_ms: host time of the commit."""
    values = [
        OffsetValue(
            offset=each.offset,
            leader_epoch=each.leader_epoch,
            metadata=each.metadata,
            commit_timestamp_ms=now_ms,
        )
        for each in offsets
    ]
    return values, [
        (encode_key(OffsetKey(group, each.partition)), encode_offset(value))
        for each, value in zip(offsets, values, strict=True)
    ]


def encode_group(value: GroupValue) -> bytes:
    """GroupMetadataValue, version 3."""
    head = struct.pack(">h", VALUE) + _string(value.protocol_type) + struct.pack(">i", value.generation)
    parts = [
        head,
        _string(value.protocol),
        _string(value.leader),
        struct.pack(">qi", value.since_ms, len(value.members)),
    ]
    for member in value.members:
        parts += (
            _string(member.member_id),
            _string(member.group_instance_id),
            _string(member.client_id),
            _string(member.client_host),
            struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    return b"".join(parts)


# ---- reading


class _Reader:
    """Takes fields from the front. Raises struct.error or UnicodeDecodeError if the bytes are invalid."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(value)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise struct.error(f"{size} bytes, where {len(self._data) - self._at} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def nullable(self) -> str | None:
        size = self.number("h")
        return None if size < 0 else self.take(size).decode()

    def string(self) -> str:
        return self.nullable() or ""

    def compact_string(self) -> str:
        try:
            size, self._at = decode_unsigned(self._data, self._at)
        except (IndexError, ValueError) as error:
            raise struct.error(str(error)) from None
        return self.take(max(0, size - 1)).decode()

    def bytes(self) -> bytes:
        size = self.number("i")
        return b"" if size < 0 else self.take(size)


def decode_key(data: bytes | None) -> OffsetKey | GroupKey | None:
    """The key of a record; None for another kind of key."""
    try:
        reader = _Reader(data or b"")
        version = reader.number("h")
        if version == GROUP_KEY:
            return GroupKey(reader.string())
        if version in (0, OFFSET_KEY):
            group = reader.string()
            return OffsetKey(group, TopicPartition(reader.string(), reader.number("i")))
    except (struct.error, UnicodeDecodeError):
        return None
    return None


def decode_offset(data: bytes) -> OffsetValue | None:
    """A committed offset; None for an unknown version or invalid bytes."""
    try:
        reader = _Reader(data)
        version = reader.number("h")
        if version not in KNOWN_VALUES and version != FLEXIBLE_OFFSET:
            return None
        offset = reader.number("q")
        leader_epoch = reader.number("i") if version >= 3 else -1
        metadata = reader.compact_string() if version == FLEXIBLE_OFFSET else reader.string()
        committed = reader.number("q")
        expires = reader.number("q") if version == 1 else NO_EXPIRY
    except (struct.error, UnicodeDecodeError):
        return None
    return OffsetValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=committed,
        expires_at_ms=expires,
    )


def decode_group(data: bytes) -> GroupValue | None:
    """A group's metadata; None for an unknown version or invalid bytes."""
    try:
        reader = _Reader(data)
        version = reader.number("h")
        if version not in KNOWN_VALUES:
            return None
        kind, generation = reader.string(), reader.number("i")
        protocol, leader = reader.nullable(), reader.nullable()
        since_ms = reader.number("q") if version >= 2 else -1
        members = tuple(_member(reader, version) for _ in range(reader.number("i")))
    except (struct.error, UnicodeDecodeError):
        return None
    return GroupValue(
        protocol_type=kind,
        generation=generation,
        protocol=protocol,
        leader=leader,
        since_ms=since_ms,
        members=members,
    )


def _member(reader: _Reader, version: int) -> MemberValue:
    member_id = reader.string()
    instance = reader.nullable() if version >= 3 else None
    client_id, host = reader.string(), reader.string()
    rebalance = reader.number("i") if version >= 1 else -1
    session = reader.number("i")
    return MemberValue(
        member_id=member_id,
        group_instance_id=instance,
        client_id=client_id,
        client_host=host,
        rebalance_timeout_ms=session if rebalance < 0 else rebalance,
        session_timeout_ms=session,
        subscription=reader.bytes(),
        assignment=reader.bytes(),
    )
