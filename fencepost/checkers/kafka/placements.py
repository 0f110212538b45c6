"""The known offsets of records, and the records that a consumer may miss.

Owns the occupied offsets of each log with a witness, the offset of each sent record if it is known, and the
excuses by claims (loss, retention, compaction). Must not know the rules that use them.
"""

import numpy as np
from attrs import frozen

from fencepost.checkers.kafka.relations import FAIL, KafkaColumns, RecordRelations
from fencepost.checkers.log.log_rules import loss_in
from fencepost.checkers.operation_columns import NONE, Array


@frozen(kw_only=True, eq=False)
class Occupied:
    """One row per (log, offset) that is known to hold a record and where no loss is allowed, in order.

    Attributes:
        witness: a row of the operations that proves it.
        offsets: the distinct offsets.
        key: log and rank of the offset in `offsets`, as one number.
    """

    log: Array
    offset: Array
    witness: Array
    offsets: Array
    key: Array

    def after(self, log: Array, offset: Array) -> Array:
        """For each (log, offset): the first occupied row of that log above it. If there is none:
        len(self.log), or a row of another log."""
        ranks = np.searchsorted(self.offsets, offset, side="right")
        found: Array = np.searchsorted(self.key, log * (len(self.offsets) + 1) + ranks)
        return found

    def between(self, log: Array, after: Array, before: Array) -> Array:
        """For each span (after, before) of a log: the first occupied row strictly inside; -1 if there is
        none."""
        if not len(self.log):
            return np.full(len(log), NONE)
        at = self.after(log, after)
        row = np.minimum(at, len(self.log) - 1)
        inside = (at < len(self.log)) & (self.log[row] == log) & (self.offset[row] < before)
        found: Array = np.where(inside, row, NONE)
        return found


@frozen(kw_only=True, eq=False)
class Placements:
    """The known places of records.

    Attributes:
        occupied: the occupied offsets.
        offset: of each sent record, from a firm acknowledgement or else from a poll (-1: not known).
        unread: of each sent record, whether no poll showed it.
    """

    occupied: Occupied
    offset: Array
    unread: Array


def placements_of(columns: RecordRelations) -> Placements:
    """The placements of all logs."""
    sent, shown = columns.sent, columns.shown
    unique = np.array([trace.unique_values for trace in columns.traces], np.bool_)
    by_value = _first_shown(columns)
    at_value = np.where(by_value >= 0, shown.offset[by_value] if len(shown.offset) else NONE, NONE)
    at_value[~unique[columns.log_trace[sent.log]]] = NONE
    offset = np.where(sent.firm, sent.offset_sent, at_value)
    return Placements(occupied=_occupied(columns), offset=offset, unread=(by_value < 0))


def _first_shown(columns: RecordRelations) -> Array:
    """For each sent record, the row of `shown` with its value in its log that has the lowest offset; -1 if
    there is none."""
    sent, shown = columns.sent, columns.shown
    if not len(shown.log) or not len(sent.log):
        return np.full(len(sent.log), NONE)
    values, code = np.unique(np.concatenate((shown.value, sent.value)), return_inverse=True)
    code = code.reshape(-1)
    key = np.concatenate((shown.log, sent.log)) * len(values) + code
    read, asked = key[: len(shown.log)], key[len(shown.log) :]
    order = np.lexsort((shown.offset, read))
    at = np.minimum(np.searchsorted(read[order], asked), len(order) - 1)
    found: Array = np.where(read[order][at] == asked, order[at], NONE)
    return found


def _occupied(columns: RecordRelations) -> Occupied:
    sent, shown = columns.sent, columns.shown
    firm = np.flatnonzero(sent.firm)
    log = np.concatenate((shown.log, sent.log[firm]))
    offset = np.concatenate((shown.offset, sent.offset_sent[firm]))
    row = np.concatenate((shown.row, sent.row[firm]))
    kept = ~loss_allowed(columns, log, offset)
    log, offset, row = log[kept], offset[kept], row[kept]
    offsets, rank = np.unique(offset, return_inverse=True)
    key, first = np.unique(log * (len(offsets) + 1) + rank.reshape(-1), return_index=True)
    return Occupied(log=log[first], offset=offset[first], witness=row[first], offsets=offsets, key=key)


def loss_allowed(columns: RecordRelations, log: Array, offset: Array) -> Array:
    """Which offsets are in ranges where the claims allow loss.

    Args:
        columns: the relations of the traces.
        log: index of the log of each offset.
        offset: the offsets; as many as `log`.

    Returns:
        one boolean per offset.
    """
    allowed = np.zeros(len(log), np.bool_)
    lossy = [bool(trace.claims.loss) or trace.claims.content_by_epoch for trace in columns.traces]
    of_log = np.array(lossy, np.bool_)[columns.log_trace] if lossy else np.zeros(columns.logs, np.bool_)
    for g in np.flatnonzero(of_log).tolist():
        trace, topic = columns.traces[columns.log_trace[g]], columns.operations.topics[columns.log_topic[g]]
        of = np.flatnonzero(log == g)
        for start, end in loss_in(trace.claims, topic, int(columns.log_partition[g])):
            allowed[of] |= (start <= offset[of]) & (offset[of] < end)
    return allowed


def excused(columns: KafkaColumns, placements: Placements, log: int, offset: int) -> bool:
    """Whether reads may miss a record: it is below a log start under retention, or compaction may have
    removed it.

    Args:
        columns: the relations of the traces.
        placements: the known places of records.
        log: the index of the log.
        offset: the offset of the record.

    Returns:
        whether it is excused.
    """
    claims = columns.traces[columns.log_trace[log]].claims
    topic = columns.operations.topics[columns.log_topic[log]]
    return (claims.retention and _below_log_start(columns, log, offset)) or (
        topic in claims.compacted and _compacted(columns, placements, log, offset)
    )


def _below_log_start(columns: KafkaColumns, log: int, offset: int) -> bool:
    """Whether a log start above the offset was claimed. Also true if no log start of this log was claimed,
    because then it is not known."""
    operations, extras = columns.operations, columns.extras
    own = (operations.trace == columns.log_trace[log]) & (operations.topic == columns.log_topic[log])
    own &= operations.partition == columns.log_partition[log]
    several = extras.position_log_start[columns.log_of_position == log]
    highest = max(extras.log_start[own].max(initial=NONE), several.max(initial=NONE))
    return bool(highest < 0 or offset < highest)


def _compacted(columns: KafkaColumns, placements: Placements, log: int, offset: int) -> bool:
    """Whether compaction may have removed the record: another record of its key may be above it, it may be a
    tombstone, or its key is not known."""
    sent, extras = columns.sent, columns.extras
    rows = np.flatnonzero((sent.log == log) & (columns.operations.outcome[sent.row] != FAIL))
    here = rows[placements.offset[rows] == offset]
    if not len(here):
        return True
    key = extras.key[sent.row[here[0]]]
    if extras.tombstone[sent.row[here[0]]]:
        return True
    others = rows[(extras.key[sent.row[rows]] == key) & (rows != here[0])]
    later = (placements.offset[others] < 0) | (placements.offset[others] > offset)
    return bool(key >= 0 and later.any())
