"""The screen: one compiled pass over all logs that says which of them need a closer look.

Owns the fast path of the batch judge: slots addressed by offset, no sort, no Python per log. A log that passes keeps every rule of
LOG_CHECK; one that does not may still be legal, and `examine` decides it. Every function
below answers True as soon as anything looks wrong.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.columns import NEVER, Array
from fencepost.checkers.log.columns import Appends, Kind, Reads
from fencepost.checkers.log.extras import Extras
from fencepost.checkers.log.kernels import (
    ACK,
    ENDED,
    EPOCH,
    INVOKE,
    SHOWN,
    VALUE,
    Slots,
    batch_torn,
    chain_breaks,
    clear,
    compiled,
    epochs_regress,
    find_hashed,
    find_sorted,
    hash_values,
    holes_unfilled,
    known_size,
)
from fencepost.checkers.log.rules import Profile, Rules
from fencepost.checkers.log.special import Keys, known_beside, licence_of, side_chains_break, unexcused_jumps

FIRM, FAILED = int(Kind.FIRM), int(Kind.FAILED)
CONTENT, STRONG = int(Profile.CONTENT), int(Profile.STRONG)

SPARSEST = 16
"""Offsets per record beyond which addressing by offset would waste memory; such logs are examined by sorting instead."""


class Span(NamedTuple):
    """The offsets that a log touches, [low, low + size); size -1: too sparse."""

    low: int
    size: int


class Senders(NamedTuple):
    """Where sent values are found: by bisection if they increase along the rows, else in a hash table."""

    sorted: bool
    begin: int
    stop: int
    table: Array


def screen(appends: Appends, reads: Reads, rules: Rules, extras: Extras) -> Array:
    """For each group: may it break a rule?"""
    low, size = _spans(appends, reads, rules, extras)
    largest = max(int(size.max(initial=0)), 0)
    slots = Slots(  # NumPy's own allocation, because it asks for huge pages and numba's does not
        slot=np.empty((largest, EPOCH + 1), np.int64),
        joined=np.empty(largest, np.bool_),
        placed=np.full(len(appends.kind), -1, np.int64),
    )
    keys = Keys(next=np.empty(extras.keys, np.int64), unseen=np.empty(extras.keys, np.int64))
    suspect: Array = _screen(appends, reads, rules, extras, slots, keys, low, size)
    return suspect


@compiled
def _spans(appends: Appends, reads: Reads, rules: Rules, extras: Extras) -> tuple[Array, Array]:
    groups = len(rules.profile)
    low, size = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for g in range(groups):
        low[g], size[g] = _span(appends, reads, rules, extras, g)
    return low, size


@compiled
def _screen(
    appends: Appends,
    reads: Reads,
    rules: Rules,
    extras: Extras,
    slots: Slots,
    keys: Keys,
    low: Array,
    size: Array,
) -> Array:
    suspect = np.zeros(len(low), np.bool_)
    for g in range(len(low)):
        span = Span(low[g], size[g])
        suspect[g] = (
            size[g] < 0 or rules.keyed[g] or _suspect(appends, reads, rules, extras, g, slots, keys, span)
        )
    return suspect


@compiled
def _span(appends: Appends, reads: Reads, rules: Rules, extras: Extras, g: int) -> Span:
    low, high, batch = NEVER, -1, 1
    begin, stop = appends.first[g], appends.first[g + 1]
    items = 64 + appends.start[stop] - appends.start[begin]
    for a in range(begin, stop):
        base, count = appends.base[a], appends.start[a + 1] - appends.start[a]
        batch = max(batch, count)
        if base >= 0 and appends.kind[a] != FAILED:
            low, high = min(low, base), max(high, base + count)
    begin, stop = reads.first[g], reads.first[g + 1]
    items += reads.start[stop] - reads.start[begin] + 2 * (stop - begin)
    for r in range(begin, stop):
        if reads.start[r + 1] > reads.start[r]:  # an ordered read lies between its first and its last record
            low = min(low, reads.offset[reads.start[r]])
            high = max(high, reads.offset[reads.start[r + 1] - 1] + 1)
        if reads.end[r] >= 0 and (reads.strong[r] or rules.profile[g] == STRONG):
            low, high = min(low, max(reads.end[r] - 1, 0)), max(high, reads.end[r] + 1)
        if extras.special[g] and (reads.strong[r] or rules.profile[g] == STRONG):
            for claim in (extras.log_start[r], extras.stable[r]):
                if claim >= 0:
                    low, high = min(low, max(claim - 1, 0)), max(high, claim + 1)
    if high < 0:
        return Span(0, 0)
    low = 0 if rules.dense[g] else max(low - batch, 0)
    if high > NEVER - batch or high - low > SPARSEST * items:
        return Span(0, -1)
    return Span(low, high + batch - low)


@compiled
def _suspect(
    appends: Appends, reads: Reads, rules: Rules, extras: Extras, g: int, slots: Slots, keys: Keys, span: Span
) -> bool:
    clear(slots, span.size)
    increasing = _values_increase(appends, g)
    begin, stop = appends.start[appends.first[g]], appends.start[appends.first[g + 1]]
    table = np.empty(0, np.int64)
    if not increasing:
        table, repeated = hash_values(appends.value, begin, stop)
        if repeated and rules.unique[g]:
            return True
    senders = Senders(increasing, begin, stop, table)
    if _place_firm(appends, g, slots, span):
        return True
    if _scan_reads(appends, reads, rules, extras, g, slots, span, senders):
        return True
    if extras.special[g] and side_chains_break(appends, reads, rules, extras, slots, g, span.low, span.size):
        return True
    if epochs_regress(slots, span.size):
        return True
    if _soft_contradicted(appends, g, slots, span) or batch_torn(slots, span.size):
        return True
    if rules.profile[g] != CONTENT and chain_breaks(slots, span.size):
        return True
    if rules.dense[g] and not rules.duplicates[g] and rules.unique[g]:
        known = known_beside(reads, rules, extras, g) if extras.special[g] else 0
        return _holes(appends, g, slots, known, span, rules.profile[g] != CONTENT)
    if extras.special[g]:
        return bool(unexcused_jumps(appends, reads, rules, extras, slots, keys, g, span.low, span.size))
    return _jumps(reads, g, slots, span)


@compiled
def _values_increase(appends: Appends, g: int) -> bool:
    increasing = True
    for i in range(appends.start[appends.first[g]] + 1, appends.start[appends.first[g + 1]]):
        increasing &= appends.value[i] > appends.value[i - 1]
    return increasing


@compiled
def _place(appends: Appends, a: int, base: int, slots: Slots, span: Span) -> bool:
    """Put the batch of append row `a` at offset `base`."""
    begin, stop = appends.start[a], appends.start[a + 1]
    k = base - span.low
    if k < 0 or k > span.size - (stop - begin):
        return True
    for i in range(begin, stop):
        if slots.slot[k, INVOKE] != NEVER and (
            slots.slot[k, VALUE] != appends.value[i] or slots.joined[k] != (i > begin)
        ):
            return True
        slots.slot[k, VALUE] = appends.value[i]
        slots.slot[k, INVOKE] = appends.invoke[a]
        slots.joined[k] = i > begin
        k += 1
    slots.placed[a] = base
    return False


@compiled
def _place_firm(appends: Appends, g: int, slots: Slots, span: Span) -> bool:
    for a in range(appends.first[g], appends.first[g + 1]):
        if appends.kind[a] == FIRM:
            k = appends.base[a] - span.low
            if k >= 0 and k < span.size and slots.slot[k, INVOKE] != NEVER:
                return True
            if _place(appends, a, appends.base[a], slots, span):
                return True
            last = k + appends.start[a + 1] - appends.start[a] - 1
            slots.slot[last, ACK] = appends.completion[a]
            for at in range(k, last + 1):
                slots.slot[at, EPOCH] = appends.epoch[a]
    return False


@compiled
def _scan_reads(
    appends: Appends,
    reads: Reads,
    rules: Rules,
    extras: Extras,
    g: int,
    slots: Slots,
    span: Span,
    senders: Senders,
) -> bool:
    """Steps 1 and 2 for all reads of the log. The inner loop is the hot one: one cache line and one branch per record, and no call
    (passing this many arrays costs more than the rest)."""
    dense, content, all_strong = rules.dense[g], rules.profile[g] == CONTENT, rules.profile[g] == STRONG
    for r in range(reads.first[g], reads.first[g + 1]):
        begin, stop = reads.start[r], reads.start[r + 1]
        bound = NEVER - 1 if content else reads.completion[r]
        position, end = reads.position[r], reads.end[r]
        strong = end >= 0 and (reads.strong[r] or all_strong)
        if stop > begin:
            first, last = reads.offset[begin], reads.offset[stop - 1]
            if (
                first < position
                or first < span.low
                or last - span.low >= span.size
                or (strong and last >= end)
            ):
                return True
            begun = position
            if extras.special[g]:
                begun = max(begun, licence_of(reads, rules, extras, g, r))
            if dense and position >= 0 and first > begun:
                return True
            if last - first != stop - 1 - begin:
                if dense or _scan_gappy(appends, reads, rules, g, slots, span, senders, r):
                    return True
            else:
                for n in range(stop - begin):
                    i, k = begin + n, first - span.low + n
                    if (
                        (reads.offset[i] != first + n)
                        | (slots.slot[k, VALUE] != reads.value[i])
                        | (slots.slot[k, INVOKE] > bound)
                    ) and _met(appends, reads, rules, g, slots, span, senders, i, first + n, bound):
                        return True
                    if slots.slot[k, EPOCH] != reads.record_epoch[i]:
                        if slots.slot[k, EPOCH] >= 0 and reads.record_epoch[i] >= 0:
                            return True
                        slots.slot[k, EPOCH] = max(slots.slot[k, EPOCH], reads.record_epoch[i])
            k = last - span.low
            slots.slot[k, SHOWN] = min(slots.slot[k, SHOWN], reads.completion[r])
        if strong:
            k = end - span.low
            if k < 0 or k >= span.size:
                return True
            slots.slot[k, ENDED] = max(slots.slot[k, ENDED], reads.invoke[r])
            if k > 0:
                slots.slot[k - 1, SHOWN] = min(slots.slot[k - 1, SHOWN], reads.completion[r])
    return False


@compiled
def _scan_gappy(
    appends: Appends, reads: Reads, rules: Rules, g: int, slots: Slots, span: Span, senders: Senders, r: int
) -> bool:
    """The records of a read whose offsets have gaps."""
    bound = reads.completion[r] if rules.profile[g] != CONTENT else NEVER - 1
    previous = span.low - 1
    for i in range(reads.start[r], reads.start[r + 1]):
        offset = reads.offset[i]
        if offset <= previous or offset - span.low >= span.size:
            return True
        k, epoch = offset - span.low, reads.record_epoch[i]
        unknown = slots.slot[k, VALUE] != reads.value[i] or slots.slot[k, INVOKE] > bound
        if unknown and _met(appends, reads, rules, g, slots, span, senders, i, offset, bound):
            return True
        if slots.slot[k, EPOCH] >= 0 and epoch >= 0 and slots.slot[k, EPOCH] != epoch:
            return True
        slots.slot[k, EPOCH] = max(slots.slot[k, EPOCH], epoch)
        previous = offset
    return False


@compiled
def _met(
    appends: Appends,
    reads: Reads,
    rules: Rules,
    g: int,
    slots: Slots,
    span: Span,
    senders: Senders,
    i: int,
    offset: int,
    bound: int,
) -> bool:
    """Record `i`, expected at `offset`, is not what is known there: an unknown append that was written, a retry, or something wrong."""
    value = reads.value[i]
    if reads.offset[i] != offset or slots.slot[offset - span.low, INVOKE] != NEVER:
        return True
    if senders.sorted:
        at = find_sorted(appends.value, senders.begin, senders.stop, value)
    else:
        at = find_hashed(senders.table, appends.value, value)
    if at < 0:
        return True
    a = (
        np.searchsorted(appends.start[appends.first[g] : appends.first[g + 1] + 1], at, side="right")
        - 1
        + appends.first[g]
    )
    if appends.kind[a] == FAILED or appends.invoke[a] > bound:
        return True
    if not rules.unique[g]:  # which append it was cannot be told: one record, no batch
        slots.slot[offset - span.low, VALUE] = value
        slots.slot[offset - span.low, INVOKE] = appends.invoke[a]
        return False
    base = offset - (at - appends.start[a])
    if slots.placed[a] >= 0 and slots.placed[a] != base and not rules.duplicates[g]:
        return True
    return bool(_place(appends, a, base, slots, span))


@compiled
def _soft_contradicted(appends: Appends, g: int, slots: Slots, span: Span) -> bool:
    """An append that is not firm but was told (epoch, offset): does anything else stand under that key?"""
    claimed = np.empty(0, np.bool_)
    for a in range(appends.first[g], appends.first[g + 1]):
        if appends.kind[a] in (FIRM, FAILED) or appends.base[a] < 0 or appends.epoch[a] < 0:
            continue
        if not len(claimed):
            claimed = np.zeros(span.size, np.bool_)
        k = appends.base[a] - span.low
        if k < 0 or k > span.size - (appends.start[a + 1] - appends.start[a]):
            return True
        moved = slots.placed[a] - appends.base[a] if slots.placed[a] >= 0 else 0
        for i in range(appends.start[a], appends.start[a + 1]):
            occupied = slots.slot[k, INVOKE] != NEVER and slots.slot[k, VALUE] != appends.value[i]
            if claimed[k] or (occupied and slots.slot[k, EPOCH] == appends.epoch[a]):
                return True
            if moved != 0 and slots.slot[k + moved, EPOCH] == appends.epoch[a]:
                return True
            claimed[k] = True
            k += 1
    return False


@compiled
def _holes(appends: Appends, g: int, slots: Slots, known: int, span: Span, timed: bool) -> bool:
    """Step 5. Batches among the candidates make it bin packing, which is for `examine`."""
    size = max(known_size(slots, span.size), known - span.low)
    holes = 0
    for k in range(size):
        holes += slots.slot[k, INVOKE] == NEVER
    if holes == 0:
        return False
    candidates = np.empty(appends.first[g + 1] - appends.first[g], np.int64)
    count = 0
    for a in range(appends.first[g], appends.first[g + 1]):
        if appends.kind[a] not in (FIRM, FAILED) and slots.placed[a] < 0:
            if appends.start[a + 1] - appends.start[a] > 1:
                return True
            candidates[count] = appends.invoke[a]
            count += 1
    return count < holes or bool(holes_unfilled(slots, size, np.sort(candidates[:count]), timed))


@compiled
def _jumps(reads: Reads, g: int, slots: Slots, span: Span) -> bool:
    """Step 1 for sparse offsets: does a read jump over an offset that holds a record?"""
    occupied = np.empty(0, np.int64)
    for r in range(reads.first[g], reads.first[g + 1]):
        begin, stop = reads.start[r], reads.start[r + 1]
        if stop == begin:
            continue
        begin_at = reads.position[r] if reads.position[r] >= 0 else reads.offset[begin]
        if reads.offset[stop - 1] - begin_at == stop - 1 - begin:
            continue
        if not len(occupied):
            occupied = np.zeros(span.size + 1, np.int64)
            for k in range(span.size):
                occupied[k + 1] = occupied[k] + (slots.slot[k, INVOKE] != NEVER)
        low = max(begin_at - span.low, 0)
        if occupied[reads.offset[stop - 1] - span.low + 1] - occupied[low] != stop - begin:
            return True
    return False
