"""Three brokers of Apache Kafka 4 with compaction, retention and risen leader epochs, compared with this log.

Owns what is written and which differences count. Must not know how brokers are started (kraft.py does).

librdkafka writes three topics with three replicas: `compacted` (keys again and again, some deleted),
`retained` (by size) and `plain`. One broker after the other is killed and started again meanwhile, so that
leader epochs rise. When cleaner and retention have worked, all brokers are killed, and the files of each are
held against what a consumer read and against the brokers' own log starts and ends.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import frozen
from cases import copy
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from our_logs import open_all

from fencepost.impl.log.batch.record_batch import read_records
from fencepost.impl.messages.broker_api import TopicPartition as Key
from fencepost.systems.apache_kafka.cluster import ApacheKafka

COMPACTED, RETAINED, PLAIN = "compacted", "retained", "plain"
PATIENCE_S = 120
ROUNDS, RECORDS, KEYS, DELETED = 3, 2_000, 50, 5
"""Rounds of writing, each with another broker down for a part of it; records of each topic in a round; keys,
and those that are deleted."""
SMALL = {"segment.bytes": "1048576", "min.insync.replicas": "1"}
TOPICS = {
    COMPACTED: {
        **SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000",
        "delete.retention.ms": "0",
    },
    RETAINED: {**SMALL, "retention.bytes": "2097152", "segment.ms": "1000"},
    PLAIN: {**SMALL, "retention.ms": "-1"},
}  # fmt: skip
SETTINGS = {
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.retention.check.interval.ms": "300",
    "log.segment.delete.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
}
"""Of each broker, so that cleaner and retention work within seconds."""


@frozen(order=True)
class Seen:
    """A record as a consumer or this log reads it."""

    offset: int
    epoch: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@frozen
class Log:
    """What the brokers say of a log, and its records as consumed."""

    start: int
    end: int
    records: tuple[Seen, ...]


def create(bootstrap: str) -> None:
    """The topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    new = [NewTopic(name, 1, 3, config=config) for name, config in TOPICS.items()]
    for done in admin.create_topics(new).values():
        done.result(PATIENCE_S)


