"""Files that arrive in a watched folder, cut into news for each group of logs.

Owns which files are input, what a file says about a trace (whole, or a part of one under way; how far time
has come; that it ended), and which logs an operation concerns. Must not know Spark, judges, state.

A trace with a digest is complete in its file, and so is every trace in Parquet. Any other is under
way: parts of it come in files of one folder, each beginning with the trace's own line. Two events are for
the watcher: `mark` with the cause `low_watermark` (everything before its time has been written), and `phase`
with the cause `end` (no more will come). Files may be listed in another order than they were written: an
`offset` of such an event numbers the files of the trace, 1, 2, ..., and it holds once all up to that number
have arrived.

The logs of a trace are distributed among SHARDS groups by name. What concerns all of them (a transaction, how
far time has come) goes to each group.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from fencepost.checkers.transactions.streaming.window import JUDGED
from fencepost.mining.inputs.contradictions import contradictions
from fencepost.mining.inputs.split_reading import known_event_rows, sound, sound_rows, unread
from fencepost.mining.inputs.splits import Split, Unreadable
from fencepost.mining.inputs.walk import Walk, has_links, identity
from fencepost.mining.results.result_rows import replay_command
from fencepost.mining.watch_rows import form_of_row, packed, read_quickly, rows_form
from fencepost.model.lives import ENDING, used_again
from fencepost.traces.canonical_rows import Rows, rows_of, trace_of, trace_row
from fencepost.traces.decoding import from_json
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import read_traces
from fencepost.traces.operations import Function, Operation, Position, Record
from fencepost.traces.parquet.row_groups import groups_of, read_group
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.store import JOURNAL_FOLDER, part_of_file
from fencepost.traces.tables import Tables, events_of_table, rows_of_tables, tables_of
from fencepost.traces.trace import Trace

SHARDS = 8
"""Groups of logs per trace: how many processors one trace can keep busy, and how many states a whole trace's
news goes to."""
WHOLE = SHARDS
"""The number of the group that gets every operation of a trace."""
CHUNK_OPERATIONS = 4_096
"""Operations that travel together."""
SUFFIXES = (".jsonl", ".parquet")
PATTERN = f"*.{{{','.join(suffix[1:] for suffix in SUFFIXES)}}}"
"""Files that are input; others are passed over."""
LOW_WATERMARK, END_OF_TRACE = "low_watermark", "end"
_UNREADABLE = (TraceError, RecursionError, ValueError, LookupError)
"""What reading a foreign file may raise."""

_OF_A_LOG = frozenset({Function.APPEND, Function.POLL, Function.LIST_OFFSETS})

LogKey = tuple[str, int]


class Chunk(msgspec.Struct, array_like=True):
    """News of one trace for one group of its logs."""

    # The folder, and the file.
    source: str
    place: str
    # When the file was written.
    modified_us: int
    # Orders the chunks of a file.
    number: int
    # The trace's row, without the plan.
    trace: list[object]
    # The command that runs it again; "": none.
    replay: str
    # Packed (watch_rows.py).
    operations: msgspec.Raw
    # The latest time in the file, nanoseconds.
    newest: int | None = None
    # If the file states one, else 0.
    file_number: int = 0
    # Low watermarks: (number of the file from which it holds, time).
    marks: list[tuple[int, int]] = []
    # Number of the file after which nothing follows.
    end_after: int | None = None
    # Why a part of the trace is missing; "" if none is.
    gap: str = ""


@frozen(kw_only=True)
class Addressed:
    """A chunk and its group."""

    trace_id: int
    # For a whole trace the name of its file; "" for one under way, so that its parts meet.
    part: str
    shard: int
    chunk: Chunk


@frozen(kw_only=True)
class Unread:
    """A file, or a piece of it, that could not be read."""

    source: str
    place: str
    reason: str
    trace_id: int = -1


@frozen(kw_only=True)
class FileRead:
    """A file that was read as far as possible."""

    place: str
    modified_us: int
    operations: int
    traces: int


News = Addressed | Unread | FileRead


@lru_cache(maxsize=65_536)
def shard_of(log: LogKey) -> int:
    """The group of a log, the same in every process."""
    return crc32(f"{log[0]}\n{log[1]}".encode()) % SHARDS


def logs_of(operation: Operation) -> tuple[LogKey, ...] | None:
    """The logs that an operation concerns, in order; None for all of its trace."""
    if operation.function not in _OF_A_LOG:
        return None if operation.function == Function.TXN else ()
    topic, partition = operation.topic, operation.partition
    places: tuple[Record | Position, ...]
    places = (*operation.positions, *operation.records) if operation.positions else operation.records
    for place in places:
        if place.partition != partition or place.topic != topic:
            break
    else:  # nearly all of them
        return () if topic is None or partition is None else ((topic, partition),)
    named = {(place.topic, place.partition) for place in places}
    return tuple(sorted(named if topic is None or partition is None else {(topic, partition), *named}))


@frozen(kw_only=True)
class Folder:
    """The watched folder."""

    # As the caller wrote it.
    named: str
    # Its path.
    root: str
    # Whether one group gets all operations of a trace: the checks of transactions need them.
    transactions: bool = False

    def _has_it_first(self, path: Path) -> bool:
        """Whether no earlier name in the folder leads to the same file: each real file is read once."""
        root = Path(self.root)
        if not has_links(root, path):
            return True
        found = identity(path)
        names = Walk().below(root, self._listed)
        return next((name for name in names if identity(name) == found), path) == path

    def _listed(self, path: Path) -> bool:
        """Whether Spark's listing has this file."""
        names = path.relative_to(self.root).parts
        return path.suffix in SUFFIXES and not any(name[0] in "._" for name in names) and not path.is_dir()

    def read(self, path: str, modified_us: int) -> Iterator[News]:
        """Everything that a file says. path: the file; modified_us: when it was written. Its contents raise
        nothing."""
        file = Path(path)
        if file.exists() and not self._has_it_first(file):
            return
        if file.suffix == ".parquet":
            if file.parent.name in ("operations", "events") and part_of_file(file):
                return  # its part arrives with its file in traces/
            yield from self._parquet(file, modified_us)
        elif not ((file.parent / "traces").is_dir() or (file.parent / JOURNAL_FOLDER).is_dir()):
            # in a folder of traces JSON lines are its campaign's notes
            yield from self._lines(file, modified_us)

    def _name(self, path: Path) -> str:
        """The file's name relative to the folder as the caller wrote it; outside, such as the folder above,
        its whole path."""
        if not path.is_relative_to(self.root):
            return str(path)
        return str(Path(self.named) / path.relative_to(self.root))

    def _sentence(self, error: Exception, place: str) -> str:
        message = (str(error).splitlines() or [type(error).__name__])[0].replace(self.root, self.named)
        return (
            message if isinstance(error, TraceError) else f"{place}: expected a readable file, saw {message}"
        )

    def _told(self, *what: Any, **more: Any) -> Iterator[Addressed]:
        return _told(*what, transactions=self.transactions, **more)

    def _lines(self, file: Path, modified_us: int) -> Iterator[News]:
        source, place = self._name(file.parent), self._name(file)
        traces: list[Trace] = []
        try:
            quickly = read_quickly(file)
            if quickly is not None:
                for under_way in quickly:
                    gap = _names_again(place, under_way.trace.events, under_way=True)
                    yield from self._told(
                        source, place, modified_us, under_way.trace, under_way.operations, gap=gap
                    )
                count = sum(len(one.operations) for one in quickly)
                yield FileRead(place=place, modified_us=modified_us, operations=count, traces=len(quickly))
                return
            for trace in read_traces(file):
                traces.append(trace)
            if not traces:
                raise TraceError(expected="a trace", seen="an empty file", where=place)
        except (OSError, *_UNREADABLE) as error:
            yield Unread(source=source, place=place, reason=self._sentence(error, place))
            gap = f"{place} could not be read"
            for trace in _begun_in(file):
                yield from self._told(source, place, modified_us, trace, (), gap=gap)
            traces = [trace for trace in traces if trace.digest]
        for number, trace in enumerate(traces):
            if trace.digest and (wrong := contradictions(_operations_of(trace))):
                yield from _strange(source, place, wrong)
                continue
            part = f"{place}:{number}" if trace.digest else ""
            yield from self._told(
                source, place, modified_us, trace, rows_form(trace.operations), part=part, number=number,
                gap=_names_again(place, trace.events, under_way=not part),
            )  # fmt: skip
        operations = sum(len(trace.operations) for trace in traces)
        yield FileRead(place=place, modified_us=modified_us, operations=operations, traces=len(traces))

    def _parquet(self, file: Path, modified_us: int) -> Iterator[News]:
        place, part = self._name(file), part_of_file(file)
        source = self._name(file.parent.parent)
        operations = traces = 0
        if part is None or file.parent.name != "traces":
            reason = (
                f"{place}: expected a part of a folder of traces (DIR/traces/part-00000.parquet), saw "
                f"a file of another name"
            )
            yield Unread(source=self._name(file.parent), place=place, reason=reason)
        else:
            try:
                groups = groups_of(part)
            except _UNREADABLE as error:
                groups = ()
                yield Unread(source=source, place=place, reason=self._sentence(error, place))
            for group in groups:
                at = f"{place}, row group {group.index}"
                split = Split(source=source, place=at, size_bytes=group.size_bytes, group=group)
                whole: list[tuple[Rows, Trace]] = []
                try:
                    again = _again_in_group(split)
                    for one in _rows_of_group(split):
                        if isinstance(one, Unreadable):
                            yield _refused(one, at)
                        else:
                            whole.append((one, trace_of(evolve(one, operations=(), events=()), where=at)))
                except _UNREADABLE as error:
                    yield Unread(source=source, place=at, reason=self._sentence(error, at))
                    continue
                for number, (rows, trace) in enumerate(whole):
                    traces += 1
                    operations += len(rows.operations)
                    yield from self._told(
                        source, place, modified_us, trace, list(map(form_of_row, rows.operations)), part=at,
                        number=number, replay=replay_command(source, trace),
                        gap=_names_again(at, again.get(trace.trace_id, ()), under_way=False),
                    )  # fmt: skip
        yield FileRead(place=place, modified_us=modified_us, operations=operations, traces=traces)


