"""Apache Kafka from its jars, in front of it the proxy, in front of that clients that know nothing of it.

What is in the logs at the end is compared with what is in the trace: every record, every commit, and nothing
else.
"""

import struct
import time
from itertools import islice

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_jars import VARIABLE, classpath, jars
from proxy_lab import proxy_lab

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision
from fencepost.proxy.record.values import Values, content_of
from fencepost.proxy.server.record_files import key_of
from fencepost.traces.operations import Function, Outcome

pytestmark = pytest.mark.skipif(
    classpath() is None, reason=f"Apache Kafka's jars: ${VARIABLE} names no class path"
)
QUIET = {"log_level": 0}


def produced(bootstrap, topic, count, **settings):
    """Produce numbered records with some headers; answers how many were acknowledged."""
    producer, acknowledged = ck.Producer({"bootstrap.servers": bootstrap, **QUIET, **settings}), []
    for number in range(count):
        headers = [("h", b"%d" % number)] if number % 3 == 0 else None
        producer.produce(
            topic, b"value %d" % number, b"k%d" % (number % 7), headers=headers,
            on_delivery=lambda error, message: acknowledged.append(error),
        )  # fmt: skip
        producer.poll(0)
    producer.flush(600)
    return sum(error is None for error in acknowledged)


def consumed(bootstrap, topic, group, count, **settings):
    """Read so many records as a member of a group, and commit."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        | QUIET
        | settings
    )
    consumer.subscribe([topic])
    got, deadline = 0, time.monotonic() + 600
    while got < count and time.monotonic() < deadline:
        got += len([one for one in consumer.consume(500, 1) if not one.error()])
    committed = {(one.topic, one.partition): one.offset for one in consumer.commit(asynchronous=False)}
    consumer.close()
    return got, committed


def transactions(bootstrap, topic):
    """One that commits, one that aborts."""
    producer = ck.Producer({"bootstrap.servers": bootstrap, "transactional.id": "t", **QUIET})
    producer.init_transactions(60)
    for commit in (True, False, True):
        producer.begin_transaction()
        for number in range(20):
            producer.produce(topic, b"txn %d %d" % (commit, number))
        producer.flush(600)
        if commit:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)


@pytest.mark.timeout(600)
def test_every_record_and_commit_of_the_log_is_in_the_trace(tmp_path):
    """librdkafka and kafka-python produce (also in transactions), read in a group and commit: nothing is
    missing, nothing is extra, no finding."""
    with jars(tmp_path / "kafka", classpath()) as kafka:
        with proxy_lab(kafka.bootstrap, tmp_path / "live") as lab:
            admin = AdminClient({"bootstrap.servers": lab.bootstrap, **QUIET})
            for future in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("txns", 1, 1)]).values():
                future.result(60)
            assert produced(lab.bootstrap, "orders", 3_000) == 3_000
            assert (
                produced(
                    lab.bootstrap, "orders", 500, **{"enable.idempotence": False, "compression.type": "lz4"}
                )
                == 500
            )
            transactions(lab.bootstrap, "txns")
            got, committed = consumed(lab.bootstrap, "orders", "g", 3_500)
            assert got == 3_500
            assert consumed(lab.bootstrap, "txns", "g2", 40, **{"isolation.level": "read_committed"})[0] == 40
            kafka_python(lab.bootstrap)
        trace = lab.trace()
        compare_records(trace, kafka, Values(key=key_of(tmp_path / "live")))
        commits = {
            (row.group, row.topic, row.partition): row.offset
            for row in trace.operations
            if row.function is Function.COMMIT and row.topic is not None
        }
        several = {
            (row.group, place.topic, place.partition): place.offset
            for row in trace.operations
            if row.function is Function.COMMIT
            for place in row.positions
        }
        known = commits | several
        assert {place: known["g", *place] for place in committed} == committed
        assert committed_in_log(kafka) == known
        ended = [row.outcome for row in trace.operations if row.function is Function.TXN]
        assert ended == [Outcome.OK, Outcome.FAIL, Outcome.OK]
    for verdict in judge(trace, DEFAULT_CHECKS):
        assert verdict.decision is Decision.OK, verdict


def kafka_python(bootstrap):
    """The same with a client written in Python."""
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for number in range(200):
        producer.send("orders", b"python %d" % number)
    producer.flush(600)
    producer.close()
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="gp",
        auto_offset_reset="earliest",
        consumer_timeout_ms=600_000,
    )
    assert sum(1 for _ in islice(consumer, 3_700)) == 3_700
    assert not consumer.poll(1_000)
    consumer.close()


def compare_records(trace, kafka, values):
    """What the brokers' files hold against the acknowledged appends: content and place of each."""
    for name in ("orders-0", "orders-1", "txns-0"):
        topic, _, partition = name.rpartition("-")
        dumped = {
            offset: values.content(key, value, headers_of(headers))
            for offset, key, value, headers in dump(kafka, name)
        }
        recorded = {
            record.offset: content_of(record.value)
            for row in trace.operations
            if row.function is Function.APPEND and row.outcome is Outcome.OK
            and (row.topic, row.partition) == (topic, int(partition))
            for record in row.records
        }  # fmt: skip
        assert recorded == dumped
        assert len(dumped) > 0


def dump(kafka, name):
    """(offset, key, value, headers) of each record in a partition's files."""
    from fencepost.impl.log.batch.record_batch import read_headers, read_records

    for segment in sorted((kafka.logs() / name).glob("*.log")):
        data = segment.read_bytes()
        for header in read_headers(data):
            if not header.is_control:
                for one in read_records(data, header):
                    yield one.offset, one.key, one.value, one.headers


def headers_of(headers):
    """As they stand in a batch."""
    from fencepost.impl.log.batch.record_batch import _encode_headers

    return _encode_headers(headers) if headers else b"\x00"


def committed_in_log(kafka):
    """The last committed offset of each (group, topic, partition) in the offsets topic's files: key of
    version 0 or 1 (group, topic, partition), value (version, offset, ...)."""
    found = {}
    for _, key, value, _ in dump(kafka, "__consumer_offsets-0"):
        version, length = struct.unpack_from(">hh", key)
        if version > 1:
            continue
        group, at = key[4 : 4 + length].decode(), 4 + length
        (length,) = struct.unpack_from(">h", key, at)
        topic = key[at + 2 : at + 2 + length].decode()
        (partition,) = struct.unpack_from(">i", key, at + 2 + length)
        if value is not None:
            found[group, topic, partition] = struct.unpack_from(">hq", value)[1]
    return found