def write(bootstrap: str, first: int) -> None:
    """One half of a round. first: number of its first record."""
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    producer = Producer({**settings, "message.timeout.ms": PATIENCE_S * 1_000, "linger.ms": 20})
    for number in range(first, first + RECORDS // 2):
        key = b"%d" % (number % KEYS)
        gone = number % KEYS < DELETED and number % (3 * KEYS) >= 2 * KEYS
        producer.produce(COMPACTED, key=key, value=None if gone else b"%d %s" % (number, b"c" * 300))
        producer.produce(RETAINED, key=key, value=b"%d %s" % (number, b"r" * 1_000))
        producer.produce(PLAIN, key=key, value=b"%d %s" % (number, b"p" * 100))
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def fill(cluster: ApacheKafka) -> None:
    """Write, with one broker after the other killed in the middle of a round."""
    bootstrap = cluster.bootstrap_servers()
    create(bootstrap)
    for number in range(ROUNDS):
        write(bootstrap, number * RECORDS)
        cluster.kill(cluster.brokers[number])
        write(bootstrap, number * RECORDS + RECORDS // 2)
        cluster.restart(cluster.brokers[number])
        cluster.wait_until_healthy(PATIENCE_S)


def settled(cluster: ApacheKafka) -> str:
    """Wait until, at every broker, retention has deleted the first segment, the cleaner has worked, and no
    file changes any more. Returns what is missing."""
    deadline, before, open_ = time.monotonic() + PATIENCE_S, None, "nothing was looked at"
    while open_ and time.monotonic() < deadline:
        sizes = {
            (broker, path.parent.name, path.name): path.stat().st_size
            for broker, folder in cluster.directories().items()
            for topic in TOPICS
            for path in sorted(folder.glob(f"{topic}-0/*.log"))
        }
        open_ = "; ".join(_unsettled(sizes, cluster.brokers)) or ("" if sizes == before else "files change")
        before = sizes
        time.sleep(1)
    return open_


def _unsettled(sizes: Mapping[tuple[int, str, str], int], brokers: tuple[int, ...]) -> Iterator[str]:
    """What cleaner and retention have still to do. sizes: by broker, log and segment."""
    for broker in brokers:
        size = sum(
            size for (whose, log, _), size in sizes.items() if (whose, log) == (broker, f"{COMPACTED}-0")
        )
        if size > ROUNDS * RECORDS * 300 // 2:
            yield f"broker {broker} has {size} bytes of {COMPACTED}"
        if (broker, f"{RETAINED}-0", f"{0:020}.log") in sizes:
            yield f"broker {broker} has the first segment of {RETAINED}"


def consumed(bootstrap: str, topic: str) -> Log:
    """What a consumer reads of a topic from its log start to its end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "x", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "log_level": 0})
    start, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)
    consumer.assign([TopicPartition(topic, 0, start)])
    records: list[Seen] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():  # the end of the partition
            break
        epoch, when = message.leader_epoch(), message.timestamp()[1]
        records.append(Seen(message.offset(), epoch, when, message.key(), message.value()))
    consumer.close()
    return Log(start, end, tuple(records))


def ours(folder: Path) -> Mapping[str, Log]:
    """The same as this log has it after it opened, and recovered, the files."""
    logs, found = open_all(folder, None), {}
    for topic in TOPICS:
        log = logs.logs[Key(topic, 0)]
        records = tuple(
            Seen(one.offset, header.leader_epoch, one.timestamp_ms, one.key, one.value)
            for header, data in log.batches(check_crc=True)
            for one in read_records(data, header)
            if one.offset >= log.log_start_offset
        )
        found[topic] = Log(log.log_start_offset, log.log_end_offset, records)
    logs.close()
    return found


def compare(cluster: ApacheKafka, scratch: Path, quiet: Callable[..., int]) -> Iterator[tuple[str, bool]]:
    """What was compared, and whether it is as it should be. quiet: runs a command of ours."""
    fill(cluster)
    missing = settled(cluster)
    yield f"the cleaner and retention have worked at all three{missing and ': '}{missing}", not missing
    seen = {topic: consumed(cluster.bootstrap_servers(), topic) for topic in TOPICS}
    for broker in cluster.brokers:
        cluster.kill(broker)
    folders = cluster.directories()
    counts = {topic: len(log.records) for topic, log in seen.items()}
    epochs = {one.epoch for one in seen[PLAIN].records}
    yield (
        f"records consumed: {counts}, leader epochs {sorted(epochs)}",
        len(epochs) > 1 and all(counts.values()),
    )
    for broker, folder in folders.items():
        yield f"broker {broker}: dumped without a flaw", quiet("log", "dump", str(folder), "--deep") == 0
        target = scratch / f"three-{broker}"
        copy(folder, target)
        found = ours(target)
        for topic in TOPICS:
            mine, theirs = found[topic], seen[topic]
            yield f"broker {broker}, {topic}: end {mine.end}", mine.end == theirs.end
            yield from _same(f"broker {broker}, {topic}", topic, mine, theirs)
    audited = quiet("log", "audit", *(f"broker-{broker}={folder}" for broker, folder in folders.items()))
    yield "an audit of the three finds nothing", audited == 0


def _same(where: str, topic: str, mine: Log, theirs: Log) -> Iterator[tuple[str, bool]]:
    """Every record where each replica holds all; else what each replica may have cleaned or deleted by
    itself."""
    if topic == PLAIN:
        yield f"{where}: {len(mine.records)} records as consumed", mine.records == theirs.records
        return
    first = max(mine.start, theirs.start)
    kept, read = {one.offset: one for one in mine.records}, {one.offset: one for one in theirs.records}
    both = [offset for offset in kept if offset in read]
    yield (
        f"{where}: {len(both)} records in both are equal",
        bool(both) and all(kept[n] == read[n] for n in both),
    )
    if topic == RETAINED:
        wanted = [one for one in theirs.records if one.offset >= first]
        yield (
            f"{where}: log start {mine.start}, all from {first} on",
            wanted == [one for one in mine.records if one.offset >= first],
        )
        return
    latest = _latest(theirs.records)
    yield f"{where}: {len(latest)} keys have the value that a consumer reads", _latest(mine.records) == latest


def _latest(records: tuple[Seen, ...]) -> dict[bytes | None, bytes]:
    """The value of each key that has one: cleaners work by themselves, what is left of each key in the end is
    the same."""
    last = {one.key: one.value for one in sorted(records)}
    return {key: value for key, value in last.items() if value is not None}
