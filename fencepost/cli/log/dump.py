"""What `fencepost log dump` prints: every file as lines for a person and as one JSON object for a program,
while it is being read.

Owns the order: file, its contents, what is wrong with it, how much is intact. Must not know the formats
(impl/log/dump/dump*.py). A dump may be larger than memory, so nothing of it is kept.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
from attrs import define, field, frozen

from fencepost.cli.log.dump_words import (
    batch_as_dict,
    batch_in_words,
    encoded,
    how_far,
    record_as_dict,
    record_in_words,
    value_in_words,
)
from fencepost.cli.log.group_record_words import (
    group_record_as_dict,
    group_record_in_words,
    is_offsets_partition,
)
from fencepost.cli.log.log_files import SNAPSHOT_KIND, LogFile, RealSource, files_of
from fencepost.cli.log.metadata_record_words import (
    is_metadata_partition,
    metadata_record_as_dict,
    metadata_record_in_words,
)
from fencepost.console.output import Output
from fencepost.impl.log import layout
from fencepost.impl.log.batch.record_batch import Record
from fencepost.impl.log.dump.directory_files import (
    epoch_starts,
    partition_offsets,
    producer_entries,
    properties,
)
from fencepost.impl.log.dump.dump import BatchSeen, Extent, Watcher, walk_log
from fencepost.impl.log.dump.indexes import (
    AbortedTransaction,
    OffsetEntry,
    OffsetIndexCheck,
    TimeEntry,
    TimeIndexCheck,
    offset_entries,
    time_entries,
    transaction_entries,
)
from fencepost.impl.log.dump.transactions_of_log import TransactionIndexCheck, TransactionsOfLog
from fencepost.impl.log.flaw import Flaw
from fencepost.report.event_words import printable
from fencepost.traces.errors import ExitCode, strongest

OF_BATCHES = ("segment", SNAPSHOT_KIND)
"""Kinds of files that hold batches."""
BLOCK = 200
"""Lines that are printed together."""


@frozen(kw_only=True)
class DumpRequest:
    """The command line."""

    deep: bool = False
    verify_index: bool = False
    # It is about one file, not a directory.
    alone: bool = False


@define
class Sink:
    """Where a dump goes."""

    output: Output
    # Files dumped so far.
    files: int = 0
    # Flaws in all of them.
    flaws: int = 0
    # Files that could not be read.
    unreadable: int = 0
    # Lines that are not printed yet; at most BLOCK.
    waiting: list[str] = field(factory=list)
    # Whether the innermost JSON list is still empty.
    fresh: bool = True

    def line(self, text: str, *, always: bool = False) -> None:
        """Print a line for a person; with --json only if `always`. text: the line."""
        if always or not self.output.json:
            self.waiting.append(text)
            if len(self.waiting) >= BLOCK:
                self.flush()

    def flush(self) -> None:
        """Print the waiting lines."""
        if self.waiting:
            self.output.say("\n".join(self.waiting))
            self.waiting.clear()

    def write(self, text: str) -> None:
        """Write a piece of the JSON object."""
        if self.output.json:
            try:
                sys.stdout.write(text)
            except BrokenPipeError:
                self.output.people.on_broken_pipe()

    def close(self) -> None:
        """End of the dump."""
        self.flush()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            self.output.people.on_broken_pipe()

    def item(self, value: Any) -> None:
        """Write a member of the innermost JSON list."""
        if self.output.json:
            self.write(("" if self.fresh else ",") + encoded(value))
            self.fresh = False

    def open_item(self, values: dict[str, Any], name: str) -> None:
        """Write a member of the innermost JSON list: `values`, and in it a list called `name`. `item` writes
        into that list until `close_item`."""
        self.write(("" if self.fresh else ",") + encoded(values)[:-1] + f',"{name}":[')
        self.fresh = True

    def close_item(self) -> None:
        """End the inner list and its object."""
        self.write("]}")
        self.fresh = False

    def flaw(self, flaw: Flaw) -> None:
        """Report a flaw."""
        self.flaws += 1
        self.line(f"  WRONG {printable(flaw.sentence, 500)}", always=True)
        self.item({"flaw": attrs.asdict(flaw)})

    @property
    def exit_code(self) -> ExitCode:
        """Flaws are findings; if no file could be read at all there is nothing to judge."""
        codes = {ExitCode.FINDINGS} if self.flaws else set()
        if self.unreadable:
            codes.add(ExitCode.QUARANTINED if self.unreadable < self.files else ExitCode.USAGE)
        return strongest(codes)


def dump_path(path: Path, request: DumpRequest, output: Output) -> ExitCode:
    """Dump every file of `path` and return the exit code. request: the options; output: for the dump. Raises
    EnvironmentError_ if there is no file, OSError if the path itself cannot be read."""
    files, sink = list(files_of(path)), Sink(output)
    if request.alone:
        with RealSource(path):
            pass  # a path that cannot be opened is reported before anything is written
    before: tuple[LogFile, Extent] | None = None
    transactions: dict[Path, TransactionsOfLog] = {}
    sink.write('{"path":' + encoded(str(path)) + ',"files":[')
    for file in files:
        sink.write("," if sink.files else "")
        sink.files += 1
        is_segment, folder = file.kind == "segment" and not file.aside, file.path.parent
        if is_segment and folder not in transactions:
            transactions[folder] = TransactionsOfLog(next_offset=file.base_offset or 0)
        extent = _dump_file(file, request, sink, before, transactions.get(folder))
        if is_segment:
            before = file, extent
    code = sink.exit_code
    unread = f", {sink.unreadable} of them not readable" if sink.unreadable else ""
    sink.line(
        f"{sink.files} {'file' if sink.files == 1 else 'files'}{unread}: {sink.flaws or 'nothing'} wrong",
        always=True,
    )
    sink.write(f'],"flaws":{sink.flaws},"unreadable":{sink.unreadable},"exit_code":{int(code)}}}\n')
    sink.close()
    return code


def _dump_file(
    file: LogFile,
    request: DumpRequest,
    sink: Sink,
    before: tuple[LogFile, Extent] | None,
    transactions: TransactionsOfLog | None,
) -> Extent:
    """Dump one file. Returns how much of it is intact if it is a segment."""
    flaws, extent, size, error = sink.flaws, Extent(), 0, file.error
    sink.write(
        '{"file":' + encoded(str(file.path)) + ',"kind":' + encoded(file.kind or "foreign") + ',"content":['
    )
    sink.fresh = True
    try:
        with RealSource(file.path) as source:
            size = source.size()
            sink.line(
                f"{printable(str(file.path), 500)}: {file.kind or 'foreign'}, {size} bytes", always=True
            )
            if file.kind in OF_BATCHES:
                _dump_segment(file, source, extent, request, sink, transactions)
                _after(file, before, sink)
            else:
                _dump_small(file, source, sink)
    except OSError as caught:
        sink.unreadable += 1
        error = error or caught.strerror or str(caught)
        sink.line(f"  NOT READABLE {printable(str(file.path), 500)}: {error}", always=True)
    summary: dict[str, Any] = {"bytes": size, "flaws": sink.flaws - flaws, "error": error}
    if file.kind in OF_BATCHES:
        summary |= attrs.asdict(extent, filter=lambda field, _: field.name not in ("flaws", "ended_early"))
        sink.line(how_far(extent, size), always=True)
    sink.write("]," + encoded(summary)[1:])
    return extent


def _dump_segment(
    file: LogFile,
    source: RealSource,
    extent: Extent,
    request: DumpRequest,
    sink: Sink,
    transactions: TransactionsOfLog | None,
) -> None:
    watchers = _watchers(file, request.alone, sink, transactions) if request.verify_index else []
    in_words, as_dict = _decoders(file.path.absolute().parent.name)
    for item in walk_log(source, extent, base_offset=file.base_offset, deep=request.deep, watchers=watchers):
        if isinstance(item, Flaw):
            sink.flaw(item)
            continue
        sink.line(batch_in_words(item))
        _dump_records(item, in_words, as_dict, sink)
    for watcher in watchers:
        for flaw in watcher.end(extent):
            sink.flaw(flaw)


def _dump_records(
    seen: BatchSeen, in_words: Callable[[Record], str], as_dict: Callable[[Record], Any], sink: Sink
) -> None:
    """Dump the records of a batch, one after the other, within its JSON object."""
    if seen.records is None:
        sink.item(batch_as_dict(seen))
        return
    sink.open_item(batch_as_dict(seen), "contents")
    for record in seen.records:
        decoded = "" if seen.header.is_control else in_words(record)
        if sink.output.json:
            fields = record_as_dict(record)
            sink.item(fields | {"decoded": as_dict(record)} if decoded else fields)
        else:
            sink.line(record_in_words(record, seen.header))
            if decoded:
                sink.line(decoded)
    sink.close_item()


def _decoders(directory: str) -> tuple[Callable[[Record], str], Callable[[Record], Any]]:
    """How to print the records of a partition: in words ("" as bytes only), and as JSON."""
    if is_offsets_partition(directory):
        return group_record_in_words, group_record_as_dict
    if is_metadata_partition(directory):
        return metadata_record_in_words, metadata_record_as_dict
    return lambda record: "", lambda record: None


def _watchers(
    file: LogFile, alone: bool, sink: Sink, transactions: TransactionsOfLog | None
) -> list[Watcher]:
    """The indexes of a segment, to be followed. alone: the indexes themselves are not dumped."""
    found: list[Watcher] = []
    if file.base_offset is None or file.aside:
        return found
    for kind in (layout.INDEX, layout.TIME_INDEX):
        path = file.path.with_name(f"{file.path.name[: layout.DIGITS]}{kind}")
        if not path.exists():
            if file.path.stat().st_size:
                sink.line(f"  no index {path.name}: a broker makes it anew when it starts", always=True)
            continue
        with RealSource(path) as source:
            found.append(_watcher(path.name, kind, source, file.base_offset, sink if alone else None))
    if transactions is not None:
        found.append(_transaction_watcher(file, sink if alone else None, transactions))
    return found


def _transaction_watcher(file: LogFile, sink: Sink | None, log: TransactionsOfLog) -> Watcher:
    path = file.path.with_name(f"{file.path.name[: layout.DIGITS]}{layout.TRANSACTION_INDEX}")
    if not path.exists():
        return TransactionIndexCheck(log=log, entries=(), file=path.name)
    entries: list[AbortedTransaction] = []
    with RealSource(path) as source:
        for item in transaction_entries(source):
            if isinstance(item, AbortedTransaction):
                entries.append(item)
            elif sink is not None:
                sink.flaw(attrs.evolve(item, file=path.name))
    return TransactionIndexCheck(log=log, entries=entries, file=path.name)


def _watcher(name: str, kind: str, source: RealSource, base_offset: int, sink: Sink | None) -> Watcher:
    offsets: list[OffsetEntry] = []
    times: list[TimeEntry] = []
    for item in (offset_entries if kind == layout.INDEX else time_entries)(source, base_offset):
        if isinstance(item, OffsetEntry):
            offsets.append(item)
        elif isinstance(item, TimeEntry):
            times.append(item)
        elif sink is not None:
            sink.flaw(attrs.evolve(item, file=name))
    if kind == layout.INDEX:
        return OffsetIndexCheck(sorted(offsets, key=lambda entry: entry.position), name)
    return TimeIndexCheck(sorted(times, key=lambda entry: entry.offset), name)


def _after(file: LogFile, before: tuple[LogFile, Extent] | None, sink: Sink) -> None:
    """A segment must begin where the one before it ends, or later."""
    if before is None or file.aside or before[0].path.parent != file.path.parent:
        return
    end = before[1].next_offset
    if end is not None and file.base_offset is not None and file.base_offset < end:
        sink.flaw(
            Flaw(
                position=None,
                expected=f"a segment from {end} on after {before[0].path.name}",
                seen=f"one from {file.base_offset}",
            )
        )


def _dump_small(file: LogFile, source: RealSource, sink: Sink) -> None:
    for item in _items(file, source):
        if isinstance(item, Flaw):
            sink.flaw(item)
        else:
            values = attrs.asdict(item)
            sink.item(values)
            words = " ".join(f"{name} {value_in_words(name, value)}" for name, value in values.items())
            sink.line(f"  {words}")


def _items(file: LogFile, source: RealSource) -> Iterator[Any]:
    base_offset = file.base_offset or 0
    match file.kind:
        case "offset index":
            return offset_entries(source, base_offset)
        case "time index":
            return time_entries(source, base_offset)
        case "transaction index":
            return transaction_entries(source)
        case "producer snapshot":
            return producer_entries(source)
        case "leader epochs":
            return epoch_starts(source)
        case "partition metadata" | "broker metadata":
            return properties(source)
        case "":
            return iter([Flaw(position=None, expected="a file of a Kafka log", seen=_begins(source))])
        case _:
            return partition_offsets(source)


def _begins(source: RealSource) -> str:
    head = source.read_at(0, 24)
    return f"one that begins with {printable(repr(head)[1:])}" if head else "an empty one"
