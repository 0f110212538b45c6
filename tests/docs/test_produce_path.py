"""The way of a record from a Kafka client to its acknowledgement, as the architecture page has it, against a
recorded call trace."""

import re
import threading
from pathlib import Path

import pytest

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

import fencepost.kafka
from tests.kafka.clients import produce, producer

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"
ROW = re.compile(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)
MOST_ROWS = 15


def recorded_calls() -> list[tuple[str, str]]:
    """The calls inside the package while a record is acknowledged: file and qualified name."""
    calls: list[tuple[str, str]] = []
    recording = threading.Event()

    def called(frame, event, argument) -> None:
        if event == "call" and recording.is_set():
            _, inside, file = frame.f_code.co_filename.rpartition("/fencepost/")
            if inside:
                calls.append((file, frame.f_code.co_qualname))

    threading.setprofile(called)  # of threads that begin from now on: the cluster's
    try:
        with fencepost.kafka.cluster(brokers=3) as kafka:
            threading.setprofile(None)
            kafka.create_topic("t", partitions=1, replication_factor=3)
            with producer(kafka) as client:
                produce(client, [1])
                recording.set()
                produce(client, [2])
                recording.clear()
    finally:
        threading.setprofile(None)
    return calls


def missing(rows: list[tuple[str, str]], calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows that were not called after the row above them."""
    found, at = [], 0
    for row in rows:
        try:
            at = calls.index(row, at) + 1
        except ValueError:
            found.append(row)
    return found


def test_the_way_of_a_produce_is_the_one_that_is_recorded() -> None:
    """Rule: each line of the page is a call, in this order; a line that is wrong is seen."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert 10 <= len(rows) <= MOST_ROWS
    calls = recorded_calls()
    assert missing(rows, calls) == []
    assert missing([*rows[1:], rows[0]], calls)
    assert missing([("wire/server.py", "Peer.nothing")], calls) == [("wire/server.py", "Peer.nothing")]
