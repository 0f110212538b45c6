"""Other people's clients against a simulated cluster with real sockets: librdkafka, aiokafka,
kafka-python."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Spot
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from wire_lab import wire_lab

from fencepost.impl.log.batch.record_batch import read_headers
from fencepost.impl.messages.broker_api import TopicPartition as Key
from fencepost.traces.plan import TopicOptions

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = (0, 1, "all")
BOUND_S = 600
NULL_AND_EMPTY = ((None, b"v"), (b"", b""), (b"k", None), (b"k", b"v" * 500))


@pytest.fixture(scope="module")
def lab():
    """One cluster for all; each test has topics of its own."""
    topics = [TopicOptions(name=name, partitions=3) for name in ("librdkafka", "aiokafka", "kafka-python")]
    topics += [
        TopicOptions(name=name) for name in ("times", "idempotent", "groups", "bytes", "small", "committed")
    ]
    with wire_lab(*topics, auto_create_topics_enable=False) as made:
        yield made


def stored(lab, topic, partition=0):
    """The batches of a partition as its leader has them."""
    for host in lab.world.hosts.values():
        replica = host.core.replicas.partitions.get(Key(topic, partition))
        if replica is not None and replica.is_leader:
            return [
                (header, bytes(data[header.position : header.end_position]))
                for header, data in replica.log.batches()
            ]
    raise AssertionError(f"nobody leads {topic}-{partition}")


def librdkafka_reads(lab, topic, count, **options):
    """The first records of a topic, read by a consumer in a group of its own."""
    config = {
        "bootstrap.servers": lab.bootstrap,
        "group.id": f"read {topic}",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(config | options)
    consumer.subscribe([topic])
    records, deadline = [], time.monotonic() + BOUND_S
    try:
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records"
            for record in consumer.consume(count - len(records), 1.0):
                assert record.error() is None, record.error()
                records.append(record)
    finally:
        consumer.close()
    return records


def test_librdkafka_produces_with_each_acks_and_codec_and_reads_all_back(lab):
    """Keys, values, nulls, headers and times come back as they were sent."""
    sent = []
    for acks in ACKS:
        for codec in CODECS:
            producer = Producer(
                {"bootstrap.servers": lab.bootstrap, "acks": acks, "compression.codec": codec}
            )
            failures = []
            for number, (key, value) in enumerate(NULL_AND_EMPTY):
                headers = [("codec", codec.encode()), ("null", None), ("codec", b"twice")]
                producer.produce(
                    "librdkafka",
                    value,
                    key,
                    partition=number % 3,
                    timestamp=1_700_000_000_123 + number,
                    headers=headers,
                    on_delivery=lambda error, record, failures=failures: (
                        failures.append(error) if error else None
                    ),
                )
                sent.append((number % 3, key, value, 1_700_000_000_123 + number, headers))
            assert producer.flush(BOUND_S) == 0 and failures == []
    read = librdkafka_reads(lab, "librdkafka", len(sent))
    came = [(it.partition(), it.key(), it.value(), it.timestamp()[1], it.headers()) for it in read]
    assert sorted(came, key=repr) == sorted(sent, key=repr)
    assert {header.codec for number in range(3) for header, _ in stored(lab, "librdkafka", number)} == set(
        CODECS
    )


def test_aiokafka_produces_with_each_acks_and_codec_and_reads_all_back(lab):
    """The same with a client that asks in other versions."""

    async def work():
        sent = []
        for acks in ACKS:
            for codec in CODECS:
                options = {"acks": acks, "compression_type": None if codec == "none" else codec}
                async with AIOKafkaProducer(bootstrap_servers=lab.bootstrap, **options) as producer:
                    for number in range(6):
                        value = f"{acks} {codec} {number}".encode()
                        await producer.send("aiokafka", value, partition=number % 3, headers=[("h", b"1")])
                        sent.append(value)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=lab.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        async with consumer:
            consumer.assign([TopicPartition("aiokafka", number) for number in range(3)])
            read = [await consumer.getone() for _ in sent]
        assert sorted(record.value for record in read) == sorted(sent)
        assert {record.headers for record in read} == {(("h", b"1"),)}

    asyncio.run(asyncio.wait_for(work(), BOUND_S))


def test_kafka_python_produces_with_each_acks_and_codec_and_reads_all_back(lab):
    """The same with a client in pure Python."""
    count = 0
    for acks in ACKS:
        for codec in CODECS:
            options = {
                "acks": acks,
                "compression_type": None if codec == "none" else codec,
                "enable_idempotence": acks == "all",
            }
            producer = KafkaProducer(bootstrap_servers=lab.bootstrap, **options)
            told = [
                producer.send("kafka-python", b"%d" % number, partition=number % 3) for number in range(6)
            ]
            producer.flush(BOUND_S)
            assert all(future.get(BOUND_S).topic == "kafka-python" for future in told)
            producer.close()
            count += 6
    consumer = KafkaConsumer(bootstrap_servers=lab.bootstrap, group_id="python", auto_offset_reset="earliest")
    consumer.partitions_for_topic("kafka-python")  # known before it joins, so that it joins once
    consumer.subscribe(["kafka-python"])
    read = [next(consumer).value for _ in range(count)]
    assert sorted(read) == sorted(b"%d" % number for _ in range(15) for number in range(6))
    consumer.close()


def test_metadata_shows_the_cluster_as_it_is(lab):
    """Brokers with their ports, the controller, leaders, replicas and in-sync replicas."""
    seen = AdminClient({"bootstrap.servers": lab.bootstrap}).list_topics(timeout=BOUND_S)
    assert {node: broker.port for node, broker in seen.brokers.items()} == lab.ports
    assert seen.controller_id in lab.ports
    parts = seen.topics["librdkafka"].partitions
    assert {
        number: (part.leader, sorted(part.replicas), sorted(part.isrs)) for number, part in parts.items()
    } == {0: (1, [1, 2, 3], [1, 2, 3]), 1: (2, [1, 2, 3], [1, 2, 3]), 2: (3, [1, 2, 3], [1, 2, 3])}
    with pytest.raises(KafkaException, match="Unknown topic"):
        error = AdminClient({"bootstrap.servers": lab.bootstrap}).list_topics("nosuch", timeout=BOUND_S)
        raise KafkaException(error.topics["nosuch"].error)


def test_a_batch_is_stored_byte_for_byte_but_for_offset_and_epoch(lab):
    """What the producer wrote behind byte 16 (magic, checksum, times, producer, records) is what a fetch
    returns."""
    seen = []
    lab.servers[1].hook = Spy(seen)
    try:
        producer = Producer({"bootstrap.servers": lab.bootstrap, "compression.codec": "zstd"})
        for number in range(50):
            producer.produce("bytes", b"value %d" % number)
        assert producer.flush(BOUND_S) == 0
    finally:
        lab.servers[1].hook = None
    assert seen and b"".join(batch[16:] for batch in seen) == b"".join(
        data[16:] for _, data in stored(lab, "bytes")
    )


class Spy:
    """A hook that keeps the batches of produce requests."""

    def __init__(self, batches):
        self.batches = batches

    def on_request(self, source, header, body):
        from fencepost.wire.hook import PASS

        if header.api_key == 0:
            self.batches += [part.records for topic in body.topic_data for part in topic.partition_data]
        return PASS

    def on_answer(self, source, header, body, answer):
        from fencepost.wire.hook import PASS

        return PASS


def test_an_idempotent_producer_has_its_id_and_its_sequence_in_the_log(lab):
    """KIP-98, with every codec of retries that librdkafka does by itself."""
    producer = Producer(
        {"bootstrap.servers": lab.bootstrap, "enable.idempotence": True, "batch.num.messages": 10}
    )
    for number in range(100):
        producer.produce("idempotent", b"%d" % number)
    assert producer.flush(BOUND_S) == 0
    headers = [header for header, _ in stored(lab, "idempotent")]
    assert len({header.producer_id for header in headers}) == 1 and headers[0].producer_id >= 0
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]
    read = librdkafka_reads(lab, "idempotent", 100)
    assert [record.value() for record in read] == [b"%d" % number for number in range(100)]


def test_offsets_are_found_by_time_and_at_both_ends(lab):
    """ListOffsets: the first record as late as asked, or the end; and the two ends."""
    producer = Producer({"bootstrap.servers": lab.bootstrap})
    for number in range(10):
        producer.produce("times", b"%d" % number, timestamp=1_000_000 + 100 * number)
        producer.flush(BOUND_S)
    consumer = Consumer({"bootstrap.servers": lab.bootstrap, "group.id": "times"})
    try:
        asked = {1_000_000: 0, 1_000_001: 1, 1_000_450: 5, 1_000_900: 9}
        for timestamp, offset in asked.items():
            (found,) = consumer.offsets_for_times([Spot("times", 0, timestamp)], timeout=BOUND_S)
            assert found.offset == offset
        (found,) = consumer.offsets_for_times([Spot("times", 0, 1_000_901)], timeout=BOUND_S)
        assert found.offset == -1, "no record is as late"
        assert consumer.get_watermark_offsets(Spot("times", 0), timeout=BOUND_S) == (0, 10)
    finally:
        consumer.close()


def test_a_small_fetch_gets_whole_batches_and_the_reader_skips(lab):
    """From the middle of a batch, with bounds below its size: the whole batch comes, and the client begins
    where it asked."""
    producer = Producer({"bootstrap.servers": lab.bootstrap, "linger.ms": 50})
    for number in range(100):
        producer.produce("small", b"%d" % number)
    assert producer.flush(BOUND_S) == 0
    assert any(header.count > 50 for header, _ in stored(lab, "small")), "one batch of many"

    async def work():
        consumer = AIOKafkaConsumer(
            bootstrap_servers=lab.bootstrap, fetch_max_bytes=10, max_partition_fetch_bytes=10
        )
        async with consumer:
            key = TopicPartition("small", 0)
            consumer.assign([key])
            consumer.seek(key, 73)
            return [int((await consumer.getone()).value) for _ in range(27)]

    assert asyncio.run(asyncio.wait_for(work(), BOUND_S)) == list(range(73, 100))


def test_two_members_share_a_group_and_go_on_where_it_committed(lab):
    """Cooperative and eager assignors; a member that leaves hands its partitions over; commits are read back
    by another client."""
    producer = Producer({"bootstrap.servers": lab.bootstrap})
    for number in range(30):
        producer.produce("librdkafka", b"%d" % number, partition=number % 3)
    assert producer.flush(BOUND_S) == 0
    for strategy in ("range", "roundrobin", "cooperative-sticky"):
        config = {
            "bootstrap.servers": lab.bootstrap,
            "group.id": f"two {strategy}",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 6_000,
            "enable.auto.commit": False,
        }
        first, second = Consumer(config), Consumer(config)
        first.subscribe(["librdkafka"])
        second.subscribe(["librdkafka"])
        deadline = time.monotonic() + BOUND_S
        while not (
            first.assignment()
            and second.assignment()
            and len(first.assignment()) + len(second.assignment()) == 3
        ):
            assert time.monotonic() < deadline, (first.assignment(), second.assignment())
            first.poll(0.05)
            second.poll(0.05)
        second.close()
        while len(first.assignment()) < 3:
            assert time.monotonic() < deadline, first.assignment()
            first.poll(0.05)
        spots = [Spot("librdkafka", number, 5 + number) for number in range(3)]
        first.commit(offsets=spots, asynchronous=False)
        first.close()
        reader = Consumer(config)
        committed = reader.committed([Spot("librdkafka", number) for number in range(3)], timeout=BOUND_S)
        assert [(spot.partition, spot.offset) for spot in committed] == [(0, 5), (1, 6), (2, 7)]
        reader.close()


def test_the_log_reads_as_batches(lab):
    """A check of the checks: what `stored` returns are whole batches."""
    for header, data in stored(lab, "bytes"):
        assert [each.count for each in read_headers(data)] == [header.count]
