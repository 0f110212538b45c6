"""Apache Kafka's brokers and this log read, write and recover each other's files.

What was learnt from it is held fast without brokers (tests/impl/log/test_kafka_facts.py).
"""

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from fencepost.cli import run as fencepost
from fencepost.impl.log.batch.compression import CODECS
from fencepost.impl.log.batch.header import read_headers
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release
from fencepost.traces.errors import ExitCode
from tests.systems.apache_kafka.log_format.our_logs import POLICIES, write_own
from tests.systems.apache_kafka.log_format.reading import (
    COMMITTED,
    PATIENCE_S,
    SPARSE,
    UNCOMMITTED,
    consumed,
    copied,
    dumps,
    opened,
)
from tests.systems.apache_kafka.real_lab import CALM, VERSIONS

COMPACTED, RETAINED, PLAIN, ENDED = "compacted", "retained", "plain", "transactions"
ROUNDS, RECORDS, KEYS, DELETED = 3, 600, 50, 5
"""Rounds of writing, each with another broker down for a part of it; records of each topic in a round; keys,
and those that are deleted again and again."""
SEGMENT = 1 << 20
"""Bytes: the smallest that 4.x allows."""
SMALL = {"segment.bytes": str(SEGMENT), "index.interval.bytes": "1024", "retention.ms": "-1"}
TOPICS = {
    COMPACTED: {
        **SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000",
        "delete.retention.ms": "0",
    },
    RETAINED: {**SMALL, "retention.bytes": str(SEGMENT)},
    PLAIN: SMALL,
    ENDED: SMALL,
}  # fmt: skip
EAGER = {
    "log.cleaner.backoff.ms": "300",
    "log.retention.check.interval.ms": "300",
    "log.segment.delete.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
}
"""Of each broker, so that cleaner and retention work within seconds."""
KEPT = {"retention.ms": "-1", "min.cleanable.dirty.ratio": "1"}
"""Of our logs, whose times are long ago: nothing is deleted or compacted."""
MARKERS = ("since clean shutdown file was found", "Recovering unflushed segment")
"""What a broker logs that believes our marker, and one that recovers."""


def started(folder, version, size):
    """A cluster, not yet up."""
    settings = CALM | EAGER
    return ApacheKafka(directory=folder, release=Release(version=version), size=size, settings=settings)


def create(kafka, topics):
    """Topics with a replica at each broker. topics: settings by name."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers(), "log_level": 0})
    new = [NewTopic(name, 1, kafka.size, config=settings) for name, settings in topics.items()]
    for made in admin.create_topics(new).values():
        made.result(PATIENCE_S)


def producer(kafka, **settings):
    """Of librdkafka, idempotent."""
    common = {"bootstrap.servers": kafka.bootstrap_servers(), "enable.idempotence": True, "log_level": 0}
    return Producer(
        {**common, "linger.ms": 20, **{name.replace("_", "."): one for name, one in settings.items()}}
    )


def flushed(writer):
    """Wait until every record is acknowledged."""
    assert writer.flush(PATIENCE_S) == 0


def write(kafka, first):
    """One half of a round. first: number of its first record."""
    writer = producer(kafka)
    for number in range(first, first + RECORDS // 2):
        key = b"%d" % (number % KEYS)
        gone = number % KEYS < DELETED and number % (3 * KEYS) >= 2 * KEYS
        writer.produce(COMPACTED, key=key, value=None if gone else b"%d %s" % (number, b"c" * 2_000))
        writer.produce(RETAINED, key=key, value=b"%d %s" % (number, b"r" * 2_000))
        headers = [("n", b"%d" % number), ("none", None)] if number % 5 == 0 else []
        writer.produce(PLAIN, key=key, value=b"%d\r %s" % (number, b"p" * 100), headers=headers)
        writer.poll(0)
    flushed(writer)


def transactions(kafka, first, rounds=4):
    """Two producers whose transactions overlap; every second one of each is aborted."""
    writers = [producer(kafka, transactional_id=f"{first}-{name}", compression_type="lz4") for name in "ab"]
    for writer in writers:
        writer.init_transactions(PATIENCE_S)
    for turn in range(rounds):
        for writer in writers:
            writer.begin_transaction()
        for writer in (*writers, *writers):
            for number in range(5):
                writer.produce(ENDED, key=b"%d" % turn, value=b"%d" % (first + number))
            flushed(writer)
        for place, writer in enumerate(writers):
            (writer.commit_transaction if (turn + place) % 2 else writer.abort_transaction)(PATIENCE_S)


def until(condition, what):
    """Wait for it."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


