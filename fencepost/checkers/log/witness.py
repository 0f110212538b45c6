"""Which logs are legal because one log and one course of time, made from them, explain every statement.

Owns how that witness is made, and how each statement is compared with it. Must not know the rules: a history
is legal if some log and some moments at which it grew explain it (docs/spec/log-check.md). So a witness is a
proof, whatever the rules are. No witness proves nothing: the rules decide about such a log.

The witness of a log is made only for the plainest kind: every value was sent once, and nothing was removed.

- The log: each firm append is at its offset. A batch of unknown outcome is where a read showed a record of
  it. Every offset from 0 to the end has exactly one record.
- The moments: it grew to include slot k at the latest invocation, so far along the log, of an append or of a
  trusted read that ended there.

Then each statement is looked up. A read shows exactly what is there from its position on. A trusted end is
between two batches, not above the end. Leader epochs do not decrease along the log. No acknowledgement, read
or trusted end is before the moment of its last slot. This is stricter than any claim asks: allowed loss,
duplicates, gaps and uncertain clocks only excuse what differs from the witness.
"""

import numpy as np
from attrs import frozen

from fencepost.checkers.log.appends_and_reads import Appends, Kind, LogColumns, Reads
from fencepost.checkers.log.rules import Profile, Rules
from fencepost.checkers.operation_columns import NEVER, NONE, Array
from fencepost.checkers.sorting import place_of

WIDEST = float(1 << 61)
"""Numbers of different logs are kept apart by multiples of their span. All stay below this, so that none
leaves 64 bits; if that cannot be, no log gets a witness."""


@frozen(kw_only=True, eq=False)
class _Logs:
    """All logs, their slots one after another; each has one more than sent values, for its end."""

    appends: Appends
    reads: Reads
    # The log of each append, sent value (flat), read, and record read (flat).
    of_append: Array
    of_sent: Array
    of_read: Array
    of_shown: Array
    # The append of each sent value, and its place in the batch.
    sender: Array
    nth: Array
    # Records of each append.
    count: Array
    # Sent values of each log; no offset of its witness is higher.
    room: Array
    # The first slot of each log, and the log of each slot.
    first: Array
    of_slot: Array
    # Whether each read's end may be trusted, and it has one.
    strong: Array
    # Whether no witness was found so far, by log. Changed while statements are looked up.
    doubt: Array

    def deny(self, logs: Array) -> None:
        """These logs have no witness."""
        self.doubt[logs] = True


def explained(columns: LogColumns, rules: Rules) -> Array:
    """Which logs have a witness.

    Args:
        columns: the logs.
        rules: of each of them.

    Returns:
        a mask over the logs; nothing is said of a log in a trace that contradicts itself.
    """
    logs = _logs(columns, rules)
    if not columns.groups or not _fits(logs):
        return np.zeros(columns.groups, np.bool_)
    _values_sent_twice(logs)
    slot, inside = _slots_of_records(logs)
    base = _bases(logs, slot, inside)
    holder = _holders(logs, base)
    _records(logs, holder, slot)
    _reads(logs, holder)
    _epochs(logs, base, holder, slot)
    timed = rules.profile != Profile.CONTENT
    early = _too_early(logs, base, holder, slot)
    logs.deny(early[timed[early]])
    explained: Array = ~logs.doubt
    return explained


def _logs(columns: LogColumns, rules: Rules) -> _Logs:
    appends, reads, each = columns.appends, columns.reads, np.arange(columns.groups)
    of_append, of_read = (np.repeat(each, np.diff(of.first)) for of in (appends, reads))
    count = np.diff(appends.start)
    sender = np.repeat(np.arange(len(count)), count)
    of_sent = of_append[sender]
    room = np.bincount(of_sent, minlength=columns.groups)
    trusted = reads.strong | (rules.profile == Profile.STRONG)[of_read]
    return _Logs(
        appends=appends,
        reads=reads,
        of_append=of_append,
        of_sent=of_sent,
        of_read=of_read,
        of_shown=np.repeat(of_read, np.diff(reads.start)),
        sender=sender,
        nth=np.arange(len(sender)) - appends.start[sender],
        count=count,
        room=room,
        first=np.cumsum(room + 1) - (room + 1),
        of_slot=np.repeat(each, room + 1),
        strong=(reads.end >= 0) & trusted,
        doubt=columns.extras.special | ~rules.unique,
    )


