"""What an embedded cluster carries, and whether clusters leave memory behind.

    python bench/embedded_run.py [--records 100000] [--clusters 100]

Throughput: one partition, three brokers, acks=all, 100-byte records in librdkafka's default batches, producer
and brokers in one process. Printed: wall time and the processor time of the process, both with the client's
share. What is left: resident megabytes, threads and open files after every fifth of the clusters that are
started, given a topic, a fault and an acknowledged record, and closed, one after another; at the end, how
many of their ports still answer.
"""

import argparse
import gc
import socket
import threading
import time
from pathlib import Path

from confluent_kafka import Producer
from kafka import KafkaProducer

import fencepost.kafka

RECORD_BYTES = 100
FLUSH_S = 300
MEBIBYTE = 1 << 20


def resident_mib() -> float:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096 / MEBIBYTE


def throughput(records: int) -> None:
    """Print one line."""
    with fencepost.kafka.cluster() as kafka:
        kafka.create_topic("t")
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "acks": "all", "log_level": 0}
        producer = Producer({**settings, "queue.buffering.max.messages": records + 1})
        wall, processor = time.perf_counter(), time.process_time()
        for number in range(records):
            producer.produce("t", value=b"%0*d" % (RECORD_BYTES, number))
            if number % 1_000 == 0:
                producer.poll(0)
        left = producer.flush(FLUSH_S)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    assert left == 0, f"{left} records were not acknowledged within {FLUSH_S} s"
    rates = f"{records / wall:,.0f} records/s of wall time, {records / processor:,.0f} of processor time"
    print(
        f"{records:,} records of {RECORD_BYTES} bytes: {wall:.1f} s, {processor:.1f} s of processor time: "
        f"{rates}"
    )


def left(clusters: int) -> None:
    """Print a line for every fifth of them."""
    servers: list[str] = []
    for number in range(1, clusters + 1):
        with fencepost.kafka.cluster() as kafka:
            servers += kafka.bootstrap_servers.split(",")
            kafka.create_topic("t")
            kafka.lose_answer("Produce", "t")
            client = KafkaProducer(
                bootstrap_servers=servers[-3:], acks="all", retries=50, retry_backoff_ms=20
            )
            client.send("t", b"%d" % number).get(FLUSH_S)
            client.close()
        if number % max(1, clusters // 5) == 0:
            gc.collect()
            files = len(list(Path("/proc/self/fd").iterdir()))
            held = f"{threading.active_count()} threads, {files} open files"
            print(f"{number:4} clusters: {resident_mib():.1f} MiB resident, {held}", flush=True)
    print(f"{sum(map(answers, servers))} of {len(servers)} ports still answer")


def answers(server: str) -> bool:
    """Whether somebody listens there."""
    host, _, port = server.rpartition(":")
    with socket.socket() as connection:
        return connection.connect_ex((host, int(port))) == 0


def main() -> None:
    """Both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.records:
        throughput(arguments.records)
    left(arguments.clusters)


if __name__ == "__main__":
    main()
