"""`fencepost cluster consume`: prints records of a running cluster as lines of standard output."""

import asyncio
from pathlib import Path

import rich_click as click

from fencepost.cli.cluster.client.client_options import (
    Bootstrap,
    bootstrap_options,
    cluster_directory,
    partition_option,
    record_option,
    target,
)
from fencepost.cli.cluster.client.consumers import Alone, Lines, Member, nameable
from fencepost.console.options import Named, default_option, json_lines_option
from fencepost.console.output import Output
from fencepost.report.commands import check_traces
from fencepost.traces.errors import ExitCode


@click.command("consume", short_help="Print records as lines on standard output.")
@click.argument("topic")
@cluster_directory
@bootstrap_options
@partition_option
@click.option("--group", metavar="G", help="Read as a member of this consumer group.")
@default_option(
    "--commit",
    type=Named(["auto", "sync", "none"]),
    default="auto",
    help="When a group's member commits: every 5 s and at the end, after each poll, or never.",
)
@click.option(
    "--from-beginning",
    is_flag=True,
    help="Begin at the log's start instead of its end. In a group: only where nothing is committed.",
)
@click.option("--max", "most", type=click.IntRange(1), metavar="N", help="End after this many records.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(1),
    help="End when nothing came for this long. [default: continue until Ctrl-C]",
)
@click.option("--key-separator", metavar="TEXT", help="Print the key, this text, and the value.")
@record_option
@json_lines_option("Print each record as one line of JSON; everything else goes to standard error.")
def command(
    topic: str,
    directory: Path,
    bootstrap: Bootstrap,
    partition: int | None,
    group: str | None,
    commit: str,
    from_beginning: bool,
    most: int | None,
    timeout_ms: int | None,
    key_separator: str | None,
    record: Path | None,
    output: Output,
) -> ExitCode:
    """Print the records of TOPIC of a running `fencepost cluster` (or of any Kafka), each value on a line, in
    the order of each partition.

    Without a group it reads by itself, every partition or the named one. With --group it shares the
    partitions with the other members, continues where the group has committed, and commits what it printed.

    \b
    Examples
      fencepost cluster consume orders --from-beginning --timeout-ms 2000
      fencepost cluster consume orders --from-beginning --timeout-ms 2000 --bootstrap 127.0.0.1:9092
      fencepost cluster consume orders --partition 0 --max 10 --json
      fencepost cluster consume orders --from-beginning --max 1000 --record out/orders.jsonl
      # two of these share the work
      fencepost cluster consume orders --group billing --from-beginning
    """
    if group is not None and partition is not None:
        raise click.UsageError("expected --partition or --group, saw both: a group assigns the partitions")
    from fencepost.cli.cluster.client.history import add_run, check_record

    if record is not None:
        check_record(record)
    where = target(directory, topic, bootstrap)
    lines = Lines(most, key_separator, output.json)
    run: Alone | Member = Alone(where, where.chosen(partition), lines, from_beginning, timeout_ms)
    if group is not None:
        run = Member(where, group, lines, from_beginning, timeout_ms, commit)
    try:
        asyncio.run(run.work())
    finally:
        output.note(f"{lines.printed:,} records")
        if record is not None:
            rows, without_id = nameable(run.rows)
            _tell(output, record, add_run(record, rows).strangers, without_id)
    return ExitCode.NOTHING_FOUND


def _tell(output: Output, record: Path, strangers: int, without_id: int) -> None:
    output.note(f"recorded in {record}; judge it: {check_traces(record)}")
    if strangers:
        output.note(
            f"{strangers:,} records have no recorded send in {record}: the judge takes "
            f"them for phantoms,"
            " unless their producers are recorded into the same file"
        )
    if without_id:
        output.note(
            f"{without_id:,} records carry no value id and are in no row: `cluster produce` gives one"
        )
