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
