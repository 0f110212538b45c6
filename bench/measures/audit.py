"""How fast `fencepost log audit` is against reading the same bytes, and how much memory it takes.

    python bench/audit.py [--megabytes 500] [--batch-bytes 16384 1024] [--directory DIR]

Two brokers with one replica each of --megabytes, made here batch by batch. `plain` reads all files in pieces
of 1 MiB and does nothing else; `audit` is the whole audit (checksums, order, epochs, producers, indexes,
replica against replica); both in the same child process, after one reading that fills the page cache. MB/s
are of CPU time, wall time stands beside. `peak` is the child's resident memory at its highest, `above` how
much of it came after the imports. `other codec`: the replicas hold the same records, compressed differently,
so that every record is decoded and compared (a tenth of the bytes).
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table

from fencepost.audit.partition import audit_partition
from fencepost.audit.survey import AuditRequest, survey
from fencepost.impl.log.batch.record_batch import Record, encode_batch, with_leader_fields
from fencepost.impl.log.checkpoint.log_checkpoints import put_clean_shutdown_marker, write_offsets
from fencepost.impl.log.layout import HIGH_WATERMARKS
from fencepost.impl.log.log_options import MEBIBYTE, LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.runtime.files import RealFiles
from fencepost.model.explore.process import resident_bytes

RECORD_BYTES = 100
OPTIONS = LogOptions(segment_bytes=256 * MEBIBYTE)
KEY = TopicPartition("bench", 0)
APPEND_BYTES = MEBIBYTE


def write_replica(root: Path, size: int, batch_bytes: int, codec: str) -> None:
    """One replica of `size` bytes before compression; every batch has the same records."""
    root.mkdir(parents=True)
    files = RealFiles(root)
    log = SegmentedLog.open(files, str(KEY), options=OPTIONS)
    count = max(1, batch_bytes // RECORD_BYTES)
    records = [
        Record(n, 1_700_000_000_000 + n, b"key-%d" % n, bytes([65 + n % 26]) * 80) for n in range(count)
    ]
    batch = encode_batch(records, base_offset=0, leader_epoch=0, codec=codec)
    plain = len(encode_batch(records, base_offset=0, leader_epoch=0))
    offset = 0
    for _ in range(0, size, APPEND_BYTES):
        pieces = []
        for _ in range(max(1, APPEND_BYTES // plain)):
            pieces.append(
                with_leader_fields(
                    batch, base_offset=offset, leader_epoch=offset * 5 // (size // RECORD_BYTES)
                )
            )
            offset += count
        log.append_as_follower(b"".join(pieces))
    log.close()
    write_offsets(files, HIGH_WATERMARKS, {KEY: offset})
    put_clean_shutdown_marker(files)


def timed(run) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = process_time(), perf_counter()
    run()
    return process_time() - cpu, perf_counter() - wall


def read_plainly(places: list[Path]) -> None:
    """Every byte, in pieces."""
    for place in places:
        for path in sorted(place.rglob("*.log")):
            with open(path, "rb", buffering=0) as file:
                while file.read(MEBIBYTE):
                    pass


def audit(places: list[Path]) -> None:
    """As the command does; anything found is a defect of the bench or the audit."""
    found = survey(AuditRequest(places=tuple((place.name, place) for place in places)))
    for key in found.partitions:
        result = audit_partition(found, key, lambda size: None)
        assert result.verdict.decision == "ok", result.findings.found[:1]


def child(places: list[Path]) -> None:
    """Measure, and print it as JSON."""
    read_plainly(places)
    before = resident_bytes()
    plain = min(timed(lambda: read_plainly(places)) for _ in range(3))
    judged = min(timed(lambda: audit(places)) for _ in range(2))
    peak = resident_bytes()
    size = sum(path.stat().st_size for place in places for path in place.rglob("*.log"))
    print(json.dumps({"size": size, "plain": plain, "audit": judged, "before": before, "peak": peak}))


def measure(places: list[Path]) -> dict:
    """In a process of its own, so that the peak is the audit's."""
    command = [sys.executable, __file__, "--child", *map(str, places)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--batch-bytes", type=int, nargs="+", default=[16384, 1024])
    parser.add_argument("--directory", type=Path, help="where the replicas are made, and removed again")
    parser.add_argument("--child", type=Path, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    table = Table("case", "MB", "plain MB/s", "audit MB/s", "factor", "wall", "peak MiB", "above MiB")
    cases = [
        (f"batches of {size}", arguments.megabytes, size, ("none", "none")) for size in arguments.batch_bytes
    ]
    cases.append(("other codec", arguments.megabytes // 10, arguments.batch_bytes[0], ("none", "lz4")))
    for name, megabytes, batch_bytes, codecs in cases:
        root = Path(tempfile.mkdtemp(dir=arguments.directory))
        try:
            for broker, codec in enumerate(codecs):
                write_replica(root / str(broker), megabytes * 1_000_000, batch_bytes, codec)
            seen = measure(sorted(root.iterdir()))
        finally:
            shutil.rmtree(root)
        size = seen["size"] / 1e6
        plain, judged = size / max(seen["plain"][0], 1e-9), size / seen["audit"][0]
        wall = f"{seen['plain'][1]:.2f} s / {seen['audit'][1]:.2f} s"
        above = (seen["peak"] - seen["before"]) / (1 << 20)
        numbers = (f"{size:.0f}", f"{plain:.0f}", f"{judged:.0f}", f"x {plain / judged:.1f}")
        table.add_row(name, *numbers, wall, f"{seen['peak'] / (1 << 20):.0f}", f"{above:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
