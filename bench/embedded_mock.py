"""How long until a first record is acknowledged: an embedded cluster next to librdkafka's mock cluster.

    python bench/embedded_mock.py [--runs 20] [--brokers 3]

Both in this process, in turn, with the same client (librdkafka, acks=all) and as many brokers. The time runs
from the call that makes the cluster until the record is acknowledged; one run of each before the first is
left out.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

import fencepost.kafka


def _acknowledged(settings: dict[str, Any]) -> None:
    """Returns when a new producer's record is acknowledged; raises what the producer says otherwise."""
    said: list[Any] = []
    producer = Producer({"acks": "all", "log_level": 3, **settings})
    producer.produce("t", b"1", on_delivery=lambda error, _message: said.append(error))
    if producer.flush(60) or said != [None]:
        raise RuntimeError(f"the record was not acknowledged: {said}")


def _embedded(brokers: int) -> float:
    begun = time.perf_counter()
    with fencepost.kafka.cluster(brokers=brokers) as kafka:
        kafka.create_topic("t")
        _acknowledged({"bootstrap.servers": kafka.bootstrap_servers})
        return time.perf_counter() - begun


def _mock(brokers: int) -> float:
    begun = time.perf_counter()
    _acknowledged({"test.mock.num.brokers": brokers})
    return time.perf_counter() - begun


def main() -> None:
    """Print both rows, and the load of the machine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--brokers", type=int, default=3)
    arguments = parser.parse_args()
    subjects: dict[str, Callable[[int], float]] = {"embedded": _embedded, "librdkafka's mock": _mock}
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for run in range(arguments.runs + 1):
        for name, measure in subjects.items():
            seconds = measure(arguments.brokers)
            if run:
                taken[name].append(1_000 * seconds)
    print(f"{arguments.brokers} brokers, {arguments.runs} runs, milliseconds, load {os.getloadavg()[0]:.1f}")
    print(f"{'':20} {'median':>8} {'least':>8} {'most':>8}")
    for name, times in taken.items():
        print(f"{name:20} {statistics.median(times):8.0f} {min(times):8.0f} {max(times):8.0f}")


if __name__ == "__main__":
    main()
