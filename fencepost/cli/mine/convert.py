"""`fencepost mine convert`: writes histories of any known format as Parquet folders of ours, or JSON lines.

Owns the names of traces in the new place, and that the output is written completely or not at all. Must not
know formats: inputs.py reads, traces/ writes.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from attrs import define, evolve, field

from fencepost.cli.inputs import format_option, readable_pieces
from fencepost.console.conventions import convention_options
from fencepost.console.options import ANY_PATH, Named, json_option
from fencepost.console.output import Bar, Output
from fencepost.traces.errors import ExitCode, FencepostError, TraceError
from fencepost.traces.importers.conventions import Conventions, Order
from fencepost.traces.trace import Trace

if TYPE_CHECKING:
    from fencepost.mining.inputs.traces import Found, Piece

PARQUET, JSONL = "parquet", "jsonl"


@define
class Conversion:
    """What was converted so far."""

    # Give traces the ids 0, 1, ... in the order of the input.
    renumber: bool
    # Leave out what is unreadable instead of failing.
    keep_going: bool
    # Digest of each written trace, by trace id.
    digests: dict[int, str] = field(factory=dict)
    # Histories without an id.
    foreign: int = 0
    # Traces that stated another digest than their rows have.
    restated: int = 0
    # Written rows.
    operations: int = 0
    events: int = 0
    # The sources of foreign histories, with their trace ids.
    sources: list[dict[str, Any]] = field(factory=list)
    # Why input was unreadable.
    unreadable: list[str] = field(factory=list)
    # How what can be read in two ways was taken.
    taken: list[str] = field(factory=list)

    def traces(self, pieces: "list[Piece]", output: Output, bar: Bar) -> Iterator[Trace]:
        """Every trace of the pieces under its new id. output: for reports; bar: for progress. Raises
        TraceError for unreadable input, unless it is to be left out."""
        from fencepost.mining.inputs.traces import Quarantined, read_piece

        for number, piece in enumerate(pieces):
            for found in read_piece(piece):
                if isinstance(found, Quarantined):
                    self.quarantine(found.reason, output)
                else:
                    self.taken += found.taken
                    for sentence in found.taken:
                        output.note(sentence)
                    trace = self._named(found)
                    if trace is not None:
                        bar.to(number, f"{len(self.digests)} traces")
                        yield trace
            bar.to(number + 1)

    def quarantine(self, reason: str, output: Output) -> None:
        """Report unreadable input and leave it out, or raise. reason: one sentence; output: for the
        report."""
        if not self.keep_going:
            where, _, why = reason.partition(": ")
            raise UnreadableInputError(
                f"{where}: {why}; nothing was written (--keep-going leaves out what is unreadable)"
            )
        self.unreadable.append(reason)
        output.note(f"unreadable, left out: {reason}")

    def _named(self, found: "Found") -> Trace | None:
        """The trace with its id and digest; None if the same run was written before. Raises TraceError if
        another run has its id."""
        from fencepost.traces.digest import digest_of

        trace, is_foreign = found.trace, found.foreign
        digest = digest_of(trace)
        trace_id = trace.trace_id
        if self.renumber:
            trace_id = len(self.digests)
        elif is_foreign:
            trace_id = self.foreign
        if self.digests.get(trace_id) == digest:
            return None
        if trace_id in self.digests:
            raise TraceError(
                expected=f"one run under trace id {trace_id}",
                seen="another one",
                where=found.source,
                hint="--renumber gives each a number of its own",
            )
        self.digests[trace_id] = digest
        self.foreign += is_foreign
        self.restated += trace.digest not in ("", digest)
        self.operations += len(trace.operations)
        self.events += len(trace.events)
        if is_foreign:
            row = {"source": found.source, "trace_id": trace_id, "digest": digest}
            self.sources.append({**row, "operations": len(trace.operations)})
        return evolve(trace, trace_id=trace_id, digest=digest)


class UnreadableInputError(FencepostError):
    """Unreadable input. Its text is a whole sentence already."""

    def __init__(self, sentence: str) -> None:
        Exception.__init__(self, sentence)


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A temporary place next to `out`, renamed to `out` when the body succeeds and removed if it fails.
    Raises TraceError if `out` exists already."""
    taken = any(out.iterdir()) if out.is_dir() else out.exists()
    if taken:
        raise TraceError(
            expected="a new file, or a new or empty folder",
            seen="something there already",
            where=f"--out {out}",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    made = out.with_name(f".{out.name}.partial")
    _remove(made)
    try:
        yield made
        if out.is_dir():
            out.rmdir()
        made.rename(out)
    except BaseException:
        _remove(made)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, to: str, traces: Iterator[Trace]) -> None:
    """All traces into a new file or folder; memory is bounded by one trace and one row group."""
    if to == JSONL:
        from fencepost.traces.jsonlines import write_traces

        write_traces(path, traces)
        return
    from fencepost.traces.sealing import seal
    from fencepost.traces.store import TraceStore

    store = TraceStore.create(path)
    with store.writer("convert") as writer:
        for trace in traces:
            writer.append(trace)
    seal(store)


