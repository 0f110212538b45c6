"""How long an application hangs when its broker is killed, stopped or restarted, with the proxy and without.

    python -m bench.proxy_upstream [--release 3.9.2] [--rounds 3] [--out FILE]

One broker of Apache Kafka; four producers at once, librdkafka and Java, each with the proxy and without, so
that all meet the same fault. Reported per producer: the longest that a record waited for its outcome, and how
long after the broker was back its first record was acknowledged.
"""

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import confluent_kafka as ck
from attrs import define, field
from confluent_kafka.admin import AdminClient, NewTopic

from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release
from tools.kafka_shell.jars import JVM, class_path

RATE = 50
"""Records a second of each producer."""
WARM = 100
"""Records of each that were acknowledged before the fault."""
DOWN_S, AFTER_S = 8, 12
DELIVERY_MS, REQUEST_MS = 30_000, 3_000
"""Delivery outlives the fault, so that recovery is seen; a request does not."""
CLIENT = "4.3.1"
TOPICS = itertools.count()
HERE = Path(__file__).parent


@define
class Producer:
    """One producer. rows: (sent, outcome known, acknowledged), in milliseconds of the wall clock."""

    name: str
    rows: list[tuple[float, float, bool]] = field(factory=list)


def librdkafka(
    producer: Producer, bootstrap: str, topic: str, delivery_ms: int, over: threading.Event
) -> None:
    """Send until it is over."""
    client = ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "delivery.timeout.ms": delivery_ms,
            "request.timeout.ms": REQUEST_MS,
            "socket.timeout.ms": REQUEST_MS,
            "log_level": 0,
        }
    )
    while not over.is_set():
        sent = time.time() * 1000
        client.produce(
            topic,
            b"x" * 100,
            on_delivery=lambda error, _, sent=sent: producer.rows.append(
                (sent, time.time() * 1000, error is None)
            ),
        )
        client.poll(1 / RATE)
    client.flush(60)


def java(producer: Producer, bootstrap: str, topic: str, delivery_ms: int, over: threading.Event) -> None:
    """The same with Kafka's own client."""
    program = str(HERE / "ProxyUpstream.java")
    asked = (bootstrap, topic, str(RATE), str(delivery_ms), str(REQUEST_MS))
    command = ["java", *JVM, "-cp", class_path(CLIENT), program, *asked]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    given = process.stdin

    def end() -> None:
        over.wait()
        given.write("x")
        given.flush()

    ending = threading.Thread(target=end)
    ending.start()
    for line in process.stdout:
        sent, known, acknowledged = line.split()
        producer.rows.append((float(sent), float(known), acknowledged == "1"))
    process.wait(60)
    ending.join()


def break_it(kafka: ApacheKafka, fault: str) -> float:
    """Break the broker for DOWN_S; answers when it was back, in milliseconds."""
    if fault == "stopped":
        kafka.pause(1)
        time.sleep(DOWN_S)
        kafka.resume(1)
        return time.time() * 1000
    if fault == "stopped, then killed":
        kafka.pause(1)
        time.sleep(DOWN_S / 2)
    kafka.kill(1)
    time.sleep(DOWN_S / 2 if fault == "stopped, then killed" else DOWN_S)
    kafka.restart(1)
    kafka.wait_until_healthy()
    return time.time() * 1000


def one_round(kafka: ApacheKafka, through: str, fault: str, delivery_ms: int) -> dict[str, dict[str, float]]:
    """All four producers and one fault."""
    direct = kafka.bootstrap_servers()
    admin = AdminClient({"bootstrap.servers": direct, "log_level": 0})
    topic = f"upstream-{os.getpid()}-{next(TOPICS)}"
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    over, producers, threads = threading.Event(), [], []
    for name, send in (("librdkafka", librdkafka), ("Java", java)):
        for way, bootstrap in (("without", direct), ("with", through)):
            producer = Producer(f"{name}, {way}")
            producers.append(producer)
            threads.append(
                threading.Thread(target=send, args=(producer, bootstrap, topic, delivery_ms, over))
            )
    for thread in threads:
        thread.start()
    while any(len(each.rows) < WARM for each in producers):
        time.sleep(0.1)
    began = time.time() * 1000
    back = break_it(kafka, fault)
    time.sleep(AFTER_S)
    over.set()
    for thread in threads:
        thread.join()
    found = {}
    for producer in producers:
        before = [row for row in producer.rows if row[0] < began]
        failed = [known - began for _, known, good in producer.rows if not good]
        later = [known - back for _, known, good in producer.rows if good and known > back]
        found[producer.name] = {
            "sent before": len(before),
            "longest wait ms": max(known - sent for sent, known, _ in producer.rows if known > began),
            "first failure ms": min(failed, default=-1.0),
            "failed": len(failed),
            "back ms": min(later, default=-1.0),
        }
    return found


def main() -> None:
    """Every fault, so many rounds; medians and the longest, as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="3.9.2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delivery-ms", type=int, default=DELIVERY_MS)
    parser.add_argument("--faults", default="killed;stopped;stopped, then killed")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    result: dict[str, object] = {"release": asked.release, "delivery_ms": asked.delivery_ms}
    with tempfile.TemporaryDirectory(prefix="bench-upstream-") as made:
        folder = Path(made)
        with ApacheKafka(directory=folder / "kafka", release=Release(version=asked.release), size=1) as kafka:
            kafka.wait_until_healthy()
            program = [sys.executable, "-c", "from fencepost.cli import main; main()", "proxy"]
            where = ["--upstream", kafka.bootstrap_servers(), "--listen", "127.0.0.1:0"]
            record = ["--record", str(folder / "live"), "--json", "--no-view"]
            proxy = subprocess.Popen([*program, *where, *record], stdout=subprocess.PIPE, text=True)
            assert proxy.stdout is not None
            through = json.loads(proxy.stdout.readline())["listen"]
            try:
                for fault in asked.faults.split(";"):
                    rounds = [
                        one_round(kafka, through, fault, asked.delivery_ms) for _ in range(asked.rounds)
                    ]
                    result[fault] = {
                        name: {
                            what: [
                                round(statistics.median(each[name][what] for each in rounds)),
                                round(max(each[name][what] for each in rounds)),
                            ]
                            for what in rounds[0][name]
                        }
                        for name in rounds[0]
                    }
            finally:
                proxy.send_signal(signal.SIGINT)
                proxy.wait(60)
    result["load"] = os.getloadavg()[0]
    text = json.dumps(result, indent=1)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text)


if __name__ == "__main__":
    main()
