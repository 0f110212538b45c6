"""What the exactly-once check still needs of operations that are forgotten.

Owns a few numbers for each log, and which operations must stay because a later finding may need them. Must
not know the rules, or when something is forgotten.

Offsets and the places of input only grow in a healthy cluster, so one number for each log says what was
forgotten. An operation that comes back below it cannot be judged; that is counted, and the trace ends
unknown.
"""

import numpy as np
from attrs import Factory, define

from fencepost.checkers.exactly_once.log_places import Logs
from fencepost.checkers.exactly_once.relations import POLL, Relations
from fencepost.checkers.operation_columns import FUNCTIONS, NONE, OUTCOMES, Array, OperationColumns
from fencepost.checkers.statements import READ_COMMITTED
from fencepost.traces.operations import Function, Outcome

TXN = FUNCTIONS.index(Function.TXN)
OK, FAIL = OUTCOMES.index(Outcome.OK), OUTCOMES.index(Outcome.FAIL)
Ends = dict[tuple[str, int], int]
"""An offset for each topic and partition."""


@define(kw_only=True)
class Accounts:
    """Of one trace."""

    # Records of forgotten transactions are below this offset of their log.
    written: Ends = Factory(dict)
    # Forgotten reads of committed records ended below it.
    read: Ends = Factory(dict)
    # Visible outputs that are forgotten were made from records below it.
    made: Ends = Factory(dict)
    # So were those that may yet be visible, too. Each log of which something was made has an entry.
    settled: Ends = Factory(dict)
    # The lowest place of input without an output among what was remembered when it was asked for last.
    owed: Ends = Factory(dict)
    # Operations that began up to this time are forgotten, but for those that are kept.
    until: int = -(2**63)

    def behind(self, relations: Relations, fresh: Array) -> int:
        """How many of these operations come back to what is forgotten.

        Args:
            relations: of what is remembered.
            fresh: for each row whether it was not yet asked about.

        Returns:
            their number.
        """
        operations, sent = relations.operations, relations.sent
        back = fresh & (operations.invoke_time <= self.until)
        ends = {
            key: max(self.written.get(key, 0), self.read.get(key, 0)) for key in {**self.written, **self.read}
        }
        low = _below(relations.logs, sent.place.log, sent.place.offset, ends)
        low |= _below(relations.logs, sent.source.log, sent.source.offset, self.made) & (
            operations.outcome[sent.row] != FAIL
        )
        back[sent.row[low & fresh[sent.row]]] = True
        polls = fresh & _committed_reads(operations)
        for (topic, partition), end in self.written.items():
            if topic in operations.topics:
                code = operations.topics.index(topic)
                for rows, names, numbers, offsets in _touches(operations):
                    low = (names == code) & (numbers == partition) & (offsets >= 0) & (offsets < end)
                    back[rows[low & polls[rows]]] = True
        shown = relations.shown
        late = _below(relations.logs, shown.place.log, shown.place.offset, self.settled)
        self._owe(relations, late & fresh[shown.row])
        return int(back.sum())

    def _owe(self, relations: Relations, among: Array) -> None:
        """Note of each log the lowest of these places of input that has no output."""
        place = relations.shown.place
        nowhere = np.flatnonzero(among & ~np.isin(place.key, relations.sent.source.key[relations.excusing]))
        for log, offset in zip(place.log[nowhere].tolist(), place.offset[nowhere].tolist(), strict=True):
            name = relations.logs.named(log)[1:]
            self.owed[name] = min(offset, self.owed.get(name, offset))

    def kept(self, relations: Relations) -> Array:
        """Which operations stay, however old they are: of each log of input the visible output that was made
        from its highest place, with its transaction and its reader, and the highest commits; of each producer
        the transaction of its highest epoch."""
        operations, sent, details = relations.operations, relations.sent, relations.details
        stays = np.zeros(len(operations.op_id), np.bool_)
        visible = np.flatnonzero((sent.poll >= 0) & (sent.source.log >= 0))
        last = _last(sent.source.log[visible], sent.source.key[visible], visible)
        stays[np.concatenate((sent.row[last], sent.txn[last], sent.poll[last]))] = True
        commits = relations.commits
        for counting in (operations.outcome[commits.row] != FAIL, operations.outcome[commits.row] == OK):
            some = np.flatnonzero(counting & (commits.place.log >= 0))
            stays[commits.row[_last(commits.place.log[some], commits.place.key[some], some)]] = True
        heads = np.flatnonzero((operations.function == TXN) & (details.producer_epoch >= 0))
        stays[_last(details.producer_id[heads], details.producer_epoch[heads], heads)] = True
        return stays

    def forget(self, relations: Relations, going: Array) -> int:
        """Note what is needed of operations that are forgotten now.

        Args:
            relations: of what is remembered, these included.
            going: for each row whether it is forgotten.

        Returns:
            how many records may yet be visible that were made from places of which the visible output is
            forgotten: whether it was made twice is not known any more.
        """
        operations, sent, shown = relations.operations, relations.sent, relations.shown
        logs = relations.logs
        gone, excusing = going[sent.row], relations.excusing
        before = _below(logs, shown.place.log, shown.place.offset, self.settled)
        _raise(self.settled, logs, sent.source.log[gone], np.where(excusing, sent.source.offset, NONE)[gone])
        after = _below(logs, shown.place.log, shown.place.offset, self.settled)
        self._owe(relations, ~before & (after | going[shown.row]))
        _raise(self.written, logs, sent.place.log[gone], sent.place.offset[gone])
        visible = gone & excusing & (sent.poll >= 0)
        _raise(self.made, logs, sent.source.log[visible], sent.source.offset[visible])
        polls = going & _committed_reads(operations)
        rows, names, numbers, offsets = _touches(operations)[0]
        some = polls[rows]
        for code in np.unique(names[some]).tolist():
            for partition in np.unique(numbers[some & (names == code)]).tolist():
                mine = offsets[some & (names == code) & (numbers == partition)]
                name = (operations.topics[code], partition)
                self.read[name] = max(int(mine.max()) + 1, self.read.get(name, 0))
        if going.any():
            self.until = max(self.until, int(operations.invoke_time[going].max()))
        again = _below(logs, sent.source.log, sent.source.offset, self.made)
        return int((again & excusing & ~gone & (sent.poll < 0)).sum())

    def owing(self, relations: Relations) -> int:
        """At the end of a trace: the logs of input of which it is not known whether an output is missing."""
        commits = relations.commits
        counting = relations.operations.outcome[commits.row] == OK
        ends: Ends = {}
        _raise(ends, relations.logs, commits.place.log[counting], commits.place.offset[counting] - 1)
        named = {
            *self.settled,
            *(relations.logs.named(log)[1:] for log in np.unique(relations.sent.source.log) if log >= 0),
        }
        return sum(self.owed[log] < end for log, end in ends.items() if log in self.owed and log in named)


