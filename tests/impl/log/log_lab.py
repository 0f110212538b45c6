"""What the tests of segmented logs share: a disk, small options, batches by value."""

from fencepost.impl.log.batch.record_batch import Record, encode_batch, read_records
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.sim.disk import Disk
from fencepost.sim.randomness import Randomness

T = "t-0"


def disk_of(seed: int = 1) -> Disk:
    """A fresh disk; another seed loses other things."""
    return Disk(node=1, randomness=Randomness(seed))


def options(**changes) -> LogOptions:
    """Three small batches to a segment, an index entry for every second one; a gap is damage, as in the
    brokers."""
    return LogOptions(**{"contiguous": True, "segment_bytes": 260, "index_interval_bytes": 60, **changes})


def batch(*values, keys=None, at: int = 0, base: int = 0, epoch: int = -1, **producer) -> bytes:
    """A batch of values (None is a tombstone); keys: one for each; at: timestamp of the first, one more for
    each later one."""
    records = [
        Record(base + index, at + index, None if keys is None else keys[index], value)
        for index, value in enumerate(values)
    ]
    return encode_batch(records, base_offset=base, leader_epoch=epoch, **producer)


def open_log(files, **arguments) -> SegmentedLog:
    """The log of T, opened as after a crash unless told otherwise."""
    return SegmentedLog.open(files, T, **{"options": options(), **arguments})


def records(log: SegmentedLog) -> list[Record]:
    """All records of the log, checksums compared."""
    return [record for header, data in log.batches(check_crc=True) for record in read_records(data, header)]


def values(log: SegmentedLog) -> list[bytes]:
    """Their values."""
    return [record.value for record in records(log)]


def fill(log: SegmentedLog, count: int, *, epoch: int = 0, first: int = 0) -> None:
    """Append batches of one record: b"v0", b"v1", ... at times 0, 10, ..."""
    for number in range(first, first + count):
        log.append_as_leader(batch(b"v%d" % number, at=number * 10), epoch)
