"""The data directories of real brokers, made by Kafka's own clients.

Owns which topics there are and what is written to them. Must not know how anything is compared.

    clean         one broker, every kind of topic, stopped by SIGTERM
    killed        the same broker, started again, written to, killed
    three         three brokers, replication factor 3, each restarted once
    three-killed  the same, one broker killed while it was written to, then all
"""

import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from attrs import define, field
from brokers import Broker, Peer, PeerError

from fencepost.impl.log.batch.compression import CODECS

START_MS = 1_600_000_000_000
SMALL = {"segment.bytes": "16384", "index.interval.bytes": "1024"}
EAGER = {"min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "100"}
PATIENCE_S = 90.0
CHECKPOINTED_S = 3.0
"""A deletion of records is forgotten by a kill before the next checkpoint of the log starts (brokers.py)."""
ISOLATIONS = ("read_uncommitted", "read_committed")
CONSUMED = "consumed"
"""The folder beside the data directories with what Kafka's consumer read last."""
REPLICATED_TOPICS = ("plain", "segments", "compacted", "transactions")
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    **{f"codec-{codec}": {} for codec in CODECS},
    "recompressed": {"compression.type": "zstd"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "segments": SMALL,
    "full-index": {"segment.index.bytes": "96", "index.interval.bytes": "512"},
    "rolled-by-time": {"segment.ms": "5000"},
    "compacted": {**SMALL, **EAGER, "cleanup.policy": "compact", "delete.retention.ms": "86400000"},
    "compacted-hard": {**SMALL, **EAGER, "cleanup.policy": "compact", "delete.retention.ms": "100"},
    "retained": {**SMALL, "retention.bytes": "40000", "file.delete.delay.ms": "100"},
    "deleted-records": {**SMALL, "file.delete.delay.ms": "100"},
    "transactions": {},
    "transactions-segments": SMALL,
    "transactions-compacted": {**SMALL, **EAGER, "cleanup.policy": "compact"},
    "expired": {"retention.ms": "1000", "file.delete.delay.ms": "100"},
    "empty": {},
}
STILL = tuple(topic for topic in TOPICS if "compacted" not in topic and topic not in ("retained", "expired"))
"""Topics that no housekeeping changes between the last read and the kill."""
FOR_EVER = {"retention.ms": "-1"}
"""The records' times are fixed, and long ago."""
REPLICATED = {"transaction.state.log.replication.factor": "3", "offsets.topic.replication.factor": "3"}


@define(eq=False)
class Cluster:
    """Brokers on one ZooKeeper, and the peer that writes to them."""

    peer: Peer
    brokers: list[Broker]
    hanging: list[str] = field(factory=list)

    @property
    def address(self) -> str:
        """Of all brokers."""
        return ",".join(broker.address for broker in self.brokers)

    def send(
        self,
        topic: str,
        first: int,
        count: int,
        options: str = "",
        *,
        batch: int = 20,
        producer: str = "",
        settings: str = "",
    ) -> None:
        """Records of numbers from `first`; each `batch` of them waits for the one before, so that it is one
        batch."""
        name = producer or f"of {topic}"
        if not producer:
            self.peer.ask("producer", name, self.address, settings)
        for start in range(first, first + count, batch):
            self.peer.ask(
                "send",
                name,
                topic,
                0,
                start,
                min(batch, first + count - start),
                f"time={START_MS};step=100;{options}",
            )
        if not producer:
            self.peer.ask("close", name)

    def transactions(
        self, topic: str, *, first: int = 0, rounds: int = 3, options: str = "", hanging: bool = False
    ) -> None:
        """Two producers whose transactions overlap, some aborted; a third one writes in between without any.
        hanging: a last one stays open."""
        names = [f"{topic}-{letter}-{first}" for letter in "ab"]
        for name in names:
            self.peer.ask("producer", name, self.address, f"transactional.id={name};compression.type=lz4")
        number = first
        for turn in range(rounds):
            for name in names:
                self.peer.ask("begin", name)
            for name in (*names, *names):
                self.send(topic, number, 5, options, producer=name)
                number += 5
            self.send(topic, number, 5, options)
            number += 5
            for position, name in enumerate(names):
                self.peer.ask("commit" if (turn + position) % 2 else "abort", name)
        if hanging:
            self.peer.ask("begin", names[0])
            self.send(topic, number, 10, options, producer=names[0])
            self.send(topic, number + 10, 10, options)
        for name in names[1:] if hanging else names:
            self.peer.ask("close", name)
        if hanging:
            self.hanging.append(names[0])

    def remember(self, topics: Iterable[str], target: Path) -> None:
        """What Kafka's consumer reads of these topics, a file for each and for each isolation level."""
        target.mkdir(parents=True, exist_ok=True)
        for topic in topics:
            for isolation in ISOLATIONS:
                lines = self.peer.ask("consume", self.address, topic, 0, isolation)
                (target / f"{topic}.{isolation}").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def forget(self) -> None:
        """The producers whose transactions hang, once nobody is there who could hear of their end."""
        for name in self.hanging:
            self.peer.ask("forget", name)


def write_everything(cluster: Cluster, *, again: bool = False) -> None:
    """Fill every topic. again: a second time, to a broker that will be killed."""
    first = 1000 if again else 0
    cluster.send("plain", first, 200, "keys=7;headers=5;tombstones=11", settings="enable.idempotence=false")
    for codec in CODECS:
        cluster.send(
            f"codec-{codec}",
            first,
            300,
            "keys=50;bytes=200;headers=9",
            settings=f"compression.type={codec}",
            batch=60,
        )
    cluster.send("recompressed", first, 100, "bytes=100", settings="compression.type=gzip")
    cluster.send("append-time", first, 100, "keys=3")
    cluster.send("segments", first, 1500, "bytes=100;keys=10;tombstones=50")
    cluster.send("full-index", first, 600, "bytes=100")
    cluster.send("rolled-by-time", first, 400, "bytes=50")
    for topic in ("compacted", "compacted-hard"):
        cluster.send(topic, first, 1500, "bytes=100;keys=60;tombstones=13", batch=15)
    cluster.send("expired", first, 100)
    cluster.send("retained", first, 1500, "bytes=100")
    cluster.send("deleted-records", first, 1000, "bytes=100", batch=30)
    cluster.peer.ask("delete-records", cluster.address, "deleted-records", 0, first + 407)
    cluster.transactions("transactions", first=first, hanging=again)
    cluster.transactions("transactions-segments", first=first, rounds=20, options="bytes=100", hanging=again)
    cluster.transactions(
        "transactions-compacted",
        first=first,
        rounds=20,
        options="bytes=100;keys=20;tombstones=7",
        hanging=again,
    )


def create(cluster: Cluster, topic: str, settings: dict[str, str], *, replicas: int = 1) -> None:
    """A topic of one partition."""
    words = ";".join(f"{name}={value}" for name, value in (FOR_EVER | settings).items())
    cluster.peer.ask("topic", cluster.address, topic, 1, replicas, words)


def make_single(root: Path, zookeeper: str, classes: str, peer: Peer) -> None:
    """clean and killed."""
    clean, killed = root / "clean" / "broker-0", root / "killed" / "broker-0"
    broker = Broker(
        number=0, data=killed, log=root / "broker-0.log", zookeeper=zookeeper + "/single", classes=classes
    )
    cluster = Cluster(peer, [broker])
    broker.start()
    try:
        for topic, settings in TOPICS.items():
            create(cluster, topic, settings)
        write_everything(cluster)
        _wait_for_housekeeping(killed)
        cluster.remember(TOPICS, root / "clean" / CONSUMED)
        broker.stop()
        copy(killed, clean)
        broker.start()
        write_everything(cluster, again=True)
        cluster.remember(STILL, root / "killed" / CONSUMED)
        _wait_for_log_start(killed, "deleted-records 0 1407")
        time.sleep(CHECKPOINTED_S)
    finally:
        broker.kill()
    cluster.forget()


def make_three(root: Path, zookeeper: str, classes: str, peer: Peer) -> None:
    """three and three-killed."""
    brokers = [
        Broker(
            number=number,
            data=root / "three-killed" / f"broker-{number}",
            log=root / f"broker-of-three-{number}.log",
            zookeeper=zookeeper + "/three",
            classes=classes,
            settings=dict(REPLICATED),
        )
        for number in range(3)
    ]
    cluster = Cluster(peer, brokers)
    try:
        for broker in brokers:
            broker.start()
        for topic in REPLICATED_TOPICS:
            create(cluster, topic, TOPICS[topic] | {"min.insync.replicas": "1"}, replicas=3)
        for turn, broker in enumerate(brokers):
            _write_three(cluster, 1000 * turn)
            broker.stop()
            _write_three(cluster, 1000 * turn + 500)
            broker.start()
        time.sleep(2)
        cluster.remember((topic for topic in REPLICATED_TOPICS if topic in STILL), root / "three" / CONSUMED)
        for broker in brokers:
            broker.stop()
        for broker in brokers:
            copy(broker.data, root / "three" / broker.data.name)
            broker.start()
        _write_three(cluster, 5000)
        brokers[0].kill()
        _write_three(cluster, 5500)
    finally:
        for broker in brokers:
            broker.kill()


def _write_three(cluster: Cluster, first: int) -> None:
    cluster.send("plain", first, 60, "keys=7;headers=5", settings="acks=1;enable.idempotence=false")
    cluster.send("segments", first, 300, "bytes=100;keys=10", settings="compression.type=zstd")
    cluster.send("compacted", first, 300, "bytes=100;keys=40;tombstones=13", batch=15)
    cluster.transactions("transactions", first=first)


def _wait_for_housekeeping(data: Path) -> None:
    """Until the cleaner and retention have been at work."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        first = [
            int(min((data / f"{topic}-0").glob("*.log")).stem)
            for topic in ("retained", "deleted-records", "expired")
        ]
        cleaned = data / "cleaner-offset-checkpoint"
        if all(first) and cleaned.exists() and cleaned.read_text(encoding="utf-8").count("compacted") >= 3:
            time.sleep(2)
            return
        time.sleep(0.5)
    raise PeerError(f"retention or the cleaner did nothing in {PATIENCE_S:.0f} s")


def _wait_for_log_start(data: Path, line: str) -> None:
    """Until the checkpoint of log starts holds this line: a broker writes it for the first time half a minute
    after its start, and what it had not written when it was killed it does not know afterwards."""
    deadline, checkpoint = time.monotonic() + PATIENCE_S, data / "log-start-offset-checkpoint"
    while time.monotonic() < deadline:
        if checkpoint.exists() and line in checkpoint.read_text(encoding="utf-8").splitlines():
            return
        time.sleep(0.5)
    raise PeerError(f"no {line!r} in {checkpoint} in {PATIENCE_S:.0f} s")


def copy(source: Path, target: Path) -> None:
    """A data directory as it is now, sparse where it is sparse."""
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)
