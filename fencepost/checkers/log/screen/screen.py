"""The screen: one compiled pass over all logs that finds those that need a closer look.

Owns the fast path of the batch form: slots indexed by offset, no sort, no Python code per log. A log that
passes keeps every rule of docs/spec/log-check.md. A log that does not pass may still be legal; `examine`
decides. Every function below returns True as soon as anything looks wrong.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.extras import Extras
from fencepost.checkers.log.rules import Profile, Rules
from fencepost.checkers.log.screen.kernels import (
    ACK,
    EPOCH,
    INVOKE,
    VALUE,
    Slots,
    batch_torn,
    chain_breaks,
    clear,
    epochs_regress,
    hash_values,
    holes_unfilled,
    known_size,
)
from fencepost.checkers.log.screen.reads import Senders, place, scan_reads
from fencepost.checkers.log.screen.spans import Span, spans_of
from fencepost.checkers.log.screen.special import Keys, known_beside, side_chains_break, unexcused_jumps
from fencepost.checkers.operation_columns import NEVER, Array

FIRM, FAILED = int(Kind.FIRM), int(Kind.FAILED)
CONTENT, STRONG = int(Profile.CONTENT), int(Profile.STRONG)


def screen(appends: Appends, reads: Reads, rules: Rules, extras: Extras) -> Array:
    """Screen all groups.

    Args:
        appends: the appends, by group.
        reads: the reads, by group.
        rules: the rules of each group.
        extras: the columns for special logs.

    Returns:
        for each group whether it may break a rule.
    """
    low, size = spans_of(appends, reads, rules, extras)
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
    if scan_reads(appends, reads, rules, extras, g, slots, span, senders):
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
def _place_firm(appends: Appends, g: int, slots: Slots, span: Span) -> bool:
    for a in range(appends.first[g], appends.first[g + 1]):
        if appends.kind[a] == FIRM:
            k = appends.base[a] - span.low
            if k >= 0 and k < span.size and slots.slot[k, INVOKE] != NEVER:
                return True
            if place(appends, a, appends.base[a], slots, span):
                return True
            last = k + appends.start[a + 1] - appends.start[a] - 1
            slots.slot[last, ACK] = appends.completion[a]
            for at in range(k, last + 1):
                slots.slot[at, EPOCH] = appends.epoch[a]
    return False


@compiled
def _soft_contradicted(appends: Appends, g: int, slots: Slots, span: Span) -> bool:
    """Whether an append that is not firm was acknowledged with an (epoch, offset) that another record has."""
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
    """Step 5. With batches among the candidates it is bin packing, which `examine` does."""
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
    """Step 1 for sparse offsets: whether a read jumps over an offset that holds a record."""
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