def _fits(logs: _Logs) -> bool:
    """Whether times and epochs of all logs can be kept apart in 64 bits."""
    low, high = _span(logs)
    epoch = max(int(of.max(initial=0)) for of in (logs.appends.epoch, logs.reads.record_epoch))
    return max(float(high) - float(low) + 2, float(epoch) + 2) * len(logs.room) < WIDEST


def _span(logs: _Logs) -> tuple[int, int]:
    """The first and the last time in any log."""
    completion = logs.appends.completion
    times = (
        *(logs.appends.invoke, logs.reads.invoke, logs.reads.completion),
        completion[completion != NEVER],
    )
    known = [time for time in times if len(time)]
    return min(int(time.min()) for time in known), max(int(time.max()) for time in known)


def _values_sent_twice(logs: _Logs) -> None:
    """Values that rise along the appends of a log differ; those of other logs are sorted."""
    value, of = logs.appends.value, logs.of_sent
    falls = np.zeros(len(logs.room), np.bool_)
    falls[of[1:][(value[1:] <= value[:-1]) & (of[1:] == of[:-1])]] = True
    rows = np.flatnonzero(falls[of])
    rows = rows[np.lexsort((value[rows], of[rows]))]
    same = (value[rows][1:] == value[rows][:-1]) & (of[rows][1:] == of[rows][:-1])
    logs.deny(of[rows][1:][same])


def _slots_of_records(logs: _Logs) -> tuple[Array, Array]:
    """The slot of each record read, and whether the log has one for it; if not, the log's first one."""
    offset = logs.reads.offset
    inside = (offset >= 0) & (offset < logs.room[logs.of_shown])
    logs.deny(logs.of_shown[~inside])
    return logs.first[logs.of_shown] + np.where(inside, offset, 0), inside


def _bases(logs: _Logs, slot: Array, inside: Array) -> Array:
    """The base offset of each append in the witness; -1 for one that is not in it."""
    appends = logs.appends
    firm = appends.kind == Kind.FIRM
    base = np.where(firm, appends.base, NONE)
    logs.deny(logs.of_append[firm & (base < 0)])
    _keep_inside(logs, base)
    held = np.zeros(len(logs.of_slot), np.bool_)
    held[_placed(logs, base)[1]] = True
    shown = np.flatnonzero(inside & ~held[slot])
    sent = _soft_values(logs, shown)
    logs.deny(logs.of_shown[shown[sent < 0]])
    shown, sent = shown[sent >= 0], sent[sent >= 0]
    append, begins = logs.sender[sent], logs.reads.offset[shown] - logs.nth[sent]
    base[append] = begins
    logs.deny(logs.of_append[append[(base[append] != begins) | (begins < 0)]])
    _keep_inside(logs, base)
    stated = (appends.kind == Kind.SOFT) & (appends.base >= 0)  # by the leader alone: it may be lost
    logs.deny(logs.of_append[stated & (base != appends.base)])
    return base


def _keep_inside(logs: _Logs, base: Array) -> None:
    """Takes out the batches that do not fit into the slots of their log."""
    out = np.flatnonzero(base > logs.room[logs.of_append] - logs.count)
    logs.deny(logs.of_append[out])
    base[out] = NONE


def _placed(logs: _Logs, base: Array) -> tuple[Array, Array]:
    """The sent values that are in the witness, and their slots."""
    begins = base[logs.sender]
    sent = np.flatnonzero(begins >= 0)
    return sent, (logs.first[logs.of_sent] + begins + logs.nth)[sent]


def _soft_values(logs: _Logs, shown: Array) -> Array:
    """For each of these records read, the sent value of an append that may be in the log; -1: none."""
    soft = np.flatnonzero((logs.appends.kind == Kind.SOFT)[logs.sender])
    values = np.concatenate((logs.appends.value[soft], logs.reads.value[shown]))
    distinct, code = np.unique(values, return_inverse=True)
    keys = np.concatenate((logs.of_sent[soft], logs.of_shown[shown])) * len(distinct) + code.reshape(-1)
    order = np.argsort(keys[: len(soft)], kind="stable")
    at = place_of(keys[: len(soft)][order], keys[len(soft) :])
    return np.where(at >= 0, soft[order][at], -1) if len(soft) else at