def sizes(kafka):
    """Of every segment of every broker."""
    return {
        (broker, path.parent.name, path.name): path.stat().st_size
        for broker, folder in kafka.directories().items()
        for path in folder.glob("[!_]*/*.log")
    }


def settled(kafka):
    """Whether retention has deleted the first segments everywhere, and no file changes any more."""
    before = sizes(kafka)
    time.sleep(2)
    first = f"{0:020}.log"
    kept = any((broker, f"{RETAINED}-0", first) in before for broker in kafka.brokers)
    cleaned = [folder / "cleaner-offset-checkpoint" for folder in kafka.directories().values()]
    worked = all(one.exists() and COMPACTED in one.read_text() for one in cleaned)
    return not kept and worked and before == sizes(kafka)


@pytest.fixture(scope="module", params=VERSIONS)
def killed(request, tmp_path_factory):
    """Data directories of three brokers that were killed after leader epochs rose, and what a consumer read
    before, by topic and isolation."""
    folder = tmp_path_factory.mktemp("three")
    with started(folder, request.param, 3) as kafka:
        create(kafka, TOPICS)
        for number, broker in enumerate(kafka.brokers[:ROUNDS]):
            transactions(kafka, number * RECORDS)
            write(kafka, number * RECORDS)
            kafka.kill(broker)
            write(kafka, number * RECORDS + RECORDS // 2)
            kafka.restart(broker)
            kafka.wait_until_healthy(PATIENCE_S)
        until(lambda: settled(kafka), "the cleaner and retention have not worked")
        read = {
            (topic, isolation): consumed(kafka.bootstrap_servers(), topic, isolation)
            for topic in TOPICS
            for isolation in (COMMITTED, UNCOMMITTED)
        }
        for broker in kafka.brokers:
            kafka.kill(broker)
        yield kafka.directories(), read


def test_killed_brokers_files_are_dumped_as_kafka_dumps_them(killed):
    """Rule: `fencepost log dump` and DumpLogSegments say the same of every file, line for line."""
    folders, _ = killed
    for folder in folders.values():
        ours, theirs = dumps(folder)
        assert {name.partition("/")[0] for name in ours} >= {f"{topic}-0" for topic in TOPICS}
        assert sum(map(len, ours.values())) > ROUNDS * RECORDS
        for name, lines in theirs.items():
            assert ours[name] == lines, name


def test_killed_brokers_logs_are_recovered_as_a_consumer_read_them(killed, tmp_path):
    """Rule: nothing is cut. Every record where each replica has all; where each cleans or deletes by itself,
    the records that both have, and the last value of each key."""
    folders, read = killed
    epochs = {one.epoch for one in read[PLAIN, UNCOMMITTED].records}
    assert len(epochs) > 1
    committed, all_ = (read[ENDED, each].records for each in (COMMITTED, UNCOMMITTED))
    assert 0 < len(committed) < len(all_)
    for broker, folder in folders.items():
        found = opened(copied(folder, tmp_path / str(broker)), (COMMITTED, UNCOMMITTED))
        for (topic, isolation), theirs in read.items():
            mine = found[topic, isolation]
            assert mine.end == theirs.end, (broker, topic, isolation)
            if topic in (PLAIN, ENDED):
                assert mine == theirs, (broker, topic, isolation)
                continue
            first = max(mine.start, theirs.start)
            kept, seen = (
                {one.offset: one for one in log.records if one.offset >= first} for log in (mine, theirs)
            )
            both = kept.keys() & seen.keys()
            assert both and all(kept[offset] == seen[offset] for offset in both)
            if topic == RETAINED:
                assert first > 0 and kept == seen
            else:
                assert latest(mine) == latest(theirs) and len(latest(mine)) == KEYS - DELETED


def latest(log):
    """The value of each key that has one."""
    last = {one.key: one.value for one in log.records}
    return {key: value for key, value in last.items() if value is not None}


def test_an_audit_of_killed_brokers_finds_nothing(killed, capsys):
    """Rule: three healthy replicas agree."""
    folders, _ = killed
    assert fencepost(["log", "audit", *(f"b{number}={one}" for number, one in folders.items())]) is (
        ExitCode.NOTHING_FOUND
    ), capsys.readouterr().out


@pytest.fixture(scope="module", params=VERSIONS)
def stopped(request, tmp_path_factory):
    """The data directory of a broker that was started once and stopped by SIGTERM: a topic for each codec,
    and one with transactions."""
    with started(tmp_path_factory.mktemp("one"), request.param, 1) as kafka:
        create(kafka, {ENDED: SMALL, **{f"codec-{codec}": SMALL for codec in CODECS}})
        for codec in CODECS:
            writer = producer(kafka, compression_type=codec)
            for number in range(RECORDS):
                writer.produce(
                    f"codec-{codec}", key=b"%d" % (number % 7), value=b"%d %s" % (number, b"x" * 3_000)
                )
                if number % 20 == 19:
                    flushed(writer)
        transactions(kafka, 0, rounds=10)
        end(kafka)
        yield kafka.directories()[1]


def end(kafka):
    """SIGTERM, until the process is gone."""
    kafka.stop(1)
    until(lambda: not kafka.runs(1), "the broker does not end")


def test_a_stopped_brokers_files_are_dumped_as_kafka_dumps_them(stopped):
    """Rule: as above, with snapshots and transaction indexes."""
    ours, theirs = dumps(stopped)
    assert {name.rpartition(".")[2] for name in ours} >= {"log", "index", "timeindex", "snapshot", "txnindex"}
    for name, lines in theirs.items():
        assert ours[name] == lines, name


def test_a_brokers_batches_make_the_same_files_again(stopped, tmp_path):
    """Rule: appended to an empty log with the same settings they are the same segments and indexes, byte for
    byte."""
    options = LogOptions(segment_bytes=SEGMENT, index_interval_bytes=1024, retention_ms=-1)
    count = 0
    for source in sorted(stopped.glob("codec-*")):
        log = SegmentedLog.open(RealFiles(tmp_path), source.name, options=options)
        for path in sorted(source.glob("*.log")):
            data = path.read_bytes()
            for header in read_headers(data):
                log.append_as_follower(data[header.position : header.end_position])
        log.close()
        for path in sorted(source.iterdir()):
            if path.suffix in (".log", *SPARSE):
                count += 1
                assert (tmp_path / source.name / path.name).read_bytes() == path.read_bytes(), path
    assert count > 3 * len(CODECS)  # at least one is of several segments


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "torn"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_serves_what_this_log_wrote(version, clean, tmp_path):
    """Rule: it believes our marker of a clean stop, or recovers logs that end with a torn batch; its
    consumers read what we read; and we open what it leaves."""
    own = tmp_path / "own"
    write_own(own, stop=clean)
    if clean:
        ours, theirs = dumps(own)
        for name, lines in theirs.items():
            assert ours[name] == lines, name
    expected = opened(copied(own, tmp_path / "copy"), (COMMITTED, UNCOMMITTED))
    topics = {topic for topic, _ in expected}
    with started(tmp_path / "kafka", version, 1) as kafka:
        create(kafka, {topic: KEPT | {"cleanup.policy": POLICIES.get(topic, "delete")} for topic in topics})
        end(kafka)
        data, log = kafka.directories()[1], kafka.logs()["broker-1"]
        put(own, data)
        before = log.stat().st_size
        kafka.restart(1)
        kafka.wait_until_healthy(PATIENCE_S)
        said = log.read_bytes()[before:].decode("utf-8", "replace").split("\n")
        logs = [line for line in said if "__cluster_metadata" not in line]  # the controller's, never replaced
        assert [any(marker in line for line in logs) for marker in MARKERS] == [clean, not clean]
        for (topic, isolation), log_of_ours in expected.items():
            assert consumed(kafka.bootstrap_servers(), topic, isolation) == log_of_ours, (topic, isolation)
        end(kafka)
        left = opened(data)
    for topic in topics - POLICIES.keys():
        assert left[topic, UNCOMMITTED] == expected[topic, UNCOMMITTED], topic


def put(own, data):
    """Our logs, checkpoints and marker in place of a broker's; it keeps who it is and the topics' ids."""
    for name in (".kafka_cleanshutdown", *(path.name for path in data.glob("*-checkpoint"))):
        (data / name).unlink(missing_ok=True)
    for source in own.iterdir():
        if source.is_file():
            (data / source.name).write_bytes(source.read_bytes())
            continue
        for file in (data / source.name).iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        for file in source.iterdir():
            (data / source.name / file.name).write_bytes(file.read_bytes())
