"""The kafka check: what consumers, producers and transactions saw of the logs, for many traces in one call.

Owns the order of the work and one verdict per trace. The rules are in `consumers`, `producers`,
`transactions` and `coverage`. The log check covers the appends and single reads of one log. It also reports a
trace that contradicts itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from fencepost.checkers.kafka.consumers import consumer_findings, positioned, steps_of
from fencepost.checkers.kafka.coverage import coverage_findings
from fencepost.checkers.kafka.extras import Extras, extras_of_table, extras_of_traces
from fencepost.checkers.kafka.kafka_findings import CHECK, Found
from fencepost.checkers.kafka.placements import placements_of
from fencepost.checkers.kafka.relations import (
    ASSIGN,
    CRASH,
    JOIN,
    POLL,
    SUBSCRIBE,
    TXN,
    KafkaColumns,
    kafka_columns,
)
from fencepost.checkers.kafka.send_order import may_be_first, producer_findings
from fencepost.checkers.kafka.transaction_order import transaction_findings
from fencepost.checkers.operation_columns import Array, OperationColumns, columns_of_table, columns_of_traces
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.traces.trace import Trace


def judge_trace(trace: Trace) -> Verdict:
    """The verdict of the kafka check on one trace."""
    verdicts = judge_traces((trace,))
    return verdicts[0][1] if verdicts else Verdict(decision=Decision.OK, check=CHECK)


def judge_traces(traces: Sequence[Trace]) -> list[tuple[int, Verdict]]:
    """(trace id, verdict) of each trace that is not Ok, in order; all others are Ok."""
    return judge_operations(columns_of_traces(traces), traces)


def judge_operations(operations: OperationColumns, traces: Sequence[Trace]) -> list[tuple[int, Verdict]]:
    """As `judge_traces`, for `operations` of `traces` that are already columns."""
    return _judge(operations, extras_of_traces(traces))


def judge_table(table: pa.Table, traces: Iterable[Trace] = ()) -> list[tuple[int, Verdict]]:
    """As `judge_traces`, for the rows of an `operations` table. Raises TraceError if a column is missing.

    Only traces to which some rule applies are converted, as in a check of single traces.
    """
    known = tuple(traces)
    operations, extras = columns_of_table(table, known), extras_of_table(table)
    concerned = np.zeros(len(operations.traces), np.bool_)
    concerned[operations.trace[applying(operations, extras)]] = True
    rows = concerned[operations.trace]
    if not rows.any() or rows.all():
        return _judge(operations, extras)
    some = table.filter(pa.array(rows))
    return _judge(columns_of_table(some, operations.traces), extras_of_table(some))


def applies(operations: OperationColumns, extras: Extras) -> bool:
    """Whether any rule applies: to consumers, to transactions, or to sends that the log check does not cover.

    Clients that name every offset and only append with acks=all need no check, and this look is all that they
    cost.

    Args:
        operations: the rows.
        extras: more columns of the same rows.

    Returns:
        False if the verdict is Ok without further work.
    """
    return bool(applying(operations, extras).any())


def applying(operations: OperationColumns, extras: Extras) -> Array:
    """The rows to which a rule applies, decided row by row.

    Args:
        operations: the rows.
        extras: more columns of the same rows.

    Returns:
        one boolean per row.
    """
    moving = np.isin(operations.function, (ASSIGN, SUBSCRIBE, JOIN, CRASH, TXN))
    reading = (operations.function == POLL) & (np.diff(operations.records.start) > 0)
    by_consumers = reading & (extras.member | ~positioned(operations))
    found: Array = moving | by_consumers | may_be_first(operations, extras)
    return found


def _judge(operations: OperationColumns, extras: Extras) -> list[tuple[int, Verdict]]:
    findings: dict[int, list[Finding]] = defaultdict(list)
    if applies(operations, extras):
        columns = kafka_columns(operations, extras)
        for log, found in _findings(columns):
            findings[int(columns.log_trace[log])].append(found)
    verdicts = []
    for index, trace in enumerate(operations.traces):
        broken = trace.claims.assumption_broken
        if broken:
            verdict = Verdict(decision=Decision.ASSUMPTION_BROKEN, check=CHECK, reason=broken)
        elif index in findings:
            verdict = Verdict(decision=Decision.ILLEGAL, check=CHECK, findings=tuple(findings[index]))
        else:
            continue
        verdicts.append((trace.trace_id, verdict))
    return verdicts


def _findings(columns: KafkaColumns) -> Found:
    placements = placements_of(columns)
    yield from coverage_findings(columns, placements)
    yield from consumer_findings(columns, placements, steps_of(columns, placements))
    yield from producer_findings(columns, placements)
    yield from transaction_findings(columns, placements)
