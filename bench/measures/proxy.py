"""What a proxy costs: an application's rate and latency with it and without, and the highest throughput.

Against Apache Kafka, one broker, or one that is up (--bootstrap); with --quick against the embedded
cluster. The application is librdkafka in this process, the proxy a process of its own that records, with
hashes. With --other HOST:PORT PID another proxy that is up is measured. Records are of 100 bytes, acks=all.
A reader takes all records from the beginning, the time to connect included, and never waits because its
queue is full.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from bench.clusters import PROGRAM, Cluster, apache_kafka, create_topics, embedded, has_kafka, produce
from bench.costs import Cost, cpu_s
from bench.harness import Case
from fencepost.systems.apache_kafka.jars import ZOOKEEPER

PARTITIONS = 3
FULL_SPEED_RECORDS, READ_RECORDS = 300_000, 2_000_000
"""librdkafka fetches 100,000 records a partition ahead: far more are read, so that these do not decide."""


@contextmanager
def proxied(bootstrap: str, record: bool) -> Iterator[Cluster]:
    """Our proxy, as a process."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        words = ["proxy", "--upstream", bootstrap, "--listen", "127.0.0.1:0", "--json", "--no-view"]
        command = [*PROGRAM, *words, *(["--record", folder] if record else [])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            yield Cluster(bootstrap=json.loads(process.stdout.readline())["listen"], processes=(process.pid,))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def consume(bootstrap: str, topic: str, records: int, *watched: int) -> Cost:
    """Read so many from the beginning."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "log_level": 0,
        "enable.auto.commit": False,
    }
    room = {"queued.min.messages": READ_RECORDS, "queued.max.messages.kbytes": 1_000_000}
    others, cpu, began = cpu_s(*watched), time.process_time(), time.perf_counter()
    consumer, got = Consumer(settings | room), 0
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    while got < records:
        found = len(consumer.consume(min(5_000, records - got), 10))
        if not found:
            raise SystemExit(f"{got} of {records} records came")
        got += found
    wall, cpu, others = time.perf_counter() - began, time.process_time() - cpu, cpu_s(*watched) - others
    consumer.close()
    return Cost(wall_s=wall, cpu_s=cpu + others, more={"records/s": got / wall, "proxy CPU s": others})


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--bootstrap", help="a Kafka that is up")
    parser.add_argument("--version", default=ZOOKEEPER, help="of Apache Kafka")
    parser.add_argument("--seconds", type=float, default=10, help="of each turn at a rate")
    parser.add_argument("--rates", default="2000,20000", help="records a second")
    parser.add_argument("--no-record", action="store_true", help="the proxy passes records on, and no more")
    parser.add_argument("--other", nargs=2, metavar=("HOST:PORT", "PID"), help="another proxy that is up")


def upstream(asked: argparse.Namespace) -> AbstractContextManager[Cluster]:
    """The Kafka that is asked for. Ends the program where there is none."""
    if asked.bootstrap:
        return nullcontext(Cluster(bootstrap=asked.bootstrap))
    if asked.quick:
        return embedded(brokers=1)
    if not has_kafka(asked.version):
        raise SystemExit(0)
    return apache_kafka(asked.version, brokers=1)


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """At each rate, as fast as it goes, and reading."""
    with upstream(asked) as direct:
        topics = [f"bench-{os.getpid()}-{use}" for use in ("write", "read")]
        create_topics(direct.bootstrap, *topics, partitions=PARTITIONS, replicas=1)
        if asked.other:
            way = nullcontext(Cluster(bootstrap=asked.other[0], processes=(int(asked.other[1]),)))
        else:
            way = proxied(direct.bootstrap, not asked.no_record)
        with way as through:
            ways = {"with the proxy": through, "without": Cluster(bootstrap=direct.bootstrap)}
            many = 500 if asked.quick else FULL_SPEED_RECORDS
            jobs = [(f"produce {many:,}", many, 0.0)]
            for rate in () if asked.quick else map(int, asked.rates.split(",")):
                jobs.append((f"produce {rate:,} a second", int(rate * asked.seconds), rate))
            for name, count, rate in jobs:
                sides = {
                    side: partial(produce, one.bootstrap, topics[0], count, *one.processes, rate=rate)
                    for side, one in ways.items()
                }
                yield Case(name=name, sides=sides, per=count, unit="record")
            count = 500 if asked.quick else READ_RECORDS
            produce(direct.bootstrap, topics[1], count)
            readers = {
                side: partial(consume, one.bootstrap, topics[1], count, *one.processes)
                for side, one in ways.items()
            }
            yield Case(name=f"consume {count:,}", sides=readers, per=count, unit="record")
