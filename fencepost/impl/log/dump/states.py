"""The small files of a log directory: checkpoints, leader epochs, producer snapshots, a partition's metadata.

Owns their content and their flaws. Must not know where files are. Formats are Kafka's. A broker treats a
damaged file as missing (checkpoint/log_checkpoints.py, producer/snapshot.py); this module reports the damage.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TypeVar

from attrs import frozen
from crc32c import crc32c

from fencepost.impl.log.dump.dump import Flaw
from fencepost.impl.log.dump.segment_walk import Source

Entry = TypeVar("Entry")
MOST_BYTES = 64 * 1024 * 1024
"""Bound on the bytes read of such a file. Reason: a million producers are 48 MB."""
_SNAPSHOT_HEAD = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_CRC_FROM = 6


@frozen(kw_only=True)
class EpochStart:
    """A line of leader-epoch-checkpoint."""

    epoch: int
    start_offset: int


@frozen(kw_only=True)
class PartitionOffset:
    """A line of an offset checkpoint over all partitions."""

    topic: str
    partition: int
    offset: int


@frozen(kw_only=True)
class ProducerEntry:
    """An entry of a producer snapshot."""

    # The producer id.
    producer_id: int
    # The producer epoch.
    producer_epoch: int
    # The sequence number of its last record.
    last_sequence: int
    # The offset of its last record.
    last_offset: int
    # Last offset minus first offset of its last batch.
    offset_delta: int
    # The time of its last batch.
    timestamp_ms: int
    # The coordinator epoch of its last marker.
    coordinator_epoch: int
    # The first offset of its open transaction; -1 if there is none.
    current_first_offset: int


@frozen(kw_only=True)
class Property:
    """A line `key: value` or `key=value`."""

    key: str
    value: str


def epoch_starts(source: Source) -> Iterator[EpochStart | Flaw]:
    """leader-epoch-checkpoint: epochs strictly ascend, and their offsets do not decrease."""
    before = EpochStart(epoch=-1, start_offset=0)
    for item in _lines(source, "epoch and offset", _epoch_start):
        yield item
        if isinstance(item, EpochStart):
            if item.epoch <= before.epoch or item.start_offset < before.start_offset:
                yield Flaw(
                    position=None,
                    expected=f"an epoch after {before.epoch} from an offset of at least "
                    f"{before.start_offset}",
                    seen=f"epoch {item.epoch} from {item.start_offset}",
                )
            before = item


def partition_offsets(source: Source) -> Iterator[PartitionOffset | Flaw]:
    """A checkpoint of high watermarks, recovery points, log start offsets or the cleaner."""
    yield from _lines(source, "topic, partition and offset", _partition_offset)


def properties(source: Source) -> Iterator[Property | Flaw]:
    """partition.metadata, meta.properties."""
    for line in source.read_at(0, MOST_BYTES).decode("utf-8", "backslashreplace").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        cut = min((place for place in (line.find(":"), line.find("=")) if place >= 0), default=-1)
        if cut < 0:
            yield Flaw(position=None, expected="lines of a key and a value", seen=line)
        else:
            yield Property(key=line[:cut].strip(), value=line[cut + 1 :].strip())


def producer_entries(source: Source) -> Iterator[ProducerEntry | Flaw]:
    """A .snapshot file, version 1."""
    data = source.read_at(0, MOST_BYTES)
    if len(data) < _SNAPSHOT_HEAD.size:
        yield Flaw(position=0, expected=f"a head of {_SNAPSHOT_HEAD.size} bytes", seen=f"{len(data)} bytes")
        return
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != 1:
        yield Flaw(position=0, expected="a producer snapshot of version 1", seen=f"version {version}")
        return
    computed = crc32c(data[_CRC_FROM:])
    if computed != crc:
        yield Flaw(position=2, expected=f"CRC-32C {crc:08x}", seen=f"{computed:08x}")
    expected = _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size
    if len(data) != expected or count < 0:
        yield Flaw(
            position=_CRC_FROM, expected=f"{count} producers in {expected} bytes", seen=f"{len(data)} bytes"
        )
    for number in range((len(data) - _SNAPSHOT_HEAD.size) // _SNAPSHOT_ENTRY.size):
        fields = _SNAPSHOT_ENTRY.unpack_from(data, _SNAPSHOT_HEAD.size + number * _SNAPSHOT_ENTRY.size)
        producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, first = fields
        yield ProducerEntry(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=sequence,
            last_offset=offset,
            offset_delta=delta,
            timestamp_ms=timestamp_ms,
            coordinator_epoch=coordinator_epoch,
            current_first_offset=first,
        )


def _lines(source: Source, says: str, decode: Callable[[list[str]], Entry]) -> "Iterator[Entry | Flaw]":
    """The entries of a checkpoint: a version, a count, and as many lines. A broker creates the file at start;
    an empty file has no entries."""
    if not source.size():
        return
    lines = source.read_at(0, MOST_BYTES).decode("utf-8", "backslashreplace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines or lines[0].strip() != "0":
        yield Flaw(position=0, expected="a checkpoint of version 0", seen=lines[0] if lines else "no line")
        return
    for line in lines[2:]:
        try:
            yield decode(line.split())
        except ValueError:
            yield Flaw(position=None, expected=says, seen=line)
    count = lines[1].strip() if len(lines) > 1 else "no line"
    if count != str(len(lines[2:])):
        yield Flaw(position=None, expected=f"{count} lines, as the count says", seen=str(len(lines[2:])))


def _epoch_start(words: list[str]) -> EpochStart:
    epoch, start_offset = words
    return EpochStart(epoch=int(epoch), start_offset=int(start_offset))


def _partition_offset(words: list[str]) -> PartitionOffset:
    topic, partition, offset = words
    return PartitionOffset(topic=topic, partition=int(partition), offset=int(offset))
