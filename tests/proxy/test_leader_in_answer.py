"""Newer Produce and Fetch answers name the new leader and its address (KIP-951). Three brokers of Apache
Kafka, a leader that moves, and a client that learns of it from such answers alone: Metadata stays as it
was."""

import asyncio
import contextlib
import struct
import time
from itertools import islice

import confluent_kafka as ck
import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_jars import VARIABLE, classpath, jars
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.static.primitive import i32
from proxy_lab import proxy_lab
from tapped_sockets import Tapped

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision
from fencepost.proxy.chunks import Chunks
from fencepost.proxy.record.values import Values, content_of
from fencepost.proxy.server.record_files import key_of
from fencepost.traces.operations import Function, Outcome
from fencepost.wire.codec import read_response, write_request
from fencepost.wire.hook import PASS, Replace
from fencepost.wire.passing import METADATA, answer_body, header_of

pytestmark = pytest.mark.skipif(
    classpath() is None, reason=f"Apache Kafka's jars: ${VARIABLE} names no class path"
)
PRODUCE, FETCH = 0, 1
NOT_LEADER = 6
RECORDS = 200
QUIET = {"log_level": 0}


class OldMetadata:
    """Once it is frozen, Metadata is answered as it was the last time for the same topics."""

    def __init__(self) -> None:
        self.frozen = False
        self.stale = 0
        self._known: dict[tuple, object] = {}

    def on_request(self, source, header, body):
        return PASS

    def on_answer(self, source, header, body, answer):
        if header.api_key != METADATA or answer is None:
            return PASS
        asked = (header.version, tuple(one.name for one in body.topics or ()))
        if not self.frozen:
            self._known[asked] = answer
            return PASS
        if asked in self._known:
            self.stale += 1
            return Replace(self._known[asked])
        return PASS


async def asked_raw(port, request):
    """The answer of a broker to a request of kio's, as kio's class."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(write_request(1, "t", request))
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    answer = await reader.readexactly(length)
    writer.close()
    return read_response(request.__api_key__, request.__version__, answer, 1_000)[1]


def prefer(kafka, topic, replicas):
    """The order of a partition's replicas: the first is to lead. Their set stays: nothing is copied."""
    request = AlterPartitionReassignmentsRequest(
        topics=(
            ReassignableTopic(
                name=topic,
                partitions=(
                    ReassignablePartition(partition_index=i32(0), replicas=tuple(map(i32, replicas))),
                ),
            ),
        )
    )
    answer = asyncio.run(asked_raw(kafka.ports[0], request))
    assert answer.error_code == 0, answer


def leader(admin, topic):
    return admin.list_topics(topic, timeout=60).topics[topic].partitions[0].leader


def move(kafka, admin, topic, replicas):
    """Another replica leads, once this returns."""
    prefer(kafka, topic, replicas)
    deadline = time.monotonic() + 300
    while leader(admin, topic) != replicas[0]:
        assert time.monotonic() < deadline
        place = TopicPartition(topic, 0)
        with contextlib.suppress(ck.KafkaException):  # the broker may not know the new order yet
            admin.elect_leaders(ElectionType.PREFERRED, [place]).result(60)
        time.sleep(0.2)


def named(tapped, api):
    """(addresses that the broker named, addresses that the client got) of each answer of this API that names
    a leader's address."""
    found = []
    for streams in tapped.streams.values():
        asked = {}
        for frame in Chunks(1 << 30).feed(bytes(streams["from client"])):
            header = header_of(frame)
            asked[header.correlation_id] = header
        given = Chunks(1 << 30).feed(bytes(streams.get("from broker", b"")))
        passed = Chunks(1 << 30).feed(bytes(streams.get("to client", b"")))
        for before, after in zip(given, passed, strict=False):
            header = asked[struct.unpack_from(">i", before, 4)[0]]
            if header.api_key != api:
                continue
            both = [
                tuple((one.node_id, one.host, one.port) for one in getattr(body, "node_endpoints", ()))
                for body in (answer_body(api, header.version, frame) for frame in (before, after))
            ]
            if both[0]:
                found.append(tuple(both))
    return found


def rewritten(kafka, lab, found):
    """Whether each address is the broker's own, and the client's the proxy's for the same broker."""
    for given, got in found:
        for (node, _, port), (same, host, changed) in zip(given, got, strict=True):
            assert node == same and port == kafka.ports[node - 1]
            assert (host, changed) == lab.proxy.cluster.assign(node, "127.0.0.1", port)
            assert changed not in kafka.ports


@pytest.mark.timeout(900)
def test_a_client_follows_the_address_in_an_answer(tmp_path, monkeypatch):
    """Rule: the addresses in Produce's and Fetch's answers are rewritten: a client that hears of the new
    leader from them alone reaches it through the proxy, and everything it does is recorded."""
    old, tapped = OldMetadata(), Tapped(monkeypatch)
    with jars(tmp_path / "kafka", classpath(), brokers=3, more="auto.leader.rebalance.enable=false") as kafka:
        with proxy_lab(kafka.bootstrap, tmp_path / "live", hook_for=lambda node: old) as lab:
            direct = AdminClient({"bootstrap.servers": kafka.bootstrap, **QUIET})
            direct.create_topics([NewTopic("orders", 1, replica_assignment=[[1, 2, 3]])])["orders"].result(
                120
            )
            told = []
            producer = ck.Producer({"bootstrap.servers": lab.bootstrap, "acks": "all", **QUIET})
            consumer = ck.Consumer(
                {
                    "bootstrap.servers": lab.bootstrap,
                    "group.id": "g",
                    "auto.offset.reset": "earliest",
                    **QUIET,
                }
            )
            consumer.assign([TopicPartition("orders", 0, 0)])
            read = []

            def work(count):
                for number in range(count):
                    producer.produce(
                        "orders", b"%d" % number, on_delivery=lambda error, _: told.append(error)
                    )
                    producer.poll(0.005)
                    read.extend(one for one in consumer.consume(100, 0.005) if not one.error())
                assert producer.flush(300) == 0
                deadline = time.monotonic() + 300
                while len(read) < len(told) and time.monotonic() < deadline:
                    read.extend(one for one in consumer.consume(100, 0.2) if not one.error())

            work(RECORDS)
            old.frozen = True
            for replicas in ((2, 3, 1), (3, 1, 2)):
                move(kafka, direct, "orders", replicas)
                work(RECORDS)
            assert told == [None] * len(told) and len(told) == len(read) == 3 * RECORDS
            consumer.close()
            produced, fetched = named(tapped, PRODUCE), named(tapped, FETCH)
            rewritten(kafka, lab, produced + fetched)
        assert {one[0] for given, _ in produced for one in given} >= {2}
        assert {one[0] for given, _ in fetched for one in given} >= {2}
        trace = lab.trace()
        acknowledged = [
            record.offset
            for row in trace.operations
            if row.function is Function.APPEND and row.outcome is Outcome.OK
            for record in row.records
        ]
        assert sorted(acknowledged) == [offset for offset, *_ in kafka.dumped("orders-0", node=3)]
        assert {row.node for row in trace.operations if row.function is Function.APPEND} >= {1, 2, 3}
    for verdict in judge(trace, DEFAULT_CHECKS):
        assert verdict.decision is Decision.OK, verdict


# Apache Kafka from its jars, in front of it the proxy, in front of that clients that know nothing of it.
# What is in the logs at the end is compared with what is in the trace: every record, every commit, and
# nothing else.


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
