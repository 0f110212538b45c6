"""Control records: records that brokers write for brokers and consumers, and that no application sees.

Owns the marker that ends a transaction in a partition (KIP-98). Must not know the coordinator. Key: version,
type (int16 each); value: version (int16), coordinator epoch (int32).
"""

import struct
from enum import IntEnum

from attrs import frozen

from fencepost.impl.log.batch.record_batch import Record, encode_batch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """The types of control records; those after COMMIT are KRaft's."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@frozen(kw_only=True)
class EndTransaction:
    """The end of a producer's transaction: its records in this partition are committed or aborted."""

    commit: bool
    coordinator_epoch: int


def control_type(record: Record) -> ControlType | None:
    """The type of a control record; None for one that this version does not know."""
    if record.key is None or len(record.key) < _KEY.size:
        return None
    number = _KEY.unpack_from(record.key)[1]
    return ControlType(number) if number in set(ControlType) else None


def is_readable(record: Record) -> bool:
    """Whether the record can be interpreted: it has a version and a type (known or not), and a marker is
    complete."""
    if record.key is None or len(record.key) < _KEY.size:
        return False
    is_marker = control_type(record) in (ControlType.ABORT, ControlType.COMMIT)
    return not is_marker or end_transaction_of(record) is not None


def end_transaction_of(record: Record) -> EndTransaction | None:
    """The marker in a control record; None if it is of another type or truncated."""
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        return None
    return EndTransaction(
        commit=kind is ControlType.COMMIT, coordinator_epoch=_VALUE.unpack_from(record.value)[1]
    )


def end_transaction_batch(
    marker: EndTransaction,
    *,
    base_offset: int,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
) -> bytes:
    """The batch of one marker. It has no sequence number.

    Args:
        marker: the end of a transaction.
        base_offset: the offset of the marker.
        leader_epoch: the epoch of the leader.
        producer_id, producer_epoch: the producer of the transaction.
        timestamp_ms: the time of the marker.

    Returns:
        the bytes.
    """
    kind = ControlType.COMMIT if marker.commit else ControlType.ABORT
    record = Record(
        base_offset, timestamp_ms, _KEY.pack(_VERSION, kind), _VALUE.pack(_VERSION, marker.coordinator_epoch)
    )
    return encode_batch(
        (record,),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
