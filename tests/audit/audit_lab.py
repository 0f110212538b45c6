"""What the tests of the audit share: data directories of several brokers on real files, written by our own
log, and what an audit says of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define

from fencepost.audit.partition import PartitionAudit, audit_partition
from fencepost.audit.survey import AuditRequest, survey
from fencepost.checkers.verdict import Finding
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.checkpoint.log_checkpoints import put_clean_shutdown_marker, write_offsets
from fencepost.impl.log.layout import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.runtime.real_file_system import RealFiles

T = TopicPartition("t", 0)
SMALL = LogOptions(segment_bytes=400, index_interval_bytes=100)


@define
class Stamped:
    """Batches one after the other, as a leader appends them."""

    next_offset: int = 0

    def batch(
        self, *values: bytes | None, keys: Sequence[bytes] | None = None, epoch: int = 0, **how
    ) -> bytes:
        """The next one. how: of encode_batch."""
        base, self.next_offset = self.next_offset, self.next_offset + len(values)
        records = [
            Record(base + number, 1_700_000_000_000 + base + number, keys[number] if keys else None, value)
            for number, value in enumerate(values)
        ]
        return encode_batch(records, base_offset=base, leader_epoch=epoch, **how)


def plain(count: int = 20, *, epoch_of: Callable[[int], int] = lambda number: 0, **how) -> list[bytes]:
    """Batches of one record: b"v0", b"v1", ..."""
    stamped = Stamped()
    return [stamped.batch(b"v%d" % number, epoch=epoch_of(number), **how) for number in range(count)]


def replica(
    root: Path,
    broker: str,
    batches: Sequence[bytes],
    *,
    high_watermark: int | None = None,
    options: LogOptions = SMALL,
    clean: bool = True,
    key: TopicPartition = T,
    then: Callable[[SegmentedLog], object] = lambda log: None,
    log_start: int | None = None,
) -> Path:
    """A broker's data directory with one partition. high_watermark: by default the end of the log. then: what
    is done with the log before it is closed."""
    files = RealFiles(root / broker)
    (root / broker).mkdir(exist_ok=True)
    log = SegmentedLog.open(files, str(key), options=options)
    for data in batches:
        log.append_as_follower(data)
    then(log)
    end = log.log_end_offset
    if clean:
        log.close()
        put_clean_shutdown_marker(files)
    else:
        log.flush()
        log.abandon()
    write_offsets(files, HIGH_WATERMARKS, {key: end if high_watermark is None else high_watermark})
    if log_start is not None:
        write_offsets(files, LOG_STARTS, {key: log_start})
    if options.compact:
        write_offsets(files, CLEANER_OFFSETS, {key: end})
    return root / broker


def audit(root: Path, *, deep: bool = False, compacted: tuple[str, ...] = ()) -> PartitionAudit:
    """Of the one partition that the brokers below `root` have."""
    places = tuple((path.name, path) for path in sorted(root.iterdir()))
    found = survey(AuditRequest(places=places, deep=deep, compacted=compacted))
    (key,) = found.partitions
    result = audit_partition(found, key, lambda size: None)
    assert not found.findings.count, found.findings.found
    return result


def only(result: PartitionAudit) -> Finding:
    """The one finding that there is."""
    (finding,) = result.findings.found
    assert not result.findings.more
    return finding


def segment(directory: Path, number: int = 0, kind: str = ".log", partition: str = "t-0") -> Path:
    """One of a replica's files."""
    return sorted((directory / partition).glob(f"*{kind}"))[number]


def flip(path: Path, position: int, bit: int = 1) -> None:
    """Change bits of one byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


def position_of(path: Path, offset: int) -> int:
    """The byte at which the batch with this base offset begins."""
    data, position = path.read_bytes(), 0
    while position < len(data):
        if int.from_bytes(data[position : position + 8], "big") == offset:
            return position
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    raise AssertionError(f"no batch from {offset} in {path}")


def place_of(directory: Path, offset: int, partition: str = "t-0") -> tuple[Path, int]:
    """(segment, byte) of the batch with this base offset."""
    path = [one for one in sorted((directory / partition).glob("*.log")) if int(one.stem) <= offset][-1]
    return path, position_of(path, offset)
