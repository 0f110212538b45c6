"""Histories of transactions of any length, as the table `operations` that mining has.

For the check `transactions`: two polls and three appends by 16 processes over 8 partitions, nine
transactions under way at any time; each poll reads the next five committed records of its partition, some
before their writer has its answer. For `exactly_once`: each transaction consumes READ records of a
partition, and each of them becomes one record of output, with its lineage; another process reads the output.
"""

from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from attrs import evolve

from fencepost.checkers import exactly_once, transactions
from fencepost.traces.canonical_rows import rows_of
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace

compute: Any = pyarrow.compute
PROCESSES, PARTITIONS, APPENDS, POLLS, READ = 16, 8, 3, 2, 5
PARTS = APPENDS + POLLS
STEP = 10
"""Between two transactions, which take 90: nine are under way at any time."""
SHORT, FAR = 9_600, 1_000_000
"""Operations of the history that is repeated, and offsets from one time to the next: more than it has."""
MIXED = 10**12
"""Values are partition * MIXED + offset: unique, and known before anybody wrote them."""


def _history(operations: int, cycle: bool) -> tuple[Operation, ...]:
    made: list[Operation] = []
    ends, now = [0] * PARTITIONS, 0
    read, visible = [0] * PARTITIONS, [0] * PARTITIONS
    decided: deque[tuple[int, int]] = deque()  # when a record is shown, and its partition
    turn = 0
    while len(made) < operations:
        process, now, turn = turn % PROCESSES, now + STEP, turn + 1
        head = len(made)
        made.append(
            Operation(
                op_id=head,
                process=process,
                function=Function.TXN,
                invoke_time=now,
                completion_time=now + 90,
                outcome=Outcome.OK,
            )
        )
        for part in range(PARTS):
            partition, at = (turn + part) % PARTITIONS, now + 10 + 10 * part
            while decided and decided[0][0] <= at:
                visible[decided.popleft()[1]] += 1
            records: tuple[Record, ...]
            if part < POLLS:
                start, read[partition] = read[partition], min(read[partition] + READ, visible[partition])
                records = tuple(
                    Record(topic="t", partition=partition, offset=offset, value=partition * MIXED + offset)
                    for offset in range(start, read[partition])
                )
                function, offset = Function.POLL, start
            else:
                offset, ends[partition] = ends[partition], ends[partition] + 1
                decided.append((now + 70, partition))  # before the producer has its answer
                records = (
                    Record(topic="t", partition=partition, offset=-1, value=partition * MIXED + offset),
                )
                function = Function.APPEND
            made.append(
                Operation(
                    op_id=len(made),
                    process=process,
                    function=function,
                    topic="t",
                    partition=partition,
                    invoke_time=at,
                    completion_time=at + 5,
                    outcome=Outcome.OK,
                    acks=-1,
                    offset=offset,
                    records=records,
                )
            )
    if cycle:
        first, second = 1, 1 + PARTS + 1  # the first polls of the first two transactions
        for poll, of in ((first, second), (second, first)):
            written = made[of + POLLS]
            assert written.offset is not None and written.partition is not None
            record = evolve(written.records[0], offset=written.offset)
            made[poll] = evolve(
                made[poll], partition=written.partition, offset=written.offset, records=(record,)
            )
    return tuple(made)


