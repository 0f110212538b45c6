"""The records of __transaction_state, in Kafka's own formats.

Owns the bytes (Kafka's message definitions TransactionLogKey, TransactionLogValue; all numbers big-endian).
Must not know logs. Written: values of version 0 for the first version of transactions, 1 for the second
(KIP-890); version 1 has compact strings and tagged fields. Read: both. What this module does not know is
None.
"""

import struct

from attrs import frozen

from fencepost.impl.log.batch.varint import decode_unsigned, encode_unsigned
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction_states import NUMBERS, PHASES, TransactionPhase

KEY_VERSION = 0
PREVIOUS_ID, NEXT_ID, CLIENT_VERSION = 0, 1, 2
"""Tags of fields of version 1."""
NO_ID, NO_EPOCH, NOT_STARTED = -1, -1, -1
MOST_PARTITIONS = 1_000_000
"""Of one record: more than a broker has. A count beyond it is no count."""


@frozen(kw_only=True)
class TransactionValue:
    """What is known of a transactional id."""

    producer_id: int
    producer_epoch: int
    phase: TransactionPhase
    timeout_ms: int
    # Partitions of the open transaction, sorted.
    partitions: tuple[TopicPartition, ...] = ()
    # Time of the host, ms since the epoch.
    updated_ms: int = -1
    started_ms: int = NOT_STARTED
    # Its producer id before the last change.
    previous_producer_id: int = NO_ID
    # The producer id that the producer has already, while markers carry the old one.
    next_producer_id: int = NO_ID
    # 2 if the producer speaks the second version.
    client_version: int = 0


def encode_key(transactional_id: str) -> bytes:
    """TransactionLogKey, version 0."""
    data = transactional_id.encode()
    return struct.pack(">hh", KEY_VERSION, len(data)) + data


def decode_key(data: bytes | None) -> str | None:
    """The transactional id; None for another kind of key."""
    try:
        version, size = struct.unpack_from(">hh", data or b"")
        if version != KEY_VERSION or data is None or not 0 <= size <= len(data) - 4:
            return None
        return data[4 : 4 + size].decode()
    except (struct.error, UnicodeDecodeError):
        return None


# ---- values


def _by_topic(partitions: tuple[TopicPartition, ...]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for key in partitions:
        topics.setdefault(key.topic, []).append(key.partition)
    return topics


def encode_value(value: TransactionValue, *, version: int) -> bytes:
    """TransactionLogValue of this version, 0 or 1."""
    head = struct.pack(
        ">hqhib", version, value.producer_id, value.producer_epoch, value.timeout_ms, NUMBERS[value.phase]
    )
    times = struct.pack(">qq", value.updated_ms, value.started_ms)
    topics = None if value.phase is TransactionPhase.EMPTY else _by_topic(value.partitions)
    if version == 0:
        return head + _plain_topics(topics) + times
    return head + _compact_topics(topics) + times + _tags(value)


def _plain_topics(topics: dict[str, list[int]] | None) -> bytes:
    if topics is None:
        return struct.pack(">i", -1)
    parts = [struct.pack(">i", len(topics))]
    for topic, numbers in topics.items():
        name = topic.encode()
        parts += (
            struct.pack(">h", len(name)),
            name,
            struct.pack(f">i{len(numbers)}i", len(numbers), *numbers),
        )
    return b"".join(parts)


def _compact_topics(topics: dict[str, list[int]] | None) -> bytes:
    if topics is None:
        return encode_unsigned(0)
    parts = [encode_unsigned(len(topics) + 1)]
    for topic, numbers in topics.items():
        name = topic.encode()
        parts += (encode_unsigned(len(name) + 1), name, encode_unsigned(len(numbers) + 1))
        parts += (struct.pack(f">{len(numbers)}i", *numbers), encode_unsigned(0))
    return b"".join(parts)


def _tags(value: TransactionValue) -> bytes:
    tagged = []
    if value.previous_producer_id != NO_ID:
        tagged.append((PREVIOUS_ID, struct.pack(">q", value.previous_producer_id)))
    if value.next_producer_id != NO_ID:
        tagged.append((NEXT_ID, struct.pack(">q", value.next_producer_id)))
    if value.client_version:
        tagged.append((CLIENT_VERSION, struct.pack(">h", value.client_version)))
    parts = [encode_unsigned(len(tagged))]
    for tag, data in tagged:
        parts += (encode_unsigned(tag), encode_unsigned(len(data)), data)
    return b"".join(parts)


class _Reader:
    """Takes fields from the front. Raises struct.error or UnicodeDecodeError where the bytes are none."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def numbers(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return values

    def varuint(self) -> int:
        try:
            value, self._at = decode_unsigned(self._data, self._at)
        except (IndexError, ValueError) as error:
            raise struct.error(str(error)) from None
        return value

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise struct.error(f"{size} bytes, where {len(self._data) - self._at} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def count(self, *, compact: bool) -> int:
        """Of an array, or of a text's bytes in version 1; -1 for none at all."""
        number = self.varuint() - 1 if compact else self.numbers("i")[0]
        if number > MOST_PARTITIONS:
            raise struct.error(f"{number} of them, where at most {MOST_PARTITIONS} make sense")
        return number

    def text(self, *, compact: bool) -> str:
        size = self.count(compact=True) if compact else self.numbers("h")[0]
        return self.take(size).decode()

    def partitions(self, *, compact: bool) -> tuple[TopicPartition, ...]:
        found = []
        for _ in range(self.count(compact=compact)):
            topic = self.text(compact=compact)
            count = self.count(compact=compact)
            found += [
                TopicPartition(topic, int.from_bytes(self.take(4), "big", signed=True)) for _ in range(count)
            ]
            if compact:
                self.tags()
        return tuple(sorted(found))

    def tags(self) -> dict[int, bytes]:
        found = {}
        for _ in range(self.varuint()):
            tag = self.varuint()
            found[tag] = self.take(self.varuint())
        return found


def decode_value(data: bytes) -> TransactionValue | None:
    """What a record says; None for a version that is not known, or bytes that are none."""
    try:
        reader = _Reader(data)
        (version,) = reader.numbers("h")
        if version not in (0, 1):
            return None
        producer_id, epoch, timeout_ms, phase = reader.numbers("qhib")
        partitions = reader.partitions(compact=version == 1)
        updated_ms, started_ms = reader.numbers("qq")
        tags = reader.tags() if version == 1 else {}
        if phase not in PHASES:
            return None
        return TransactionValue(
            producer_id=producer_id,
            producer_epoch=epoch,
            phase=PHASES[phase],
            timeout_ms=timeout_ms,
            partitions=partitions,
            updated_ms=updated_ms,
            started_ms=started_ms,
            previous_producer_id=_tagged(tags, PREVIOUS_ID, "q", NO_ID),
            next_producer_id=_tagged(tags, NEXT_ID, "q", NO_ID),
            client_version=_tagged(tags, CLIENT_VERSION, "h", 0),
        )
    except (struct.error, UnicodeDecodeError):
        return None


def _tagged(tags: dict[int, bytes], tag: int, form: str, default: int) -> int:
    if tag not in tags:
        return default
    (value,) = struct.unpack(f">{form}", tags[tag])
    return int(value)
