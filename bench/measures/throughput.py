"""What librdkafka gets into one partition: the embedded cluster next to Apache Kafka.

Three brokers, replication factor 3, acks=all, records of 100 bytes in librdkafka's default batches. Apache
Kafka has processes of its own, the embedded cluster shares one with its client; processor time is of client
and brokers together, and says more on a busy machine.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from bench.clusters import EMBEDDED, apache_kafka, create_topics, embedded, has_kafka, produce
from bench.harness import Case
from fencepost.systems.apache_kafka.jars import ZOOKEEPER


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--records", type=int, default=100_000, help="[default: 100000; quick: 500]")
    parser.add_argument("--version", default=ZOOKEEPER, help="of Apache Kafka")


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """One case."""
    records = 500 if asked.quick else asked.records
    with ExitStack() as stack:
        clusters = {EMBEDDED: stack.enter_context(embedded())}
        if not asked.quick and has_kafka(asked.version):
            clusters[f"Apache Kafka {asked.version}"] = stack.enter_context(apache_kafka(asked.version))
        for cluster in clusters.values():
            create_topics(cluster.bootstrap, "t")
        sides = {
            name: partial(produce, cluster.bootstrap, "t", records, *cluster.processes)
            for name, cluster in clusters.items()
        }
        yield Case(name=f"{records:,} records", sides=sides, per=records, unit="record")
