"""The findings of the kafka check: one log, one anomaly, operations by their ids.

Owns how findings are made. Must not know the rules.
"""

from collections.abc import Iterator

from fencepost.checkers.kafka.relations import KafkaColumns
from fencepost.checkers.verdict import Finding

CHECK = "kafka"

Found = Iterator[tuple[int, Finding]]
"""(log, finding). A rule yields at most one finding for each log and anomaly."""


def finding(
    columns: KafkaColumns,
    anomaly: str,
    log: int,
    *,
    offset: int,
    rows: tuple[int, ...],
    expected: str,
    seen: str,
) -> tuple[int, Finding]:
    """A finding about one log.

    Args:
        columns: the relations of the traces.
        anomaly: its name.
        log: the index of the log.
        offset: the offset that it is about.
        rows: the rows of the convicting operations; a row that occurs twice is named once.
        expected, seen: one clause each.

    Returns:
        (log, finding).
    """
    operations = columns.operations
    return log, Finding(
        anomaly=anomaly,
        check=CHECK,
        expected=expected,
        seen=seen,
        topic=operations.topics[columns.log_topic[log]],
        partition=int(columns.log_partition[log]),
        offset=int(offset),
        operations=tuple(int(operations.op_id[row]) for row in dict.fromkeys(rows)),
    )


def op(columns: KafkaColumns, row: int) -> str:
    """An operation as text.

    Args:
        columns: the relations of the traces.
        row: the row of the operation.

    Returns:
        its function and its id.
    """
    return f"operation {columns.operations.op_id[row]}"
