"""From the call to the first acknowledged record: the embedded cluster, and Apache Kafka 4 from its jars next
to it.

    python bench/kafka_start.py [--runs 10] [--brokers 3] [--version 4.4.0]

In one process, in turns: start a cluster, create a topic of one partition, produce one record with acks=all
and librdkafka, until it is acknowledged. Imports are done before. Apache Kafka uses an archive of its classes
(AppCDS), which the first start makes; that start is not counted. It is skipped by name where Maven or Java
are absent.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import fencepost.kafka
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import KRAFT, Release, missing

PATIENCE_S = 120
LIMIT_MS = 500
"""What an embedded cluster may take."""
System = Callable[[int, str], AbstractContextManager[str]]


def first_acknowledged(bootstrap: str, brokers: int) -> None:
    """Returns once a record is."""
    quiet = {"bootstrap.servers": bootstrap, "log_level": 0}
    admin = AdminClient(quiet)
    admin.create_topics([NewTopic("t", 1, brokers)])["t"].result(PATIENCE_S)
    producer = Producer({**quiet, "acks": "all"})
    producer.produce("t", b"1")
    assert producer.flush(PATIENCE_S) == 0, "no acknowledgement"


@contextmanager
def embedded(brokers: int, version: str) -> Iterator[str]:
    """Its bootstrap servers."""
    with fencepost.kafka.cluster(brokers=brokers) as kafka:
        yield kafka.bootstrap_servers


@contextmanager
def apache_kafka(brokers: int, version: str) -> Iterator[str]:
    """Its bootstrap servers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ApacheKafka(directory=Path(folder), release=Release(version=version), size=brokers) as kafka,
    ):
        yield kafka.bootstrap_servers()


def measured(system: System, brokers: int, version: str) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    with system(brokers, version) as bootstrap:
        first_acknowledged(bootstrap, brokers)
        return 1_000 * (time.perf_counter() - begun)


def main() -> None:
    """Print a line for each, and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--version", default=KRAFT)
    chosen = parser.parse_args()
    systems: dict[str, System] = {"embedded cluster": embedded}
    if missing():
        print(f"Apache Kafka {chosen.version}: skipped, {missing()}")
    else:
        systems[f"Apache Kafka {chosen.version}"] = apache_kafka
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(chosen.runs + 1):
        for name, system in systems.items():
            spent = measured(system, chosen.brokers, chosen.version)
            if number:
                taken[name].append(spent)
    print(f"{chosen.brokers} brokers, {chosen.runs} runs, milliseconds until a record is acknowledged")
    for name, each in taken.items():
        print(f"{name:24} median {statistics.median(each):7.0f} least {min(each):7.0f} most {max(each):7.0f}")
    ours, *theirs = (statistics.median(each) for each in taken.values())
    for other in theirs:
        print(f"Apache Kafka takes {other / ours:.1f} times as long")
    print(f"at most {LIMIT_MS} ms are allowed: {'kept' if ours <= LIMIT_MS else 'NOT kept'} by the median")


if __name__ == "__main__":
    main()
