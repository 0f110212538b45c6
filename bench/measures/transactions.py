"""What judging transactions costs, from ten thousand operations to ten million, by the checks `transactions`
and `exactly_once`.

A history (inputs/transaction_histories.py) against the smallest one, judged again until it was as many
operations: the ratio says what an operation costs more in a long history. The kernel's part is that of fresh
memory: large arrays are given back when they are freed. MALLOC_MMAP_THRESHOLD_=8000000000
MALLOC_TRIM_THRESHOLD_=16000000000 keeps it (glibc). With --cycle two transactions read what the other one
writes, or two records of output have the same lineage, which must be found, and nothing else.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

from attrs import evolve

from bench.costs import Cost, here, peak_mib
from bench.harness import Case, wanted
from bench.inputs.transaction_histories import history
from fencepost.checkers import exactly_once, transactions

JUDGES: dict[str, Any] = {"transactions": transactions.judge_table, "exactly_once": exactly_once.judge_table}
PLANTED = {"transactions": ["circular_reads"], "exactly_once": ["output_twice", "output_missing"]}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Of this measure."""
    parser.add_argument(
        "--operations", default="10000,100000,1000000,10000000", help="the smallest first [quick: two]"
    )
    parser.add_argument("--cycle", action="store_true", help="with a planted anomaly")


def judged(check: str, table: Any, times: int, expected: list[str]) -> Cost:
    """What is known of the history is found, every time."""

    def work() -> None:
        for _ in range(times):
            verdicts = JUDGES[check](table, ())
            found = [finding.anomaly for _, verdict in verdicts for finding in verdict.findings]
            assert found == expected, found

    return evolve(here(work), mib=peak_mib())


def measure(asked: argparse.Namespace) -> Iterator[Case]:
    """Both checks, by size."""
    least, *more = map(int, ("10000,20000" if asked.quick else asked.operations).split(","))
    for check, planted in PLANTED.items():
        expected = planted if asked.cycle else []
        small = history(least, check, asked.cycle)
        for count in more:
            name = f"{check}, {count:,} operations"
            if not wanted(asked, name):
                continue
            large = history(count, check, asked.cycle)
            times = max(1, round(large.num_rows / small.num_rows))
            sides = {
                "one history": partial(judged, check, large, 1, expected),
                f"{times} x {small.num_rows:,}": partial(judged, check, small, times, expected),
            }
            yield Case(name=name, sides=sides, per=large.num_rows, unit="operation")
