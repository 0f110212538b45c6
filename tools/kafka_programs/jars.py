"""The jars of Apache Kafka's tools and of Kafka Streams, by version.

Owns which they are; the list of jars stays in the user's cache. Must not know what is run from it.
"""

import os
import shutil
from pathlib import Path

from fencepost.systems.apache_kafka.jars import LOGGER, SCALA, fetched

VERSIONS = ("3.9.2", "4.3.1")
"""The last release with ZooKeeper, and the newest whose shell tools are published (kafka-tools has no
4.4.0)."""
ARTIFACTS = (f"kafka_{SCALA}", "kafka-tools", "kafka-streams")
OTHER_LOGGER = "slf4j-reload4j"
"""Comes with 3.9, would be taken instead, and writes nothing without a configuration."""
JVM = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""Flags of a tool, which lives for a second."""


def missing() -> str:
    """Which program is absent, in words; empty if Kafka's jars can run here."""
    absent = [name for name in ("mvn", "java", "javac") if shutil.which(name) is None]
    return f"needs {', '.join(absent)} on the PATH (Maven 3 and a JDK of 17 or later)" if absent else ""


def folder(version: str) -> Path:
    """Where the class path of a version is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fencepost" / "kafka-programs" / version


def class_path(version: str) -> str:
    """The jars of a version with what they need. Raises EnvironmentError_ where they cannot be had."""
    home = folder(version)
    home.mkdir(parents=True, exist_ok=True)
    wanted = tuple(f"org.apache.kafka:{artifact}:{version}" for artifact in ARTIFACTS)
    jars = fetched(home, (*wanted, LOGGER)).split(os.pathsep)
    return os.pathsep.join(jar for jar in jars if OTHER_LOGGER not in jar)
