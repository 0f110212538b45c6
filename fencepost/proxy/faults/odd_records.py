"""The records of a fetch's answer in odd shapes that clients have to cope with.

Owns the shapes. Must not know when one is asked for (fault_engine.py).

Sources: a broker returns whole batches from the one that holds the offset asked for, and cuts at max_bytes,
so that the last one may be a part of a batch (KIP-74: only the first is always whole). Clients skip records
below the offset that they asked for (CompletedFetch.nextFetchedRecord). Compaction leaves batches without a
record, so that a producer's last sequence stays known (LogCleaner, RecordBatch's delete horizon of KIP-534).
"""

from collections.abc import Callable, Mapping

from attrs import frozen

from fencepost.impl.log.batch.header import HEADER_SIZE, BatchHeader, read_header, readable_headers
from fencepost.impl.log.batch.record_batch import Record, encode_batch, with_leader_fields

LARGEST_KEPT = 256 * 1024
"""Bytes of a batch that is kept to be sent again: a quarter of Kafka's largest by default."""
COMMIT_MARKER = (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")
"""Key and value of a control record: version 0, type 1; version 0, coordinator epoch 0."""


@frozen(kw_only=True)
class Fetched:
    """What came of one partition."""

    # Not empty.
    records: bytes
    # Of its whole batches; at least one.
    headers: tuple[BatchHeader, ...]
    # That was asked for.
    offset: int
    # The batch that ends where these begin, if it is known; else empty.
    before: bytes


def fetched(records: bytes, offset: int, before: bytes) -> Fetched | None:
    """What there is to reshape; None if that is nothing.

    Args:
        records: of one partition of an answer.
        offset: that was asked for.
        before: the last batch that was handed out before; empty: none was kept.
    """
    headers, _ = readable_headers(records)  # the broker may have cut the last one; those before it count
    if not headers:
        return None
    fits = not before or read_header(before, check_crc=False).next_offset == headers[0].base_offset
    return Fetched(records=records, headers=tuple(headers), offset=offset, before=before if fits else b"")


def last_batch(records: bytes) -> bytes:
    """The last whole batch, to be kept; empty if there is none or it is too large."""
    found = fetched(records, 0, b"")
    if found is None or found.headers[-1].size > LARGEST_KEPT:
        return b""
    return found.records[found.headers[-1].position :][: found.headers[-1].size]


def _one_batch(it: Fetched) -> bytes | None:
    return it.records[: it.headers[0].size] if len(it.headers) > 1 else None


def _partial_batch(it: Fetched) -> bytes | None:
    """At least the first batch is whole; where there is no second one, the part looks like the next."""
    last = it.headers[-1]
    if len(it.headers) > 1:
        return it.records[: last.position + max(1, last.size // 2)]
    whole = it.records[: last.size]
    following = with_leader_fields(whole, base_offset=last.next_offset, leader_epoch=last.leader_epoch)
    return whole + following[: max(1, min(last.size // 2, HEADER_SIZE - 1))]


def _earlier_batch(it: Fetched) -> bytes | None:
    return it.before + it.records if it.before else None


def _empty_batch(it: Fetched) -> bytes | None:
    """It spans the offset before the first one."""
    first = it.headers[0]
    if first.base_offset < 1:
        return None
    empty = encode_batch(
        (), base_offset=first.base_offset - 1, leader_epoch=first.leader_epoch, last_offset_delta=0
    )
    return empty + it.records


def _control_batch(it: Fetched) -> bytes | None:
    first = it.headers[0]
    if first.base_offset < 1:
        return None
    key, value = COMMIT_MARKER
    record = Record(
        offset=first.base_offset - 1, timestamp_ms=first.max_timestamp_ms, key=key, value=value, headers=()
    )
    marker = encode_batch(
        (record,),
        base_offset=record.offset,
        leader_epoch=first.leader_epoch,
        producer_id=0,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    return marker + it.records


RESHAPE: Mapping[str, Callable[[Fetched], bytes | None]] = {
    "empty": lambda it: b"",
    "one batch": _one_batch,
    "partial batch": _partial_batch,
    "earlier batch": _earlier_batch,
    "empty batch": _empty_batch,
    "control batch": _control_batch,
}
"""By the shape's name; None where these records cannot be brought into it."""
