"""Measurements that are not violations: records not seen yet over time, the lag of reads, and anomalies that
claims allow.

Owns these measurements, which are reported in addition to the verdict. Must not know how they are drawn or
mined.
"""

from collections import Counter

import numpy as np
from attrs import frozen

from fencepost.checkers.kafka.consumers import allowed_steps, steps_of
from fencepost.checkers.kafka.lags import Lags, lags_of
from fencepost.checkers.kafka.placements import placements_of
from fencepost.checkers.kafka.relations import OK, KafkaColumns, kafka_columns_of_traces
from fencepost.checkers.kafka.transaction_order import skipped_sends
from fencepost.checkers.operation_columns import NEVER, Array
from fencepost.traces.trace import Trace


@frozen(kw_only=True, eq=False)
class Unseen:
    """Of one partition: how many acknowledged records (acks other than 0) no answered poll had shown, after
    each change.

    Attributes:
        times: nanoseconds, increasing.
        counts: as many as `times`.
        left: op ids of appends with records that were never shown.
    """

    topic: str
    partition: int
    times: Array
    counts: Array
    left: tuple[int, ...]


@frozen(kw_only=True, eq=False)
class Measurements:
    """The measurements of one trace.

    Attributes:
        unseen: by partition, in order.
        allowed: how often an anomaly was seen that the claims or the subscription allow: poll_skip,
            position_regressed, int_send_skip.
    """

    unseen: tuple[Unseen, ...]
    lags: Lags
    allowed: dict[str, int]


def measure_trace(trace: Trace) -> Measurements:
    """The measurements of one trace."""
    return measure_columns(kafka_columns_of_traces((trace,)))[0]


def measure_columns(columns: KafkaColumns) -> list[Measurements]:
    """The measurements of each trace of the columns, in order."""
    placements = placements_of(columns)
    skipped, back = allowed_steps(steps_of(columns, placements))
    sends = np.array(skipped_sends(columns, placements), np.int64)
    allowed: list[Counter[str]] = [Counter() for _ in columns.traces]
    for name, logs in (("poll_skip", skipped), ("position_regressed", back), ("int_send_skip", sends)):
        for log in logs.tolist():
            allowed[columns.log_trace[log]][name] += 1
    unseen = _unseen(columns)
    lags = lags_of(columns, placements)
    return [
        Measurements(unseen=tuple(unseen[index]), lags=lags[index], allowed=dict(sorted(counts.items())))
        for index, counts in enumerate(allowed)
    ]


def _unseen(columns: KafkaColumns) -> list[list[Unseen]]:
    """+1 when a record is acknowledged, -1 when it is first shown. A record that was shown before its
    acknowledgement never counts."""
    operations, sent = columns.operations, columns.sent
    acknowledged = np.flatnonzero((operations.outcome[sent.row] == OK) & (operations.acks[sent.row] != 0))
    acknowledged_at = operations.completion_time[sent.row[acknowledged]]
    first_shown = _first_completion(columns, sent.log[acknowledged], sent.value[acknowledged])
    counted = first_shown > acknowledged_at
    row, log, up, down = (
        of[counted] for of in (sent.row[acknowledged], sent.log[acknowledged], acknowledged_at, first_shown)
    )
    order = np.argsort(log, kind="stable")
    cuts = np.searchsorted(log[order], np.arange(columns.logs + 1))
    found: list[list[Unseen]] = [[] for _ in columns.traces]
    for g in range(columns.logs):
        own = order[cuts[g] : cuts[g + 1]]
        times, counts = _series(up[own], down[own][down[own] != NEVER])
        left = operations.op_id[row[own][down[own] == NEVER]]
        found[columns.log_trace[g]].append(
            Unseen(
                topic=operations.topics[columns.log_topic[g]],
                partition=int(columns.log_partition[g]),
                times=times,
                counts=counts,
                left=tuple(dict.fromkeys(left.tolist())),
            )
        )
    return found


def _series(up: Array, down: Array) -> tuple[Array, Array]:
    """The moments at which a count changes, and the new count at each."""
    times = np.concatenate((up, down))
    change = np.concatenate((np.ones(len(up), np.int64), np.full(len(down), -1)))
    order = np.argsort(times, kind="stable")
    last = np.flatnonzero(np.diff(times[order], append=NEVER) > 0)
    return times[order][last], np.cumsum(change[order])[last]


def _first_completion(columns: KafkaColumns, log: Array, value: Array) -> Array:
    """When each (log, value) was first shown; NEVER if it was not."""
    shown = columns.shown
    found = np.full(len(log), NEVER)
    if not len(shown.log) or not len(log):
        return found
    values, code = np.unique(np.concatenate((shown.value, value)), return_inverse=True)
    code = code.reshape(-1)
    key = np.concatenate((shown.log, log)) * len(values) + code
    read, asked = key[: len(shown.log)], key[len(shown.log) :]
    completion = columns.operations.completion_time[shown.row]
    order = np.lexsort((completion, read))
    at = np.minimum(np.searchsorted(read[order], asked), len(order) - 1)
    hit = read[order][at] == asked
    found[hit] = completion[order][at[hit]]
    return found
