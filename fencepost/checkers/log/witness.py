"""Which logs are legal because one log and one course of time, made from them, explain every statement.

Owns how that witness is made, and how each statement is compared with it, in one pass over the columns of
many logs. Must not know the rules: a history is legal if some log and some moments at which it grew explain
it (docs/spec/log-check.md). So a witness is a proof, whatever the rules are. No witness proves nothing: the
rules decide about such a log.

The witness of a log:

- The log. Each firm append is at its offset. A batch of unknown outcome is where a read showed a record of
  it. One that its leader acknowledged is where it said, or was replaced there in a higher leader epoch. The
  offsets that no statement explains hold the unknown batches that nobody saw, in the order of invocations.
- The moments. The log grew to include slot k at the latest invocation, so far along the log, of an append or
  of a trusted read that ended there. The log start and the last stable offset passed k then, or at the
  latest invocation of a trusted read that claimed them at or below k; the last stable offset not before the
  transactions of the records up to k could end.

Then each statement is looked up. A read shows exactly what is there from its position on, except what the
claims let be gone: below its log start, older records of a key in a compacted topic once a newer one stands,
records of aborted transactions. A trusted end is between two batches, not above the end. Leader epochs do not
decrease along the log. No acknowledgement, read or claim is before the moment of its last slot. This is
stricter than any claim asks: allowed loss, duplicates and uncertain clocks only excuse what differs from the
witness.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.compiled import compiled, compiled_within
from fencepost.checkers.log.appends_and_reads import Appends, Kind, LogColumns, Reads
from fencepost.checkers.log.extras import Extras, Fate
from fencepost.checkers.log.log_rules import Profile, Rules
from fencepost.checkers.log.log_transactions import LONG_AGO
from fencepost.checkers.operation_columns import NEVER, NONE, Array
from fencepost.checkers.statements import READ_COMMITTED, READ_UNCOMMITTED

FIRM, SOFT = int(Kind.FIRM), int(Kind.SOFT)
FAILED = int(Kind.FAILED)
OPEN, COMMITTED, ABORTED = int(Fate.OPEN), int(Fate.COMMITTED), int(Fate.ABORTED)
STRONG, CONTENT = int(Profile.STRONG), int(Profile.CONTENT)
MIXED = 0x9E3779B97F4A7C15 - (1 << 64)
"""2^64 by the golden ratio, as a signed number: neighbours get places far apart (Knuth, TAOCP 6.4)."""
ROOMY = 8
"""A log whose offsets span more than this many times its statements gets no witness. Each offset has a place
in memory."""
TRIES = 64
"""Batches that are tried for one hole."""
PASSED = 64
"""Offsets that reads may pass over, by offset and record of the log. Beyond that the rules are quicker."""


class Space(NamedTuple):
    """Working memory for the widest log, used by one after the other."""

    # By offset: the append whose record is there (-1: none), the leader epoch of that record (-1: not known),
    # the moments of the end, of the last stable offset and of the log start, and that from which the record
    # may be gone.
    holder: Array
    epoch: Array
    grown: Array
    stable: Array
    started: Array
    gone: Array
    # By value: a hash table of flat positions among the sent values.
    table: Array
    # By append: its base offset in the witness (-1: it is not there).
    base: Array
    # By key: the moment at which the next record of it stood.
    newest: Array


def explained(columns: LogColumns, rules: Rules) -> Array:
    """Which logs have a witness.

    Args:
        columns: the logs.
        rules: of each of them.

    Returns:
        a mask over the logs; nothing is said of a log in a trace that contradicts itself.
    """
    appends, reads, extras = columns.appends, columns.reads, columns.extras
    found = np.zeros(columns.groups, np.bool_)
    if columns.groups:
        low, high = _spans(appends, reads, extras, rules.dense)
        _explain(appends, reads, extras, rules, low, high, _space(columns, high - low), found)
    return found


def _space(columns: LogColumns, wide: Array) -> Space:
    appends = columns.appends
    sent = np.diff(appends.start[appends.first])
    slots = int(wide.max()) + 2
    return Space(
        holder=np.empty(slots, np.int64),
        epoch=np.empty(slots, np.int64),
        grown=np.empty(slots, np.int64),
        stable=np.empty(slots, np.int64),
        started=np.empty(slots, np.int64),
        gone=np.empty(slots, np.int64),
        table=np.empty(1 << int(2 * int(sent.max()) + 1).bit_length(), np.int64),
        base=np.empty(int(np.diff(appends.first).max()), np.int64),
        newest=np.full(columns.extras.keys, NEVER),
    )


@compiled
def _spans(appends: Appends, reads: Reads, extras: Extras, dense: Array) -> tuple[Array, Array]:
    """The lowest and the highest offset about which each log says anything; a width of -1 if they are too far
    apart."""
    groups = len(dense)
    lows, highs = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for g in range(groups):
        low, high, rows = NEVER, 0, 16
        for a in range(appends.first[g], appends.first[g + 1]):
            count = appends.start[a + 1] - appends.start[a]
            rows += count
            if appends.base[a] >= 0:
                low, high = min(low, appends.base[a]), max(high, appends.base[a] + count)
        for r in range(reads.first[g], reads.first[g + 1]):
            rows += 1 + reads.start[r + 1] - reads.start[r]
            if reads.end[r] >= 0:
                low, high = min(low, reads.end[r]), max(high, reads.end[r])
            if extras.special[g] and extras.log_start[r] >= 0:
                low, high = min(low, extras.log_start[r]), max(high, extras.log_start[r])
            if extras.special[g] and extras.stable[r] >= 0:
                low, high = min(low, extras.stable[r]), max(high, extras.stable[r])
            for i in range(reads.start[r], reads.start[r + 1]):
                low, high = min(low, reads.offset[i]), max(high, reads.offset[i] + 1)
        low = 0 if dense[g] or low > high else max(low, 0)
        wide = high < NEVER // 2 and high - low <= ROOMY * rows
        lows[g], highs[g] = low, (high if wide else low - 1)
    return lows, highs


@compiled
def _explain(
    appends: Appends,
    reads: Reads,
    extras: Extras,
    rules: Rules,
    lows: Array,
    highs: Array,
    space: Space,
    found: Array,
) -> None:
    """found: which logs have a witness. Written."""
    for g in range(len(found)):
        low, high = lows[g], highs[g]
        special, timed = extras.special[g], rules.profile[g] != CONTENT
        if high < low or not rules.unique[g] or (special and rules.profile[g] == STRONG):
            continue
        space.holder[: high - low + 1] = -1
        space.epoch[: high - low + 1] = -1
        all_strong = rules.profile[g] == STRONG
        if not (
            _sent_once(appends, extras, g, space)
            and _firm(appends, g, low, high, space)
            and _soft(appends, reads, extras, g, low, high, space)
            and _epochs_agree(appends, reads, g, low, high, space)
            and _by_leaders(appends, g, low, high, space)
            and (not rules.dense[g] or _filled(appends, reads, extras, all_strong, g, low, high, space))
            and _epochs_rise(high - low, space)
        ):
            continue
        _grow(appends, reads, extras, all_strong, g, low, high, space)
        if extras.compacted[g]:
            _replace(appends, extras, g, timed, high - low, space)
        found[g] = (not timed or _answered_in_time(appends, g, low, space)) and _reads_fit(
            appends, reads, extras, rules, g, low, high, space
        )


@compiled_within
def _place_of(table: Array, mask: int, values: Array, value: int) -> int:
    """The place of a value in the table: where it is, or the free one where it belongs."""
    at = ((value * MIXED) >> 20) & mask
    while table[at] >= 0 and values[table[at]] != value:
        at = (at + 1) & mask
    return at


@compiled_within
def _mask_of(count: int) -> int:
    """The mask of a hash table for so many values, which then is at most half full."""
    size = 1
    while size <= 2 * count:
        size *= 2
    return size - 1


@compiled_within
def _standing(appends: Appends, extras: Extras, g: int, a: int) -> bool:
    """Whether records of this append may be in the log."""
    return bool(appends.kind[a] != FAILED or (extras.special[g] and extras.fate[a] == ABORTED))


@compiled_within
def _sent_once(appends: Appends, extras: Extras, g: int, space: Space) -> bool:
    """Whether no value was sent twice. Values that rise along the appends differ."""
    first, after = appends.first[g], appends.first[g + 1]
    begin, end = appends.start[first], appends.start[after]
    rises = True
    for i in range(begin + 1, end):
        if appends.value[i] <= appends.value[i - 1]:
            rises = False
            break
    if rises:
        return True
    mask = _mask_of(end - begin)
    space.table[: mask + 1] = -1
    for a in range(first, after):
        if _standing(appends, extras, g, a):
            for i in range(appends.start[a], appends.start[a + 1]):
                at = _place_of(space.table, mask, appends.value, appends.value[i])
                if space.table[at] >= 0:
                    return False
                space.table[at] = i
    return True


@compiled_within
def _put(appends: Appends, first: int, a: int, base: int, low: int, high: int, space: Space) -> bool:
    """Put a batch at this offset; whether that was free."""
    count = appends.start[a + 1] - appends.start[a]
    if base < low or base + count > high:
        return False
    for slot in range(base - low, base - low + count):
        if space.holder[slot] >= 0:
            return False
        space.holder[slot] = a
    space.base[a - first] = base
    return True


@compiled_within
def _firm(appends: Appends, g: int, low: int, high: int, space: Space) -> bool:
    """Put the batches where they were acknowledged for good."""
    first = appends.first[g]
    for a in range(first, appends.first[g + 1]):
        space.base[a - first] = NONE
        if appends.kind[a] == FIRM and not _put(appends, first, a, appends.base[a], low, high, space):
            return False
    return True


@compiled_within
def _soft(appends: Appends, reads: Reads, extras: Extras, g: int, low: int, high: int, space: Space) -> bool:
    """Put the other batches where reads showed them. Their values come into a table only if some read shows
    an offset without a firm record."""
    first, after = appends.first[g], appends.first[g + 1]
    mask = -1
    for i in range(reads.start[reads.first[g]], reads.start[reads.first[g + 1]]):
        offset = reads.offset[i]
        if offset >= high:
            return False  # the last one of 64 bits: after it no log ends
        if offset < low or space.holder[offset - low] >= 0:
            continue
        if mask < 0:
            mask = _mask_of(appends.start[after] - appends.start[first])
            space.table[: mask + 1] = -1
            for a in range(first, after):
                if appends.kind[a] != FIRM and _standing(appends, extras, g, a):
                    for j in range(appends.start[a], appends.start[a + 1]):
                        space.table[_place_of(space.table, mask, appends.value, appends.value[j])] = j
        sent = space.table[_place_of(space.table, mask, appends.value, reads.value[i])]
        if sent < 0:
            return False
        a = _append_of(appends.start, first, after, sent)
        base = offset - (sent - appends.start[a])
        if appends.base[a] >= 0 and appends.base[a] != base:
            return False
        if space.base[a - first] >= 0 or not _put(appends, first, a, base, low, high, space):
            return False
    return True


@compiled_within
def _append_of(start: Array, first: int, after: int, sent: int) -> int:
    """The append that sent a value, by bisection."""
    while after - first > 1:
        middle = (first + after) // 2
        if start[middle] <= sent:
            first = middle
        else:
            after = middle
    return first


@compiled_within
def _epochs_agree(appends: Appends, reads: Reads, g: int, low: int, high: int, space: Space) -> bool:
    """Note the leader epoch of each record; whether all statements about one agree."""
    first = appends.first[g]
    for a in range(first, appends.first[g + 1]):
        base = space.base[a - first]
        if base >= 0 and appends.epoch[a] >= 0:
            for slot in range(base - low, base - low + appends.start[a + 1] - appends.start[a]):
                space.epoch[slot] = appends.epoch[a]
    for i in range(reads.start[reads.first[g]], reads.start[reads.first[g + 1]]):
        epoch, slot = reads.record_epoch[i], reads.offset[i] - low
        if epoch >= 0 and slot >= 0:
            if space.epoch[slot] >= 0 and space.epoch[slot] != epoch:
                return False
            space.epoch[slot] = epoch
    return True


@compiled_within
def _by_leaders(appends: Appends, g: int, low: int, high: int, space: Space) -> bool:
    """Put the batches that only their leader acknowledged and no read showed where they were; but if others
    are there, all of higher epochs, they were cut off. `gone` has the epochs of those that were."""
    first, cut = appends.first[g], False
    for a in range(first, appends.first[g + 1]):
        base, epoch = appends.base[a], appends.epoch[a]
        if appends.kind[a] != SOFT or base < 0 or epoch < 0 or space.base[a - first] >= 0:
            continue
        begin, taken = base - low, 0
        end = begin + appends.start[a + 1] - appends.start[a]
        for slot in range(begin, end):
            taken += space.holder[slot] >= 0
        if not taken:
            _put(appends, first, a, base, low, high, space)
            for slot in range(begin, end):
                space.epoch[slot] = epoch
            continue
        if not cut:
            space.gone[: high - low + 1] = NONE
            cut = True
        for slot in range(begin, end):
            if (space.holder[slot] >= 0 and space.epoch[slot] <= epoch) or space.gone[slot] >= epoch:
                return False
            space.gone[slot] = epoch
    return True


@compiled_within
def _filled(
    appends: Appends,
    reads: Reads,
    extras: Extras,
    all_strong: bool,
    g: int,
    low: int,
    high: int,
    space: Space,
) -> bool:
    """Fill the offsets below the known end with the unknown batches that nobody saw, in the order of appends,
    which is that of their invocations."""
    first, after = appends.first[g], appends.first[g + 1]
    known = 0
    for slot in range(high - low):
        if space.holder[slot] >= 0:
            known = slot + 1
    for r in range(reads.first[g], reads.first[g + 1]):
        if all_strong or reads.strong[r]:
            known = max(known, reads.end[r] - low)
            if extras.special[g]:
                known = max(known, extras.log_start[r] - low, extras.stable[r] - low)
    slot, candidate = 0, first
    while slot < known:
        if space.holder[slot] >= 0:
            slot += 1
            continue
        hole = slot
        while hole < known and space.holder[hole] < 0:
            hole += 1
        while candidate < after and not _loose(appends, first, candidate, space):
            candidate += 1
        placed = 0
        for a in range(candidate, min(candidate + TRIES, after)):
            count = appends.start[a + 1] - appends.start[a]
            if _loose(appends, first, a, space) and count <= hole - slot:
                _put(appends, first, a, low + slot, low, high, space)
                placed = count
                break
        if not placed:
            return False
        slot += placed
    return True


@compiled_within
def _loose(appends: Appends, first: int, a: int, space: Space) -> bool:
    """Whether nothing says where this batch is, if it is anywhere."""
    unsaid = appends.base[a] < 0 or appends.epoch[a] < 0
    return bool(appends.kind[a] == SOFT and unsaid and space.base[a - first] < 0)


@compiled_within
def _epochs_rise(slots: int, space: Space) -> bool:
    """Whether no leader epoch is lower than one before it."""
    highest = -1
    for slot in range(slots):
        if space.epoch[slot] >= 0:
            if space.epoch[slot] < highest:
                return False
            highest = space.epoch[slot]
    return True


@compiled_within
def _grow(
    appends: Appends,
    reads: Reads,
    extras: Extras,
    all_strong: bool,
    g: int,
    low: int,
    high: int,
    space: Space,
) -> None:
    """The moments at which the end, the last stable offset and the log start passed each offset."""
    first, special = appends.first[g], extras.special[g]
    slots = high - low + 1
    space.grown[:slots] = LONG_AGO
    if special:
        space.stable[:slots] = LONG_AGO
        space.started[:slots] = LONG_AGO
    for a in range(first, appends.first[g + 1]):
        slot = space.base[a - first] - low
        if space.base[a - first] >= 0:
            space.grown[slot] = max(space.grown[slot], appends.invoke[a])
            if special and extras.fate[a] == COMMITTED:
                space.stable[slot] = max(space.stable[slot], extras.ended[a])
    for r in range(reads.first[g], reads.first[g + 1]):
        if all_strong or reads.strong[r]:
            began = reads.invoke[r]
            if reads.end[r] >= 0:
                space.grown[reads.end[r] - low] = max(space.grown[reads.end[r] - low], began)
            if special and extras.stable[r] >= 0:
                space.stable[extras.stable[r] - low] = max(space.stable[extras.stable[r] - low], began)
            if special and extras.log_start[r] >= 0:
                space.started[extras.log_start[r] - low] = max(
                    space.started[extras.log_start[r] - low], began
                )
    latest = LONG_AGO
    for slot in range(slots):
        latest = max(latest, space.grown[slot])
        space.grown[slot] = latest
    if special:
        stable = started = LONG_AGO
        for slot in range(slots):
            stable = max(stable, space.grown[slot], space.stable[slot])
            started = max(started, space.grown[slot], space.started[slot])
            space.stable[slot], space.started[slot] = stable, started


@compiled_within
def _replace(appends: Appends, extras: Extras, g: int, timed: bool, slots: int, space: Space) -> None:
    """The moment from which compaction may have removed each record: at once for tombstones and for records
    of aborted transactions, else when the next record of its key stood."""
    for slot in range(slots - 1, -1, -1):
        space.gone[slot] = NEVER
        a = space.holder[slot]
        if a < 0:
            continue
        key, fate = extras.key[a], extras.fate[a]
        aborted = fate in (ABORTED, OPEN)
        if key >= 0:
            space.gone[slot] = space.newest[key]
            if not aborted:
                space.newest[key] = space.grown[slot] if timed else LONG_AGO
        if aborted or extras.tombstone[a]:
            space.gone[slot] = LONG_AGO
    for slot in range(slots):
        a = space.holder[slot]
        if a >= 0 and extras.key[a] >= 0:
            space.newest[extras.key[a]] = NEVER


@compiled_within
def _answered_in_time(appends: Appends, g: int, low: int, space: Space) -> bool:
    """Whether no append was acknowledged for good before the log had grown so far."""
    first = appends.first[g]
    for a in range(first, appends.first[g + 1]):
        if appends.kind[a] == FIRM and appends.completion[a] != NEVER:
            last = space.base[a - first] + appends.start[a + 1] - appends.start[a] - 1
            if appends.completion[a] < space.grown[last - low]:
                return False
    return True


@compiled_within
def _reads_fit(
    appends: Appends, reads: Reads, extras: Extras, rules: Rules, g: int, low: int, high: int, space: Space
) -> bool:
    """Whether the witness explains every read."""
    first, special, timed = appends.first[g], extras.special[g], rules.profile[g] != CONTENT
    steps = PASSED * (high - low + reads.start[reads.first[g + 1]] - reads.start[reads.first[g]])
    for r in range(reads.first[g], reads.first[g + 1]):
        trusted = reads.strong[r] or rules.profile[g] == STRONG
        end, done = reads.end[r] if trusted else NONE, reads.completion[r] if timed else NEVER - 1
        log_start = extras.log_start[r] if special and trusted else NONE
        stable = extras.stable[r] if special and trusted else NONE
        committed = special and extras.isolation[r] == READ_COMMITTED
        if special and reads.end[r] >= 0 and max(extras.log_start[r], extras.stable[r]) > reads.end[r]:
            return False
        if end > low:
            if done < space.grown[end - 1 - low]:
                return False
            held = space.holder[end - low]
            if held >= 0 and space.base[held - first] < end:
                return False  # inside a batch
        if stable > low and done < space.stable[stable - 1 - low]:
            return False
        if log_start > low and done < space.started[log_start - 1 - low]:
            return False
        begin, after = reads.start[r], reads.start[r + 1]
        if begin == after:
            continue
        position = reads.position[r]
        at = max(position, log_start)
        if reads.offset[begin] < at:
            return False
        if position < 0:
            at = reads.offset[begin]
        elif log_start < 0:
            at = max(at, extras.licence[g])
        for i in range(begin, after):
            offset = reads.offset[i]
            if i > begin:
                if offset < at:
                    return False
                at = reads.offset[i - 1] + 1
            if at < offset:
                steps -= offset - at
                if steps < 0:
                    return False
                for slot in range(max(at - low, 0), offset - low):
                    a = space.holder[slot]
                    if a >= 0 and not (
                        (extras.compacted[g] and space.gone[slot] <= done)
                        or (committed and extras.fate[a] in (ABORTED, OPEN))
                    ):
                        return False
            a = space.holder[offset - low] if offset >= low else NONE
            if a < 0 or appends.value[appends.start[a] + offset - space.base[a - first]] != reads.value[i]:
                return False
            if special and not _visible(appends.kind[a], extras.fate[a], extras.isolation[r]):
                return False
            at = offset + 1
        if (end >= 0 and at > end) or (committed and 0 <= stable < at):
            return False
        held = space.holder[at - 1 - low]
        last = space.base[held - first] + appends.start[held + 1] - appends.start[held] - 1
        if done < space.grown[last - low] or (committed and done < space.stable[at - 1 - low]):
            return False
    return True


@compiled_within
def _visible(kind: int, fate: int, isolation: int) -> bool:
    """Whether a reader may be shown a record of an append."""
    if kind == FAILED:
        return isolation == READ_UNCOMMITTED
    return isolation != READ_COMMITTED or fate not in (ABORTED, OPEN)
