"""One way to start a Kafka, and to put records into it.

What is not installed (confluent-kafka, Maven, Java) leaves its side out by name.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen

import fencepost.kafka
from bench.costs import Cost, cpu_s
from bench.harness import skipped
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release, missing

RECORD_BYTES, PATIENCE_S = 100, 300
EMBEDDED = "embedded cluster"
PROGRAM = [sys.executable, "-P", "-c", "from fencepost.cli import main; main()"]
"""`fencepost`, of the tree that is measured."""


@frozen(kw_only=True)
class Cluster:
    """One that runs."""

    bootstrap: str
    # Of its brokers; none where they are in this process.
    processes: tuple[int, ...] = ()


@contextmanager
def embedded(brokers: int = 3) -> Iterator[Cluster]:
    """The brokers of this project, in this process."""
    with fencepost.kafka.cluster(brokers=brokers) as kafka:
        yield Cluster(bootstrap=kafka.bootstrap_servers)


@contextmanager
def apache_kafka(version: str, brokers: int = 3) -> Iterator[Cluster]:
    """Apache Kafka from its jars, each broker a process. The first start of a version makes an archive of its
    classes."""
    with (
        TemporaryDirectory(prefix="fencepost-bench-") as folder,
        ApacheKafka(
            directory=Path(folder), release=Release(version=version), size=brokers, heap_mb=512
        ) as kafka,
    ):
        processes = tuple(one.pid for one in kafka.running.processes.values())
        yield Cluster(bootstrap=kafka.bootstrap_servers(), processes=processes)


def has_kafka(version: str) -> bool:
    """Whether Apache Kafka can run here; says why not."""
    if why := missing():
        skipped(f"Apache Kafka {version}", why)
    return not why


def create_topics(bootstrap: str, *names: str, partitions: int = 1, replicas: int = 3) -> None:
    """Topics, until each is there."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(name, partitions, replicas) for name in names]
    for made in admin.create_topics(wanted).values():
        made.result(PATIENCE_S)


def first_record(topic: str, **settings: object) -> None:
    """Returns when a new producer's record is acknowledged; raises what the producer says otherwise."""
    from confluent_kafka import Producer

    said: list[object] = []
    producer = Producer({"acks": "all", "log_level": 3, **settings})
    producer.produce(topic, b"1", on_delivery=lambda error, _: said.append(error))
    if producer.flush(PATIENCE_S) or said != [None]:
        raise RuntimeError(f"the record was not acknowledged: {said}")


def produce(bootstrap: str, topic: str, records: int, *watched: int, rate: float = 0.0) -> Cost:
    """So many records until all are acknowledged. rate: records a second; 0: as fast as it goes. watched:
    processes whose processor time counts too. Latencies are from produce() to the delivery report."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, "linger.ms": 1 if rate else 5}
    producer = Producer({**settings, "queue.buffering.max.messages": records + 100})
    producer.list_topics(topic, timeout=30)
    for _ in range(50):  # connections to all leaders first
        producer.produce(topic, b"x")
    producer.flush(60)
    values = [b"%0*d" % (RECORD_BYTES, number) for number in range(records)]
    waits: list[float] = []
    others = cpu_s(*watched)
    began, cpu = time.perf_counter(), time.process_time()
    for number, value in enumerate(values):
        while rate and (wait := began + number / rate - time.perf_counter()) > 0:
            producer.poll(min(wait, 0.0005))
        sent = time.perf_counter()

        def heard(error: object, _: object, sent: float = sent) -> None:
            assert error is None, error
            waits.append(time.perf_counter() - sent)

        producer.produce(topic, value, on_delivery=heard)
        if number % 16 == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0, f"records were not acknowledged within {PATIENCE_S} s"
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    waits.sort()
    more = {
        "records/s": records / wall,
        "p50 ms": 1000 * waits[records // 2],
        "p99 ms": 1000 * waits[-records // 100],
    }
    others = cpu_s(*watched) - others
    return Cost(
        wall_s=wall, cpu_s=cpu + others, more=more | ({"other processes CPU s": others} if watched else {})
    )


def resident_mib() -> float:
    """Of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
