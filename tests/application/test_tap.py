"""A tap around stand-ins of clients: what it writes, and in which order."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from fencepost.application.tap import Tap


def record(offset):
    """A record of confluent-kafka."""
    fields = {"topic": "t", "partition": 0, "offset": offset, "key": b"k", "value": b"v"}
    return SimpleNamespace(
        **{name: lambda value=value: value for name, value in fields.items()},
        error=lambda: None,
        headers=lambda: None,
    )


def spot(offset):
    return SimpleNamespace(topic="t", partition=0, offset=offset)


class Consumer:
    """As confluent_kafka.Consumer."""

    offsets = 0

    def subscribe(self, topics, **callbacks):
        self.callbacks = callbacks

    def poll(self):
        self.offsets += 1
        return record(self.offsets - 1)

    def commit(self, **_):
        return [spot(self.offsets)]

    def assign(self, partitions):
        self.assigned = partitions


class Producer:
    """As confluent_kafka.Producer."""

    def begin_transaction(self): ...

    def send_offsets_to_transaction(self, positions, metadata): ...

    def commit_transaction(self): ...

    def abort_transaction(self): ...


class AIOKafkaConsumer:
    """As aiokafka's."""

    running = False

    def subscription(self):
        return frozenset()

    async def start(self):
        self.running = True

    async def stop(self):
        self.running = False


class AIOKafkaProducer(AIOKafkaConsumer):
    """As aiokafka's."""


@pytest.fixture
def tap(tmp_path):
    found = Tap(tmp_path / "app.events")
    yield found
    found.close()


def said(tap, *kinds):
    """The lines of these kinds, as kind and offset."""
    with open(tap.path, "rb") as file:
        lines = [json.loads(line) for line in file]
    return [(line["event"], line.get("offset")) for line in lines if line["event"] in kinds]


def transaction(producer, consumer, *, committed=True, between=lambda order: None):
    """A record that is processed in a transaction. between: what is done after it, before `processed`."""
    order = consumer.poll()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([spot(order.offset() + 1)], None)
    (producer.commit_transaction if committed else producer.abort_transaction)()
    between(order)
    return order


def test_a_commit_of_a_transaction_is_not_before_what_it_commits(tap):
    """Rule: with a transaction the work of a record and its commit are one; whoever says `processed` once it
    is committed has not committed early. Another thread that reads on in between changes nothing."""
    consumer, producer = tap.consumer(Consumer(), "c", "g"), tap.producer(Producer())
    for read_on in (lambda _: None, lambda _: consumer.poll()):
        tap.processed(transaction(producer, consumer, between=read_on))
    assert said(tap, "processed", "committed") == [
        ("processed", 0), ("committed", 1), ("processed", 1), ("committed", 2),
    ]  # fmt: skip


def test_a_commit_of_a_transaction_is_written_though_its_record_is_never_processed(tap):
    """Rule: a record that is left out is passed by the next one, or by the end of its owner."""
    consumer, producer = tap.consumer(Consumer(), "c", "g"), tap.producer(Producer())
    consumer.subscribe(["t"])
    transaction(producer, consumer)
    tap.processed(transaction(producer, consumer))
    transaction(producer, consumer)
    transaction(producer, consumer, committed=False)
    consumer.client.callbacks["on_revoke"](consumer.client, [spot(-1001)])
    assert said(tap, "processed", "committed", "revoked") == [
        ("processed", 1), ("committed", 2), ("committed", 3), ("revoked", None),
    ]  # fmt: skip


def test_callbacks_of_a_rebalance_get_the_tapped_consumer(tap):
    """Rule: what an application commits or assigns in a callback is written as anywhere else."""
    consumer = tap.consumer(Consumer(), "c", "g")
    consumer.subscribe(
        ["t"],
        on_assign=lambda client, _: client.assign([spot(7)]),
        on_revoke=lambda client, _: client.commit(asynchronous=False),
        on_lost=lambda client, _: client.commit(asynchronous=False),
    )
    client = consumer.client
    client.callbacks["on_assign"](client, [spot(-1001)])
    for name in ("on_revoke", "on_lost"):
        client.callbacks[name](client, [spot(-1001)])
    assert said(tap, "assigned", "committed", "revoked", "lost") == [
        ("assigned", None), ("assigned", 7),
        ("committed", 0), ("revoked", None), ("committed", 0), ("lost", None),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [AIOKafkaConsumer, AIOKafkaProducer])
def test_a_block_of_aiokafka_is_tapped(tap, kind):
    """Rule: `async with` starts the client, hands out the wrapper, and stops it."""

    async def run():
        wrapped = tap.consumer(kind(), "c")
        async with wrapped as inside:
            assert inside is wrapped and wrapped.client.running
        assert not wrapped.client.running

    asyncio.run(run())
    assert said(tap, "started", "stopped") == [("started", None), ("stopped", None)]
