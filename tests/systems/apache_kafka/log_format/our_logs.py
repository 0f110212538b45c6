"""A data directory of our own with everything that a log can hold.

Owns what is in it. Must not know who reads it.
"""

from pathlib import Path

from fencepost.impl.log.batch.compression import CODECS
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch
from fencepost.impl.log.cleaner import Cleaner
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.runtime.real_file_system import RealFiles

START_MS = 1_700_000_000_000
SMALL = {"segment_bytes": 4_000, "index_interval_bytes": 500, "retention_ms": -1}
TORN_BYTES = 37
POLICIES = {"compacted": "compact", "transactions-compacted": "compact"}
"""The `cleanup.policy` of the topics that have one."""


def write_own(directory: Path, *, stop: bool) -> None:
    """A data directory that this log wrote: every codec, headers, transactions, compaction, truncation,
    recovery. stop: cleanly; else every log ends with a torn batch."""
    directory.mkdir(parents=True, exist_ok=True)
    options = {
        **{TopicPartition(f"codec-{codec}", 0): LogOptions(**SMALL) for codec in CODECS},
        TopicPartition("append-time", 0): LogOptions(**SMALL, log_append_time=True),
        TopicPartition("compacted", 0): LogOptions(**SMALL, compact=True, delete=False),
        TopicPartition("transactions", 0): LogOptions(**SMALL),
        TopicPartition("transactions-compacted", 0): LogOptions(**SMALL, compact=True, delete=False),
        TopicPartition("truncated", 0): LogOptions(**SMALL),
        TopicPartition("recovered", 0): LogOptions(**SMALL),
        TopicPartition("records-deleted", 0): LogOptions(**SMALL),
    }
    logs = LogDirectory.start(RealFiles(directory), options)
    by_topic = {key.topic: log for key, log in logs.logs.items()}
    for codec in CODECS:
        produce(by_topic[f"codec-{codec}"], 0, 300, codec=codec)
    for topic in ("append-time", "compacted", "truncated", "recovered", "records-deleted"):
        produce(by_topic[topic], 0, 400)
    for topic in ("transactions", "transactions-compacted"):
        transactions(by_topic[topic], 12)
    by_topic["truncated"].truncate_to(215)
    produce(by_topic["truncated"], 215, 40, epoch=3)
    by_topic["records-deleted"].advance_log_start_offset(137)
    for topic in ("compacted", "transactions-compacted"):
        log = by_topic[topic]
        log.roll()
        for first_dirty in (0, 100):
            Cleaner(log).clean(
                first_dirty_offset=first_dirty, high_watermark=log.log_end_offset, now_ms=START_MS
            )
        produce(log, log.log_end_offset, 30, epoch=5)
    logs.checkpoint()
    by_topic["recovered"].abandon()
    _tear(directory / "recovered-0")
    key = TopicPartition("recovered", 0)
    logs.clean = False
    logs.open(key, options[key])
    produce(logs.logs[key], logs.logs[key].log_end_offset, 30, epoch=4)
    if stop:
        logs.close()
    else:
        for log in logs.logs.values():
            log.flush()
        logs.checkpoint()
        logs.abandon()
        for folder in directory.iterdir():
            if folder.is_dir():
                _tear(folder)


def produce(
    log: SegmentedLog, first: int, count: int, *, codec: str = "none", epoch: int = 0, batch: int = 10
) -> None:
    """Batches of an idempotent producer: keys recur, every seventh record is a tombstone, every fifth has
    headers."""
    for start in range(first, first + count, batch):
        records = [
            Record(
                number - start,
                START_MS + number * 10,
                b"key-%d" % (number % 13),
                None if number % 7 == 0 else b"value %d " % number + b"x" * (number % 50),
                (Header("n", b"%d" % number), Header("ü", None)) if number % 5 == 0 else (),
            )
            for number in range(start, min(start + batch, first + count))
        ]
        produced = {"producer_id": 4_000, "producer_epoch": epoch, "base_sequence": start - first}
        data = encode_batch(records, base_offset=0, leader_epoch=-1, codec=codec, **produced)
        log.append_as_leader(data, epoch, now_ms=START_MS + start)


def transactions(log: SegmentedLog, rounds: int) -> None:
    """Two producers whose transactions overlap; every second one of each is aborted; the last one stays
    open."""
    sequences = {1_000: 0, 2_000: 0}
    for turn in range(rounds):
        for producer in (*sequences, *sequences):
            records = [
                Record(n, START_MS + turn, b"key-%d" % ((turn + n) % 5), b"of %d" % producer)
                for n in range(5)
            ]
            mine = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": sequences[producer],
                "transactional": True,
            }
            log.append_as_leader(
                encode_batch(records, base_offset=0, leader_epoch=-1, codec="lz4", **mine), turn // 4
            )
            sequences[producer] += 5
        for number, producer in enumerate(sequences):
            if turn == rounds - 1 and number:
                continue
            marker = EndTransaction(commit=(turn + number) % 2 == 0, coordinator_epoch=2)
            fields = {
                "base_offset": 0,
                "leader_epoch": -1,
                "producer_epoch": 0,
                "timestamp_ms": START_MS + turn,
            }
            log.append_as_leader(end_transaction_batch(marker, producer_id=producer, **fields), turn // 4)


def _tear(folder: Path) -> None:
    """What a crash leaves of a last write."""
    last = max(folder.glob("*.log"))
    whole = last.read_bytes()
    if whole:
        with last.open("ab") as file:
            file.write(whole[-TORN_BYTES:])
