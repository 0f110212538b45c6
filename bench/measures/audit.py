"""`fencepost audit` against reading the same bytes, and how much memory it takes.

Two brokers with one replica each, made here batch by batch. Reading is all files in pieces of 1 MiB, and
nothing else; the audit is whole (checksums, order, epochs, producers, indexes, replica against replica).
Each has a process of its own, after one reading that fills the page cache. Memory is the most of the
process; what came after the imports is told apart. Where replicas hold the same records in different
codecs, every record is decoded and compared (a tenth of the bytes).
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from attrs import evolve

from bench.costs import Cost, fresh, here, peak_mib
from bench.harness import Case
from fencepost.audit.partition import audit_partition
from fencepost.audit.survey import AuditRequest, survey
from fencepost.impl.log.batch.record_batch import Record, encode_batch, with_leader_fields
from fencepost.impl.log.checkpoint.log_checkpoints import put_clean_shutdown_marker, write_offsets
from fencepost.impl.log.layout import HIGH_WATERMARKS
from fencepost.impl.log.log_options import MEBIBYTE, LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.runtime.real_file_system import RealFiles

RECORD_BYTES = 100
OPTIONS = LogOptions(segment_bytes=256 * MEBIBYTE)
KEY = TopicPartition("bench", 0)


def write_replica(root: Path, size: int, batch_bytes: int, codec: str) -> None:
    """One replica of `size` bytes before compression; every batch has the same records."""
    root.mkdir(parents=True)
    files, count = RealFiles(root), max(1, batch_bytes // RECORD_BYTES)
    log = SegmentedLog.open(files, str(KEY), options=OPTIONS)
    value = [bytes([65 + n % 26]) * 80 for n in range(count)]
    records = [Record(n, 1_700_000_000_000 + n, b"key-%d" % n, value[n]) for n in range(count)]
    batch = encode_batch(records, base_offset=0, leader_epoch=0, codec=codec)
    per_append = max(1, MEBIBYTE // len(encode_batch(records, base_offset=0, leader_epoch=0)))
    offset = 0
    for _ in range(0, size, MEBIBYTE):
        pieces = []
        for _ in range(per_append):
            epoch = offset * 5 // (size // RECORD_BYTES)
            pieces.append(with_leader_fields(batch, base_offset=offset, leader_epoch=epoch))
            offset += count
        log.append_as_follower(b"".join(pieces))
    log.close()
    write_offsets(files, HIGH_WATERMARKS, {KEY: offset})
    put_clean_shutdown_marker(files)


def read(places: list[Path]) -> None:
    """Every byte, in pieces."""
    for path in sorted(path for place in places for path in place.rglob("*.log")):
        with path.open("rb", buffering=0) as file:
            while file.read(MEBIBYTE):
                pass


def audit(places: list[Path]) -> None:
    """As the command does; anything found is a defect of the bench or the audit."""
    found = survey(AuditRequest(places=tuple((place.name, place) for place in places)))
    for key in found.partitions:
        result = audit_partition(found, key, lambda size: None)
        assert result.verdict.decision == "ok", result.findings.found[:1]


def alone(audited: bool, places: list[Path]) -> Cost:
    """One turn of either, in this process."""
    read(places)
    before = peak_mib()
    cost = here(partial(audit if audited else read, places))
    return evolve(cost, mib=peak_mib(), more={"MiB above the imports": peak_mib() - before})


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--megabytes", type=int, default=500, help="of each replica [quick: 4]")
    parser.add_argument("--directory", type=Path, help="where the replicas are made, and removed again")


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """Large batches, small ones, and different codecs."""
    size = (4 if asked.quick else asked.megabytes) * 1_000_000
    cases = [(f"batches of {batch}", size, batch, ("none", "none")) for batch in (16_384, 1_024)]
    cases.append(("other codec", size // 10, 16_384, ("none", "lz4")))
    for name, bytes_each, batch, codecs in cases:
        root = Path(tempfile.mkdtemp(prefix="fencepost-bench-", dir=asked.directory))
        try:
            for broker, codec in enumerate(codecs):
                write_replica(root / str(broker), bytes_each, batch, codec)
            places = sorted(root.iterdir())
            whole = sum(path.stat().st_size for path in root.rglob("*.log"))
            sides = {
                "audit": partial(fresh, alone, True, places),
                "reading": partial(fresh, alone, False, places),
            }
            yield Case(name=name, sides=sides, per=max(1, whole // 1_000_000), unit="MB", warm=False)
        finally:
            shutil.rmtree(root)
