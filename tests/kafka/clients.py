"""Clients of other people (kafka-python, librdkafka), as the tests use them."""

import logging
import time
from contextlib import contextmanager

from confluent_kafka import Consumer
from kafka import KafkaProducer

from fencepost.traces.operations import Function, Outcome

PATIENCE_S = 600
logging.getLogger("kafka").setLevel(
    logging.CRITICAL
)  # its connections break all the time here, and it tells each with a traceback


@contextmanager
def producer(kafka, **options):
    """A producer with acks=all."""
    defaults = {"acks": "all", "retries": 100, "retry_backoff_ms": 50, "request_timeout_ms": 5_000}
    client = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers.split(","),
        **{**defaults, "delivery_timeout_ms": 300_000, "linger_ms": 0, "reconnect_backoff_ms": 20, **options},
    )
    try:
        yield client
    finally:
        client.close(timeout=5)


def produce(client, values, topic="t", *, patience_s=PATIENCE_S):
    """Send these numbers as values, and wait until each is acknowledged. patience_s: below the usual, it is
    no mistake if some are not."""
    sent = [client.send(topic, b"%d" % value) for value in values]
    for future in sent:
        try:
            future.get(patience_s)
        except Exception:
            if patience_s == PATIENCE_S:
                raise


class Reader:
    """A consumer in a group."""

    def __init__(self, client):
        self.client = client

    def poll(self, timeout_ms):
        """The numbers that come within this time."""
        messages = self.client.consume(500, timeout_ms / 1000)
        return {int(message.value()) for message in messages if message.error() is None}

    def read(self, count):
        """The numbers of so many more records, at least."""
        seen, deadline = set(), time.monotonic() + PATIENCE_S
        while len(seen) < count:
            assert time.monotonic() < deadline, f"{len(seen)} of {count} records"
            seen |= self.poll(100)
        return seen


@contextmanager
def consumer(kafka, group, topic="t"):
    """A consumer of a group, from the beginning: librdkafka's. (kafka-python 3.0.12 that has to join a second
    time stayed in that rebalance for ever in about one of ten runs: no heartbeat, no request, and nothing
    unanswered at any broker.)"""
    client = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    client.subscribe([topic])
    try:
        yield Reader(client)
    finally:
        client.close()


def appended(trace):
    """Numbers that were acknowledged to clients from outside."""
    rows = [
        row
        for row in trace.operations
        if row.function is Function.APPEND and row.outcome is Outcome.OK and row.process >= 1_000
    ]
    return {record.value for row in rows for record in row.records}