def _rows_of_group(split: Split) -> Iterator[Rows | Unreadable]:
    """The traces of a row group that can be judged, and why others cannot. Their events are not needed: they
    are read where only the digest can say whether the rows are those that were stored."""
    assert split.group is not None
    part, index = split.group.part, split.group.index
    if split.group.differs or not split.group.sealed_with_checksums:
        yield from sound_rows(split)
        return
    try:
        tables = Tables(
            traces=read_group(part.traces, "traces", index),
            operations=read_group(part.operations, "operations", index),
            events=SCHEMAS["events"].empty_table(),
        )
    except TraceError as error:
        yield unread(split, error)
        return
    kept, strange = sound(tables, split)
    yield from strange
    yield from rows_of_tables(kept, where=split.place)


def _again_in_group(split: Split) -> dict[int, tuple[Event, ...]]:
    """The events of the traces of a row group in which a name may be used again."""
    assert split.group is not None
    events, index = split.group.part.events, split.group.index
    named = read_group(events, "events", index, columns=["trace_id", "name"])
    ending = named.filter(pc.is_in(named.column("name"), value_set=pa.array(sorted(ENDING))))
    ids = set(ending.column("trace_id").to_numpy().tolist())
    if not ids:
        return {}
    every = read_group(events, "events", index)
    some = every.filter(pc.is_in(every.column("trace_id"), value_set=pa.array(sorted(ids), pa.int64())))
    return events_of_table(known_event_rows(some, split.source, split.place)[0], ids)


