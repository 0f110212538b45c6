"""How fast the log is: append, sequential read and recovery against the same bytes through plain file calls,
and record batches against two others.

    python bench/log.py [--mb 64] [--quick]

Everything of a row is measured in the same run, taking turns, best of several rounds: other work on the
machine then counts little in the factors. MB/s are of batch bytes as they lie in the file. `x plain` is time
over the time of plain file calls with the same bytes: append is one write a batch; read is 1 MiB at a time;
recovery (every checksum, both indexes) against reading the file, and with what it writes anew (see
recovery.py) against copying and syncing it. Times are CPU seconds of the process, in which the kernel's part
counts; waiting for a device does not, so that `sync` shows in wall time only.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from attrs import field, frozen
from kafka.record.default_records import DefaultRecordBatch as PyBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder
from rich.console import Console
from rich.table import Table

from fencepost.impl.log.batch.record_batch import CODECS, Record, encode_batch, read_headers, read_records
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.runtime.files import RealFiles

PIECE = 1 << 20
MEGABYTE = 1_000_000
SHAPES = (("none", 1), ("none", 10), ("none", 150), ("lz4", 150), ("zstd", 150))
"""Codec, and records of 100 bytes to a batch: a batch of one, about 1 KB, and about 16 KB (Kafka's
batch.size) before compression."""
ROUNDS = 3
TOPIC = "t-0"
OPTIONS = LogOptions(segment_bytes=32 * PIECE)


@frozen(kw_only=True)
class Taken:
    """Seconds of a stretch of work."""

    cpu_s: float
    wall_s: float


def measured(work: Callable[[], Any]) -> Taken:
    """What it takes, once."""
    wall, cpu = perf_counter(), process_time()
    work()
    return Taken(cpu_s=process_time() - cpu, wall_s=perf_counter() - wall)


def best(*works: tuple[Callable[[], Any], Callable[[], Any]], rounds: int) -> list[Taken]:
    """The fastest of several rounds of each (preparation, work), taking turns."""
    taken: list[list[Taken]] = [[] for _ in works]
    for _ in range(rounds):
        for mine, (prepare, work) in zip(taken, works, strict=True):
            prepare()
            mine.append(measured(work))
    return [
        Taken(cpu_s=min(one.cpu_s for one in some), wall_s=min(one.wall_s for one in some)) for some in taken
    ]


def records_of(count: int, first: int = 0) -> list[Record]:
    """Records with a key and 100 bytes that compress by about half."""
    return [
        Record(number, 1_700_000_000_000 + number, b"key-%d" % (number % 97), _value(first + number))
        for number in range(count)
    ]


def _value(number: int) -> bytes:
    return (
        b"%016x" % (number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) * 4
        + b"some words that recur in each one"
    )[:100]


# ---- storage


@frozen(kw_only=True)
class Bytes:
    """What is appended: `batches` again and again, `count` in all."""

    codec: str
    records: int
    batches: list[bytes]
    count: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(len(self.batches[number % len(self.batches)]) for number in range(self.count))


def bytes_of(codec: str, records: int, megabytes: int) -> Bytes:
    """Batches of one shape."""
    batches = [
        encode_batch(records_of(records, number * records), base_offset=0, leader_epoch=-1, codec=codec)
        for number in range(64)
    ]
    mean = sum(map(len, batches)) / len(batches)
    most = 20_000 if records == 1 else 1 << 40
    return Bytes(
        codec=codec,
        records=records,
        batches=batches,
        count=min(most, max(64, int(megabytes * MEGABYTE / mean))),
    )


@frozen
class Place:
    """Where one shape is written: by us below `root`, plainly in `root`/plain. offsets: where its reader
    asks."""

    root: Path
    what: Bytes
    offsets: list[int] = field(factory=list)

    def clear(self) -> None:
        """Empty it."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def log(self, **how: Any) -> SegmentedLog:
        """The log, opened."""
        return SegmentedLog.open(RealFiles(self.root), TOPIC, options=OPTIONS, **how)

    def append(self) -> None:
        """Through the log, without a flush."""
        log, batches = self.log(), self.what.batches
        for number in range(self.what.count):
            log.append_as_leader(batches[number % len(batches)], 0)
        log.abandon()

    def append_plainly(self) -> None:
        """One write for each batch."""
        batches = self.what.batches
        file = os.open(self.root / "plain", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        for number in range(self.what.count):
            os.write(file, batches[number % len(batches)])
        os.close(file)

    def read(self) -> None:
        """Through the log, which is open already in a broker; here opening counts too."""
        log = self.log(clean=True)
        end = log.log_end_offset
        for offset in self.offsets:
            assert log.read(offset, max_bytes=PIECE, end_offset=end)
        log.abandon()

    def walk(self) -> None:
        """Find out where a reader of 1 MiB at a time asks; a reader knows that from what it got."""
        log = self.log(clean=True)
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            self.offsets.append(offset)
            offset = last_offset(log.read(offset, max_bytes=PIECE, end_offset=end)) + 1
        log.abandon()

    def read_plainly(self) -> None:
        """As a fetch does, but for finding out what it is."""
        for path in sorted((self.root / TOPIC).glob("*.log")):
            file, position = os.open(path, os.O_RDONLY), 0
            while data := os.pread(file, PIECE, position):
                position += len(data)
            os.close(file)

    def check(self) -> None:
        """Every checksum, and both indexes made again; nothing is written."""
        files = RealFiles(self.root)
        for path in sorted((self.root / TOPIC).glob("*.log")):
            segment = Segment.open(files, TOPIC, int(path.stem), OPTIONS)
            segment.recover(segment.base_offset, lambda batch: None)
            segment.close()

    def recover(self) -> None:
        """Open after a crash: check, write anew, sync."""
        self.log().abandon()

    def copy_plainly(self) -> None:
        """Read, write, sync."""
        for path in sorted((self.root / TOPIC).glob("*.log")):
            source, target = (
                os.open(path, os.O_RDONLY),
                os.open(self.root / "copy", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            )
            position = 0
            while data := os.pread(source, PIECE, position):
                os.write(target, data)
                position += len(data)
            os.fsync(target)
            os.close(source)
            os.close(target)


def last_offset(data: bytes) -> int:
    """Of the last batch, from header to header, as a consumer walks."""
    position = base = delta = 0
    while position < len(data):
        base = int.from_bytes(data[position : position + 8], "big")
        delta = int.from_bytes(data[position + 23 : position + 27], "big")
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return base + delta


def storage(root: Path, megabytes: int, rounds: int) -> Table:
    """The rows of the first table."""
    table = Table(title="the log against plain file calls, same bytes")
    for title in ("codec", "batch, bytes", "work", "log, MB/s", "plain, MB/s", "x plain", "x plain, wall"):
        table.add_column(title, justify="left" if title in ("codec", "work") else "right")
    for codec, records in SHAPES:
        what = bytes_of(codec, records, megabytes)
        place = Place(root / f"{codec}-{records}", what)
        place.clear()
        size, nothing = what.size / MEGABYTE, lambda: None
        rows = [
            ("append", best((place.clear, place.append), (place.clear, place.append_plainly), rounds=rounds))
        ]
        place.clear()
        place.append()
        place.log().close()
        place.walk()
        rows += [
            ("read", best((nothing, place.read), (nothing, place.read_plainly), rounds=rounds)),
            ("recover: check", best((nothing, place.check), (nothing, place.read_plainly), rounds=rounds)),
            ("recover: whole", best((nothing, place.recover), (nothing, place.copy_plainly), rounds=rounds)),
        ]
        for work, (ours, plain) in rows:
            table.add_row(
                codec,
                f"{what.size / what.count:,.0f}",
                work,
                f"{size / ours.cpu_s:,.0f}",
                f"{size / plain.cpu_s:,.0f}",
                f"{ours.cpu_s / plain.cpu_s:.1f}",
                f"{ours.wall_s / plain.wall_s:.1f}",
            )
        shutil.rmtree(place.root)
    return table


# ---- record batches


def encode_theirs(builder: Any, codec: str, records: list[Record]) -> bytes:
    """One batch by another implementation."""
    made = builder(
        magic=2,
        compression_type=CODECS.index(codec),
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for record in records:
        made.append(
            record.offset, timestamp=record.timestamp_ms, key=record.key, value=record.value, headers=[]
        )
    return bytes(made.build())


def decode_theirs(reader: Any, data: bytes) -> int:
    """The records of one batch, checksum compared, by another implementation."""
    batch = reader(data)
    assert batch.validate_crc()
    return sum(1 for _ in batch)


def decode_ours(data: bytes) -> int:
    """The records of one batch, checksum compared."""
    return sum(len(read_records(data, header)) for header in read_headers(data))


def batches(rounds: int, repeats: int) -> Table:
    """The rows of the second table."""
    table = Table(title="record batches of 150 records of 100 bytes: microseconds a record (x Fencepost)")
    for title in ("codec", "work", "Fencepost", "kafka-python (Python)", "aiokafka (C)"):
        table.add_column(title, justify="left" if title in ("codec", "work") else "right")
    records = records_of(150)
    for codec in CODECS:
        data = encode_batch(records, base_offset=0, leader_epoch=-1, codec=codec)
        encoders = [
            lambda codec=codec: encode_batch(records, base_offset=0, leader_epoch=-1, codec=codec),
            lambda codec=codec: encode_theirs(PyBuilder, codec, records),
            lambda codec=codec: encode_theirs(AioBuilder, codec, records),
        ]
        decoders = [
            lambda data=data: decode_ours(data),
            lambda data=data: decode_theirs(PyBatch, data),
            lambda data=data: decode_theirs(AioBatch, data),
        ]
        for work, functions in (("encode", encoders), ("decode", decoders)):
            taken = best(*((lambda: None, repeated(one, repeats)) for one in functions), rounds=rounds)
            micro = [one.cpu_s / repeats / len(records) * 1e6 for one in taken]
            table.add_row(
                codec, work, f"{micro[0]:.2f}", *(f"{one:.2f} ({one / micro[0]:.1f})" for one in micro[1:])
            )
    return table


def repeated(function: Callable[[], Any], times: int) -> Callable[[], None]:
    """So often."""

    def work() -> None:
        for _ in range(times):
            function()

    return work


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=64, help="megabytes that each row of the first table moves")
    parser.add_argument(
        "--quick", action="store_true", help="8 megabytes, one round: do the tables come out?"
    )
    arguments = parser.parse_args()
    megabytes, rounds = (8, 1) if arguments.quick else (arguments.mb, ROUNDS)
    console = Console(width=130)
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as root:
        console.print(storage(Path(root), megabytes, rounds))
    console.print(batches(rounds, 10 if arguments.quick else 60))
    return 0


if __name__ == "__main__":
    sys.exit(main())
