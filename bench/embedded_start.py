"""How long an embedded cluster takes until it serves, and until its first record is acknowledged.

    python bench/embedded_start.py [--runs 20] [--brokers 3]

Each run is a fresh process, because only the first cluster of a process pays for what is loaded late. Times
taken in it: importing fencepost.kafka (with the messages of Kafka's protocol); from the call of cluster()
until it returns, until a topic has leaders, until a record of a client (kafka-python, imported before) is
acknowledged; the same for a second cluster in that process, and for one in a child process. The whole is the
process from its start to its end.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

CHILD = """
import json, sys, time
brokers = int(sys.argv[1])
begun = time.perf_counter()
import fencepost.kafka
imported = time.perf_counter() - begun
from kafka import KafkaProducer

def acknowledged(**options):
    begun = time.perf_counter()
    with fencepost.kafka.cluster(brokers=brokers, **options) as kafka:
        ready = time.perf_counter() - begun
        kafka.create_topic("t")
        created = time.perf_counter() - begun
        client = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers.split(","), acks="all")
        client.send("t", b"1").get(60)
        first = time.perf_counter() - begun
        client.close()
    return ready, created, first

names = ("ready", "topic", "record")
times = {"import": imported}
for which, options in (("first", {}), ("second", {}), ("child", {"process": True})):
    times |= {f"{which}: {name}": seconds for name, seconds in zip(names, acknowledged(**options))}
print(json.dumps(times))
"""
LABELS = {
    "import": "import fencepost.kafka",
    "first: ready": "cluster() returns",
    "first: topic": "... and a topic has leaders",
    "first: record": "... and a record is acknowledged",
    "second: ready": "a second cluster() returns",
    "second: topic": "... and a topic has leaders",
    "second: record": "... and a record is acknowledged",
    "child: ready": "cluster(process=True) returns",
    "child: topic": "... and a topic has leaders",
    "child: record": "... and a record is acknowledged",
    "whole": "the whole process of one run",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--brokers", type=int, default=3)
    arguments = parser.parse_args()
    seen: dict[str, list[float]] = {name: [] for name in LABELS}
    for _ in range(arguments.runs):
        begun = time.perf_counter()
        command = [sys.executable, "-c", CHILD, str(arguments.brokers)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seen["whole"].append(time.perf_counter() - begun)
        for name, seconds in json.loads(out).items():
            seen[name].append(seconds)
    print(f"{arguments.brokers} brokers, {arguments.runs} runs, milliseconds")
    print(f"{'':40} {'median':>8} {'least':>8} {'most':>8}")
    for name, label in LABELS.items():
        taken = [1_000 * seconds for seconds in seen[name]]
        print(f"{label:40} {statistics.median(taken):8.0f} {min(taken):8.0f} {max(taken):8.0f}")


if __name__ == "__main__":
    main()