def _names_again(place: str, events: Sequence[Event], *, under_way: bool) -> str:
    """Why logs are not judged here: a topic was deleted and created again; of a trace under way, deleted.
    "" if none was."""
    names = used_again(events)
    if under_way:
        names = sorted({event.topic or "" for event in events if event.name is Name.TOPIC_DELETION})
    if not names:
        return ""
    what = "deleted" if under_way else "deleted and created again"
    return f"{place}: {', '.join(names)} {what}; `fencepost check` and `mine` judge such a history"


def _refused(one: Unreadable, place: str) -> Unread:
    reason = one.reason if place in one.reason or one.trace_id < 0 else f"{place}: {one.reason}"
    return Unread(source=one.source, place=place, reason=reason, trace_id=one.trace_id)


def _strange(source: str, place: str, wrong: dict[int, str]) -> Iterator[Unread]:
    """Traces that contradict themselves."""
    for trace_id, why in wrong.items():
        reason = f"{place}: the trace contradicts itself: {why}"
        yield Unread(source=source, place=place, trace_id=trace_id, reason=reason)


def _operations_of(trace: Trace) -> pa.Table:
    return tables_of([rows_of(evolve(trace, events=()))]).operations


def _begun_in(file: Path) -> Iterator[Trace]:
    """The traces under way that a damaged file names in lines that can be read."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = from_json(line)
            if isinstance(row, dict) and row.pop("type", None) == "trace" and not row.get("digest"):
                yield msgspec.convert(row, Trace)
        except msgspec.MsgspecError:
            continue


def _told(
    source: str,
    place: str,
    modified_us: int,
    trace: Trace,
    operations: Sequence[Operation],
    *,
    part: str = "",
    number: int = 0,
    replay: str = "",
    gap: str = "",
    transactions: bool = False,
) -> Iterator[Addressed]:
    """The news of one trace, group by group. A whole trace (part is given) goes to the groups of its logs,
    one under way to all. transactions: all operations go to one more group; of a whole trace only if any is a
    transaction."""
    row = list(trace_row(evolve(trace, plan="", operations=(), events=())))
    groups = SHARDS + transactions
    by_shard: dict[int, list[Operation]] = {} if part else {shard: [] for shard in range(groups)}
    of_all = []
    for operation in operations:
        logs = logs_of(operation)
        if logs is None:
            of_all.append(operation)
        else:
            for shard in {shard_of(log) for log in logs} if len(logs) > 1 else map(shard_of, logs):
                by_shard.setdefault(shard, []).append(operation)
    marks = [
        (event.offset, event.time)
        for event in trace.events
        if (event.name, event.cause) == (Name.MARK, LOW_WATERMARK)
    ]
    newest = _newest(operations, trace)
    ends = [event.offset for event in trace.events if (event.name, event.cause) == (Name.PHASE, END_OF_TRACE)]
    if transactions and (of_all or not part):
        by_shard[WHOLE] = [one for one in operations if one.function in JUDGED]
    for shard, mine in sorted(by_shard.items()):
        mine = mine if shard == WHOLE else [*of_all, *mine]
        for start in range(0, max(1, len(mine)), CHUNK_OPERATIONS):
            chunk = Chunk(
                source=source,
                place=place,
                modified_us=modified_us,
                number=number,
                trace=row,
                replay=replay,
                operations=msgspec.Raw(packed(mine[start : start + CHUNK_OPERATIONS])),
                newest=newest,
                file_number=max((number for number, _ in marks), default=max(ends, default=0)),
                marks=marks,
                end_after=0 if part else max(ends, default=None),
                gap=gap,
            )
            yield Addressed(trace_id=trace.trace_id, part=part, shard=shard, chunk=chunk)


def _newest(operations: Iterable[Operation], trace: Trace) -> int | None:
    times = [one.invoke_time if one.completion_time is None else one.completion_time for one in operations]
    return max([*times, *(event.time for event in trace.events)], default=None)
