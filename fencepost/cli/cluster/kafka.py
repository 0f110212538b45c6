"""`fencepost cluster kafka`: Apache Kafka's own brokers on this machine, as campaigns run them.

Owns messages and waiting. Must not know how brokers are started (systems/apache_kafka).
"""

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from fencepost.cli.cluster.waiting import serve
from fencepost.console.options import (
    WHOLE_FOLDER_THAT_IS,
    Named,
    default_option,
    directory_option,
    json_option,
)
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.systems.apache_kafka.cluster import ApacheKafka

VERSION = "4.4.0"
"""As systems/apache_kafka/jars.py recommends."""
kafka_directory = directory_option(
    "out/kafka", "Where the cluster keeps all its files; `down` finds it there."
)


@click.group("kafka", short_help="Apache Kafka's own brokers on this machine: up, down, versions.")
def command() -> None:
    """Run Apache Kafka's own brokers: any version from 3.0 on, from Maven or an unpacked release.

    Java 17 or later is needed, and Maven 3 for the jars. Three brokers take less than 700 MB.

    \b
    Examples
      fencepost cluster kafka up --version 4.4.0
      # ZooKeeper, in the background
      fencepost cluster kafka up --version 3.9.2 --detach
      fencepost cluster kafka down
      fencepost cluster kafka versions
    """


@command.command("up", short_help="Start it, wait until it is healthy.")
@default_option("--version", default=VERSION, metavar="X.Y.Z", help="Which release.")
@click.option(
    "--controllers",
    type=Named(["kraft", "separate", "zookeeper"]),
    help="Who keeps the cluster's state; separate: KRaft, controllers are processes of their own. [default: "
    "ZooKeeper up to 3.9, KRaft from 4.0 on]",
)
@default_option("--brokers", type=click.IntRange(1, 9), default=3, help="How many brokers.")
@click.option(
    "--kafka-home",
    type=WHOLE_FOLDER_THAT_IS,
    metavar="DIR",
    help="An unpacked release. [default: Maven fetches the jars]",
)
@kafka_directory
@click.option("--detach", is_flag=True, help="Return once it is healthy; it runs until `cluster kafka down`.")
@json_option
def up(
    version: str,
    controllers: str | None,
    brokers: int,
    kafka_home: Path | None,
    directory: Path,
    detach: bool,
    output: Output,
) -> ExitCode:
    """Start the brokers, each in its own process, and print their addresses once they are healthy.

    Ctrl-C ends all processes, and so does any error during the start.

    \b
    Examples
      fencepost cluster kafka up
      fencepost cluster kafka up --version 3.9.2 --controllers kraft --detach --json
    """
    from fencepost.systems.apache_kafka.cluster import ApacheKafka
    from fencepost.systems.apache_kafka.jars import Release

    release = Release(version=version, home=kafka_home, controllers=controllers or "")
    cluster = ApacheKafka(directory=directory, release=release, size=brokers, outlives_us=detach)
    cluster.start()
    return serve(output, lambda: _tell(output, cluster), cluster.alive, cluster.close, detach=detach)


def _tell(output: Output, cluster: "ApacheKafka") -> None:
    servers, software = cluster.bootstrap_servers(), cluster.inside().software
    output.say(f"{software}: {servers}", f"its files: {cluster.directory}")
    output.emit(
        {
            "software": software,
            "bootstrap_servers": servers,
            "directory": str(cluster.directory),
            "pids": {str(broker): process.pid for broker, process in cluster.running.processes.items()},
            "exit_code": 0,
        }
    )


@command.command("down", short_help="End every process.")
@kafka_directory
@json_option
def down(directory: Path, output: Output) -> ExitCode:
    """End the brokers of --directory, and the ZooKeeper server that was started with them. The data stays.
    --json prints an object.

    \b
    Examples
      fencepost cluster kafka down
    """
    from fencepost.systems.apache_kafka.cluster import ApacheKafka

    ApacheKafka.load(directory).close()
    output.say("stopped")
    return output.end(ExitCode.NOTHING_FOUND, {"stopped": True})


@command.command("versions", short_help="What can be run here.")
@json_option
def versions(output: Output) -> ExitCode:
    """List the recommended releases and those that are in the cache. Maven fetches any other one.

    \b
    Examples
      fencepost cluster kafka versions
    """
    from fencepost.systems.apache_kafka.jars import RECOMMENDED, Release, cached, missing

    rows, known = table("version", "state", ""), []
    for version in sorted({*RECOMMENDED, *cached()}, key=lambda one: [int(part) for part in one.split(".")]):
        release = Release(version=version)
        where = "in the cache" if version in cached() else "Maven fetches it"
        keeps = "KRaft" if release.kraft else "ZooKeeper or KRaft"
        add_row(rows, version, where, keeps)
        known.append({"version": version, "cached": version in cached(), "controllers": keeps})
    output.say(rows)
    if missing():
        output.note(f"a release that is not in the cache {missing()}")
    return output.end(ExitCode.NOTHING_FOUND, {"versions": known, "missing": missing()})
