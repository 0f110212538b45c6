"""`fencepost cluster topics`: create, delete, list, describe and alter topics of a running cluster, through
ZooKeeper.

Owns messages. Must not know how topics are stored or checked (impl/admin).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from fencepost.cli.cluster.zookeeper import cluster_options, connected, draw, seed_option
from fencepost.console.options import default_option, json_option, named_value
from fencepost.console.output import Output, add_row, table
from fencepost.traces.errors import ExitCode

if TYPE_CHECKING:
    from fencepost.impl.admin.topic_administration import PartitionDescription

topic_argument = click.argument("topic")


@click.group("topics", short_help="Create, delete, list, describe and alter topics.")
def command() -> None:
    """Topics of a running cluster, through its ZooKeeper.

    Each command checks everything first and then makes one write, or none; the controller does the rest.

    \b
    Examples
      fencepost cluster up --brokers 3 --detach
      fencepost cluster topics create orders --partitions 6 --replication-factor 2
      fencepost cluster topics describe orders
      fencepost cluster topics alter orders --partitions 12
      fencepost cluster topics alter orders --config min.insync.replicas=2
      fencepost cluster topics delete orders
    """


def _assignment(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Kafka's notation: commas between partitions, colons between brokers."""
    if value is None:
        return None
    try:
        return {
            number: tuple(int(broker) for broker in part.split(":"))
            for number, part in enumerate(value.split(","))
        }
    except ValueError:
        raise click.BadParameter(f"expected such as 1:2,2:3, saw {value!r}", context, parameter) from None


