"""The screen's pass over the reads of one log: can every read record be where it was read?

Owns the hot loop over records, and the placing of batches that only a read shows. Must not know the later
checks of the slots. Every function below returns True as soon as anything looks wrong.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.extras import Extras
from fencepost.checkers.log.rules import Profile, Rules
from fencepost.checkers.log.screen.kernels import (
    ENDED,
    EPOCH,
    INVOKE,
    SHOWN,
    VALUE,
    Slots,
    find_hashed,
    find_sorted,
)
from fencepost.checkers.log.screen.spans import Span
from fencepost.checkers.log.screen.special import licence_of
from fencepost.checkers.operation_columns import NEVER, Array

FAILED = int(Kind.FAILED)
CONTENT, STRONG = int(Profile.CONTENT), int(Profile.STRONG)


class Senders(NamedTuple):
    """The look-up of sent values: by bisection if they increase along the rows, otherwise in a hash table."""

    sorted: bool
    begin: int
    stop: int
    table: Array


@compiled
def place(appends: Appends, a: int, base: int, slots: Slots, span: Span) -> bool:
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
def scan_reads(
    appends: Appends,
    reads: Reads,
    rules: Rules,
    extras: Extras,
    g: int,
    slots: Slots,
    span: Span,
    senders: Senders,
) -> bool:
    """Steps 1 and 2 for all reads of the log. The inner loop is the hot one: one cache line and one branch
    per record, and no call, because passing this many arrays costs more than the rest."""
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
    """The records of a read with gaps between its offsets."""
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
    """Record `i`, expected at `offset`, differs from what is known there: an unknown append that was written,
    a retry, or an error."""
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
    if not rules.unique[g]:  # the append is not known: one record, no batch
        slots.slot[offset - span.low, VALUE] = value
        slots.slot[offset - span.low, INVOKE] = appends.invoke[a]
        return False
    base = offset - (at - appends.start[a])
    if slots.placed[a] >= 0 and slots.placed[a] != base and not rules.duplicates[g]:
        return True
    return bool(place(appends, a, base, slots, span))
