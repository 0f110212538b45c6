"""What judging transactions costs, from ten thousand operations to a million.

    python bench/transactions.py [--operations 10000,100000,1000000] [--check exactly_once] [--cycle]

For the check `transactions`: a history is transactions of two polls and three appends by 16 processes over 8
partitions; each poll reads the next five committed records of its partition. It is an `operations` table, as
mining has it. Printed is the processor time of the check from the table on, and what an operation costs in
relation to the smallest history. With --cycle the first two transactions read what the other one writes,
which must be found, and nothing else.

For the check `exactly_once`: each transaction consumes READ records of a partition, and each of them becomes
one record of output, with its lineage; another process reads the output. With --cycle two records of output
have the same lineage.
"""

import argparse
import time
from typing import Any

import pyarrow as pa
from attrs import evolve

from fencepost.checkers import exactly_once, transactions
from fencepost.traces.operations import Function, Operation, Outcome, Position, Record
from fencepost.traces.rows import rows_of
from fencepost.traces.tables import tables_of
from fencepost.traces.trace import Trace

PROCESSES, PARTITIONS, APPENDS, POLLS, READ = 16, 8, 3, 2, 5
PARTS = APPENDS + POLLS
MIXED = 10**9
"""Values are partition * MIXED + offset: unique, and known before anybody wrote them."""


def _history(operations: int, cycle: bool) -> tuple[Operation, ...]:
    made: list[Operation] = []
    ends, now = [0] * PARTITIONS, 0
    read = [0] * PARTITIONS
    turn = 0
    while len(made) < operations:
        process, now, turn = turn % PROCESSES, now + 100, turn + 1
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
            records: tuple[Record, ...]
            if part < POLLS:
                start, read[partition] = read[partition], min(read[partition] + READ, ends[partition])
                records = tuple(
                    Record(topic="t", partition=partition, offset=offset, value=partition * MIXED + offset)
                    for offset in range(start, read[partition])
                )
                function, offset = Function.POLL, start
            else:
                offset, ends[partition] = ends[partition], ends[partition] + 1
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


def _table(operations: int, check: str, planted: bool) -> pa.Table:
    made = (_history if check == "transactions" else _transformed)(operations, planted)
    trace = Trace(trace_id=0, plan="", seed=0, software_version="bench", operations=made)
    return tables_of([rows_of(trace)]).operations


def main() -> None:
    """The whole measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", default="10000,100000,1000000")
    parser.add_argument("--check", choices=("transactions", "exactly_once"), default="transactions")
    parser.add_argument("--cycle", action="store_true")
    asked = parser.parse_args()
    judge_table = {"transactions": transactions, "exactly_once": exactly_once}[asked.check].judge_table
    expected = {"transactions": ["circular_reads"], "exactly_once": ["output_twice", "output_missing"]}
    judge_table(_table(1_000, asked.check, asked.cycle), ())
    first = 0.0
    for count in map(int, asked.operations.split(",")):
        table = _table(count, asked.check, asked.cycle)
        began = time.process_time()
        verdicts = judge_table(table, ())
        spent = time.process_time() - began
        found = [finding.anomaly for _, verdict in verdicts for finding in verdict.findings]
        assert found == (expected[asked.check] if asked.cycle else []), found
        each = spent / table.num_rows
        first = first or each
        print(
            f"{table.num_rows:>12,} operations {spent:8.2f} s  {each * 1e6:6.2f} us each  "
            f"{each / first:5.2f} times"
        )


if __name__ == "__main__":
    main()