def _settings(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """name=value, each name once."""
    settings: dict[str, str] = {}
    for text in values:
        name, value = named_value(text, "such as retention.ms=60000")
        if name in settings:
            raise click.BadParameter(f"expected each name once, saw {name} twice", context, parameter)
        settings[name] = value
    return settings


config_option = click.option(
    "--config",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="A setting of this topic, such as min.insync.replicas=2; may be repeated.",
)


@command.command("create", short_help="Create a topic.")
@topic_argument
@default_option("--partitions", type=click.IntRange(1, 100_000), default=1)
@default_option("--replication-factor", type=click.IntRange(1, 32_767), default=1)
@click.option(
    "--replica-assignment",
    callback=_assignment,
    metavar="1:2,2:3",
    help="Brokers of each partition, the preferred leader first, instead of a placement by round robin.",
)
@config_option
@seed_option
@cluster_options
@json_option
def create(
    topic: str,
    partitions: int,
    replication_factor: int,
    replica_assignment: dict[int, tuple[int, ...]] | None,
    config: dict[str, str],
    seed: int | None,
    zookeeper: str | None,
    directory: Path,
    output: Output,
) -> ExitCode:
    """Create a topic.

    Replicas are placed round robin, without racks, from a random broker on, as Kafka does.

    \b
    Examples
      fencepost cluster topics create orders --partitions 6 --replication-factor 2
      # partition 0 on brokers 1 and 2, partition 1 on 2 and 3
      fencepost cluster topics create orders --replica-assignment 1:2,2:3
      fencepost cluster topics create orders --replication-factor 3 --config min.insync.replicas=2
    """
    from fencepost.impl.admin.topic_administration import create_topic

    with connected(zookeeper, directory) as session:
        assignment = session.run(
            create_topic(
                topic,
                partitions=partitions,
                replication_factor=replication_factor,
                draw=draw(seed),
                assignment=replica_assignment,
                config=config,
            )
        )
    _tell_assignment(output, f"Created topic {topic}.", topic, assignment)
    return ExitCode.NOTHING_FOUND


@command.command("delete", short_help="Mark a topic for deletion.")
@topic_argument
@cluster_options
@json_option
def delete(topic: str, zookeeper: str | None, directory: Path, output: Output) -> ExitCode:
    """Mark a topic for deletion. Its replicas are removed once their brokers run and no reassignment is in
    progress for it.

    \b
    Examples
      fencepost cluster topics delete orders
    """
    from fencepost.impl.admin.topic_administration import delete_topic

    with connected(zookeeper, directory) as session:
        session.run(delete_topic(topic))
    output.say(f"Topic {topic} is marked for deletion.")
    return output.end(ExitCode.NOTHING_FOUND, {"topic": topic, "marked_for_deletion": True})


@command.command("list", short_help="Names of all topics.")
@cluster_options
@json_option
def list_topics(zookeeper: str | None, directory: Path, output: Output) -> ExitCode:
    """Print the names of all topics, one per line.

    \b
    Examples
      fencepost cluster topics list
      fencepost cluster topics list --json
    """
    from fencepost.impl.admin.cluster_state import read_cluster

    with connected(zookeeper, directory) as session:
        cluster = session.run(read_cluster(()))
    for name in cluster.names:
        output.say(f"{name} - marked for deletion" if name in cluster.deleting else name)
    return output.end(
        ExitCode.NOTHING_FOUND, {"topics": cluster.names, "marked_for_deletion": sorted(cluster.deleting)}
    )


@command.command("describe", short_help="Leaders, replicas and in-sync replicas.")
@click.argument("topic", required=False)
@click.option("--under-replicated", is_flag=True, help="Only partitions with a replica that is not in sync.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader.")
@cluster_options
@json_option
def describe(
    topic: str | None,
    under_replicated: bool,
    unavailable: bool,
    zookeeper: str | None,
    directory: Path,
    output: Output,
) -> ExitCode:
    """Print ZooKeeper's state of each partition of a topic, or of all topics.

    Replicas are listed in order, the preferred leader first; isr are those in sync. After the partitions come
    the settings of topics that override any.

    \b
    Examples
      fencepost cluster topics describe orders
      fencepost cluster topics describe --under-replicated --json
    """
    from fencepost.impl.admin.configuration import describe_configurations
    from fencepost.impl.admin.topic_administration import describe_topics

    with connected(zookeeper, directory) as session:
        described: list[PartitionDescription] = session.run(
            describe_topics(None if topic is None else {topic})
        )
        configured: dict[str, dict[str, str]] = session.run(
            describe_configurations({one.partition.topic for one in described})
        )
    shown = [
        one
        for one in described
        if (not under_replicated or one.under_replicated) and (not unavailable or _leader(one) < 0)
    ]
    rows = table("topic", ">partition", ">leader", "replicas", "isr", ">leader epoch", "")
    for one in shown:
        state = one.state
        add_row(
            rows,
            one.partition.topic,
            one.partition.partition,
            _leader(one) if _leader(one) >= 0 else "none",
            _listed(one.replicas),
            _listed(state.isr) if state else "",
            state.leader_epoch if state else "",
            _remark(one),
        )
    if shown:
        output.say(rows)
    else:
        output.note("no such partition")
    named = {one.partition.topic for one in shown}
    configurations = {name: config for name, config in sorted(configured.items()) if name in named}
    for name, config in configurations.items():
        output.say(f"{name}: {_settings_in_words(config)}")
    return output.end(
        ExitCode.NOTHING_FOUND,
        {"partitions": [_as_json(one) for one in shown], "configurations": configurations},
    )


@command.command("alter", short_help="Add partitions, or change settings.")
@topic_argument
@click.option("--partitions", type=click.IntRange(1, 100_000), help="The new number of partitions.")
@config_option
@click.option(
    "--delete-config", multiple=True, metavar="NAME", help="Remove this setting's override; may be repeated."
)
@cluster_options
@json_option
@click.pass_context
def alter(
    context: click.Context,
    topic: str,
    partitions: int | None,
    config: dict[str, str],
    delete_config: tuple[str, ...],
    zookeeper: str | None,
    directory: Path,
    output: Output,
) -> ExitCode:
    """Add partitions to a topic, or change its settings; running brokers apply a setting at once.

    Existing records stay where they are, so more partitions may change the partition of a key.

    \b
    Examples
      fencepost cluster topics alter orders --partitions 12
      fencepost cluster topics alter orders --config min.insync.replicas=2 --config retention.ms=3600000
      fencepost cluster topics alter orders --delete-config retention.ms
    """
    from fencepost.impl.admin.configuration import alter_config
    from fencepost.impl.admin.topic_administration import add_partitions

    changes = bool(config or delete_config)
    if changes == (partitions is not None):
        seen = "both" if changes else "neither"
        raise click.UsageError(f"expected either --partitions or settings to change, saw {seen}", context)
    with connected(zookeeper, directory) as session:
        if partitions is not None:
            assignment = session.run(add_partitions(topic, partitions))
        else:
            altered: dict[str, str] = session.run(alter_config(topic, config, delete_config))
    if partitions is not None:
        _tell_assignment(output, "Adding partitions succeeded!", topic, assignment)
        return ExitCode.NOTHING_FOUND
    output.say(f"Altered the settings of topic {topic}: {_settings_in_words(altered)}")
    return output.end(ExitCode.NOTHING_FOUND, {"topic": topic, "config": altered})


# ---- words


def _tell_assignment(
    output: Output, sentence: str, topic: str, assignment: dict[int, tuple[int, ...]]
) -> None:
    output.say(sentence)
    partitions = [
        {"partition": number, "replicas": list(replicas)} for number, replicas in sorted(assignment.items())
    ]
    output.emit({"topic": topic, "partitions": partitions})


def _settings_in_words(config: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(config.items())) or "none of its own"


def _leader(one: "PartitionDescription") -> int:
    return one.state.leader if one.state else -1


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in brokers)


def _remark(one: "PartitionDescription") -> str:
    if one.deleting:
        return "marked for deletion"
    return f"is reassigned to {_listed(one.target)}" if one.target else ""


def _as_json(one: "PartitionDescription") -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "leader": _leader(one),
        "leader_epoch": one.state.leader_epoch if one.state else -1,
        "replicas": list(one.replicas),
        "isr": list(one.state.isr) if one.state else [],
        "reassigned_to": list(one.target) if one.target else None,
        "marked_for_deletion": one.deleting,
    }
