"""What librdkafka gets into a partition, and how long kcat takes for one record: the embedded cluster next to
Apache Kafka.

    python bench/kafka_throughput.py [--records 100000] [--rounds 5] [--version 3.9.2] [--profile]

Three brokers, one partition, replication factor 3, acks=all, 100-byte records in librdkafka's default
batches. The systems take turns, so that both meet the same machine; Apache Kafka has processes of its own,
the embedded cluster shares one with its client. Next to the rate by the wall clock is that by processor time,
of the client and all brokers together: on a busy machine it says more. kcat: one process produces a record,
another one reads it (both with their start). What needs kcat, Maven or Java is skipped by name where they are
absent. --profile: where the embedded cluster's thread spends its time.
"""

import argparse
import cProfile
import os
import pstats
import shutil
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import fencepost.kafka
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import ZOOKEEPER, Release, missing

RECORD_BYTES = 100
PATIENCE_S = 300
KCAT_TIMES = 10
WARM_UP = 20_000
"""Records before the first round: a Java broker compiles meanwhile."""
OURS = "embedded cluster"


def produced(bootstrap: str, records: int) -> tuple[float, float]:
    """Wall seconds and this process's processor seconds until all are acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "log_level": 0,
            "queue.buffering.max.messages": records + 1,
        }
    )
    values = [b"%0*d" % (RECORD_BYTES, number) for number in range(records)]
    wall, processor = time.perf_counter(), time.process_time()
    for number, value in enumerate(values):
        producer.produce("t", value=value)
        if number % 1_000 == 0:
            producer.poll(0)
    left = producer.flush(PATIENCE_S)
    assert left == 0, f"{left} records were not acknowledged within {PATIENCE_S} s"
    return time.perf_counter() - wall, time.process_time() - processor


def processor_seconds(pids: list[int]) -> float:
    """User and system time of these processes so far, from /proc."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def kcat_round_trip(kcat: str, bootstrap: str, number: int) -> float:
    """Milliseconds for one process that produces a record and one that reads it."""
    begun = time.perf_counter()
    record = f"record {number}".encode()
    common = ["-b", bootstrap, "-t", "k", "-p", "0"]
    subprocess.run([kcat, "-P", "-X", "acks=all", *common], input=record, check=True, timeout=PATIENCE_S)
    command = [kcat, "-C", "-q", "-o", str(number), "-c", "1", *common]
    seen = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S).stdout
    assert seen.strip() == record, seen
    return 1_000 * (time.perf_counter() - begun)


def throughput(systems: dict[str, str], pids: dict[str, list[int]], records: int, rounds: int) -> None:
    """Print a line for each system, and the ratio. pids: of the brokers' processes, by system."""
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for number in range(rounds + 1):
        for name, bootstrap in systems.items():
            before = processor_seconds(pids.get(name, []))
            wall, processor = produced(bootstrap, records if number else WARM_UP)
            processor += processor_seconds(pids.get(name, [])) - before
            if number:
                rates[name].append((records / wall, records / processor))
    print(f"{records:,} records of {RECORD_BYTES} bytes, acks=all, {rounds} rounds in turns; records/s")
    for name, seen in rates.items():
        walls = sorted(wall for wall, _ in seen)
        line = (
            f"{name:24} median {statistics.median(walls):9,.0f} least {walls[0]:9,.0f} most {walls[-1]:9,.0f}"
        )
        line += f"; by processor time {statistics.median(each for _, each in seen):9,.0f}"
        print(line)
    for place, clock in enumerate(("the wall clock", "processor time")):
        ours, *theirs = (statistics.median(each[place] for each in seen) for seen in rates.values())
        for other in theirs:
            print(f"the embedded cluster has {ours / other:.2f} of Apache Kafka's rate by {clock}")
    print("aim: 0.33 by the wall clock of an idle machine; 50,000 records/s")


def kcat_times(systems: dict[str, str]) -> None:
    """Print a line for each system, and the ratio."""
    kcat = shutil.which("kcat")
    if kcat is None:
        print("kcat: skipped, not installed")
        return
    times: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(KCAT_TIMES):
        for name, bootstrap in systems.items():
            times[name].append(kcat_round_trip(kcat, bootstrap, number))
    for name, seen in times.items():
        print(
            f"{name:24} kcat's round trip: median {statistics.median(seen):6.0f} ms, {min(seen):.0f} to "
            f"{max(seen):.0f}"
        )
    ours, *theirs = (statistics.median(seen) for seen in times.values())
    for other in theirs:
        print(f"the embedded cluster takes {ours / other:.2f} times as long (aim: at most 2)")


def profile(kafka: Any, records: int) -> None:
    """Print where the time of the cluster's thread goes."""
    loop = kafka.run.cluster.system.thread.loop
    watching = cProfile.Profile()
    loop.call_soon_threadsafe(watching.enable)
    produced(kafka.bootstrap_servers, records)
    loop.call_soon_threadsafe(watching.disable)
    time.sleep(0.2)
    pstats.Stats(watching).sort_stats("tottime").print_stats(35)
    pstats.Stats(watching).sort_stats("cumulative").print_stats(60)


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--version", default=ZOOKEEPER)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        kafka = stack.enter_context(fencepost.kafka.cluster())
        systems = {OURS: kafka.bootstrap_servers}
        pids: dict[str, list[int]] = {}
        if missing():
            print(f"Apache Kafka {chosen.version}: skipped, {missing()}")
        elif not chosen.profile:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            real = ApacheKafka(directory=folder, release=Release(version=chosen.version), heap_mb=512)
            stack.enter_context(real)
            systems[f"Apache Kafka {chosen.version}"] = real.bootstrap_servers()
            processes = [each.pid for each in real.running.processes.values()]
            pids[f"Apache Kafka {chosen.version}"] = processes
        for bootstrap in systems.values():
            admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
            for name in ("t", "k"):
                admin.create_topics([NewTopic(name, 1, 3)])[name].result(PATIENCE_S)
        if chosen.profile:
            profile(kafka, chosen.records)
            return
        throughput(systems, pids, chosen.records, chosen.rounds)
        kcat_times(systems)


if __name__ == "__main__":
    main()
