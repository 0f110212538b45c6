"""A recording: one trace that was written during its run, in numbered files of one folder, and joined
again.

Owns the names of the files and what joining them means. Must not know who records. A folder with
`recording.json` is a recording; its parts are JSON lines, each beginning with the trace's own line. The part
in progress has a name that begins with a dot, so that no reader treats it as complete. If its writer was
killed, its last line may be cut, and only that line is lost.

    DIR/recording.json          the recorder's options
    DIR/part-000001.jsonl       complete
    DIR/.part-000002.jsonl      in progress, or left by a writer that was killed

Facts about the whole are computed here: whether every record has a unique value, whether a record was
sent twice by a producer without idempotence, and which of the records that seemed to be there before were
sent in the recording after all. So is what was certain of a trace at a moment, while it was under way.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve

from fencepost.traces.canonical_rows import ROWS_MAX
from fencepost.traces.digest import digest_of
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import CUT_LINE, read_traces, records_in
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Trace

RECORDING = "recording.json"
_PART = re.compile(r"\.?part-(\d{6,})\.jsonl")
BEFORE = "before the proxy"
"""The argument of appends that were not observed: their records were read, and sent by another client."""
Place = tuple[str, int, int, int]
"""(topic, partition, value, offset) of a record; offset _EVERY_OFFSET: wherever it is."""
_EVERY_OFFSET = -1
RECORDS_MAX = 4_000_000
"""Records in the lines of a recording that is read whole; an append has two lines. Each becomes a Python
value: judging 11 million took more than ten minutes and 1.1 GB on a busy machine."""
_ANSWERS = frozenset({Function.POLL, Function.LIST_OFFSETS, Function.FETCH_COMMITTED, Function.JOIN})
"""What these have besides their names is in the answer."""
RETRIED = "retried_without_idempotence"
"""The cause of a mark: a plain producer sent records again after an attempt of unknown fate."""


def part_name(number: int, *, whole: bool) -> str:
    """The name of a part. number: from 1; whole: it is complete."""
    return f"{'' if whole else '.'}part-{number:06}.jsonl"


def is_recording(path: Path) -> bool:
    """Whether a folder is a recording."""
    return (path / RECORDING).is_file()


def parts_of(path: Path) -> list[Path]:
    """The parts of a recording in their order, the one that is being written included."""
    found: dict[int, Path] = {}
    for entry in path.iterdir():
        match = _PART.fullmatch(entry.name)
        if match is not None and (entry.name[0] != "." or int(match[1]) not in found):
            found[int(match[1])] = entry
    return [found[number] for number in sorted(found)]


def is_long(path: Path) -> bool:
    """Whether a recording has more lines, or more records in them, than `read_recording` takes; parses
    nothing."""
    lines = records = 0
    for part in parts_of(path):
        with part.open("rb") as file:
            for line in file:
                lines += 1
                records += records_in(line)
        if lines > ROWS_MAX or records > RECORDS_MAX:
            return True
    return False


def read_recording(path: Path) -> Trace:
    """The trace of a recording. Raises TraceError for what is none, or for a part that cannot be read."""
    if is_long(path):
        raise TraceError(
            expected=f"at most {ROWS_MAX:,} operations and events, and {RECORDS_MAX:,} records in its lines",
            seen="more",
            where=str(path),
            hint=in_parts(path),
        )
    whole = joined(_traces(path))
    if whole is None:
        raise TraceError(expected="a part of a recording", seen="none", where=str(path))
    return whole


def in_parts(path: Path | str) -> str:
    """How a recording is judged that is too long to be read whole. path: its folder."""
    return f"`fencepost mine convert {path} --out DIR`, then `fencepost mine DIR` judges all of it"


def joined(parts: Iterable[Trace]) -> Trace | None:
    """The trace of which these are parts.

    Args:
        parts: in the order of their files, each with the trace's own line; the first one's claims hold.

    Returns:
        the trace, with a digest; None without a part. Of an operation that is in several parts the answer
        counts, or else the last row.
    """
    operations: dict[int, Operation] = {}
    events: list[Event] = []
    first: Trace | None = None
    for part in parts:
        first = first or part
        events += part.events
        for row in part.operations:
            known = operations.get(row.op_id)
            if known is None or known.outcome is Outcome.UNKNOWN or row.outcome is not Outcome.UNKNOWN:
                operations[row.op_id] = row
    return None if first is None else _joined(first, list(operations.values()), events)


def _traces(path: Path) -> Iterator[Trace]:
    parts = parts_of(path)
    for number, part in enumerate(parts, start=1):
        traces: list[Trace] = []
        try:
            traces.extend(read_traces(part))
        except TraceError as error:
            # only what was being written when its writer was killed may end in half a line
            if number < len(parts) or error.expected != CUT_LINE:
                raise
        yield from traces


def places_of(row: Operation) -> Iterator[Place]:
    """What an append that may have been written says of its records. The id of an idempotent producer's
    record names that record, wherever it is. Any other id says what the record contains, and equal records
    have equal ids: only its offset tells which one it is, and without one nothing is known.

    Args:
        row: an append that was sent in the recording.
    """
    for record in row.records:
        if row.producer_id is not None:
            yield record.topic, record.partition, record.value, _EVERY_OFFSET
        elif row.outcome is Outcome.OK and record.offset >= 0:
            yield record.topic, record.partition, record.value, record.offset


def places_if_sent(row: Operation) -> Iterator[Place]:
    """Any of these among the `places_of` appends shows that the records of an append from before the proxy
    were sent in the recording after all: their request was under way when the first end of the log became
    known.

    Args:
        row: an append whose argument is BEFORE.
    """
    for record in row.records:
        for offset in (_EVERY_OFFSET, record.offset):
            yield record.topic, record.partition, record.value, offset


def _joined(first: Trace, rows: list[Operation], events: list[Event]) -> Trace:
    sent = [row for row in rows if row.function is Function.APPEND and row.argument != BEFORE]
    values = [record.value for row in sent if row.outcome is not Outcome.FAIL for record in row.records]
    known = set(values)
    places = {place for row in sent if row.outcome is not Outcome.FAIL for place in places_of(row)}

    def left_out(row: Operation) -> bool:
        if row.function is not Function.APPEND:
            return False
        if row.argument == BEFORE:
            return not places.isdisjoint(places_if_sent(row))
        # what was refused and sent again in other batches (a batch too large is split) was not sent twice
        return row.outcome is Outcome.FAIL and any(record.value in known for record in row.records)

    rows = [row for row in rows if not left_out(row)]
    kept = [record.value for row in rows if row.function is Function.APPEND for record in row.records]
    retried = any(event.name is Name.MARK and event.cause == RETRIED for event in events)
    claims = first.claims
    if retried:
        reason = "a producer without idempotence tried again after an attempt of unknown fate"
        claims = evolve(claims, duplicates=True, reasons=(*claims.reasons, reason))
    rows.sort(key=lambda row: (row.invoke_time, row.op_id))
    events.sort(key=lambda event: event.time)
    trace = evolve(
        first,
        claims=claims,
        unique_values=len(set(kept)) == len(kept),
        operations=tuple(rows),
        events=tuple(events),
        digest="",
    )
    return evolve(trace, digest=digest_of(trace))


def certain_prefix(trace: Trace, moment: int) -> Trace:
    """The trace as it was known at a moment.

    Args:
        trace: a trace of which every row before the moment is there.
        moment: nanoseconds, of the trace's own clock.

    Returns:
        the operations that began before the moment, and the events before it, without a digest. Operations
        that had not completed by then have the outcome unknown: they may have happened. The prefix of a legal
        history is legal.
    """
    rows = (row for row in trace.operations if row.invoke_time < moment)
    return evolve(
        trace,
        digest="",
        operations=tuple(row if _answered(row, moment) else unanswered(row) for row in rows),
        events=tuple(event for event in trace.events if event.time < moment),
    )


def _answered(row: Operation, moment: int) -> bool:
    return row.completion_time is not None and row.completion_time < moment


def unanswered(row: Operation) -> Operation:
    """An operation as it was known when it began.

    Args:
        row: the operation, complete or not.

    Returns:
        the same without what an answer says.
    """
    row = evolve(
        row,
        outcome=Outcome.UNKNOWN,
        completion_time=None,
        error=None,
        end_offset=None,
        last_stable_offset=None,
        log_start_offset=None,
        leader_epoch=None,
        node=-1,
    )
    if row.function is Function.APPEND:
        records = tuple(evolve(record, offset=-1) for record in row.records)
        return evolve(row, offset=None, records=records)
    if row.function in _ANSWERS:
        return evolve(row, offset=None, result=None, records=(), positions=(), generation=None)
    return row
