"""The tapped application against Apache Kafka through the proxy, and what `proxy blame` makes of it.

    python -m tools.proxy_apps.tapped [--client 4.3.1] [--broker 4.4.0] [--records 2000]

Owns the run: Maven builds the application of pom.xml, `fencepost proxy tap --java` the interceptors. With
clients before 4.1 an acknowledgement has no headers: it is matched by partition and offset, and a failed send
is not matched. Exit code 1 if the join has a finding, or not everything was matched.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fencepost.console.output import Output
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import Release
from tools.kafka_programs.jars import JVM, missing
from tools.proxy_apps.__main__ import PROXY, proxied

from . import FOLDER, clients_jar

CLIENTS, BROKERS = ("3.9.2", "4.3.1"), ("3.9.2", "4.4.0")
BUILD_S, RUN_S = 600, 300


def built(version: str, out: Path) -> str:
    """Compile the application and the tap for a version of Kafka's clients; answers the class path."""
    source = out / "source"
    shutil.copytree(FOLDER, source)
    jars = out / "class-path"
    maven = ["mvn", "-q", "-B", "-f", str(source / "pom.xml"), f"-Dkafka.version={version}"]
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={jars}"]
    subprocess.run([*maven, *goals], check=True, timeout=BUILD_S)
    found, tap = jars.read_text(encoding="utf-8").strip(), out / "tap.jar"
    command = ("proxy", "tap", "--java", "--kafka-clients", clients_jar(found), "--out", str(tap))
    subprocess.run(
        [sys.executable, "-c", PROXY, *command], check=True, timeout=BUILD_S, stdout=subprocess.DEVNULL
    )
    return os.pathsep.join((str(source / "target" / "classes"), str(tap), found))


def run(client: str, broker: str, records: int, ids: bool) -> dict[str, Any]:
    """One run: what the application printed, and what blame says."""
    with tempfile.TemporaryDirectory(prefix="fencepost-tapped-") as name:
        out = Path(name)
        class_path = built(client, out)
        release = Release(version=broker)
        with (
            ApacheKafka(directory=out / "kafka", release=release, size=1) as kafka,
            proxied(kafka.bootstrap_servers(), out / "live") as through,
        ):
            through.create_topic("tapped")
            through.create_topic("refusing", settings={"max.message.bytes": "1000"})
            command = ["java", *JVM, "-cp", class_path, "TappedApp", through.bootstrap_servers, "tapped"]
            more = ["refusing", str(out / "app.tap"), str(records), str(ids).lower()]
            done = subprocess.run(
                [*command, *more], capture_output=True, text=True, timeout=RUN_S, check=True
            )
        blame = ["proxy", "blame", str(out / "live"), str(out / "app.tap"), "--json"]
        found = subprocess.run(
            [sys.executable, "-c", PROXY, *blame], capture_output=True, text=True, timeout=RUN_S, check=False
        )
        sent, acknowledged, failed, read = map(int, done.stdout.split())
        said: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
        return said | {"application": [sent, acknowledged, failed, read]}


def main() -> int:
    """Each version of clients and brokers that was asked for, one line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--client", choices=CLIENTS, action="append")
    parser.add_argument("--broker", choices=BROKERS, action="append")
    parser.add_argument("--records", type=int, default=2_000)
    asked, output, wrong = parser.parse_args(), Output(), 0
    if absent := missing():
        output.say(f"skipped: the tapped application: {absent}")
        return 0
    for client in asked.client or CLIENTS:
        for broker in asked.broker or BROKERS:
            for ids in (True, False):
                said = run(client, broker, asked.records, ids)
                counts, (_, acknowledged, _, read) = said["counts"], said["application"]
                whole = counts["acknowledgements matched"] == acknowledged
                whole = whole and counts["deliveries matched"] == read == acknowledged
                wrong += bool(said["findings"]) or not whole
                words = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
                findings = "; ".join(f"{one['side']}: {one['says']}" for one in said["findings"][:5])
                kind = "with ids" if ids else "without ids"
                output.say(f"clients {client} at {broker}, {kind}: {words}; {findings or 'no finding'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