def _committed_reads(operations: OperationColumns) -> Array:
    reads: Array = (operations.function == POLL) & (operations.outcome == OK)
    if operations.statements is not None:
        reads &= operations.statements.isolation == READ_COMMITTED
    return reads


def _touches(operations: OperationColumns) -> list[tuple[Array, Array, Array, Array]]:
    """Row, topic, partition and offset of each record, of each position, and of each row's own place."""
    rows = np.arange(len(operations.op_id))
    records, positions = operations.records, operations.positions
    return [
        (np.repeat(rows, np.diff(records.start)), records.topic, records.partition, records.offset),
        (np.repeat(rows, np.diff(positions.start)), positions.topic, positions.partition, positions.offset),
        (rows, operations.topic, operations.partition, operations.offset),
    ]


def _below(logs: Logs, log: Array, offset: Array, ends: Ends) -> Array:
    """Which known places are below the end of their log."""
    if not ends or not len(log):
        return np.zeros(len(log), np.bool_)
    distinct, of = np.unique(log, return_inverse=True)
    end = [ends.get(logs.named(each)[1:], 0) if each >= 0 else 0 for each in distinct.tolist()]
    return (offset >= 0) & (offset < np.array(end, np.int64)[of.reshape(-1)])


def _raise(ends: Ends, logs: Logs, log: Array, offset: Array) -> None:
    """Raise ends above these places; those without a log or an offset say nothing."""
    for each in np.unique(log).tolist():
        if each >= 0:
            name = logs.named(each)[1:]
            ends[name] = max(int(offset[log == each].max()) + 1, ends.get(name, 0))


def _last(group: Array, key: Array, index: Array) -> Array:
    """Of these indices the first one with the highest key in each group."""
    order = np.lexsort((-np.arange(len(index)), key, group))
    last = np.ones(len(order), np.bool_)
    last[:-1] = group[order][1:] != group[order][:-1]
    return index[order[last]]
