"""Apache Kafka from its jars, in KRaft mode, for tests and benches of the proxy: one combined node and more
brokers.

The class path is a file that FENCEPOST_KAFKA_CLASSPATH names (`mvn dependency:build-classpath
-Dmdep.outputFile=FILE` of org.apache.kafka:kafka_2.13 and kafka-tools); without it these tests are skipped by
name.
"""

import os
import secrets
import shutil
import socket
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "FENCEPOST_KAFKA_CLASSPATH"
START_S = 600
JVM = ("-Xmx224m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def classpath() -> str | None:
    """The class path, None where nobody named one."""
    named = os.environ.get(VARIABLE)
    return Path(named).read_text().strip() if named and Path(named).is_file() else None


def java(classpath: str, *arguments: str, heap: str = "-Xmx128m", **options) -> subprocess.CompletedProcess:
    """Run a tool of Kafka's to its end."""
    command = ["java", heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=START_S, **options)


class Jars:
    """Brokers of one cluster. ports: of their listeners for clients."""

    def __init__(self, folder: Path, classpath: str, brokers: int = 1, more: str = "") -> None:
        self.folder, self.classpath, self.more = folder, classpath, more
        self.ports = [free_port() for _ in range(brokers)]
        self.controller = free_port()
        self.processes: list[subprocess.Popen] = []
        self.cluster_id = urlsafe_b64encode(b"A" + secrets.token_bytes(15)).decode().rstrip("=")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def logs(self, node: int = 1) -> Path:
        return self.folder / f"logs-{node}"

    def _configured(self, node: int) -> Path:
        combined = node == 1
        listeners = f"CLIENT://127.0.0.1:{self.ports[node - 1]}"
        own = f",CTRL://127.0.0.1:{self.controller}" if combined else ""
        replicas = min(2, len(self.ports))
        file = self.folder / f"server-{node}.properties"
        file.write_text(
            f"""process.roles={"broker,controller" if combined else "broker"}
node.id={node}
controller.quorum.voters=1@127.0.0.1:{self.controller}
controller.listener.names=CTRL
listeners={listeners}{own}
advertised.listeners={listeners}
listener.security.protocol.map=CLIENT:PLAINTEXT,CTRL:PLAINTEXT
inter.broker.listener.name=CLIENT
log.dirs={self.logs(node)}
offsets.topic.num.partitions=1
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor={replicas}
share.coordinator.state.topic.min.isr=1
default.replication.factor={replicas}
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
{self.more}
"""
        )
        return file

    def start(self) -> None:
        for node in range(1, len(self.ports) + 1):
            file = self._configured(node)
            done = java(
                self.classpath,
                "kafka.tools.StorageTool",
                "format",
                f"--cluster-id={self.cluster_id}",
                "-c",
                str(file),
            )
            assert done.returncode == 0, done.stdout + done.stderr
            log = (self.folder / f"broker-{node}.log").open("wb")
            command = ["java", *JVM, "-cp", self.classpath, "kafka.Kafka", str(file)]
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        deadline = time.monotonic() + START_S
        for port in self.ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, (self.folder / "broker-1.log").read_text()[-2000:]
                    time.sleep(0.3)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def dumped(self, partition: str, node: int = 1) -> list[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of each record in a partition's log, by our own reader; control records left
        out."""
        from fencepost.impl.log.batch.record_batch import read_headers, read_records

        found = []
        for segment in sorted((self.logs(node) / partition).glob("*.log")):
            data = segment.read_bytes()
            for header in read_headers(data):
                if not header.is_control:
                    found += [(one.offset, one.key, one.value) for one in read_records(data, header)]
        return found


@contextmanager
def jars(folder: Path, classpath: str, brokers: int = 1, more: str = "") -> Iterator[Jars]:
    """A cluster, up for the block."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Jars(folder, classpath, brokers, more)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
