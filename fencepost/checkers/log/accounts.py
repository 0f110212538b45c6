"""Counts of acknowledged records: how many were read, lost or placed twice; and whether the history is strong
enough for a verdict.

Owns the counts that a verdict on a log reports, and the rule that an Ok must not be vacuous. Must not know
the rules of the check, which are in the other modules. A record is *read* if a poll returned its value. It is
*lost* if no poll returned it although a read went past its offset, or although a trusted read that began
after its acknowledgement ended at or below it. Otherwise it is *unread*. A poll that does not say where it
began is assumed to start at the beginning of the log.

A history is too weak for Ok in two cases. One: hardly anything was appended, acknowledged or read. Two: no
read has a record that was acknowledged with acks=all, and no trusted read began after its acknowledgement, so
it is not known whether the record still exists. A record that only its leader acknowledged must have been
read, unless the claims say that it may be lost. Excused records (loss, retention, compaction, transactions
that may not have committed) do not count. The rule applies only to histories without a plan. A run with a
plan knows what it deleted and when it was too weak, and says so in its claims (`assumption_broken`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from attrs import Factory, define, frozen

from fencepost.checkers.log.appends_and_reads import (
    ALL,
    LEADER,
    NOBODY,
    NOT_ACKNOWLEDGED,
    Kind,
    LogColumns,
    log_columns,
)
from fencepost.checkers.log.extras import LONG_AGO, Fate
from fencepost.checkers.log.log_rules import Profile, Rules, rules_of
from fencepost.checkers.log.one_log import PartitionLog, group_of
from fencepost.checkers.log.same_keys import disputed
from fencepost.checkers.log.skips import replaceable
from fencepost.checkers.operation_columns import NEVER, Array, columns_of_traces
from fencepost.checkers.sorting import packed, place_of
from fencepost.traces.trace import Trace

FEW_ACKNOWLEDGED, OF_APPENDS = 20, 20
"""From FEW_ACKNOWLEDGED appends on, one in OF_APPENDS must have been acknowledged. Otherwise the cluster was
hardly available; a healthy one acknowledges almost all. Of 257 campaign runs under faults with this many
appends, each acknowledged at least 48 % of them."""
FOREIGN = "foreign"
"""The target of an imported history. It counts as a history of a log even if it is empty."""
ACKS = {ALL: "all", LEADER: "1", NOBODY: "0"}


@frozen(kw_only=True)
class LostRecord:
    """An acknowledged record that is lost."""

    # The topic.
    topic: str
    # The partition.
    partition: int
    # The acknowledged offset.
    offset: int
    # The value id.
    value: int
    # The acks of its producer.
    acks: str
    # Whether the claims allow the loss.
    allowed: bool


@frozen(kw_only=True)
class Totals:
    """Totals of one history: its appends, the acknowledged ones, its answered reads."""

    appends: int
    acknowledged: int
    reads: int
    # Whether any operation is about logs.
    asked: bool


@define(kw_only=True)
class LogCounts:
    """The counts of one history, in records."""

    # Acknowledged records, by acks.
    acknowledged: Counter[str] = Factory(Counter)
    # Lost records of these that the claims allow to be lost, by acks.
    lost_allowed: Counter[str] = Factory(Counter)
    # Lost records of these that the claims do not allow to be lost, by acks.
    lost_not_allowed: Counter[str] = Factory(Counter)
    # Records acknowledged with an offset, neither read nor known to be lost.
    unread: int = 0
    # Values that are at several offsets of one log.
    duplicated: int = 0
    # Records that were read although their append has an unknown outcome.
    unknown_present: int = 0
    # All lost records, in order.
    lost_values: list[LostRecord] = Factory(list)


@frozen(kw_only=True, eq=False)
class _Records:
    """The records of one log that were acknowledged with an offset, in the order of appends."""

    # The row of its append.
    append: Array
    # The acks of its producer.
    acks: Array
    # The acknowledged offset.
    offset: Array
    # The value id.
    value: Array
    # Whether a poll returned it.
    read: Array
    # Whether it is lost, as the module defines it.
    lost: Array
    # Whether it may be missing by the claims.
    excused: Array
    # Whether a trusted read began after the acknowledgement.
    covered: Array


def counts_of(columns: LogColumns) -> dict[int, LogCounts]:
    """The counts of each trace, by its index in the columns. Traces that contradict themselves are left out.

    All logs are counted at once. Only logs that may have a lost or unread record are looked at one by one; in
    a healthy campaign there are hardly any.
    """
    rules, traces = rules_of(columns), len(columns.traces)
    whole = np.ones(traces, np.bool_)
    whole[list(columns.broken)] = False
    known = _shown(columns, rules)
    sums = np.zeros((traces, len(ACKS) + 2), np.int64)
    size = np.diff(columns.appends.start)
    for column, code in enumerate(ACKS):
        mine = columns.acknowledged == code
        np.add.at(sums[:, column], columns.trace[known.of_append[mine]], size[mine])
    np.add.at(sums[:, -2], columns.trace[known.duplicated], 1)
    np.add.at(sums[:, -1], columns.trace[known.unknown_present], 1)
    counts = {
        index: LogCounts(
            acknowledged=Counter({acks: row[n] for n, acks in enumerate(ACKS.values())}),
            duplicated=row[-2],
            unknown_present=row[-1],
        )
        for index, row in enumerate(sums.tolist())
        if whole[index]
    }
    for g in known.in_question[whole[columns.trace[known.in_question]]].tolist():
        a, b = columns.appends.first[g : g + 2].tolist()
        index = int(columns.trace[g])
        may_lose = leader_may_lose(columns.traces[index])
        _add_lost(counts[index], group_of(columns, rules, g), columns.acknowledged[a:b], may_lose)
    return counts


def counts_of_trace(trace: Trace) -> LogCounts | None:
    """The counts of one trace; None if it contradicts itself."""
    return counts_of(log_columns(columns_of_traces((trace,)))).get(0)


@frozen(kw_only=True, eq=False)
class _Shown:
    """What reads show of the records of all logs."""

    # The log of each append.
    of_append: Array
    # The logs that may have an acknowledged record without a read.
    in_question: Array
    # The log of each value that is at several offsets.
    duplicated: Array
    # The log of each record that was read although its append has an unknown outcome.
    unknown_present: Array


def _shown(columns: LogColumns, rules: Rules) -> _Shown:
    appends, reads = columns.appends, columns.reads
    logs = np.arange(columns.groups)
    of_append = np.repeat(logs, np.diff(appends.first))
    of_read = np.repeat(logs, np.diff(reads.first))
    record_of = np.repeat(np.arange(len(appends.kind)), np.diff(appends.start))
    group = of_append[record_of]
    shown_in = np.repeat(of_read, np.diff(reads.start))
    code, codes = _codes(
        np.concatenate((group, shown_in)), np.concatenate((appends.value, reads.value)), len(group)
    )
    sent, shown = code[: len(group)], code[len(group) :]
    was_shown = np.zeros(codes, np.bool_)
    was_shown[shown] = True
    read, loose = was_shown[sent], ~rules.unique
    counted = np.isin(columns.acknowledged, (ALL, LEADER)) & (appends.base >= 0)
    open_ = (appends.kind != Kind.FAILED) & (columns.acknowledged == NOT_ACKNOWLEDGED)
    firm = np.flatnonzero(((appends.kind == Kind.FIRM) & (appends.base >= 0))[record_of])
    by = record_of[firm]
    at = np.concatenate((sent[firm], shown))
    offset = np.concatenate((appends.base[by] + firm - appends.start[by], reads.offset))
    log_of = np.zeros(codes, np.int64)
    log_of[code] = np.concatenate((group, shown_in))
    twice = log_of[disputed(at, offset)]
    present = group[open_[record_of] & read]
    return _Shown(
        of_append=of_append,
        in_question=np.unique(group[counted[record_of] & (~read | loose[group])]),
        duplicated=twice[~loose[twice]],
        unknown_present=present[~loose[present]],
    )


def _codes(group: Array, value: Array, sent: int) -> tuple[Array, int]:
    """A number for each pair of log and value, and a bound on the numbers. sent: how many of the pairs, the
    first ones, are sorted; the others are looked up among them."""
    pairs = packed((group, value))
    order = np.argsort(pairs[:sent], kind="stable")
    known = pairs[order]
    at = place_of(known, pairs)
    strange = np.flatnonzero(at < 0)
    if not len(strange):
        return at, sent
    distinct, code = np.unique(pairs[strange], return_inverse=True)
    at[strange] = sent + code.reshape(-1)
    return at, sent + len(distinct)


def _add_lost(counts: LogCounts, group: PartitionLog, acknowledged: Array, leader_may_lose: bool) -> None:
    records = _records(group, acknowledged, leader_may_lose=leader_may_lose)
    lost = np.flatnonzero(records.lost)
    for i in lost[np.argsort(records.offset[lost], kind="stable")].tolist():
        acks, allowed = ACKS[int(records.acks[i])], bool(records.excused[i])
        (counts.lost_allowed if allowed else counts.lost_not_allowed)[acks] += 1
        counts.lost_values.append(
            LostRecord(
                topic=group.topic,
                partition=group.partition,
                offset=int(records.offset[i]),
                value=int(records.value[i]),
                acks=acks,
                allowed=allowed,
            )
        )
    counts.unread += int((~records.read & ~records.lost).sum())


def _records(group: PartitionLog, acknowledged: Array, *, leader_may_lose: bool) -> _Records:
    appends, reads = group.appends, group.reads
    counted = np.isin(acknowledged, (ALL, LEADER)) & (appends.base >= 0)
    flat = np.flatnonzero(counted[group.append_of_value])
    append = group.append_of_value[flat]
    offset = appends.base[append] + flat - appends.start[append]
    value = appends.value[flat]
    read = np.isin(value, reads.value)
    if not group.unique:
        shown = set(zip(reads.offset.tolist(), reads.value.tolist(), strict=True))
        pairs = zip(offset.tolist(), value.tolist(), strict=True)
        read = np.array([pair in shown for pair in pairs], np.bool_)
    done = appends.completion[append]
    strong = np.flatnonzero(group.strong)
    lost = ~read & (
        _passed(group, offset) | _ended_below(reads.end[strong], reads.invoke[strong], offset, done)
    )
    fate = group.extras.fate[append]
    excused = group.loss_allowed(offset) | (offset < int(group.extras.licence)) | replaceable(group)[append]
    excused |= (fate == Fate.OPEN) | (fate == Fate.ABORTED)
    excused |= (acknowledged[append] == LEADER) & leader_may_lose
    return _Records(
        append=append,
        acks=acknowledged[append],
        offset=offset,
        value=value,
        read=read,
        lost=lost,
        excused=excused,
        covered=int(reads.invoke[strong].max(initial=LONG_AGO)) >= done,
    )


def _passed(group: PartitionLog, offset: Array) -> Array:
    """Which offsets some read showed or went past."""
    reads = group.reads
    row = np.flatnonzero(np.diff(reads.start) > 0)
    if not len(row):
        return np.zeros(len(offset), np.bool_)
    begin = np.maximum(reads.position[row], 0)
    last = np.maximum.reduceat(reads.offset, reads.start[row])
    order = np.argsort(begin, kind="stable")
    reach = np.concatenate(([-1], np.maximum.accumulate(last[order])))
    passed: Array = reach[np.searchsorted(begin[order], offset, side="right")] >= offset
    return passed


def _ended_below(end: Array, invoke: Array, offset: Array, done: Array) -> Array:
    """For each record, whether a trusted read that began at or after its acknowledgement ended at or below
    it."""
    order = np.argsort(end, kind="stable")
    latest = np.concatenate(([LONG_AGO], np.maximum.accumulate(invoke[order])))
    ended: Array = latest[np.searchsorted(end[order], offset, side="right")] >= done
    ended &= done != NEVER
    return ended


def weaknesses(columns: LogColumns, rules: Rules) -> dict[int, str]:
    """For each trace with a meaningless Ok, by its index in the columns: the reason."""
    weak: dict[int, list[str]] = defaultdict(list)
    for index, reason in _thin(columns):
        weak[index].append(reason)
    for index, reason in _unread(columns, rules):
        weak[index].append(reason)
    return {index: "; ".join(reasons) for index, reasons in weak.items()}


def _thin(columns: LogColumns) -> Iterator[tuple[int, str]]:
    """Histories without a plan in which hardly anything was appended, acknowledged or read."""
    traces = len(columns.traces)
    of_append = np.repeat(columns.trace, np.diff(columns.appends.first))
    of_read = np.repeat(columns.trace, np.diff(columns.reads.first))
    appends = np.bincount(of_append, minlength=traces)
    acked = np.bincount(of_append, weights=columns.acknowledged != NOT_ACKNOWLEDGED, minlength=traces)
    reads = np.bincount(of_read, minlength=traces)
    for index, trace in enumerate(columns.traces):
        totals = Totals(
            appends=int(appends[index]),
            acknowledged=int(acked[index]),
            reads=int(reads[index]),
            asked=bool(columns.asked[index]),
        )
        reason = _thinness(trace, totals)
        if reason:
            yield index, reason


def _thinness(trace: Trace, totals: Totals) -> str:
    """Why a history has too little content for a verdict on a log; "" if it has enough."""
    if trace.plan or not (totals.asked or trace.target == FOREIGN):
        return ""
    appends, acknowledged, reads = totals.appends, totals.acknowledged, totals.reads
    if not appends:
        return "the history has no append to a log"
    if not reads:
        return f"no reads: the history has {_many(appends, 'append')} and no answered read"
    if not acknowledged:
        return f"none of {_many(appends, 'append')} was acknowledged"
    if appends >= FEW_ACKNOWLEDGED and acknowledged * OF_APPENDS < appends:
        return f"only {acknowledged} of {appends} appends were acknowledged"
    return ""


def weakness(trace: Trace, totals: Totals, missing: list[tuple[str, int, int, int]], *, later: bool) -> str:
    """Why an Ok of this trace would be meaningless, in the words of `weaknesses`; "" if it is meaningful.

    missing: for each log with unread records that were acknowledged with acks=all: topic, partition, how
    many, the lowest offset. later: whether some read of one of them is marked strong. No record is excused,
    and acks=1 is absent or may lose records.
    """
    thin = _thinness(trace, totals)
    unseen = unread(ACKS[ALL], missing, later) if missing and not trace.plan else ""
    return "; ".join(reason for reason in (thin, unseen) if reason)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _unread(columns: LogColumns, rules: Rules) -> Iterator[tuple[int, str]]:
    missing: dict[tuple[int, str], list[tuple[str, int, int, int]]] = defaultdict(list)
    later: set[int] = set()
    for g in _in_question(columns, rules).tolist():
        group, index = group_of(columns, rules, g), int(columns.trace[g])
        a, b = columns.appends.first[g : g + 2].tolist()
        may_lose = leader_may_lose(columns.traces[index])
        records = _records(group, columns.acknowledged[a:b], leader_may_lose=may_lose)
        open_ = ~records.read & ~records.excused
        for code, wanted in ((ALL, ~records.covered), (LEADER, True)):
            rows = np.flatnonzero(open_ & (records.acks == code) & wanted)
            if len(rows):
                first = int(records.offset[rows].min())
                missing[index, ACKS[code]].append((group.topic, group.partition, len(rows), first))
                if group.strong.any():
                    later.add(index)
    for (index, acks), logs in sorted(missing.items(), key=lambda item: (item[0][0], item[0][1] != "all")):
        yield index, unread(acks, logs, index in later)


def unread(acks: str, logs: list[tuple[str, int, int, int]], later: bool) -> str:
    """Why unread records make a history weak. logs: topic, partition, how many, their lowest offset. later:
    whether some read is marked strong, but is too early."""
    count = sum(many for _, _, many, _ in logs)
    topic, partition, _, offset = min(logs)
    records = f"{count} acknowledged records are" if count != 1 else "1 acknowledged record is"
    where = f"({topic}-{partition} from offset {offset} on)"
    if acks == ACKS[LEADER]:
        which = records.replace("acknowledged", "acks=1")
        return f"{which} in no read {where}, and nothing says that acks=1 may lose them"
    return f"{records} in no last read {where}, and no {'later ' if later else ''}read is marked strong"


def _in_question(columns: LogColumns, rules: Rules) -> Array:
    """The groups that may have such a record: no read has its value, and no trusted read came after it."""
    appends, reads = columns.appends, columns.reads
    of_append = np.repeat(np.arange(columns.groups), np.diff(appends.first))
    of_read = np.repeat(np.arange(columns.groups), np.diff(reads.first))
    strong = np.flatnonzero((reads.end >= 0) & (reads.strong | (rules.profile[of_read] == Profile.STRONG)))
    latest = np.full(columns.groups, LONG_AGO)
    np.maximum.at(latest, of_read[strong], reads.invoke[strong])
    planned = np.array([bool(trace.plan) for trace in columns.traces], np.bool_)[columns.trace]
    if planned.all():
        return np.empty(0, np.int64)
    by_leader = np.array([not leader_may_lose(trace) for trace in columns.traces], np.bool_)[columns.trace]
    latest[planned] = NEVER
    asked = (columns.acknowledged == ALL) & (latest[of_append] < appends.completion)
    asked |= (columns.acknowledged == LEADER) & by_leader[of_append]
    asked &= appends.base >= 0
    if not asked.any():
        return np.empty(0, np.int64)
    record_of = np.repeat(np.arange(len(appends.kind)), np.diff(appends.start))
    wanted = np.flatnonzero(asked[record_of])
    group = of_append[record_of[wanted]]
    reader = np.repeat(of_read, np.diff(reads.start))
    values, code = np.unique(np.concatenate((reads.value, appends.value[wanted])), return_inverse=True)
    code = code.reshape(-1)
    shown = np.unique(reader * len(values) + code[: len(reader)])
    read = np.isin(group * len(values) + code[len(reader) :], shown)
    loose = ~np.array([trace.unique_values for trace in columns.traces], np.bool_)[columns.trace]
    return np.unique(group[~read | loose[group]])


def leader_may_lose(trace: Trace) -> bool:
    """Whether records may be lost that only the leader acknowledged: by the claims, or because the run has a
    plan and accounted for them."""
    return bool(trace.plan) or trace.claims.acks_1_may_lose
