"""What the programs of the zoo share: where Kafka is, settings under which a restart is quick, and short
forms of a client's calls. A mistake is never in here.

Each program is run as `python PROGRAM.py`, which is correct, or with --mistake. Where SERVICE_EVENTS names a
file, its clients write there what they do, and `done` what no client knows."""

import os
import signal
import sqlite3
import sys
import threading
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

SERVERS = os.environ["BOOTSTRAP_SERVERS"]
FOLDER = Path(os.environ.get("SERVICE_FOLDER", "."))
MISTAKE = "--mistake" in sys.argv
EVENTS = None
if "SERVICE_EVENTS" in os.environ:
    from fencepost.application.tap import Tap

    EVENTS = Tap(os.environ["SERVICE_EVENTS"], ids=False)
ORDERS, INVOICES, GROUP = "orders", "invoices", "billing"
SESSION_MS, HEARTBEAT_MS, REQUEST_MS, DELIVERY_MS, BACKOFF_MS = 1_000, 200, 2_000, 2_000, 50

AIO_CONSUMER = {
    "bootstrap_servers": SERVERS,
    "group_id": GROUP,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": HEARTBEAT_MS,
    "request_timeout_ms": REQUEST_MS,
    "retry_backoff_ms": BACKOFF_MS,
    "metadata_max_age_ms": 1_000,
}
AIO_PRODUCER = {
    "bootstrap_servers": SERVERS,
    "acks": "all",
    "enable_idempotence": True,
    "request_timeout_ms": REQUEST_MS,
    "retry_backoff_ms": BACKOFF_MS,
}
PYTHON_CONSUMER = {
    "bootstrap_servers": SERVERS.split(","),
    "group_id": GROUP,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "request_timeout_ms": REQUEST_MS,
    "retry_backoff_ms": BACKOFF_MS,
    "max_poll_records": 1,
}
PYTHON_PRODUCER = {
    "bootstrap_servers": SERVERS.split(","),
    "acks": "all",
    "enable_idempotence": True,
    "linger_ms": 0,
    "request_timeout_ms": REQUEST_MS,
    "delivery_timeout_ms": DELIVERY_MS,
    "retry_backoff_ms": BACKOFF_MS,
}
LIBRDKAFKA = {
    "bootstrap.servers": SERVERS,
    "reconnect.backoff.ms": BACKOFF_MS,
    "reconnect.backoff.max.ms": 200,
    "socket.timeout.ms": REQUEST_MS,
    "log_level": 0,
}


def tapped(client):
    """The client; it writes its events where they are asked for."""
    if EVENTS is None:
        return client
    return EVENTS.producer(client) if "Producer" in type(client).__name__ else EVENTS.consumer(client)


def done(order):
    """Nothing is left to do for this order."""
    if EVENTS is not None:
        EVENTS.processed(order)


def consumer_of(group=GROUP, **options):
    """librdkafka's consumer; options with _ in place of the dots."""
    settings = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": HEARTBEAT_MS,
    }
    if EVENTS is None:
        return Consumer(LIBRDKAFKA | settings | _dotted(options))
    name = f"consumer-{os.getpid()}"
    settings["on_commit"] = EVENTS.on_commit(name)
    return EVENTS.consumer(Consumer(LIBRDKAFKA | settings | _dotted(options)), name, group)


def producer_of(**options):
    """librdkafka's producer; options with _ in place of the dots."""
    settings = {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        "retry.backoff.ms": BACKOFF_MS,
        "request.timeout.ms": REQUEST_MS,
        "message.timeout.ms": DELIVERY_MS,
    }
    return tapped(Producer(LIBRDKAFKA | settings | _dotted(options)))


def _dotted(options):
    return {name if callable(value) else name.replace("_", "."): value for name, value in options.items()}


def take(consumer, most=1, timeout_s=0.1):
    """Records that came within this time."""
    return [one for one in consumer.consume(most, timeout_s) if one.error() is None]


def send(producer, key, value, topic=INVOICES):
    """Send a record, and wait for its report. Raises KafkaException."""
    reports = []
    producer.produce(topic, value, key, on_delivery=lambda error, _: reports.append(error))
    while not reports:
        producer.flush()
    if reports[0] is not None:
        raise KafkaException(reports[0])


def after(order):
    """The offset to commit once this record of librdkafka is done."""
    return TopicPartition(order.topic(), order.partition(), order.offset() + 1)


def invoice(value):
    """The invoice for an order."""
    return b"invoice for " + value


def database(table):
    """The service's own database, with a table that it may have already; each statement is a transaction."""
    connection = sqlite3.connect(FOLDER / "service.db", isolation_level=None, timeout=60)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
    return connection


def asked_to_stop():
    """An event that SIGTERM sets."""
    event = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: event.set())
    return event
