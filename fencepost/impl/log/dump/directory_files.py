"""The small files of a log directory: checkpoints, leader epochs, producer snapshots, a partition's metadata.

Owns what an entry of a checkpoint and a property means. Must not know where files are, or the forms that a
broker writes itself (checkpoint/checkpoint_file.py, producer/snapshot.py). A broker treats a damaged file as
missing; here the damage is reported.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import frozen

from fencepost.impl.log.checkpoint.checkpoint_file import read_lines
from fencepost.impl.log.dump.segment_walk import Source
from fencepost.impl.log.flaw import Flaw
from fencepost.impl.log.producer.snapshot import ProducerEntry, snapshot_entries

Entry = TypeVar("Entry")
MOST_BYTES = 64 * 1024 * 1024
"""Bound on the bytes read of such a file. Reason: a million producers are 48 MB."""


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
    yield from snapshot_entries(source.read_at(0, MOST_BYTES))


def _lines(source: Source, says: str, decode: Callable[[list[str]], Entry]) -> Iterator[Entry | Flaw]:
    """A broker creates a checkpoint at start; an empty file has no entries."""
    return read_lines(source.read_at(0, MOST_BYTES), says, decode) if source.size() else iter(())


def _epoch_start(words: list[str]) -> EpochStart:
    epoch, start_offset = words
    return EpochStart(epoch=int(epoch), start_offset=int(start_offset))


def _partition_offset(words: list[str]) -> PartitionOffset:
    topic, partition, offset = words
    return PartitionOffset(topic=topic, partition=int(partition), offset=int(offset))
