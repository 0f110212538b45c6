"""Real Kafka brokers and Kafka's own clients and tools, as processes of this machine.

Owns the Java class path (Maven fetches it once, into its own cache), the service Peer.java, and brokers with
their start and end. Must not know what is stored or compared.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import define, field

from fencepost.impl.runtime.zookeeper.server import HOST, free_ports

HERE = Path(__file__).parent
START_S = 120.0
STOP_S = 120.0
QUIET = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""One broker of a small cluster on few cores."""


class PeerError(Exception):
    """Kafka's side did not do what was asked."""


def missing() -> str:
    """Why real brokers cannot run here; empty if they can."""
    absent = [name for name in ("mvn", "java", "javac") if shutil.which(name) is None]
    return f"needs {', '.join(absent)} on the PATH (Maven 3, a JDK of 17 or later)" if absent else ""


def class_path(scratch: Path) -> str:
    """Kafka's jars. Raises PeerError if Maven cannot fetch them."""
    target = scratch / "class-path"
    if not target.exists() or target.stat().st_mtime < (HERE / "pom.xml").stat().st_mtime:
        scratch.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "-f",
                str(HERE / "pom.xml"),
                "dependency:build-classpath",
                f"-Dmdep.outputFile={target.absolute()}",
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise PeerError(f"Maven: {(done.stdout + done.stderr).strip()[-500:]}")
    return target.read_text(encoding="utf-8").strip()


@define(eq=False)
class Peer:
    """Peer.java, running. Commands are lists of words."""

    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, classes: str, log: Path) -> Self:
        """Start it; it reads commands until its input ends."""
        command = [
            "java",
            *QUIET,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            classes,
            str(HERE / "Peer.java"),
        ]
        with log.open("ab") as errors:
            return cls(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            )

    def ask(self, *words: object) -> list[str]:
        """The lines of the answer. Raises PeerError."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\t".join(str(word) for word in words).encode() + b"\n")
        self.process.stdin.flush()
        lines: list[str] = []
        for data in self.process.stdout:  # bytes: a carriage return in a payload ends no line
            line = data.decode("utf-8", "replace")
            if line.startswith("\0"):
                if line[1:].startswith("error"):
                    raise PeerError(f"{words[0]}: {line[7:].strip()}")
                return lines
            lines.append(line[1:].rstrip("\n"))
        raise PeerError(f"{words[0]}: Peer.java has ended")

    def dump(self, files: Sequence[Path], *flags: str) -> list[str]:
        """The lines that kafka.tools.DumpLogSegments prints."""
        return self.ask("dump", *flags, "--files", ",".join(str(file) for file in files))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@define(eq=False, kw_only=True)
class Broker:
    """One broker on `data`. log: what it says, over all its starts."""

    number: int
    data: Path
    log: Path
    zookeeper: str
    classes: str
    settings: dict[str, str] = field(factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT"""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it serves. Raises PeerError."""
        self.data.mkdir(parents=True, exist_ok=True)
        if not self.port:
            (self.port,) = free_ports(1)
        properties = self.log.with_suffix(".properties")
        properties.write_text(
            "".join(f"{name}={value}\n" for name, value in self._properties().items()), encoding="utf-8"
        )
        before = len(self.said())
        command = [
            "java",
            *QUIET,
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-cp",
            self.classes,
            "kafka.Kafka",
            str(properties),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while (
            "started (kafka.server.KafkaServer)" not in self.said()[before:]
            and f"[KafkaServer id={self.number}] started" not in self.said()[before:]
        ):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise PeerError(f"broker {self.number} does not start; see {self.log}: {self.said()[-400:]}")
            time.sleep(0.2)

    def _properties(self) -> dict[str, str]:
        return {
            "broker.id": str(self.number),
            "listeners": f"PLAINTEXT://{self.address}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "zookeeper.connect": self.zookeeper,
            "zookeeper.session.timeout.ms": "4000",
            "log.dirs": str(self.data),
            "num.partitions": "1",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.backoff.ms": "500",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "log.cleaner.threads": "1",
            "log.initial.task.delay.ms": "500",
            "log.retention.check.interval.ms": "500",
            "log.flush.offset.checkpoint.interval.ms": "1000",
            "log.flush.start.offset.checkpoint.interval.ms": "1000",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "background.threads": "2",
            **self.settings,
        }

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def stop(self) -> None:
        """SIGTERM: a controlled shutdown with all that belongs to it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)
        try:
            self.process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise PeerError(f"broker {self.number} did not stop in {STOP_S:.0f} s; see {self.log}") from None
        finally:
            self.process = None
