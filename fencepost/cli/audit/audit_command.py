"""`fencepost audit`: several brokers' log directories, or two topics of two clusters.

Owns the options. Must not know what is a finding.
"""

from pathlib import Path

import rich_click as click

from fencepost.cli.cluster.client.client_options import addresses
from fencepost.console.options import FILE, FOLDER, json_option, split_names
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode

Place = tuple[tuple[tuple[str, int], ...], str]
"""Bootstrap servers and a topic."""


def topic_place(context: click.Context, parameter: click.Parameter, value: str | None) -> Place | None:
    """HOST:PORT,.../TOPIC. context, parameter: click's, for the message."""
    if value is None:
        return None
    servers, slash, topic = value.rpartition("/")
    if not slash or not servers or not topic:
        raise click.BadParameter(f"expected HOST:PORT/TOPIC, saw {value!r}", context, parameter)
    return addresses(context, parameter, servers), topic


@click.command("audit")
@click.argument("places", nargs=-1, metavar="[NAME=DIR]...")
@click.option("--source", metavar="HOST:PORT/TOPIC", callback=topic_place, help="The topic that was copied.")
@click.option("--target", metavar="HOST:PORT/TOPIC", callback=topic_place, help="Its copy.")
@click.option(
    "--groups",
    metavar="NAME,...",
    help="Also what each of these groups would skip or repeat if it went on at the target.",
)
@click.option(
    "--source-config", type=FILE, metavar="FILE", help="How to log in there, as Kafka's own tools take it."
)
@click.option("--target-config", type=FILE, metavar="FILE", help="Likewise at the target.")
@click.option(
    "--out", type=FOLDER, metavar="DIR", help="Keep what was read there, so that --resume can go on."
)
@click.option("--resume", is_flag=True, help="Go on with what is in --out.")
@click.option(
    "--topic", "topics", multiple=True, metavar="GLOB", help="Only topics like this one. May be repeated."
)
@click.option(
    "--compacted",
    multiple=True,
    metavar="GLOB",
    help="Topics in which missing offsets are normal, if the directories do not show it. May be repeated.",
)
@click.option(
    "--deep",
    is_flag=True,
    help="Decode every record, and check whether compaction kept the latest of each key.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path, exists=True),
    help="A trace of the clients: say of each acknowledged record that is not on every replica where it is.",
)
@click.option(
    "--named",
    multiple=True,
    metavar="NAME=NAME",
    help="The topic in the history by its name in the directories, where they differ. May be repeated.",
)
@json_option
def command(
    places: tuple[str, ...],
    source: Place | None,
    target: Place | None,
    groups: str | None,
    source_config: Path | None,
    target_config: Path | None,
    out: Path | None,
    resume: bool,
    topics: tuple[str, ...],
    compacted: tuple[str, ...],
    deep: bool,
    history: Path | None,
    named: tuple[str, ...],
    output: Output,
) -> ExitCode:
    """Compare the replicas in several brokers' data directories, or a topic with its copy in another cluster.

    Directories: NAME is a name for a broker, DIR its data directory (log.dirs) or a copy of it, several times
    for a broker with several. Reported are replicas that differ, above all below the lower high watermark;
    damaged, missing and duplicate batches; epochs, sequence numbers, checkpoints, indexes and producer
    snapshots that contradict the batches. How to copy the directories: docs/how-to/audit.md.

    Topics: --source and --target are read by Kafka's protocol, up to the ends that they have at the
    beginning, and compared record by record, whatever their offsets. Reported is what is missing, doubled,
    reordered, altered or in another partition: docs/how-to/migration.md.

    Nothing is changed. Exit code 0: nothing found; 1: findings; 2: wrong usage, no answer or nothing
    readable; 3: nothing could be compared; 4: some files could not be read.

    \b
    Examples
      # copies of three brokers' directories
      fencepost audit 1=copies/broker-1 2=copies/broker-2 3=copies/broker-3
      # only some topics, with every record decoded
      fencepost audit 1=copies/broker-1 2=copies/broker-2 --topic 'orders*' --deep
      # where are the records that were acknowledged to clients?
      fencepost audit 1=copies/broker-1 2=copies/broker-2 --history out/trace.jsonl
      # one broker by itself, for a program
      fencepost audit 1=/var/lib/kafka --json
      # did a migration copy everything, and where do its groups go on?
      fencepost audit --source old:9092/orders --target new:9092/orders --groups billing
    """
    if source is not None and target is not None:
        if places or topics or compacted or deep or history or named:
            raise click.UsageError("expected --source and --target, or directories, saw options of both")
        from fencepost.audit.topics.topic_audit import TopicAuditOrder
        from fencepost.audit.topics.topic_cluster import TopicPlace
        from fencepost.cli.audit.topics_report import audit_two_topics
        from fencepost.cli.doctor.command_config import access_of

        if resume and out is None:
            raise click.UsageError("expected --out with --resume, saw none")
        from_, to = (
            TopicPlace(word=word, bootstrap=place[0], topic=place[1], access=access_of(file, option))
            for word, place, file, option in (
                ("source", source, source_config, "--source-config"),
                ("target", target, target_config, "--target-config"),
            )
        )
        order = TopicAuditOrder(
            source=from_, target=to, groups=split_names(groups) or (), folder=out, resume=resume
        )
        return audit_two_topics(order, output)
    if source or target or groups or source_config or target_config or out or resume:
        raise click.UsageError("expected both --source and --target, saw not both")
    if not places:
        raise click.UsageError("expected NAME=DIR, or --source and --target, saw neither")
    from fencepost.audit.survey import AuditRequest
    from fencepost.cli.audit.directories_audit import History, audit_places, names_of, places_of

    request = AuditRequest(places=places_of(places), topics=topics or ("*",), compacted=compacted, deep=deep)
    asked = None
    if history is not None:
        from fencepost.cli.show import chosen_trace

        trace = chosen_trace(history, None).trace
        asked = History(operations=trace.operations, names=names_of(named))
    return audit_places(request, output, asked)
