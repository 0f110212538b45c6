"""Clients of other people (kafka-python), as the tests use them."""

import logging
import time
from contextlib import contextmanager

from kafka import KafkaConsumer, KafkaProducer

from fencepost.traces.operations import Function, Outcome

PATIENCE_S = 300
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

    def read(self, count):
        """The numbers of so many more records, at least."""
        seen, deadline = set(), time.monotonic() + PATIENCE_S
        while len(seen) < count:
            assert time.monotonic() < deadline, f"{len(seen)} of {count} records"
            for records in self.client.poll(100).values():
                seen |= {int(record.value) for record in records}
        return seen


@contextmanager
def consumer(kafka, group, topic="t"):
    """A consumer of a group, from the beginning."""
    client = KafkaConsumer(
        topic,
        bootstrap_servers=kafka.bootstrap_servers.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        reconnect_backoff_ms=20,
        retry_backoff_ms=50,
        request_timeout_ms=11_000,
        session_timeout_ms=10_000,
    )
    try:
        yield Reader(client)
    finally:
        client.close(timeout_ms=1_000)


def appended(trace):
    """Numbers that were acknowledged to clients from outside."""
    rows = [
        row
        for row in trace.operations
        if row.function is Function.APPEND and row.outcome is Outcome.OK and row.process >= 1_000
    ]
    return {record.value for row in rows for record in row.records}
