"""Transactions over Kafka's protocol: librdkafka, kafka-python and aiokafka commit, abort, and are fenced."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

import fencepost.kafka
from fencepost.checkers.verdict import Decision
from fencepost.traces.errors import PlanError
from fencepost.traces.plan import TransactionOptions
from tests.kafka.clients import PATIENCE_S, Reader


@pytest.fixture(scope="module")
def kafka():
    """A cluster with transactions."""
    options = TransactionOptions(state_topic_partitions=2, abort_check_ms=200)
    with fencepost.kafka.cluster(transactions=options) as cluster:
        yield cluster


def reader(kafka, topic, isolation):
    """A consumer that has assigned itself the only partition."""
    client = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"reader-{topic}",
            "isolation.level": isolation,
        }
    )
    client.assign([TopicPartition(topic, 0, 0)])
    return client


def read(kafka, topic, count, isolation="read_committed"):
    """So many numbers, and no more that come at once."""
    client = reader(kafka, topic, isolation)
    try:
        seen = Reader(client).read(count)
        return seen | Reader(client).poll(300)
    finally:
        client.close()


def librdkafka(kafka, name, topic, values, *, commit):
    """One transaction of librdkafka."""
    client = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": name})
    client.init_transactions(PATIENCE_S)
    client.begin_transaction()
    for value in values:
        client.produce(topic, b"%d" % value, partition=0)
    client.flush(PATIENCE_S)
    client.commit_transaction(PATIENCE_S) if commit else client.abort_transaction(PATIENCE_S)


def kafka_python(kafka, name, topic, values, *, commit):
    """One transaction of kafka-python."""
    client = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers.split(","), transactional_id=name, max_block_ms=60_000
    )
    try:
        client.init_transactions()
        client.begin_transaction()
        for value in values:
            client.send(topic, b"%d" % value, partition=0)
        client.flush()
        client.commit_transaction() if commit else client.abort_transaction()
    finally:
        client.close(timeout=5)


def aiokafka(kafka, name, topic, values, *, commit):
    """One transaction of aiokafka."""

    async def work():
        client = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name)
        await client.start()
        try:
            await client.begin_transaction()
            for value in values:
                await client.send_and_wait(topic, b"%d" % value, partition=0)
            await (client.commit_transaction() if commit else client.abort_transaction())
        finally:
            await client.stop()

    asyncio.run(work())


@pytest.mark.parametrize("write", [librdkafka, kafka_python, aiokafka])
def test_a_committed_transaction_is_read_and_an_aborted_one_is_not(kafka, write):
    """Rule (KIP-98): a reader of committed records is shown the committed ones only, another one all of
    them."""
    topic = f"plain-{write.__name__}"
    kafka.create_topic(topic, partitions=1)
    write(kafka, topic, topic, range(3), commit=False)
    write(kafka, topic, topic, range(3, 6), commit=True)
    assert read(kafka, topic, 3) == {3, 4, 5}
    assert read(kafka, topic, 6, "read_uncommitted") == set(range(6))


def test_offsets_are_committed_with_the_transaction(kafka):
    """Rule (KIP-447): an aborted transaction leaves the group where it was; a committed one moves it."""
    kafka.create_topic("from", partitions=1)
    kafka.create_topic("to", partitions=1)
    librdkafka(kafka, "feed", "from", range(4), commit=True)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "transform",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "transform"})
    producer.init_transactions(PATIENCE_S)
    try:
        consumer.subscribe(["from"])
        assert Reader(consumer).read(4) == set(range(4))
        for value, offset, commit in ((10, 4, False), (11, 2, True)):
            producer.begin_transaction()
            producer.produce("to", b"%d" % value, partition=0)
            offsets = [TopicPartition("from", 0, offset)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
            producer.commit_transaction(PATIENCE_S) if commit else producer.abort_transaction(PATIENCE_S)
            (committed,) = consumer.committed([TopicPartition("from", 0)], PATIENCE_S)
            assert committed.offset == (2 if commit else -1001)
        assert read(kafka, "to", 1) == {11}
    finally:
        consumer.close()


def test_a_producer_that_was_replaced_is_fenced(kafka):
    """Rule (KIP-98): the second producer of a transactional id aborts what the first one left open and fences
    it."""
    kafka.create_topic("fenced", partitions=1)
    first = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "one"})
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    first.produce("fenced", b"1", partition=0)
    first.flush(PATIENCE_S)
    librdkafka(kafka, "one", "fenced", [2], commit=True)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()
    assert read(kafka, "fenced", 1) == {2}


def test_aiokafka_is_fenced(kafka):
    """Rule (KIP-98): as above, in aiokafka's words."""
    kafka.create_topic("fenced-too", partitions=1)

    async def work():
        first, second = (
            AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="two")
            for _ in range(2)
        )
        await first.start()
        await first.begin_transaction()
        await first.send_and_wait("fenced-too", b"1", partition=0)
        await second.start()
        try:
            with pytest.raises(ProducerFenced):
                await first.commit_transaction()
        finally:
            await second.stop()
            await first.stop()

    asyncio.run(work())


def test_a_transaction_that_takes_too_long_is_aborted(kafka):
    """Rule (KIP-98): after transaction.timeout.ms readers of committed records get past it."""
    kafka.create_topic("late", partitions=1)
    config = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "late"}
    client = Producer({**config, "transaction.timeout.ms": 1_000})
    client.init_transactions(PATIENCE_S)
    client.begin_transaction()
    client.produce("late", b"1", partition=0)
    client.flush(PATIENCE_S)
    plain = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    plain.produce("late", b"2", partition=0)
    plain.flush(PATIENCE_S)
    assert read(kafka, "late", 1) == {2}


@pytest.mark.parametrize("ended", ["aborted", "undecided"])
def test_what_no_reader_of_committed_records_sees_is_no_result(ended):
    """Rule (KIP-98): a result in a transaction that was aborted, or has not ended yet, does not count: the
    one in the transaction after it is the only one."""
    options = TransactionOptions(state_topic_partitions=1)
    with fencepost.kafka.cluster(brokers=1, transactions=options) as kafka:
        kafka.create_topic("t")
        kafka.create_topic("u")
        librdkafka(kafka, "feed", "t", [1], commit=True)
        other = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "open"})
        other.init_transactions(PATIENCE_S)
        other.begin_transaction()
        other.produce("u", b"1", partition=0)
        other.flush(PATIENCE_S)
        if ended == "aborted":
            other.abort_transaction(PATIENCE_S)
        librdkafka(kafka, "service", "u", [1], commit=True)
        member = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"})
        member.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        member.close()
        assert [one.offset for one in kafka.records("u")] == [0, 2 if ended == "aborted" else 1]
        committed = kafka.records("u", isolation="read_committed")
        assert [one.offset for one in committed] == [2 if ended == "aborted" else 1]
        with pytest.raises(PlanError, match="read_committed"):
            kafka.records("u", isolation="committed")
        kafka.assert_processed_once("t", "u", group="g")


def test_every_judge_says_ok(kafka):
    """Rule: the record of all that is above is judged."""
    assert kafka.verdict().decision is Decision.OK, kafka.verdict()
