"""`fencepost log`: reads the files of a Kafka log directory."""

from pathlib import Path

import rich_click as click

from fencepost.console.options import ANY_PATH, json_option
from fencepost.console.output import Output
from fencepost.traces.errors import ExitCode


@click.group("log")
def command() -> None:
    """Read Kafka's own log files, from here or from a real broker.

    Files are only read. Use copies if a broker is still writing: an unfinished write looks torn.

    \b
    Examples
      fencepost log dump /var/lib/kafka/orders-0
      fencepost log dump 00000000000000000000.log --deep
      fencepost log audit 1=copies/broker-1 2=copies/broker-2
    """


@command.command("dump", short_help="Batches, records, indexes and checkpoints, and what is damaged.")
@click.argument("path", type=ANY_PATH, metavar="DIR|FILE")
@click.option("--deep", is_flag=True, help="Also the records of every batch.")
@click.option("--verify-index", is_flag=True, help="Follow every entry of the indexes into the log.")
@json_option
def dump(path: Path, deep: bool, verify_index: bool, output: Output) -> ExitCode:
    """Show the contents of log files: one file, a partition's directory, or a broker's data directory.

    Segments (.log) batch by batch with the state of their checksums, offset, time and transaction indexes,
    producer snapshots, leader epochs and checkpoints. Damaged, truncated and foreign files are reported, with
    how much of the file is intact; the exit code is then 1.

    \b
    Examples
      # a partition, with the indexes followed into the log
      fencepost log dump /var/lib/kafka/orders-0 --verify-index
      # one segment with its records, for a program
      fencepost log dump orders-0/00000000000000000000.log --deep --json
    """
    from fencepost.cli.log.dump import DumpRequest, dump_path

    request = DumpRequest(deep=deep, verify_index=verify_index, alone=not path.is_dir())
    return dump_path(path, request, output)


@command.command("audit", short_help="Compare the replicas of several brokers.")
@click.argument("places", nargs=-1, required=True, metavar="NAME=DIR...")
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
def audit(
    places: tuple[str, ...],
    topics: tuple[str, ...],
    compacted: tuple[str, ...],
    deep: bool,
    history: Path | None,
    named: tuple[str, ...],
    output: Output,
) -> ExitCode:
    """Compare the replicas of the same partitions in several brokers' data directories, and each with its own
    files.

    NAME is a name for a broker, DIR its data directory (log.dirs) or a copy of it. Name a broker with several
    directories several times. The audit reports replicas that differ, above all below the lower high
    watermark; damaged, missing and duplicate batches; epochs, sequence numbers, checkpoints, indexes and
    producer snapshots that contradict the batches. Files are only read, from the first byte to the last. How
    to copy the directories: docs/how-to/audit.md.

    \b
    Examples
      # copies of three brokers' directories
      fencepost log audit 1=copies/broker-1 2=copies/broker-2 3=copies/broker-3
      # only some topics, with every record decoded
      fencepost log audit 1=copies/broker-1 2=copies/broker-2 --topic 'orders*' --deep
      # where are the records that were acknowledged to clients?
      fencepost log audit 1=copies/broker-1 2=copies/broker-2 --history out/trace.jsonl
      # one broker by itself, for a program
      fencepost log audit 1=/var/lib/kafka --json
    """
    from fencepost.audit.survey import AuditRequest
    from fencepost.cli.log.audit import History, audit_places, names_of, places_of

    request = AuditRequest(places=places_of(places), topics=topics or ("*",), compacted=compacted, deep=deep)
    asked = None
    if history is not None:
        from fencepost.cli.show import chosen_trace

        trace = chosen_trace(history, None).trace
        asked = History(operations=trace.operations, names=names_of(named))
    return audit_places(request, output, asked)
