"""The tap for Java in an application: both sides joined, with clients that hand headers to an acknowledgement
(4.1) and with older ones. Needs a JDK and Kafka's jars, which `make measure NAME=kafka-programs` fetches."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from proxy_lab import proxy_lab
from wire_lab import wire_lab

from fencepost.cli import run
from fencepost.traces.errors import ExitCode
from fencepost.traces.plan import TopicOptions
from fencepost.wire.hook import PASS, Replace
from tools.kafka_programs.jars import JVM, folder
from tools.proxy_apps.tapped import SOURCE, clients_jar

PRODUCE = 0
COUNT, BOUND_S = 200, 600
SENT = COUNT + COUNT // 10
"""Every tenth record object is sent twice."""


def class_path(version):
    """Kafka's jars of this version, if they are here."""
    known = folder(version) / "class-path"
    jars = known.read_text(encoding="utf-8").strip() if known.is_file() else ""
    if not jars or not all(Path(jar).exists() for jar in jars.split(os.pathsep)) or not shutil.which("javac"):
        pytest.skip(f"needs a JDK and the jars of Apache Kafka {version} (make measure NAME=kafka-programs)")
    return jars


class Refuses:
    """Every record of the topic `small` is too large."""

    def on_request(self, source, header, body):
        return PASS

    def on_answer(self, source, header, body, answer):
        if header.api_key != PRODUCE or all(topic.name != "small" for topic in answer.responses):
            return PASS
        topics = tuple(self._refused(topic) if topic.name == "small" else topic for topic in answer.responses)
        return Replace(replace(answer, responses=topics))

    def _refused(self, topic):
        (partition,) = topic.partition_responses
        refused = replace(partition, error_code=ErrorCode.message_too_large, base_offset=-1)
        return replace(topic, partition_responses=(refused,))


@pytest.fixture(scope="module")
def server():
    topics = [
        TopicOptions(name=name, partitions=2, replication_factor=1)
        for name in ("with-4", "with-3", "plain-3")
    ]
    small = TopicOptions(name="small", partitions=1, replication_factor=1)
    with wire_lab(*topics, small, brokers=1, server={"hook": Refuses()}) as lab:
        yield f"127.0.0.1:{lab.ports[1]}"


@pytest.mark.parametrize(
    ("version", "ids", "topic"),
    [("4.3.1", "true", "with-4"), ("3.9.2", "true", "with-3"), ("3.9.2", "false", "plain-3")],
    ids=["headers", "before 4.1", "without ids"],
)
def test_a_java_application_is_joined(server, tmp_path, capsys, version, ids, topic):
    """Rule: a healthy application has no finding, and every acknowledgement and delivery is matched; a send
    that failed is matched if its client names it and it crossed the wire, and counted otherwise."""
    jars, tap = class_path(version), tmp_path / "tap.jar"
    arguments = ["proxy", "tap", "--java", "--kafka-clients", clients_jar(jars), "--out", str(tap)]
    assert run(arguments) == ExitCode.NOTHING_FOUND
    subprocess.run(
        ["javac", "-nowarn", "-d", str(tmp_path), "-cp", jars, str(SOURCE)], check=True, timeout=BOUND_S
    )
    where = os.pathsep.join((str(tmp_path), str(tap), jars))
    live, lines = tmp_path / "live", tmp_path / "app.tap"
    with proxy_lab(server, live) as proxy:
        command = ["java", *JVM, "-cp", where, "TappedApp", proxy.bootstrap, topic, "small", str(lines)]
        done = subprocess.run(
            [*command, str(COUNT), ids], capture_output=True, text=True, timeout=BOUND_S, check=False
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.split() == [str(n) for n in (SENT + 2, SENT, 2, SENT)]
    capsys.readouterr()
    code = run(["proxy", "blame", str(live), str(lines), "--json"])
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["findings"] == []
    assert code == ExitCode.NOTHING_FOUND
    counts = said["counts"]
    assert (counts["sends"], counts["deliveries"]) == (SENT + 2, SENT)
    assert counts["acknowledgements matched"] == counts["deliveries matched"] == SENT
    assert counts.get("failed sends matched", 0) == (1 if version == "4.3.1" else 0)
    assert counts["failed sends not matched"] == (1 if version == "4.3.1" else 2)
    assert counts.get("sends matched", 0) == (0 if ids == "false" else SENT + 1)
    assert "acknowledged, and no callback was called" not in counts
