"""`fencepost cluster elect preferred`: preferred replicas lead again. Owns messages; must not know how the
controller elects."""

from pathlib import Path

import rich_click as click

from fencepost.cli.cluster.zookeeper import cluster_options, connected
from fencepost.console.options import FILE_THAT_IS, json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode


@click.group("elect", short_help="Elect partition leaders.")
def command() -> None:
    """Ask the controller of a running cluster to elect partition leaders.

    The request is written to ZooKeeper, where the controller finds it. If the controller can do nothing,
    nothing changes.

    \b
    Examples
      fencepost cluster elect preferred
      # some.json: {"partitions":[{"topic":"orders","partition":0}]}
      fencepost cluster elect preferred --path-to-json-file some.json
    """


@command.command("preferred", short_help="The first replica of each partition leads again.")
@click.option(
    "--path-to-json-file",
    "file",
    type=FILE_THAT_IS,
    help='Only these partitions: {"partitions":[{"topic":"t","partition":0}]}. By default all.',
)
@cluster_options
@json_option
def preferred(file: Path | None, zookeeper: str | None, directory: Path, output: Output) -> ExitCode:
    """Let the preferred replica of each partition (the first one) lead again, if it is alive and in sync.
    Other partitions do not change.

    \b
    Examples
      fencepost cluster elect preferred
      fencepost cluster elect preferred --path-to-json-file some.json --json
    """
    from fencepost.impl.admin.preferred import decode_partitions, elect_preferred

    where = str(file) if file else "elect preferred"
    keys = decode_partitions(file.read_bytes(), where) if file else None
    with connected(zookeeper, directory) as session:
        asked = session.run(elect_preferred(keys, where))
    shown = ", ".join(str(key) for key in asked[:20]) + (
        f" and {len(asked) - 20} more" if len(asked) > 20 else ""
    )
    output.say(f"Successfully started preferred replica election for partitions {shown}")
    return output.end(
        ExitCode.NOTHING_FOUND,
        {"partitions": [{"topic": key.topic, "partition": key.partition} for key in asked], "started": True},
    )
