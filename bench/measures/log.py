"""The log against plain file calls with the same bytes, record batches against two other clients, and
validating a batch against decoding it.

Append is one write a batch; read is 1 MiB at a time; recovery (every checksum, both indexes) against
reading the file, and with what it writes anew against copying and syncing it. Processor time has the
kernel's part but no waiting for a device, so `sync` shows in wall time only. Records have a key and 100
bytes. A leader validates before the append (checksum, header, bounds, every record): in plain Python, or by
machine code, which a broker loads after MACHINE_CODE_AFTER records.
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from attrs import field, frozen

from bench.harness import Case, skipped, wanted
from fencepost.impl.log import validation
from fencepost.impl.log.batch import record_batch
from fencepost.impl.log.batch.record_walk import CompiledWalk
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segment.segment import Segment
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.runtime.real_file_system import RealFiles

PIECE, MEGABYTE = 1 << 20, 1_000_000
SHAPES = (("none", 1), ("none", 10), ("none", 150), ("lz4", 150), ("zstd", 150))
"""Codec, and records to a batch: a batch of one, about 1 KB, and about 16 KB (Kafka's batch.size) before
compression."""
COUNTS = (1, 10, 100, 150, 1_000, 8_000)
"""Records to a batch that is validated."""
TOPIC = "t-0"
OPTIONS = LogOptions(segment_bytes=32 * PIECE)
WIDE = LogOptions(max_message_bytes=1 << 30)


def records_of(
    count: int, first: int = 0, headers: tuple[record_batch.Header, ...] = ()
) -> list[record_batch.Record]:
    """Records that compress by about half."""
    return [
        record_batch.Record(n, 1_700_000_000_000 + n, b"key-%d" % (n % 97), _value(first + n), headers)
        for n in range(count)
    ]


def _value(number: int) -> bytes:
    words = b"%016x" % (number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) * 4
    return (words + b"some words that recur in each one")[:100]


# ---- storage


@frozen(kw_only=True)
class Bytes:
    """What is appended: `batches` again and again, `count` in all."""

    batches: list[bytes]
    count: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(len(self.batches[number % len(self.batches)]) for number in range(self.count))


def bytes_of(codec: str, records: int, megabytes: int) -> Bytes:
    """Batches of one shape."""
    firsts = range(0, 64 * records, records)
    encode = partial(record_batch.encode_batch, base_offset=0, leader_epoch=-1, codec=codec)
    batches = [encode(records_of(records, first)) for first in firsts]
    most = 20_000 if records == 1 else 1 << 40
    count = max(64, int(megabytes * MEGABYTE / (sum(map(len, batches)) / len(batches))))
    return Bytes(batches=batches, count=min(most, count))


@frozen
class Place:
    """Where one shape is written: by us below `root`, plainly in `root`/plain."""

    root: Path
    what: Bytes
    # Where its reader asks.
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


def storage(root: Path, megabytes: int, asked: argparse.Namespace) -> Iterator[Case]:
    """For each shape: append, read, recovery."""
    for codec, records in SHAPES[:: 4 if asked.quick else 1]:
        name = f"{codec}, batches of {records}"
        if not wanted(asked, name):
            continue
        what = bytes_of(codec, records, megabytes)
        place = Place(root / f"{codec}-{records}", what)
        case = partial(Case, per=max(1, what.size // MEGABYTE), unit="MB")
        sides: dict[str, Callable[[], Any]] = {"log": place.append, "plain files": place.append_plainly}
        yield case(name=f"append, {name}", sides=sides, before=place.clear)
        place.clear()
        place.append()
        place.log().close()
        place.walk()
        for work, ours, plain in (
            ("read", place.read, place.read_plainly),
            ("recover: check", place.check, place.read_plainly),
            ("recover: whole", place.recover, place.copy_plainly),
        ):
            yield case(name=f"{work}, {name}", sides={"log": ours, "plain files": plain})
        shutil.rmtree(place.root)


# ---- record batches


def ours(codec: str, records: list[record_batch.Record]) -> bytes:
    """One batch."""
    return record_batch.encode_batch(records, base_offset=0, leader_epoch=-1, codec=codec)


def encode_theirs(builder: Any, codec: str, records: list[record_batch.Record]) -> bytes:
    """One batch by another implementation."""
    made = builder(
        magic=2, compression_type=record_batch.CODECS.index(codec), is_transactional=False, producer_id=-1,
        producer_epoch=-1, base_sequence=-1, batch_size=1 << 30,
    )  # fmt: skip
    for one in records:
        made.append(one.offset, timestamp=one.timestamp_ms, key=one.key, value=one.value, headers=[])
    return bytes(made.build())


def decode_theirs(reader: Any, data: bytes) -> int:
    """The records of one batch, checksum compared, by another implementation."""
    batch = reader(data)
    assert batch.validate_crc()
    return sum(1 for _ in batch)


def decode(data: bytes) -> int:
    """The records of one batch, checksum compared."""
    return sum(len(record_batch.read_records(data, header)) for header in record_batch.read_headers(data))


def others() -> dict[str, tuple[Any, Any]]:
    """Builder and reader of other clients that are installed."""
    found = {}
    for name, module in (("kafka-python", "kafka"), ("aiokafka (C)", "aiokafka")):
        try:
            its = __import__(f"{module}.record.default_records", fromlist=["DefaultRecordBatch"])
        except ImportError:
            skipped(name, "it is not installed")
            continue
        found[name] = its.DefaultRecordBatchBuilder, its.DefaultRecordBatch
    return found


def batches(repeats: int) -> Iterator[Case]:
    """For each codec, both ways."""
    records, theirs = records_of(150), others()
    for codec in record_batch.CODECS:
        data = ours(codec, records)
        encoders = {"Fencepost": partial(ours, codec, records)}
        decoders: dict[str, Callable[[], Any]] = {"Fencepost": partial(decode, data)}
        for name, (builder, reader) in theirs.items():
            encoders[name] = partial(encode_theirs, builder, codec, records)
            decoders[name] = partial(decode_theirs, reader, data)
        for work, sides in (("encode", encoders), ("decode", decoders)):
            again = {name: partial(repeated, side, repeats) for name, side in sides.items()}
            yield Case(name=f"{work}, {codec}, 150 records", sides=again, per=150 * repeats, unit="record")


def validate(form: CompiledWalk, data: bytes) -> bytes:
    """All that a leader does, by one form of the walk."""
    validation.examine = form.examine
    return validation.validated(data, WIDE)


def validations(records: int) -> Iterator[Case]:
    """By records to a batch, with a header, and by codec."""
    plain, machine = CompiledWalk(), CompiledWalk()
    machine.load()
    shapes = [(count, False, "none") for count in COUNTS]
    shapes += [(150, True, "none"), (150, False, "lz4"), (150, False, "zstd")]
    for count, headers, codec in shapes:
        one = (record_batch.Header("trace", b"0123456789abcdef"),) if headers else ()
        data, times = ours(codec, records_of(count, headers=one)), max(1, records // count)
        sides = {
            "machine code": partial(repeated, partial(validate, machine, data), times),
            "plain": partial(repeated, partial(validate, plain, data), times),
            "decoding": partial(repeated, partial(decode, data), times),
        }
        name = f"validate, {count} records, {codec}{', each with a header' if headers else ''}"
        yield Case(name=name, sides=sides, per=count * times, unit="record")


def repeated(function: Callable[[], Any], times: int) -> None:
    """So often."""
    for _ in range(times):
        function()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--mb", type=int, default=64, help="megabytes of each row of storage [quick: 2]")


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """Storage, batches, validation."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as root:
        yield from storage(Path(root), 2 if asked.quick else asked.mb, asked)
    yield from batches(2 if asked.quick else 60)
    before = validation.examine
    try:
        yield from validations(1_000 if asked.quick else 30_000)
    finally:
        validation.examine = before