def _holders(logs: _Logs, base: Array) -> Array:
    """The sent value in each slot; -1: none. Every log has them from its first slot on, without a gap."""
    holder = np.full(len(logs.of_slot), NONE)
    sent, slot = _placed(logs, base)
    holder[slot] = sent
    logs.deny(logs.of_sent[sent[holder[slot] != sent]])
    held = np.flatnonzero(holder >= 0)
    ends = np.bincount(logs.of_slot[held], minlength=len(logs.room))
    beyond = held - logs.first[logs.of_slot[held]] >= ends[logs.of_slot[held]]
    logs.deny(logs.of_slot[held[beyond]])
    return holder


def _records(logs: _Logs, holder: Array, slot: Array) -> None:
    """Each record read is the one in its slot."""
    held = holder[slot]
    wrong = held < 0
    wrong[~wrong] = logs.appends.value[held[~wrong]] != logs.reads.value[~wrong]
    logs.deny(logs.of_shown[wrong])


def _reads(logs: _Logs, holder: Array) -> None:
    """Each read shows what is there from its position on, and a trusted end is behind it, between batches."""
    reads = logs.reads
    some = np.flatnonzero(np.diff(reads.start) > 0)
    head, last = reads.start[some], reads.start[some + 1] - 1
    steps = np.diff(reads.offset) != 1
    steps[head[1:] - 1] = False
    logs.deny(logs.of_shown[1:][steps])
    position = reads.position[some]
    logs.deny(logs.of_read[some[(position >= 0) & (reads.offset[head] != position)]])
    logs.deny(logs.of_read[some[logs.strong[some] & (reads.offset[last] >= reads.end[some])]])
    strong = np.flatnonzero(logs.strong)
    of, end = logs.of_read[strong], reads.end[strong]
    ends = np.bincount(logs.of_slot[holder >= 0], minlength=len(logs.room))
    logs.deny(of[end > ends[of]])
    below = np.flatnonzero(end < ends[of])
    logs.deny(of[below[logs.nth[holder[logs.first[of[below]] + end[below]]] > 0]])


def _epochs(logs: _Logs, base: Array, holder: Array, slot: Array) -> None:
    """All statements about a slot agree in its leader epoch, and none is lower than one before it."""
    epochs = np.full(len(holder), NONE)
    epochs[slot] = logs.reads.record_epoch
    sent, placed = _placed(logs, base)
    own = logs.appends.epoch[logs.sender[sent]]
    said = own >= 0
    epochs[placed[said]] = own[said]
    read = logs.reads.record_epoch
    unlike = (read >= 0) & (epochs[slot] != read)
    logs.deny(logs.of_shown[unlike])
    span = int(epochs.max(initial=0)) + 2
    apart = epochs + 1 + logs.of_slot * span
    logs.deny(logs.of_slot[(epochs >= 0) & (np.maximum.accumulate(apart) > apart)])


def _too_early(logs: _Logs, base: Array, holder: Array, slot: Array) -> Array:
    """The logs with an acknowledgement, read or trusted end before the moment at which the witness had grown
    so far."""
    appends, reads = logs.appends, logs.reads
    low, high = _span(logs)
    apart = np.arange(len(logs.room)) * (high - low + 2)
    moment = apart[logs.of_slot]

    def at(time: Array, of: Array) -> Array:
        return time - low + 1 + apart[of]

    placed = np.flatnonzero(base >= 0)
    of = logs.of_append[placed]
    moment[logs.first[of] + base[placed]] = at(appends.invoke[placed], of)
    strong = np.flatnonzero(logs.strong & (reads.end <= logs.room[logs.of_read]))
    of_end = logs.of_read[strong]
    end = logs.first[of_end] + reads.end[strong]
    np.maximum.at(moment, end, at(reads.invoke[strong], of_end))
    moment = np.maximum.accumulate(moment)

    firm = placed[(appends.kind[placed] == Kind.FIRM) & (appends.completion[placed] != NEVER)]
    of = logs.of_append[firm]
    last = logs.first[of] + base[firm] + logs.count[firm] - 1
    early = [of[at(appends.completion[firm], of) < moment[last]]]
    some = np.flatnonzero(np.diff(reads.start) > 0)
    held = holder[slot[reads.start[some + 1] - 1]]
    some, held = some[held >= 0], held[held >= 0]
    of, append = logs.of_read[some], logs.sender[held]
    last = logs.first[of] + base[append] + logs.count[append] - 1
    early.append(of[at(reads.completion[some], of) < moment[last]])
    past = np.flatnonzero(reads.end[strong] > 0)
    early.append(of_end[past][at(reads.completion[strong[past]], of_end[past]) < moment[end[past] - 1]])
    return np.concatenate(early)
