"""The files of a node of Apache Kafka: server.properties, and the log directory with its ids.

Owns what is written, and Kafka's format step. Must not know processes that go on running. A node is a broker,
a controller, or both.

    DIR/broker-N/ (data/, server.properties, broker.log)
"""

import base64
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from fencepost.processes.java import find_java
from fencepost.systems.apache_kafka import settings
from fencepost.systems.apache_kafka.jars import Release
from fencepost.systems.apache_kafka.settings import Names, Ports
from fencepost.traces.errors import EnvironmentError_

JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""Small and quick to start rather than quick later; no files of counters, which a killed process would
leave."""
FORMAT_S = 60


@frozen(kw_only=True)
class NodeFiles:
    """The files of all nodes of a cluster."""

    directory: Path
    # Of each node.
    ports: Mapping[int, Ports]
    release: Release
    names: Names
    # HOST:PORT as brokers reach it; empty with KRaft.
    zookeeper: str = ""
    # Settings that win.
    more: Mapping[str, str]

    def folder(self, node: int) -> Path:
        """Of one node."""
        return self.directory / f"broker-{node}"

    def write_properties(self, node: int) -> Path:
        """Write server.properties of a node; returns where."""
        folder = self.folder(node)
        (folder / "data").mkdir(parents=True, exist_ok=True)
        if self.release.kraft:
            mode = settings.with_kraft(node, self.ports, self.names)
        else:
            mode = settings.with_zookeeper(self.zookeeper)
        path = folder / "server.properties"
        data = str((folder / "data").absolute())
        text = settings.properties(
            node,
            self.ports,
            data,
            mode,
            self.more,
            self.names,
            advertises_control=self.release.advertises_control,
        )
        path.write_text(text, encoding="utf-8")
        return path

    def format(self, cluster_id: str) -> None:
        """Prepare the folders that have no metadata yet. Kafka's StorageTool does one, and the others differ
        in two lines (`node.id` and a random `directory.id`), so that one Java process is enough. That one is
        a controller's: only there does the tool write the cluster's feature levels, such as those of eligible
        leader replicas and of transactions. cluster_id: of all. Raises EnvironmentError_."""
        first, *others = sorted(self.ports, key=lambda node: (not self.ports[node].control, node))
        prepared = self.folder(first) / "data"
        if (prepared / "meta.properties").exists():
            return
        command = [
            *(find_java("Apache Kafka"), *JVM, "-cp", self.release.class_path(), "kafka.tools.StorageTool"),
            *("format", f"--cluster-id={cluster_id}", "-c", str(self.write_properties(first))),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_S, check=False)
        if done.returncode or not (prepared / "meta.properties").exists():
            raise EnvironmentError_(
                expected="a formatted log directory",
                seen=(done.stdout + done.stderr).strip()[-300:],
                where=str(prepared),
            )
        for node in others:
            folder = self.folder(node) / "data"
            meta = folder / "meta.properties"
            if self.ports[node].control:
                shutil.copytree(prepared, folder, dirs_exist_ok=True)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(prepared / meta.name, meta)
            meta.write_text(as_node(meta.read_text(encoding="utf-8"), node), encoding="utf-8")


def random_id() -> str:
    """A cluster's or directory's id as Kafka writes it: 16 random bytes. One that begins with a minus would
    be taken for an option by Kafka's tools."""
    while True:
        made = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        if not made.startswith("-"):
            return made


def as_node(text: str, node: int) -> str:
    """meta.properties of another node. text: of the first one; node: its number."""
    own = {"node.id": str(node), "directory.id": random_id()}
    lines = []
    for line in text.splitlines():
        name = line.partition("=")[0]
        lines.append(f"{name}={own[name]}" if name in own else line)
    return "\n".join(lines) + "\n"
