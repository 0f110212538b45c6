"""An embedded cluster from the call to its first acknowledged record, next to other test clusters; in a new
process; and what many clusters leave behind.

Three brokers. In this process, in turn, with librdkafka as the client of all: the embedded cluster,
librdkafka's mock cluster, Apache Kafka from its jars. With --others also franz-go's kfake (Go) and Spring's
EmbeddedKafka (Maven, one broker), with their own clients in processes of their own, where only their
medians are known. In a new process everything that is loaded late is paid for: the import of
fencepost.kafka, then a first cluster, a second one, and one in a child process, with kafka-python. Left
behind is what the process holds after so many clusters, each with a topic, a lost answer and an
acknowledged record.
"""

import argparse
import gc
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import fencepost.kafka
from bench.clusters import (
    EMBEDDED,
    Cluster,
    apache_kafka,
    create_topics,
    embedded,
    first_record,
    has_kafka,
    resident_mib,
)
from bench.costs import Cost, fresh, here
from bench.harness import Case, skipped, wanted
from fencepost.systems.apache_kafka.jars import KRAFT

BROKERS = 3
PEERS = Path(__file__).parents[1] / "peers"
ELSEWHERE = {
    "kfake": (PEERS / "kfake", ["go", "run", ".", "{turns}"]),
    "EmbeddedKafka": (
        PEERS / "embedded_kafka",
        ["mvn", "-q", "-B", "compile", "exec:java", "-Dexec.mainClass=Start", "-Dexec.args={turns} 1"],
    ),
}
"""Folder and command of clusters of other languages; they print `median N`, in milliseconds."""


def started(system: Callable[[], AbstractContextManager[Cluster]]) -> Cost:
    """From the call to the acknowledgement; the end of the cluster is not counted."""
    wall, cpu = time.perf_counter(), time.process_time()
    with system() as cluster:
        create_topics(cluster.bootstrap, "t", replicas=BROKERS)
        first_record("t", **{"bootstrap.servers": cluster.bootstrap})
        return Cost(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu)


def mocked() -> Cost:
    """librdkafka's mock cluster; it makes the topic on request."""
    return here(lambda: first_record("t", **{"test.mock.num.brokers": BROKERS}))


def elsewhere(name: str, turns: int) -> Cost:
    """The median of a program in another language."""
    folder, command = ELSEWHERE[name]
    words = [word.format(turns=turns) for word in command]
    said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
    found = re.search(r"median (\d+)", said)
    assert found, said
    return Cost(wall_s=int(found[1]) / 1000, cpu_s=0.0, more={"said": said.strip().splitlines()[-1]})


def in_a_new_process() -> Cost:
    """What each part takes, where nothing was loaded before (fencepost.kafka by the bench alone)."""
    from kafka import KafkaProducer

    def acknowledged(which: str, **options: bool) -> dict[str, float]:
        begun = time.perf_counter()
        with fencepost.kafka.cluster(brokers=BROKERS, **options) as kafka:
            ready = time.perf_counter() - begun
            kafka.create_topic("t")
            topic = time.perf_counter() - begun
            client = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers.split(","), acks="all")
            client.send("t", b"1").get(60)
            record = time.perf_counter() - begun
            client.close()
        times = {"ready": ready, "topic": topic, "record": record}
        return {f"{which}: {name} ms": 1000 * seconds for name, seconds in times.items()}

    more = acknowledged("first") | acknowledged("second") | acknowledged("child", process=True)
    return Cost(wall_s=more["first: record ms"] / 1000, cpu_s=time.process_time(), more=more)


def left_behind(clusters: int) -> Cost:
    """What this process holds after a fifth of them, and after all."""
    from kafka import KafkaProducer

    held: list[dict[str, float]] = []
    begun, cpu = time.perf_counter(), time.process_time()
    for number in range(1, clusters + 1):
        with fencepost.kafka.cluster(brokers=BROKERS) as kafka:
            kafka.create_topic("t")
            kafka.lose_answer("Produce", "t")
            servers = kafka.bootstrap_servers.split(",")
            client = KafkaProducer(bootstrap_servers=servers, acks="all", retries=50, retry_backoff_ms=20)
            client.send("t", b"%d" % number).get(60)
            client.close()
        if number in (max(1, clusters // 5), clusters):
            gc.collect()
            files = len(list(Path("/proc/self/fd").iterdir()))
            now = {"MiB": resident_mib(), "threads": threading.active_count(), "files": files}
            held.append({f"{name} after {number}": value for name, value in now.items()})
    spent = {"wall_s": time.perf_counter() - begun, "cpu_s": time.process_time() - cpu}
    return Cost(**spent, mib=resident_mib(), more=held[0] | held[-1])


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument("--clusters", type=int, default=100, help="that are started and closed [quick: 2]")
    parser.add_argument("--version", default=KRAFT, help="of Apache Kafka")
    parser.add_argument("--others", action="store_true", help="clusters of other languages, too")


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """Against others, in a new process, many of them."""
    sides: dict[str, Callable[[], Cost]] = {EMBEDDED: partial(started, partial(embedded, BROKERS))}
    sides["librdkafka's mock"] = mocked
    name = "to the first acknowledged record"
    if not asked.quick and wanted(asked, name) and has_kafka(asked.version):
        sides[f"Apache Kafka {asked.version}"] = partial(
            started, partial(apache_kafka, asked.version, BROKERS)
        )
    for other, (folder, _) in ELSEWHERE.items() if asked.others else ():
        sides[other] = partial(elsewhere, other, asked.turns)
        skipped(f"the turns of {other}", f"{folder.name} says its own median")
    yield Case(name=name, sides=sides)
    alone = {EMBEDDED: partial(fresh, in_a_new_process)}
    yield Case(name="in a new process", sides=alone, warm=False)
    clusters = 2 if asked.quick else asked.clusters
    many = {EMBEDDED: partial(fresh, left_behind, clusters)}
    yield Case(name=f"{clusters} clusters", sides=many, turns=1, warm=False, per=clusters, unit="cluster")
