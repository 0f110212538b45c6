"""The records of a cluster's topics, and what groups have committed: as values for assertions, and as JSON.

Owns these values. Must not know who asks.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from fencepost.impl.log.batch.header import BatchHeader, read_headers
from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.log.cleaner import Transactions
from fencepost.impl.log.values import value_of

UNCOMMITTED, COMMITTED = ISOLATIONS = ("read_uncommitted", "read_committed")
"""What a reader sees of transactions, in the words of the clients' setting isolation.level."""
READ_BYTES = 1 << 20
"""Of a log at a time: Kafka's max.partition.fetch.bytes."""


@frozen(kw_only=True)
class KafkaRecord:
    """One record below the high watermark."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    value_id: int
    """What the trace calls it."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """In their order; a name may be there several times."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}: {result_in_words(self.key, self.value)}"


def result_in_words(key: bytes | None, value: bytes | None) -> str:
    """A key and a value, each cut after 80 bytes."""
    named = "no key" if key is None else f"key {_text(key)}"
    return f"{named}, {'a tombstone' if value is None else _text(value)}"


def _text(data: bytes) -> str:
    shown = data[:80].decode("utf-8", "backslashreplace")
    return repr(shown) + ("..." if len(data) > 80 else "")


def records_of(
    partition: Any, topic: str, number: int, isolation: str = UNCOMMITTED
) -> Iterator[KafkaRecord]:
    """Those of a replica below its high watermark.

    Args:
        partition: of impl/replication.
        topic: its topic.
        number: its number.
        isolation: with "read_committed" none of a transaction that was aborted or has not ended.
    """
    transactions = Transactions()
    if isolation == COMMITTED:
        for header, data in _batches(partition):
            transactions.see(header, data)
    for header, data in _batches(partition):
        if header.is_control or not transactions.is_committed(header):
            continue
        for record in read_records(data, header):
            if record.offset >= partition.log.log_start_offset:
                yield KafkaRecord(
                    topic=topic,
                    partition=number,
                    offset=record.offset,
                    key=record.key,
                    value=record.value,
                    value_id=value_of(record),
                    headers=tuple((header.key, header.value) for header in record.headers),
                )


def _batches(partition: Any) -> Iterator[tuple[BatchHeader, bytes]]:
    """Each batch below the high watermark, with the bytes that it is in."""
    log, offset = partition.log, partition.log.log_start_offset
    while offset < partition.high_watermark:
        data = log.read(offset, max_bytes=READ_BYTES, end_offset=partition.high_watermark)
        headers = list(read_headers(data)) if data else []
        if not headers:
            return
        yield from ((header, data) for header in headers)
        offset = headers[-1].next_offset


def to_json(record: KafkaRecord) -> dict[str, Any]:
    """Bytes in base64."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": _encoded(record.key),
        "value": _encoded(record.value),
        "value_id": record.value_id,
        "headers": [[name, _encoded(value)] for name, value in record.headers],
    }


def from_json(fields: Mapping[str, Any]) -> KafkaRecord:
    """What `to_json` wrote."""
    data = {name: _decoded(fields[name]) for name in ("key", "value")}
    headers = tuple((name, _decoded(value)) for name, value in fields["headers"])
    return KafkaRecord(**{**fields, **data, "headers": headers})


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
