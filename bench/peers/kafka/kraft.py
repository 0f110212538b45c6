"""Apache Kafka 4 (KRaft) and this log read and recover each other's files: the part of compare.py that needs
no ZooKeeper.

    python bench/peers/kafka/kraft.py [--version 4.4.0]

1. A broker is written to by librdkafka (each codec, idempotent, small segments) and killed. Its files are
   dumped without a flaw, audited, and recovered here on a copy; then the broker starts again, and both must
   have the same end of each log.
2. The broker is stopped, the log of a topic that it created is replaced by one that this project wrote, and
   the broker must serve the same values.
3. Three brokers with compaction, retention and risen leader epochs: kraft_three.py.

What differs from 3.5 to 3.9: meta.properties of version 1 with node and directory ids, partition.metadata
with a topic id (kept), a log of the cluster's metadata with snapshots (dumped and decoded; not written here).
"""

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import kraft_three
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fencepost.cli import run as fencepost
from fencepost.impl.log.batch.compression import CODECS
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.log.values import batch_of
from fencepost.impl.runtime.files import RealFiles
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import KRAFT, Release, missing
from fencepost.traces.errors import ExitCode

RECORDS = 2_000
OURS = "ours"
PATIENCE_S = 60
SMALL = {"segment.bytes": "1048576", "retention.ms": "-1"}


def say(what: str, good: bool) -> bool:
    """A line; the same verdict."""
    print(f"{'good' if good else 'BAD '}  {what}", flush=True)
    return good


def write(bootstrap: str) -> list[str]:
    """The topics, filled."""
    topics = [f"codec-{codec}" for codec in CODECS]
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    created = admin.create_topics([NewTopic(name, 1, 1, config=SMALL) for name in (*topics, OURS)])
    for done in created.values():
        done.result(PATIENCE_S)
    for codec, topic in zip(CODECS, topics, strict=True):
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True}
        producer = Producer({**settings, "log_level": 0})
        for number in range(RECORDS):
            producer.produce(topic, value=b"%d %s" % (number, b"x" * 1_000), key=b"%d" % (number % 7))
        assert producer.flush(PATIENCE_S) == 0, topic
    return topics


def ends(bootstrap: str, topics: list[str]) -> dict[str, int]:
    """The end of each log, as the broker has it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x", "log_level": 0})
    found = {
        topic: consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)[1]
        for topic in topics
    }
    consumer.close()
    return found


def values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """What a consumer reads from the beginning."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "x", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(message.value())
    consumer.close()
    return found


def quiet(*arguments: str) -> ExitCode:
    """A command of ours, without its words."""
    with contextlib.redirect_stdout(io.StringIO()):
        return fencepost(list(arguments))


def compare(cluster: ApacheKafka, scratch: Path) -> bool:
    """Whether all is good."""
    topics = write(cluster.bootstrap_servers())
    before = ends(cluster.bootstrap_servers(), topics)
    data = cluster.directories()[1]
    cluster.kill(1)
    good = say(
        "a killed broker's files are dumped without a flaw",
        quiet("log", "dump", str(data), "--deep") is ExitCode.NOTHING_FOUND,
    )
    copy = scratch / "copy"
    shutil.copytree(data, copy)
    recovered = {}
    for topic in topics:
        log = SegmentedLog.open(RealFiles(copy), f"{topic}-0", options=LogOptions())
        recovered[topic] = log.log_end_offset
        log.close()
    good &= say(f"our recovery ends where the broker had its ends: {recovered}", recovered == before)
    cluster.restart(1)
    cluster.wait_until_healthy()
    good &= say("so does the broker's own", ends(cluster.bootstrap_servers(), topics) == before)
    cluster.stop(1)
    while cluster.alive():
        time.sleep(0.1)
    numbers = list(range(500))
    folder = data / f"{OURS}-0"
    for file in folder.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    log = SegmentedLog.open(RealFiles(data), f"{OURS}-0", options=LogOptions())
    for number in numbers:
        log.append_as_leader(batch_of((number,), timestamp_ms=1_600_000_000_000 + number), 0)
    log.close()
    cluster.restart(1)
    cluster.wait_until_healthy()
    seen = values(cluster.bootstrap_servers(), OURS, len(numbers))
    return good & say(
        "the broker serves the log that we wrote", seen == [b"%d" % number for number in numbers]
    )


def main() -> int:
    """0 if everything is good, or cannot run here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=KRAFT)
    version = parser.parse_args().version
    if missing():
        print(f"skipped: Apache Kafka {version} {missing()}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        cluster = ApacheKafka(directory=scratch / "cluster", release=Release(version=version), size=1)
        with cluster:
            good = compare(cluster, scratch)
        several = ApacheKafka(
            directory=scratch / "three", release=Release(version=version), settings=kraft_three.SETTINGS
        )
        with several:
            rows = [say(*row) for row in kraft_three.compare(several, scratch, quiet)]
            good &= all(rows)
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