@click.command("convert", short_help="Histories of any known format into Parquet or JSON lines.")
@click.argument("inputs", nargs=-1, type=ANY_PATH, metavar="FILE|FOLDER...")
@click.option("--out", required=True, type=ANY_PATH, help="New or empty folder, or a new file of JSON lines.")
@click.option(
    "--to",
    type=Named([PARQUET, JSONL]),
    help="Output format. [default: jsonl for a name that ends so, otherwise parquet]",
)
@format_option
@convention_options
@click.option(
    "--sink",
    metavar="SOURCE",
    help="Instead of histories: the rows that an application wrote into a store, as events of a sink. A file "
    "*.csv, *.jsonl or *.parquet, sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE.",
)
@click.option(
    "--query",
    metavar="SQL",
    help="With --sink and a database: answers with columns topic, partition, offset, key or value.",
)
@click.option("--renumber", is_flag=True, help="Give traces the ids 0, 1, ... in the order of the input.")
@click.option(
    "--keep-going", is_flag=True, help="Leave out unreadable input; without it nothing is written then."
)
@json_option
def command(
    inputs: tuple[Path, ...],
    out: Path,
    to: str | None,
    format: str,
    renumber: bool,
    keep_going: bool,
    output: Output,
    order: Order,
    keyed: bool | None,
    failed_cas_observes: bool,
    sink: str | None,
    query: str | None,
) -> ExitCode:
    """Turn histories into folders of traces (Parquet, which `mine` reads too) or into JSON lines, and back.

    Reads everything that `check` reads: folders of traces, JSON lines, EDN, JSON, log text. Nothing is lost:
    the digest of every trace stays the same. The output is written completely or not at all.

    \b
    Examples
      # a Jepsen history for Spark
      fencepost mine convert history.edn --out out/jepsen
      # a whole folder, without the unreadable files
      fencepost mine convert store/ --out out/all --keep-going
      # a campaign as text
      fencepost mine convert out/broken --out broken.jsonl
      # what a consumer wrote into its database, for `check app/*.events` (docs/reference/events.md)
      fencepost mine convert --sink sqlite:///app.db --query 'SELECT topic, partition, "offset" FROM done' \
        --out app/db.events
    """
    if sink is not None or query is not None:
        return _convert_sink(inputs, sink, query, out, output)
    if not inputs:
        raise click.UsageError("expected FILE|FOLDER..., what is converted, saw none")
    chosen = to or (JSONL if out.suffix == ".jsonl" else PARQUET)
    conversion = Conversion(renumber=renumber, keep_going=keep_going)
    if chosen == PARQUET and len(inputs) == 1 and _is_long(inputs[0]):
        _write_long(inputs[0], out, conversion, output)
        return _tell(conversion, out, chosen, output)
    with _whole(out) as made:
        conventions = Conventions(order=order, keyed=keyed, failed_cas_observes=failed_cas_observes)
        refused = partial(conversion.quarantine, output=output)
        pieces = readable_pieces(inputs, format, conventions, refused, output)
        with output.progress("pieces", len(pieces)) as bar:
            _write(made, chosen, conversion.traces(pieces, output, bar))
        if not conversion.digests:
            raise TraceError(expected="traces to convert", seen="none", where=", ".join(map(str, inputs)))
    return _tell(conversion, out, chosen, output)


def _convert_sink(
    inputs: tuple[Path, ...], sink: str | None, query: str | None, out: Path, output: Output
) -> ExitCode:
    from fencepost.application.sink_rows import sink_lines, write_sink

    if sink is None:
        raise click.UsageError("expected --sink with --query, saw none")
    if inputs:
        raise click.UsageError(f"expected no other input with --sink, saw {inputs[0]}")
    count = write_sink(out, sink_lines(sink, query))
    output.say(f"{count} rows written to {out}")
    return output.end(ExitCode.NOTHING_FOUND, {"out": str(out), "to": "events", "rows": count})


def _is_long(path: Path) -> bool:
    """Whether it is a recording with more rows than one trace may have as Python values."""
    from fencepost.traces.parts import is_long, is_recording

    return is_recording(path) and is_long(path)


def _write_long(path: Path, out: Path, conversion: Conversion, output: Output) -> None:
    from fencepost.mining.inputs.long_recordings import write_long

    output.note(
        f"{path} is too long for one trace in memory: it is written piece by piece, for `fencepost mine "
        f"{out}`"
    )
    with _whole(out) as made, output.progress("parts, each read twice", 0) as bar:
        written = write_long(path, made, lambda done, steps: bar.to(done, total=steps))
    conversion.operations, conversion.events = written.operations, written.events
    conversion.digests[0] = ""


def _tell(conversion: Conversion, out: Path, to: str, output: Output) -> ExitCode:
    code = ExitCode.QUARANTINED if conversion.unreadable else ExitCode.NOTHING_FOUND
    if conversion.restated:
        output.note(
            f"{conversion.restated} traces stated another digest than their rows have; they got the right one"
        )
    counted = (
        f"{len(conversion.digests)} traces with {conversion.operations} operations and "
        f"{conversion.events} events"
    )
    output.say(f"{counted} written to {out} ({to})")
    return output.end(
        code,
        {
            "out": str(out),
            "to": to,
            "traces": len(conversion.digests),
            "operations": conversion.operations,
            "events": conversion.events,
            "foreign": conversion.sources,
            "restated_digests": conversion.restated,
            "unreadable": conversion.unreadable,
            "taken": conversion.taken,
        },
    )
