"""A log as a consumer, this project and Apache Kafka's own tool read it.

Owns the three forms in which readers are compared. Must not know what was written.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.log.log_directory import LogDirectory
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.messages.broker_api import TopicPartition as Key
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.systems.apache_kafka.jars import ZOOKEEPER, Release
from tests.systems.apache_kafka.log_format.dump_lines import our_lines, their_lines

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
PATIENCE_S = 600
"""Of the wall clock, for a crowded machine."""
SPARSE = (".index", ".timeindex")
DUMPED = (".log", *SPARSE, ".txnindex", ".snapshot")
TOOL = Release(version=ZOOKEEPER)
"""Whose DumpLogSegments dumps: later releases have it in kafka-tools, which is not published for all."""
PROGRAM = (sys.executable, "-c", "from fencepost.cli import main; main()")


@frozen(order=True)
class Seen:
    """A record."""

    offset: int
    epoch: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@frozen
class Log:
    """Log start, the end for this reader, and its records."""

    start: int
    end: int
    records: tuple[Seen, ...]


def consumed(bootstrap: str, topic: str, isolation: str = UNCOMMITTED) -> Log:
    """Partition 0 as librdkafka reads it."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "x", "isolation.level": isolation}
    consumer = Consumer({**settings, "enable.partition.eof": True, "check.crcs": True, "log_level": 0})
    deadline = time.monotonic() + PATIENCE_S
    start, end = ends(consumer, topic, deadline)
    consumer.assign([TopicPartition(topic, 0, start)])
    records: list[Seen] = []
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            break
        when, headers = message.timestamp()[1], tuple(message.headers() or ())
        values = (message.offset(), message.leader_epoch(), when, message.key(), message.value())
        records.append(Seen(*values, headers))
    consumer.close()
    return Log(start, end, tuple(records))


def ends(consumer: Consumer, topic: str, deadline: float) -> tuple[int, int]:
    """Log start and end, once the partition has a leader."""
    while True:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
            return found
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def of_log(log: SegmentedLog, isolation: str = UNCOMMITTED) -> Log:
    """The same as this log has it."""
    end, start = log.log_end_offset, log.log_start_offset
    hidden = []
    if isolation == COMMITTED:
        end = log.last_stable_offset(end)
        hidden = log.aborted_transactions(start, end)
    records = []
    for header, data in log.batches(check_crc=True):
        aborted = header.is_transactional and any(
            one.producer_id == header.producer_id
            and one.first_offset <= header.base_offset <= one.last_offset
            for one in hidden
        )
        if header.is_control or aborted:
            continue
        for one in read_records(data, header):
            if start <= one.offset < end:
                headers = tuple((each.key, each.value) for each in one.headers)
                values = (one.offset, header.leader_epoch, one.timestamp_ms, one.key, one.value)
                records.append(Seen(*values, headers))
    return Log(start, end, tuple(records))


def logs_of(folder: Path, options: Mapping[Key, LogOptions] | None = None) -> LogDirectory:
    """Open, and recover where need be. options: by partition; None: all logs of clients, and nobody says
    which topics are compacted."""
    names = sorted(entry.name.rpartition("-") for entry in folder.iterdir() if entry.is_dir())
    found = {Key(topic, int(number)): LogOptions() for topic, _, number in names if topic[:2] != "__"}
    return LogDirectory.start(RealFiles(folder), dict(options or found))


def opened(folder: Path, isolations: tuple[str, ...] = (UNCOMMITTED,)) -> dict[tuple[str, str], Log]:
    """By topic and isolation, of a data directory. It is changed as a start changes it."""
    logs = logs_of(folder)
    found = {(key.topic, each): of_log(log, each) for key, log in logs.logs.items() for each in isolations}
    logs.close()
    return found


def copied(source: Path, target: Path) -> Path:
    """A data directory as it is now, sparse where it is sparse."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)
    return target


def dumps(folder: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The lines of each file of clients' topics: `fencepost log dump` in Kafka's words, and Kafka's tool.

    Left out are indexes without an entry: of room that was never used DumpLogSegments shows the first zeros
    as one, or fails. Entries of snapshots are sorted: Kafka writes them in the order of a hash map.
    """
    files = [
        path
        for path in sorted(folder.glob("[!_]*/*"))
        if path.suffix in DUMPED and (path.suffix not in SPARSE or path.read_bytes().strip(b"\0"))
    ]
    flags = ("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files)))
    command = ["java", "-cp", TOOL.class_path(), "kafka.tools.DumpLogSegments", *flags]
    done = subprocess.run(command, capture_output=True, check=True)
    said = done.stdout.decode("utf-8", "replace").split("\n")  # a carriage return in a payload ends no line
    names = [str(path.relative_to(folder)) for path in files]
    both = our_lines(_dumped(folder), folder), their_lines(said, folder)
    for lines in both:
        for name in names:
            if name.endswith(".snapshot"):
                lines[name] = sorted(lines.get(name, ()))
    ours, theirs = both
    return {name: ours[name] for name in names}, {name: theirs.get(name, []) for name in names}


def _dumped(folder: Path) -> dict[str, Any]:
    """What `fencepost log dump` says of the topics of clients."""
    command = [*PROGRAM, "log", "dump", str(folder), "--deep", "--verify-index", "--json"]
    said = json.loads(subprocess.run(command, capture_output=True).stdout)
    ours = [one for one in said["files"] if not Path(one["file"]).parent.name.startswith("__")]
    return {"files": ours}
