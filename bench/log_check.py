"""How fast both log judges are: operations per second by number of clients, and growth from 10^6 to 10^7
operations.

    python bench/log_check.py [--quick]

One core, histories of bench/log_histories.py (half appends, half strong reads of 5 records, 2 % unknown
appends, dense offsets). Times are the process's CPU seconds, best of several runs, after one run that
compiles; so other work on the machine counts little, though it still shares caches and memory. `batch` is
judge_columns on columns in memory: all rules, no building of columns and no decoding. `columns` is what it
takes to build them from decoded operation columns. `x read` is batch against the physical limit: NumPy
summing every column that the judge reads, in the same run. `streaming` feeds Operation objects that exist
already.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from log_histories import history

from fencepost.checkers.log import LogColumns, StreamingLogCheck, judge_columns, log_columns
from fencepost.checkers.operation_columns import FUNCTIONS, NEVER, NONE, OUTCOMES, OperationColumns
from fencepost.checkers.verdict import Decision
from fencepost.traces.operations import Operation, Record

CLIENTS = (5, 10, 50, 100, 1000)


def best(run: Callable[[], Any], times: int) -> float:
    """CPU seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = process_time()
        run()
        taken.append(process_time() - start)
    return min(taken)


def judge(columns: LogColumns) -> None:
    """The batch judge; the histories are legal, so anything but silence is a defect of the bench or the
    judge. (The last records are in no read, so the histories are weak.)"""
    found = judge_columns(columns, weak_is_ok=True)
    assert not found, found[0]


def read_all(columns: LogColumns) -> int:
    """The sum of every column of the two relations: what no judge can do without."""
    return sum(int(np.sum(array)) for relation in (columns.appends, columns.reads) for array in relation)


def operations_of(columns: OperationColumns) -> list[Operation]:
    """The operations as objects, for the streaming form."""
    records, start = columns.records, columns.records.start

    def value(name: str, row: int) -> Any:
        found = int(getattr(columns, name)[row])
        return None if found == NONE else found

    return [
        Operation(
            op_id=int(columns.op_id[row]),
            process=int(columns.process[row]),
            function=FUNCTIONS[columns.function[row]],
            outcome=OUTCOMES[columns.outcome[row]],
            invoke_time=int(columns.invoke_time[row]),
            completion_time=None
            if columns.completion_time[row] == NEVER
            else int(columns.completion_time[row]),
            topic="t",
            partition=0,
            offset=value("offset", row),
            end_offset=value("end_offset", row),
            acks=-1,
            strong=bool(columns.strong[row]),
            records=tuple(
                Record(topic="t", partition=0, offset=int(records.offset[i]), value=int(records.value[i]))
                for i in range(start[row], start[row + 1])
            ),
        )
        for row in range(len(columns.op_id))
    ]


def stream(columns: OperationColumns, times: int) -> float:
    """CPU seconds to feed all operations, in time order, to the streaming form."""
    operations = operations_of(columns)
    moments = [(o.invoke_time, 0, n) for n, o in enumerate(operations)]
    moments += [(o.completion_time, 1, n) for n, o in enumerate(operations) if o.completion_time is not None]
    events = [(completes, operations[n]) for _, completes, n in sorted(moments)]

    def run() -> None:
        check = StreamingLogCheck(topic="t", partition=0, claims=columns.traces[0].claims)
        for completes, operation in events:
            (check.complete if completes else check.invoke)(operation)
        assert check.verdict().decision is Decision.OK, check.verdict()

    return best(run, times)


def row_of(
    size: int, clients: int, streamed: int, times: int, shuffled: bool = False
) -> tuple[list[str], float]:
    """One line of the table, and the batch judge's seconds."""
    operations = history(size, clients, shuffled_values=shuffled)
    columns = log_columns(operations)
    building = best(lambda: log_columns(operations), 2)
    judging, reading = best(lambda: judge(columns), times), best(lambda: read_all(columns), times)
    cells = [
        f"{size:,}",
        f"{clients:,}",
        "in no order" if shuffled else "increasing",
        f"{size / judging / 1e6:.1f}",
        f"{judging / size * 1e9:.0f}",
        f"{judging / reading:.1f}",
        f"{size / building / 1e6:.1f}",
        f"{streamed / stream(history(streamed, clients), 2) / 1e3:.0f}" if streamed else "",
    ]
    return cells, judging


def main() -> None:
    """Print the table and two sentences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the operations, fewer runs")
    quick = parser.parse_args().quick
    size, times = (10**5, 3) if quick else (10**6, 9)
    streamed = 5_000 if quick else 50_000
    judge(log_columns(history(1_000, 5)))  # compiles
    judge(log_columns(history(1_000, 5, shuffled_values=True)))
    table = Table(title="log judges, one core, 5 records per read")
    for heading in (
        "operations",
        "clients",
        "value ids",
        "batch M op/s",
        "batch ns/op",
        "x read",
        "columns M op/s",
        "streaming k op/s",
    ):
        table.add_column(heading, justify="right")
    taken = {}
    for clients in CLIENTS:
        cells, taken[clients] = row_of(size, clients, streamed, times)
        table.add_row(*cells)
    table.add_row(*row_of(size, 100, 0, times, shuffled=True)[0])
    cells, large = row_of(10 * size, 100, 0, 3)
    table.add_row(*cells)
    console = Console(width=120)
    console.print(table)
    console.print(f"slowest at {size:,}: {size / max(taken.values()) / 1e6:.1f} M op/s")
    console.print(
        f"growth by 10 in operations: {large / taken[100]:.1f} in time; most to fewest clients: "
        f"{taken[1000] / taken[5]:.2f}"
    )


if __name__ == "__main__":
    main()
