"""The jars of Apache Kafka's tools and of Kafka Streams, by version.

Owns the class path: Maven fetches it once, and the list of jars stays in the user's cache. Must not know what
is run from it.
"""

import os
import shutil
import subprocess
from pathlib import Path

VERSIONS = ("3.9.2", "4.3.1")
"""The last release with ZooKeeper, and the newest whose shell tools are published (kafka-tools has no
4.4.0)."""
ARTIFACTS = ("kafka_2.13", "kafka-tools", "kafka-streams")
LOGGER = "1.7.36"
"""slf4j-simple's version: writes warnings to standard error."""
OTHER_LOGGER = "slf4j-reload4j"
"""Comes with 3.9, would be taken instead, and writes nothing without a configuration."""
JVM = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""Flags of a tool, which lives for a second."""
FETCH_S = 600.0
"""Maven from an empty repository takes 45 s here."""
POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fencepost.clients</groupId><artifactId>kafka-shell</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = """
    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"""


class JarsError(Exception):
    """Maven could not fetch them."""


def missing() -> str:
    """Which program is absent, in words; empty if Kafka's jars can run here."""
    absent = [name for name in ("mvn", "java", "javac") if shutil.which(name) is None]
    return f"needs {', '.join(absent)} on the PATH (Maven 3 and a JDK of 17 or later)" if absent else ""


def folder(version: str) -> Path:
    """Where the class path of a version is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fencepost" / "kafka-shell" / version


def class_path(version: str) -> str:
    """The jars of a version with what they need. Raises JarsError."""
    home = folder(version)
    target = home / "class-path"
    jars = target.read_text(encoding="utf-8").strip() if target.exists() else ""
    if jars and all(Path(jar).exists() for jar in jars.split(os.pathsep)):
        return jars
    home.mkdir(parents=True, exist_ok=True)
    wanted = [("org.apache.kafka", artifact, version) for artifact in ARTIFACTS]
    wanted.append(("org.slf4j", "slf4j-simple", LOGGER))
    lines = [DEPENDENCY.format(group=group, artifact=name, version=number) for group, name, number in wanted]
    pom = home / "pom.xml"
    pom.write_text(POM.format(dependencies="".join(lines)), encoding="utf-8")
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={target}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S)
    if done.returncode:
        target.unlink(missing_ok=True)
        raise JarsError(f"Maven did not fetch Kafka {version}: {(done.stdout + done.stderr).strip()[-500:]}")
    found = target.read_text(encoding="utf-8").strip().split(os.pathsep)
    target.write_text(os.pathsep.join(jar for jar in found if OTHER_LOGGER not in jar), encoding="utf-8")
    return target.read_text(encoding="utf-8")
