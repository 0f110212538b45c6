"""What a proxy costs: an application's rate and latency with and without it, processor time, and the highest
throughput.

    python -m bench.proxy --bootstrap 127.0.0.1:9092 --seconds 10

against a Kafka that is up. With --other HOST:PORT PID it measures another proxy that is up. The producer is
librdkafka in this process, the proxy a process of its own that records. Each rate is measured without and
with the proxy, one after the other, three times; the medians are reported. Latency is from produce() to the
delivery report, of records of 100 bytes, acks=all. A reader takes READ_RECORDS from the beginning, the time
to connect included, and never waits because its queue is full.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

VALUE = b"x" * 92
ROUNDS = 3
PARTITIONS = 3
FULL_SPEED_RECORDS = 300_000
READ_RECORDS = 2_000_000
"""librdkafka fetches 100,000 records a partition ahead: far more, so that these do not decide."""
QUEUE_KBYTES = 1_000_000
"""All that is read fits into the reader's queue: a full one is looked at again after a second only."""


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def produce(
    bootstrap: str, topic: str, rate: int, seconds: float, records: int = FULL_SPEED_RECORDS
) -> tuple[float, list[float], float]:
    """(records a second acknowledged, latencies in ms, MB) at this rate; rate 0: so many records, as fast as
    it goes."""
    producer = ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 1 if rate else 5,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )
    latencies: list[float] = []
    producer.list_topics(topic, timeout=30)
    count = int(rate * seconds) if rate else records
    for _ in range(50):  # connections to all leaders first
        producer.produce(topic, VALUE)
    producer.flush(60)
    began = time.perf_counter()
    last = began

    def heard(sent: float):
        def told(error: object, message: object) -> None:
            nonlocal last
            last = time.perf_counter()
            if error is None:
                latencies.append((last - sent) * 1000)

        return told

    for number in range(count):
        if rate:
            due = began + number / rate
            while (wait := due - time.perf_counter()) > 0:
                producer.poll(min(wait, 0.0005))
        sent = time.perf_counter()
        while True:
            try:
                producer.produce(topic, b"%08d" % number + VALUE, on_delivery=heard(sent))
                break
            except BufferError:
                producer.poll(0.01)
        if number % 16 == 0:
            producer.poll(0)
    producer.flush(120)
    return len(latencies) / (last - began), latencies, len(latencies) * 100 / 1e6


def consume(bootstrap: str, topic: str, count: int) -> float:
    """Records a second of a reader from the beginning."""
    consumer = ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "queued.min.messages": READ_RECORDS,
            "queued.max.messages.kbytes": QUEUE_KBYTES,
            "log_level": 0,
        }
    )
    consumer.assign([ck.TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    got, began = 0, time.perf_counter()
    while got < count:
        found = len(consumer.consume(5_000, 10))
        if not found:
            raise SystemExit(f"{got} of {count} records came")
        got += found
    taken = time.perf_counter() - began
    consumer.close()
    return got / taken


def measured(direct: str, through: str, pid: int, topic: str, rate: int, seconds: float) -> dict[str, float]:
    """The medians of ROUNDS rounds at one rate, each without and with the proxy."""
    rows = []
    for _ in range(ROUNDS):
        plain_rate, plain, _ = produce(direct, topic, rate, seconds)
        before = cpu_s(pid)
        proxy_rate, proxied, megabytes = produce(through, topic, rate, seconds)
        spent = cpu_s(pid) - before
        quantiles = [statistics.quantiles(each, n=100) for each in (plain, proxied)]
        rows.append(
            {
                "rate_without": plain_rate,
                "rate_with": proxy_rate,
                "median_ms_without": quantiles[0][49],
                "median_ms_with": quantiles[1][49],
                "p99_ms_without": quantiles[0][98],
                "p99_ms_with": quantiles[1][98],
                "added_median_ms": quantiles[1][49] - quantiles[0][49],
                "added_p99_ms": quantiles[1][98] - quantiles[0][98],
                "cpu_ms_per_MB": spent * 1000 / megabytes,
            }
        )
    return {name: round(statistics.median(row[name] for row in rows), 2) for name in rows[0]}


def everything(
    direct: str, through: str, pid: int, topic: str, to_read: str, asked: argparse.Namespace
) -> dict[str, object]:
    """All rates, and the highest ones."""
    result: dict[str, object] = {
        "load_before": os.getloadavg()[0],
        "recorded": not (asked.no_record or asked.other),
    }
    for rate in map(int, asked.rates.split(",")):
        result[f"{rate} records/s"] = measured(direct, through, pid, topic, rate, asked.seconds)
    fastest = []
    for _ in range(ROUNDS):
        plain, _, _ = produce(direct, topic, 0, 0)
        before = cpu_s(pid)
        proxied, _, megabytes = produce(through, topic, 0, 0)
        spent = cpu_s(pid) - before
        fastest.append((plain, proxied, proxied / plain, spent * 1000 / megabytes))
    names = ("without", "with", "ratio", "cpu_ms_per_MB")
    result["produce, highest"] = {
        name: round(statistics.median(row[place] for row in fastest), 2) for place, name in enumerate(names)
    }
    reads = []
    produce(direct, to_read, 0, 0, READ_RECORDS)
    for _ in range(ROUNDS):
        plain = consume(direct, to_read, READ_RECORDS)
        before = cpu_s(pid)
        proxied = consume(through, to_read, READ_RECORDS)
        spent = cpu_s(pid) - before
        reads.append((plain, proxied, proxied / plain, spent * 1000 / (READ_RECORDS * 100 / 1e6)))
    result["consume, highest"] = {
        name: round(statistics.median(row[place] for row in reads), 2) for place, name in enumerate(names)
    }
    status = Path(f"/proc/{pid}/status").read_text()
    result["resident_MB"] = int(status.split("VmRSS:")[1].split()[0]) // 1024
    result["load_after"] = os.getloadavg()[0]
    return result


def main() -> None:
    """The whole measurement, as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rates", default="2000,20000")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--other", nargs=2, metavar=("HOST:PORT", "PID"), help="another proxy that is up")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-proxy-"))
    topic = f"bench-{os.getpid()}"
    admin = AdminClient({"bootstrap.servers": asked.bootstrap, "log_level": 0})
    to_read = f"{topic}-read"
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (topic, to_read)]).values():
        made.result(30)
    record = [] if asked.no_record else ["--record", str(folder)]
    command = [
        "proxy",
        "--upstream",
        asked.bootstrap,
        "--listen",
        "127.0.0.1:0",
        *record,
        "--json",
        "--no-view",
    ]
    process = None
    if asked.other is None:
        program = [sys.executable, "-c", "from fencepost.cli import main; main()", *command]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    try:
        if process is None:
            through, pid = asked.other[0], int(asked.other[1])
        else:
            assert process.stdout is not None
            through, pid = json.loads(process.stdout.readline())["listen"], process.pid
        result = everything(asked.bootstrap, through, pid, topic, to_read, asked)
        print(json.dumps(result, indent=1))
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(30)
        for deleted in admin.delete_topics([topic, to_read]).values():
            deleted.result(30)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
