"""`fencepost show`: writes a stored trace as a page that you step through.

Owns which trace is meant, and where its page goes. Must not know how a page is made.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import rich_click as click

from fencepost.checkers.verdict import Verdict, combine
from fencepost.cli.check.model import asked_model, model_options
from fencepost.cli.inputs import AUTO
from fencepost.cli.replay import by_rank, exit_code_of, list_findings, show_verdicts
from fencepost.console.options import (
    ANY_PATH,
    checks_option,
    html_option,
    json_option,
    split_names,
    trace_option,
)
from fencepost.console.output import Output
from fencepost.report.commands import replay_stored
from fencepost.traces.errors import ExitCode, TraceError
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.mining.inputs.traces import Found
    from fencepost.viewer import Shown


@click.command("show")
@click.argument("source", type=ANY_PATH, metavar="FILE|FOLDER")
@trace_option("The trace with this id, if SOURCE has several.")
@html_option("File of the page. [default: SOURCE's name, or trace-ID.html, in this folder]")
@checks_option
@model_options
@json_option
def command(
    source: Path,
    trace_id: int | None,
    html: Path | None,
    checks: str | None,
    format: str,
    output: Output,
    **model: Any,
) -> ExitCode:
    """Write one trace as a page that you step through: one HTML file that needs no network.

    The argument is a folder of traces, a file of JSON lines, or a history in any format that `fencepost
    check` reads. A history without protocol events shows what its clients know. With --model the page shows
    the longest order that a sequential model allows. docs/how-to/viewer.md explains what is drawn.

    \b
    Examples
      # run 17 of a campaign
      fencepost show out/broken --trace 17 --html bug.html
      # the trace of a failed test
      fencepost show trace.jsonl
      # a register's history that is not linearizable
      fencepost show etcd.log --model cas-register
    """
    from fencepost.viewer import write_page

    if model["model"] is None and any(value not in (None, ()) for value in model.values()):
        raise click.UsageError("expected --model with options of a model, saw none")
    if model["model"] is not None and checks is not None:
        raise click.UsageError("expected --model without --checks, which ask something else")
    chosen = chosen_trace(source, trace_id, format)
    for sentence in chosen.taken:
        output.note(sentence)
    shown = _shown(chosen, checks, model)
    trace = shown.trace
    default = source.with_suffix("").name if source.is_file() else f"trace-{trace.trace_id}"
    path = html if html is not None else Path(f"{default}.html")
    size = write_page(path, [shown])
    show_verdicts(shown.verdicts, output)
    list_findings(by_rank(shown.verdicts), output)
    output.say("", f"Watch it: {path} ({size:,} bytes; open it in a browser)")
    code = exit_code_of(combine(shown.verdicts))
    return output.end(
        code,
        {
            "trace_id": trace.trace_id,
            "html": str(path),
            "bytes": size,
            "verdicts": [attrs.asdict(verdict) for verdict in shown.verdicts],
        },
    )


def chosen_trace(source: Path, trace_id: int | None, format: str = AUTO) -> "Found":
    """The one trace that is meant, with what of the source could not be read. source: a file or folder;
    trace_id: which one; format: as for `show`. Raises TraceError if there is none, or several."""
    from fencepost.mining.inputs.traces import Found, is_store, pieces_of, read_piece
    from fencepost.mining.inputs.traces import Piece as InputPiece
    from fencepost.traces.store import TraceStore

    left_out: list[str] = []
    if is_store(source):
        store = TraceStore.open(source)
        ids = sorted(store.trace_ids())
        wanted = ids[0] if trace_id is None and len(ids) == 1 else trace_id
        if wanted is None:
            raise TraceError(
                expected="one trace, named with --trace",
                seen=f"{len(ids)} traces",
                where=str(source),
                hint="`fencepost check` lists those with findings",
            )
        trace = store.read(wanted, left_out.append)
        return Found(source=str(source), trace=trace, stored=True, taken=tuple(left_out))
    several = 0
    for piece in pieces_of((source,), format):
        for found in read_piece(piece) if isinstance(piece, InputPiece) else (piece,):
            if not isinstance(found, Found):
                left_out.append(found.reason)
                continue
            if found.foreign or trace_id is None or found.trace.trace_id == trace_id:
                several += 1
                chosen = found
            if several > 1 and trace_id is None:
                raise TraceError(
                    expected="one trace, named with --trace", seen="several traces", where=str(source)
                )
    if not several and left_out:
        raise TraceError(expected="a trace that can be read", seen=left_out[0], where=str(source))
    if not several:
        seen = "none with this id" if trace_id is not None else "no trace"
        raise TraceError(expected="a trace", seen=seen, where=str(source))
    return attrs.evolve(chosen, taken=(*chosen.taken, *left_out))


def _shown(found: "Found", checks: str | None, model: dict[str, Any]) -> "Shown":
    """The trace with its verdicts."""
    from fencepost.checkers.judges import DEFAULT_CHECKS, judge
    from fencepost.viewer import Shown

    replay = (
        replay_stored(Path(found.source), found.trace.trace_id) if found.stored and found.trace.plan else ""
    )
    if model["model"] is None:
        verdicts = judge(found.trace, split_names(checks) or DEFAULT_CHECKS)
        return Shown(trace=found.trace, verdicts=verdicts, replay=replay, unread=found.taken)
    verdict, picture = _by_model(found.trace, model)
    return Shown(
        trace=found.trace, verdicts=(verdict,), replay=replay, sequential=picture, unread=found.taken
    )


def _by_model(trace: Trace, options: dict[str, Any]) -> tuple[Verdict, dict[str, Any] | None]:
    from fencepost.checkers.linearizability import judge_trace
    from fencepost.viewer.sequential import sequential_of

    question = asked_model(**options)
    workload = question.asked_workload()
    if workload is not None:
        return workload.judge(trace), None  # judged as a whole: no order of the operations to draw
    model, limits = question.asked_model()
    verdict = judge_trace(trace, model, limits)
    return verdict, sequential_of(trace, model, verdict.findings)
