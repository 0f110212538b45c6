"""`fencepost log`: the files of a Kafka log directory, looked into."""

from pathlib import Path

import rich_click as click

from fencepost.cli.options import json_option
from fencepost.traces.errors import ExitCode


@click.group("log", short_help="Look into the files of a Kafka log directory.")
def command() -> None:
    """Look into Kafka's own log files, from here or from a real broker.

    Files are only read. Use copies where a broker is still writing: what it has not finished looks torn.

    \b
    Examples
      fencepost log dump /var/lib/kafka/orders-0
      fencepost log dump 00000000000000000000.log --deep
    """


@command.command("dump", short_help="Batches, records, indexes and checkpoints, and how far they are good.")
@click.argument("path", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option("--deep", is_flag=True, help="Also the records of every batch.")
@click.option("--verify-index", is_flag=True, help="Follow every entry of the indexes into the log.")
@json_option
def dump(path: Path, deep: bool, verify_index: bool, as_json: bool) -> ExitCode:
    """Show what the files of a log hold: one file, a partition's directory, or a broker's data directory.

    Segments (.log) batch by batch with the state of their checksums, offset, time and transaction indexes, producer
    snapshots, leader epochs and checkpoints. What is damaged, cut off or foreign is told with how far the file is
    good; the exit code is then 1.

    \b
    Examples
      # a partition, with the indexes followed into the log
      fencepost log dump /var/lib/kafka/orders-0 --verify-index
      # one segment with its records, for a program
      fencepost log dump orders-0/00000000000000000000.log --deep --json
    """
    from fencepost.cli.console import Output
    from fencepost.cli.log_dump import Request, dump_path

    request = Request(deep=deep, verify_index=verify_index, alone=not path.is_dir())
    return dump_path(path, request, Output(as_json))
