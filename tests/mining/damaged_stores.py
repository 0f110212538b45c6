"""A folder of healthy traces, ways to damage its files, and what `check` and `mine` say of it afterwards."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve
from mining_results import judge_here

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import Decision, combine
from fencepost.mining.inputs.splits import work_of
from fencepost.mining.inputs.traces import Found, Piece, pieces_of, read_piece
from fencepost.traces.operations import Record
from fencepost.traces.parquet.footer import CHECKSUM_KEY, ROWS_KEY
from fencepost.traces.schema import TABLES
from fencepost.traces.sealing import Sizes
from fencepost.traces.store import TraceStore
from fencepost.traces.trace import Trace
from tests.checkers import lab

IDS = range(8)
Change = Callable[[pa.Table], pa.Table]


def healthy(path: Path, make) -> TraceStore:
    """A folder of one part with several row groups; every verdict is Ok."""
    return lab.stored(
        path, (with_values(make(number, "legal")) for number in IDS), sizes=Sizes(group_operations=12)
    )


def with_values(trace: Trace) -> Trace:
    """The trace with values and times that do not compress: a wrong bit among them decodes in silence."""

    def record(one: Record) -> Record:
        return evolve(one, value=_spread(trace.trace_id, one.value))

    operations = [
        evolve(
            one,
            invoke_time=one.invoke_time << 16 | _spread(one.op_id, trace.trace_id) >> 40,
            completion_time=(one.invoke_time + 5) << 16,
            records=tuple(map(record, one.records)),
        )
        for one in trace.operations
    ]
    return evolve(trace, operations=tuple(operations))


def _spread(one: int, other: int) -> int:
    return int.from_bytes(blake2b(f"{one} {other}".encode(), digest_size=7).digest())


def rewrite(path: Path, change: Change, *, group: int = -1, as_before: bool = False) -> None:
    """Write a file again by other hands, without checksums, and change one of its row groups. group: which;
    as_before: as parts were written before they said how many rows they have."""
    with pq.ParquetFile(path) as file:
        groups = [file.read_row_group(index) for index in range(file.num_row_groups)]
        stored = file.metadata.metadata or {}
    if group >= 0:
        groups[group] = change(groups[group])
    gone = {b"ARROW:schema", CHECKSUM_KEY.encode(), *([ROWS_KEY.encode()] if as_before else ())}
    metadata = {key: value for key, value in stored.items() if key not in gone}
    schema = groups[group].schema.with_metadata(metadata)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in groups:
            rows = pa.Table.from_arrays(rows.columns, schema=schema)
            writer.write_table(rows, row_group_size=max(1, rows.num_rows))


def as_before(store: TraceStore) -> None:
    """The parts as they were written before: no checksums of pages, no numbers of rows."""
    for table in TABLES:
        rewrite(store.parts()[0].of(table), lambda rows: rows, as_before=True)


def checked(path: Path, _: Path) -> tuple[dict[int, list[Decision]], list[str]]:
    """(the decisions of `check` by trace, what it left out)."""
    verdicts: dict[int, list[Decision]] = {}
    left_out = []
    for piece in pieces_of((path,)):
        for found in read_piece(piece) if isinstance(piece, Piece) else (piece,):
            if isinstance(found, Found):
                decision = combine(judge(found.trace)).decision
                verdicts.setdefault(found.trace.trace_id, []).append(decision)
            else:
                left_out.append(found.reason)
    return verdicts, left_out


def mined(path: Path, out: Path) -> tuple[dict[int, list[Decision]], list[str]]:
    """(the decisions of `mine` by trace, what it left out)."""
    unreadable = work_of([path]).unreadable
    quarantined = judge_here(path, out).counts.quarantined
    rows = pq.read_table(out / "verdicts").to_pylist() if (out / "verdicts").exists() else []
    by_check: dict[tuple[int, str], list[Decision]] = {}
    for row in rows:
        by_check.setdefault((row["trace_id"], row["check"]), []).append(Decision(row["decision"]))
    verdicts: dict[int, list[Decision]] = {}
    for (trace_id, _), decisions in by_check.items():
        known = verdicts.setdefault(trace_id, decisions)
        if len(decisions) > len(known) or any(one is not Decision.OK for one in decisions):
            verdicts[trace_id] = decisions
    reasons = [f"trace {one.trace_id}: {one.reason}" for one in (*unreadable, *quarantined)]
    return verdicts, reasons


def unnamed(path: Path, out: Path) -> set[int]:
    """Traces to which `mine` gives neither a verdict nor a reason, where it could read their row group."""
    verdicts, reasons = mined(path, out)
    if any(reason.startswith("trace -1") for reason in reasons):
        return set()
    return {one for one in IDS if one not in verdicts and not any(f"trace {one}:" in why for why in reasons)}
