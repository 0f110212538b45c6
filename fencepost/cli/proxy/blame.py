"""`fencepost proxy blame`: on which side a loss, a duplicate or a reordering happened."""

from pathlib import Path

import rich_click as click

from fencepost.console.options import FILE_THAT_IS, json_option
from fencepost.console.output import Output, add_row, table
from fencepost.report.event_words import printable
from fencepost.traces.errors import ExitCode, TraceError

MOST_SHOWN = 20
"""Findings that are shown; --json has all of them."""


@click.command("blame", short_help="Which side lost, doubled or reordered records.")
@click.argument("record", type=click.Path(path_type=Path, exists=True))
@click.argument("taps", type=FILE_THAT_IS, nargs=-1, required=True)
@json_option
def command(record: Path, taps: tuple[Path, ...], output: Output) -> ExitCode:
    """Join what crossed the wire (RECORD: a run of `fencepost proxy`, or its folder if it has one run) with
    what an application did and got (TAPS), and say on which side a loss, duplicate or reordering
    happened. A delivery report that the answers on the wire contradict is the client library's.

    Exit code 1 if there is any, on any side; 3 if no request in RECORD was answered, so that nothing can be
    said.

    \b
    Examples
      fencepost proxy blame out/live/run-0001 out/app.events
      fencepost proxy blame out/live producer.events consumer.events --json | jq .findings
    """
    from fencepost.application.blame.join import join
    from fencepost.application.blame.lines import read_lines
    from fencepost.traces.parts import read_recording

    trace = read_recording(_run(record))
    joined = join(trace, (line for tap in taps for line in read_lines(tap)))
    if joined.empty:
        output.say(
            f"expected requests with their answers in {printable(str(record), 400)}, saw none: does the "
            "application connect to the proxy (bootstrap.servers), and does the proxy reach its --upstream?"
        )
        return output.end(ExitCode.UNDECIDED, {"findings": [], "counts": {}})
    shown = table("side", "what", "where", "says", "frame")
    for blame in joined.blames[:MOST_SHOWN]:
        proof = [*blame.lines, *(f"operation {number}" for number in blame.operations)]
        says = f"{blame.says} ({'; '.join(proof)})"

        add_row(
            shown,
            blame.side,
            blame.kind,
            *(printable(text, 400) for text in (blame.place, says, str(blame.frame or ""))),
            style="red",
        )
    if joined.blames:
        output.say(shown)
    if len(joined.blames) > MOST_SHOWN:
        output.say(f"and {len(joined.blames) - MOST_SHOWN} more; --json has all")
    output.say(
        ", ".join(f"{count} {name}" for name, count in sorted(joined.counts.items())) or "no line of a tap"
    )
    code = ExitCode.FINDINGS if joined.blames else ExitCode.NOTHING_FOUND
    rows = [
        {
            "side": blame.side.value,
            "kind": blame.kind.value,
            "place": blame.place,
            "says": blame.says,
            "lines": list(blame.lines),
            "operations": list(blame.operations),
            "frame": None
            if blame.frame is None
            else {
                "connection": blame.frame.connection,
                "correlation": blame.frame.correlation,
                "api": blame.frame.api,
            },
        }
        for blame in joined.blames
    ]
    return output.end(code, {"findings": rows, "counts": joined.counts})


def _run(record: Path) -> Path:
    """The folder of the run. Raises TraceError if it is not one."""
    from fencepost.traces.parts import is_recording

    if is_recording(record):
        return record
    runs = [each for each in sorted(record.glob("run-*")) if is_recording(each)] if record.is_dir() else []
    if len(runs) != 1:
        raise TraceError(
            expected="a run of `fencepost proxy`",
            seen=f"{len(runs)} runs" if runs else "none",
            where=str(record),
            hint="name one of its run-* folders" if runs else "",
        )
    return runs[0]
