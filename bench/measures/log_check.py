"""The log check from columns against the least that any judge can do: summing every column that it reads.

Histories of one partition (inputs/giant_histories.py): half appends, half strong reads of 5 records, 2 %
unknown appends, dense offsets. `judge` is all rules on columns in memory; making the check's columns from
decoded ones is a case of its own.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from attrs import evolve

from bench.harness import Case, wanted
from bench.inputs import giant_histories
from fencepost.checkers.log import LogColumns, judge_columns, log_columns
from fencepost.checkers.operation_columns import OperationColumns, columns_of_table

CLIENTS = (5, 10, 50, 100, 1000)


def judge(columns: LogColumns) -> None:
    """The histories are legal, so anything but silence is a defect of the bench or the judge. (The last
    records are in no read, so the histories are weak.)"""
    found = judge_columns(columns, weak_is_ok=True)
    assert not found, found[0]


def read(columns: LogColumns) -> None:
    """Sum every column of the two relations."""
    for relation in (columns.appends, columns.reads):
        for array in relation:
            int(np.sum(array))


def columns_of(size: int, clients: int) -> OperationColumns:
    """The columns of a history, decoded."""
    rows = giant_histories.in_memory(size, clients=clients).operations
    return columns_of_table(rows, [giant_histories.HEADER])


def shuffled(columns: OperationColumns) -> OperationColumns:
    """The same with ids of values in no order, as in a foreign history."""
    values = np.unique(columns.records.value)
    others = np.random.default_rng(2).permutation(values)
    changed = others[np.searchsorted(values, columns.records.value)]
    return evolve(columns, records=evolve(columns.records, value=changed))


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """By number of clients, by order of values, and ten times as many operations."""
    size = 20_000 if asked.quick else 1_000_000
    shapes = [(f"{clients} clients", size, clients, False) for clients in CLIENTS]
    shapes += [
        ("100 clients, values in no order", size, 100, True),
        ("100 clients, x 10", 10 * size, 100, False),
    ]
    for name, operations, clients, mixed in shapes[:: 6 if asked.quick else 1]:
        making_name = f"{name}, columns of decoded ones"
        if not wanted(asked, making_name):
            continue
        decoded = columns_of(operations, clients)
        decoded = shuffled(decoded) if mixed else decoded
        columns = log_columns(decoded)
        sides = {
            "judge": lambda columns=columns: judge(columns),
            "reading": lambda columns=columns: read(columns),
        }
        yield Case(name=name, sides=sides, per=operations, unit="operation")
        making = {
            "columns": lambda decoded=decoded: log_columns(decoded),
            "reading": lambda columns=columns: read(columns),
        }
        yield Case(name=making_name, sides=making, per=operations, unit="operation")