def _transformed(operations: int, twice: bool) -> tuple[Operation, ...]:
    made: list[Operation] = []
    ends, now, turn = [0] * PARTITIONS, 0, 0

    def row(function: Function, at: int, until: int, **columns: Any) -> None:
        made.append(
            Operation(
                op_id=len(made),
                function=function,
                invoke_time=at,
                completion_time=until,
                outcome=Outcome.OK,
                **columns,
            )
        )

    while len(made) < operations:
        now, turn = now + 100, turn + 1
        partition, process = turn % PARTITIONS, turn % PROCESSES
        start = ends[partition]
        place: dict[str, Any] = {"topic": "out", "partition": partition}
        ends[partition] += READ
        offsets = range(start, ends[partition])
        read = tuple(Record(topic="in", partition=partition, offset=at, value=-1 - at) for at in offsets)
        written = [Record(**place, offset=at, value=partition * MIXED + at) for at in offsets]
        reads = {"isolation": "read_committed", "partition": partition, "offset": start}
        mine = {"process": process, "producer_id": process, "producer_epoch": 0}
        row(Function.POLL, now, now + 5, process=process, topic="in", records=read, group="g", **reads)
        row(Function.TXN, now + 10, now + 90, **mine)
        for part in range(APPENDS):
            some = tuple(written[part::APPENDS])
            sources = [f"in-{partition}@{each.offset}" for each in some]
            if twice and turn == part == 1:
                sources[0] = f"in-{partition}@0"
            at, made_from = now + 20 + 10 * part, " ".join(sources)
            first = some[0].offset
            row(
                Function.APPEND,
                at,
                now + 90,
                acks=-1,
                offset=first,
                records=some,
                result=made_from,
                **mine,
                **place,
            )
        done = (Position(topic="in", partition=partition, offset=ends[partition]),)
        row(Function.COMMIT, now + 80, now + 90, process=process, argument="txn", group="g", positions=done)
        row(
            Function.POLL, now + 95, now + 99, process=PROCESSES, topic="out", records=tuple(written), **reads
        )
    return tuple(made)


def history(operations: int, check: str, planted: bool) -> pa.Table:
    """A history of about so many operations: a short one, again and again, each time with later times and
    offsets. What is planted is in the first of them."""
    make = _history if check == "transactions" else _transformed
    columns = {"transactions": transactions.COLUMNS, "exactly_once": exactly_once.COLUMNS}[check]
    first, plain = (_columns(make(SHORT, with_it), columns) for with_it in (planted, False))
    rounds = max(1, round(operations / first.num_rows))
    return pa.concat_tables([first, *(_later(plain, number) for number in range(1, rounds))]).combine_chunks()


def _columns(operations: tuple[Operation, ...], names: tuple[str, ...]) -> pa.Table:
    trace = Trace(trace_id=0, plan="", seed=0, software_version="bench", operations=operations)
    return tables_of([rows_of(trace)]).operations.select(list(names))


def _later(table: pa.Table, number: int) -> pa.Table:
    """The same operations again: number times later."""
    begins, ends = (np.asarray(table.column(name)) for name in ("invoke_time", "completion_time"))
    late, far = number * int(ends.max() - begins.min() + 1), number * FAR
    changes = {"op_id": number * table.num_rows, "invoke_time": late, "completion_time": late, "offset": far}
    for name, by in changes.items():
        table = _replaced(table, name, compute.add(table.column(name), by))
    for name in ("records", "positions"):
        table = _replaced(table, name, _moved(table.column(name).combine_chunks(), far))
    if "result" in table.column_names:
        table = _replaced(table, "result", _renamed(table.column("result").combine_chunks(), far))
    return table


def _replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), column.cast(table.schema.field(at).type))


def _moved(lists: Any, far: int) -> Any:
    """Lists of records or positions, so much farther on. Values follow their offsets, and -1 stays."""
    flat = lists.flatten()
    fields = {field.name: flat.field(field.name) for field in flat.type}
    known = compute.greater_equal(fields["offset"], 0)
    if "value" in fields:
        value = fields["value"]
        further = compute.if_else(
            compute.less(value, 0), compute.subtract(value, far), compute.add(value, far)
        )
        fields["value"] = further
    fields["offset"] = compute.if_else(known, compute.add(fields["offset"], far), fields["offset"])
    structs = pa.StructArray.from_arrays(list(fields.values()), fields=list(flat.type))
    lengths = np.asarray(compute.list_value_length(lists))
    return pa.ListArray.from_arrays(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32), structs)


def _renamed(lineage: Any, far: int) -> Any:
    """What records were made from, so much farther on."""
    parts = compute.split_pattern(lineage, " ")
    flat = parts.flatten()
    halves = np.asarray(compute.split_pattern(flat, "@").flatten()).reshape(-1, 2)
    moved = [f"{name}@{int(offset) + far}" for name, offset in halves.tolist()]
    lists = pa.ListArray.from_arrays(parts.offsets, pa.array(moved, pa.string()), mask=lineage.is_null())
    return compute.binary_join(lists, " ")
