"""Three nodes of Apache Kafka on this machine, and three of ours with the same settings.

Owns starting and ending them. Must not know what is asked of them. Both sides answer the same questions: where
clients connect, and where a broker's logs are.
"""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import frozen

import fencepost.kafka
from fencepost.impl.runtime.zookeeper.server import HOST, ZooKeeperServer, free_ports

from .jars import class_path

BROKERS = (1, 2, 3)
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
START_S = 120.0
STOP_S = 30.0
OFFSETS_PARTITIONS = 8
CLUSTER_ID = "fencepost-shell-tools-"  # 22 characters, as of a UUID in base64
SETTINGS = {
    "num.partitions": "1",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "replica.lag.time.max.ms": "2000",
    "auto.leader.rebalance.enable": "false",
}


class StartError(Exception):
    """A broker did not start."""


@frozen(kw_only=True)
class Side:
    """A cluster that runs. name: for the report. bootstrap: HOST:PORT of each broker. directories: a broker's logs."""

    name: str
    bootstrap: str
    directories: Mapping[int, Path]


@contextmanager
def our_brokers(scratch: Path, port: int = 0) -> Iterator[Side]:
    """Three of ours, with their files in a folder, so that tools can read them."""
    home = scratch / "ours"
    home.mkdir(parents=True)
    with fencepost.kafka.cluster(
        directory=home, port=port, process=True, leader_imbalance_check_ms=0
    ) as kafka:
        directories = {broker: home / f"broker-{broker}" for broker in BROKERS}
        yield Side(name="fencepost", bootstrap=kafka.bootstrap_servers, directories=directories)


@contextmanager
def apache_brokers(version: str, scratch: Path) -> Iterator[Side]:
    """Three of Apache Kafka: with ZooKeeper before 4.0, with a controller in broker 1 from then on."""
    jars = class_path(version)
    home = scratch / f"apache-{version}"
    home.mkdir(parents=True)
    controller, *ports = free_ports(1 + len(BROKERS))
    with ExitStack() as stack:
        if version.startswith("3."):
            zookeeper = stack.enter_context(ZooKeeperServer.start(home / "zookeeper"))
            shared = {"zookeeper.connect": zookeeper.address}
        else:
            shared = {
                "controller.quorum.voters": f"1@{HOST}:{controller}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
        directories = {broker: home / f"broker-{broker}" for broker in BROKERS}
        started = []
        for broker, port in zip(BROKERS, ports, strict=True):
            own = _own_settings(version, broker, port, controller)
            settings = SETTINGS | shared | own | {"log.dirs": str(directories[broker])}
            started.append(stack.enter_context(_running(version, jars, home, broker, settings)))
        for log, process in started:
            _await_start(log, process)
        bootstrap = ",".join(f"{HOST}:{port}" for port in ports)
        yield Side(name=f"Apache Kafka {version}", bootstrap=bootstrap, directories=directories)


def _own_settings(version: str, broker: int, port: int, controller: int) -> dict[str, str]:
    listener = f"PLAINTEXT://{HOST}:{port}"
    if version.startswith("3."):
        return {"broker.id": str(broker), "listeners": listener}
    both = broker == BROKERS[0]
    return {
        "node.id": str(broker),
        "process.roles": "broker,controller" if both else "broker",
        "listeners": f"{listener},CONTROLLER://{HOST}:{controller}" if both else listener,
        "advertised.listeners": listener,
    }


@contextmanager
def _running(
    version: str, jars: str, home: Path, broker: int, settings: Mapping[str, str]
) -> Iterator[tuple[Path, "subprocess.Popen[bytes]"]]:
    file, log = home / f"{broker}.properties", home / f"{broker}.log"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    java = ["java", "-Xmx256m", *JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", jars]
    with log.open("ab") as words:
        if not version.startswith("3."):
            format_ = [
                *java,
                "kafka.tools.StorageTool",
                "format",
                f"--cluster-id={CLUSTER_ID}",
                "-c",
                str(file),
            ]
            if subprocess.run(format_, stdout=words, stderr=words, timeout=START_S).returncode:
                raise StartError(f"broker {broker}: its storage was not formatted; see {log}")
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(file)], stdin=subprocess.DEVNULL, stdout=words, stderr=words
        )
    try:
        yield log, process
    finally:
        process.kill()
        process.wait(STOP_S)


def _await_start(log: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_S
    while " started (kafka.server" not in (said := log.read_text(encoding="utf-8", errors="replace")):
        if "Kafka Server started" in said or "] started" in said:
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise StartError(f"a broker did not start; see {log}: {said[-400:]}")
        time.sleep(0.1)
