"""The session profile: for each process, positions and ends never go back within a leader epoch.

Owns this rule for all logs of the session profile at once. A process is one incarnation (process, session).
Its operations are ordered as it ran them. If a trace allows several in flight, only operations that had
completed before count as earlier. Reads without a leader epoch are not compared, because an election may be
between them.
"""

from collections.abc import Iterator

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import LogColumns
from fencepost.checkers.log.log_rules import Profile, Rules
from fencepost.checkers.log.one_log import CHECK
from fencepost.checkers.operation_columns import NONE, Array
from fencepost.checkers.verdict import Finding


def session_findings(columns: LogColumns, rules: Rules) -> Iterator[tuple[int, Finding]]:
    """Find positions and ends that go back.

    Args:
        columns: the logs.
        rules: the rules of each group.

    Returns:
        (group, finding), at most one for each group and anomaly.
    """
    reads = columns.reads
    group = np.repeat(np.arange(columns.groups), np.diff(reads.first))
    rows = np.flatnonzero((rules.profile[group] == Profile.SESSION) & (reads.epoch >= 0))
    if not len(rows):
        return
    concurrent = np.array([trace.concurrent_processes for trace in columns.traces], np.bool_)[columns.trace]
    compared = [
        (reads.end, "high_watermark_regressed", "an end"),
        (reads.position, "position_regressed", "a position"),
    ]
    if columns.extras.special.any():
        compared += [
            (columns.extras.log_start, "log_start_regressed", "a log start"),
            (columns.extras.stable, "last_stable_offset_regressed", "a last stable offset"),
        ]
    for column, anomaly, what in compared:
        said = rows[column[rows] >= 0]
        key = np.array((group[said], reads.process[said], reads.session[said], reads.epoch[said]))
        earlier = regressions(
            key, reads.invoke[said], reads.completion[said], column[said], concurrent[group[said]]
        )
        bad = np.flatnonzero(earlier != NONE)
        for g, at in zip(*np.unique(group[said[bad]], return_index=True), strict=True):
            now, before = said[bad[at]], said[earlier[bad[at]]]
            yield (
                int(g),
                Finding(
                    anomaly=anomaly,
                    check=CHECK,
                    expected=f"{what} at or above {column[before]}, which operation {reads.op_id[before]} "
                    f"of the same process had in "
                    f"leader epoch {reads.epoch[now]}",
                    seen=f"operation {reads.op_id[now]} has {column[now]}",
                    topic=columns.topics[columns.topic[g]],
                    partition=int(columns.partition[g]),
                    offset=int(column[now]),
                    operations=(int(reads.op_id[now]), int(reads.op_id[before])),
                ),
            )


def regressions(key: Array, invoke: Array, completion: Array, value: Array, concurrent: Array) -> Array:
    """For each row, an earlier row of its key with a higher value; NONE if there is none."""
    rows = np.arange(key.shape[1])
    keys = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1) if len(rows) else rows
    by_invoke = np.lexsort((rows, completion, invoke, keys))
    by_completion = np.where(concurrent[by_invoke], np.lexsort((rows, completion, keys)), by_invoke)
    earlier: Array = _regressions(keys, invoke, completion, value, concurrent, by_invoke, by_completion)
    return earlier


@compiled
def _regressions(
    keys: Array,
    invoke: Array,
    completion: Array,
    value: Array,
    concurrent: Array,
    by_invoke: Array,
    by_completion: Array,
) -> Array:
    """Both orders run through one key after another; `done` is the number of rows of the key that count as
    earlier."""
    earlier = np.full(len(keys), -1, np.int64)
    done, highest = 0, -1
    for n in range(len(by_invoke)):
        row = by_invoke[n]
        if n == 0 or keys[by_invoke[n - 1]] != keys[row]:
            done, highest = n, -1
        while done < len(keys) and keys[by_completion[done]] == keys[row]:
            candidate = by_completion[done]
            if concurrent[row]:
                if completion[candidate] >= invoke[row]:
                    break
            elif done >= n:
                break
            if highest < 0 or value[candidate] > value[highest]:
                highest = candidate
            done += 1
        if highest >= 0 and value[highest] > value[row]:
            earlier[row] = highest
    return earlier
