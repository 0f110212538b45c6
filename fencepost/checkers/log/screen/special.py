"""The screen's kernels for special logs: log starts and last stable offsets, which have their own chains of
bounds, and excused skips.

Owns the passes that ordinary logs never run. Like `kernels`, they only answer whether a log *may* break a
rule. Transactions with an unknown end and clock errors excuse nothing here, though they may in the closer
look.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.extras import LONG_AGO, Extras, Fate
from fencepost.checkers.log.rules import Profile, Rules
from fencepost.checkers.log.screen.kernels import ENDED, INVOKE, SHOWN, Slots
from fencepost.checkers.operation_columns import NEVER, Array
from fencepost.checkers.statements import READ_COMMITTED

FIRM, FAILED = int(Kind.FIRM), int(Kind.FAILED)
CONTENT, STRONG = int(Profile.CONTENT), int(Profile.STRONG)
COMMITTED, ABORTED = int(Fate.COMMITTED), int(Fate.ABORTED)
ISOLATED = READ_COMMITTED

BLOCK = 64
"""The latest excuse is precomputed for blocks of this many offsets."""


class Keys(NamedTuple):
    """Scratch by key: the next offset (as a slot) with a record of it, and the earliest invocation of an
    append that no read showed."""

    next: Array
    unseen: Array


@compiled
def licence_of(reads: Reads, rules: Rules, extras: Extras, g: int, r: int) -> int:
    """The offset below which retention explains what read `r` did not return."""
    if extras.log_start[r] >= 0 and (reads.strong[r] or rules.profile[g] == STRONG):
        return int(extras.log_start[r])
    return int(extras.licence[g])


@compiled
def known_beside(reads: Reads, rules: Rules, extras: Extras, g: int) -> int:
    """The highest trusted log start or last stable offset: the log reaches at least that far.

    Args:
        reads: the reads, by group.
        rules: the rules of each group.
        extras: the columns for special logs.
        g: the group.

    Returns:
        the offset; 0 if there is none.
    """
    known = 0
    for r in range(reads.first[g], reads.first[g + 1]):
        if reads.strong[r] or rules.profile[g] == STRONG:
            known = max(known, extras.log_start[r], extras.stable[r])
    return known


@compiled
def side_chains_break(
    appends: Appends, reads: Reads, rules: Rules, extras: Extras, slots: Slots, g: int, low: int, size: int
) -> bool:
    """Whether claims contradict each other, or go back. Adds what they show about the log end to `slots`."""
    start_low, start_high = np.full(size, LONG_AGO), np.full(size, NEVER)
    stable_low, stable_high = np.full(size, LONG_AGO), np.full(size, NEVER)
    strong = rules.profile[g] == STRONG
    for r in range(reads.first[g], reads.first[g + 1]):
        start, stable, end = extras.log_start[r], extras.stable[r], reads.end[r]
        if end >= 0 and (start > end or stable > end):
            return True
        first, last = -1, -1
        if reads.start[r + 1] > reads.start[r]:
            first, last = reads.offset[reads.start[r]], reads.offset[reads.start[r + 1] - 1]
            if extras.isolation[r] == ISOLATED:
                stable_high[last - low] = min(stable_high[last - low], reads.completion[r])
            if strong:
                start_low[first - low] = max(start_low[first - low], reads.invoke[r])
        if not (reads.strong[r] or strong):
            continue
        if first >= 0 and (first < start or (extras.isolation[r] == ISOLATED and last >= stable >= 0)):
            return True
        if _charge(reads, slots, start_low, start_high, r, start, low):
            return True
        if _charge(reads, slots, stable_low, stable_high, r, stable, low):
            return True
    for a in range(appends.first[g], appends.first[g + 1]):
        if extras.fate[a] == COMMITTED and slots.placed[a] >= 0:
            k = slots.placed[a] - low
            stable_low[k] = max(stable_low[k], extras.ended[a])
    if rules.profile[g] == CONTENT:
        return False
    return bool(_falls(start_low, start_high) or _falls(stable_low, stable_high))


@compiled
def _charge(reads: Reads, slots: Slots, lower: Array, upper: Array, r: int, claim: int, low: int) -> bool:
    """Add a trusted claim to its chain; it also shows that the log reached this far. True: it is outside the
    slots."""
    if claim < 0:
        return False
    k = claim - low
    if k < 0 or k >= len(lower):
        return True
    lower[k] = max(lower[k], reads.invoke[r])
    if k > 0:
        upper[k - 1] = min(upper[k - 1], reads.completion[r])
        slots.slot[k - 1, SHOWN] = min(slots.slot[k - 1, SHOWN], reads.completion[r])
    return False


@compiled
def _falls(lower: Array, upper: Array) -> bool:
    """Whether a prefix maximum of lower bounds exceeds an upper bound."""
    latest = LONG_AGO
    for k in range(len(lower)):
        latest = max(latest, lower[k])
        if latest > upper[k]:
            return True
    return False


@compiled
def unexcused_jumps(
    appends: Appends,
    reads: Reads,
    rules: Rules,
    extras: Extras,
    slots: Slots,
    keys: Keys,
    g: int,
    low: int,
    size: int,
) -> bool:
    """Step 1 for sparse offsets: whether a read passes over a record that is not known to be gone by then, or
    shows an aborted one.

    Args:
        appends: the appends, by group.
        reads: the reads, by group.
        rules: the rules of each group.
        extras: the columns for special logs.
        slots: the slots of the log.
        keys: scratch by key.
        g: the group.
        low, size: the span of the log.

    Returns:
        whether the log is suspicious.
    """
    aborted = np.zeros(size, np.bool_)
    since = _excused_since(appends, rules, extras, slots, keys, g, low, size, aborted)
    isolated = np.where(aborted, LONG_AGO, since)
    latest, latest_isolated = _block_maxima(since), _block_maxima(isolated)
    for r in range(reads.first[g], reads.first[g + 1]):
        begin, stop = reads.start[r], reads.start[r + 1]
        if stop == begin:
            continue
        bound = reads.completion[r] if rules.profile[g] != CONTENT else 0
        at = reads.offset[begin]
        if reads.position[r] >= 0:
            at = max(reads.position[r], licence_of(reads, rules, extras, g, r))
        for i in range(begin, stop):
            offset = reads.offset[i]
            if extras.isolation[r] == ISOLATED:
                if (
                    aborted[offset - low]
                    or _latest(isolated, latest_isolated, at - low, offset - low) > bound
                ):
                    return True
            elif _latest(since, latest, at - low, offset - low) > bound:
                return True
            at = offset + 1
    return False


@compiled
def _excused_since(
    appends: Appends,
    rules: Rules,
    extras: Extras,
    slots: Slots,
    keys: Keys,
    g: int,
    low: int,
    size: int,
    aborted: Array,
) -> Array:
    """For each slot, the time from which passing over it is excused (NEVER: never; LONG_AGO: always, or it is
    empty). Fills `aborted`."""
    compacted, timed = extras.compacted[g], rules.profile[g] != CONTENT
    key, gone = np.full(size, -1, np.int64), np.zeros(size, np.bool_)
    for a in range(appends.first[g], appends.first[g + 1]):
        if extras.key[a] >= 0:
            keys.next[extras.key[a]], keys.unseen[extras.key[a]] = -1, NEVER
    for a in range(appends.first[g], appends.first[g + 1]):
        written = appends.kind[a] != FAILED and extras.fate[a] != ABORTED
        if slots.placed[a] >= 0:
            for k in range(
                slots.placed[a] - low, slots.placed[a] - low + appends.start[a + 1] - appends.start[a]
            ):
                aborted[k] = extras.fate[a] == ABORTED
                gone[k] = extras.tombstone[a] or aborted[k]
                key[k] = extras.key[a] if written else -1
        if written and extras.key[a] >= 0 and (slots.placed[a] < 0 or rules.duplicates[g]):
            moment = appends.invoke[a] if timed else LONG_AGO
            keys.unseen[extras.key[a]] = min(keys.unseen[extras.key[a]], moment)
    standing = _standing(slots, size, timed)
    since = np.full(size, NEVER)
    for k in range(size - 1, -1, -1):
        if slots.slot[k, INVOKE] == NEVER or (compacted and gone[k]):
            since[k] = LONG_AGO
        elif compacted and key[k] >= 0:
            newer = keys.next[key[k]]
            since[k] = min(standing[newer] if newer >= 0 else NEVER, keys.unseen[key[k]])
        if key[k] >= 0:
            keys.next[key[k]] = k
    return since


@compiled
def _standing(slots: Slots, size: int, timed: bool) -> Array:
    """The earliest time at which each offset may have been written."""
    earliest = np.full(size, LONG_AGO)
    latest = LONG_AGO
    if timed:
        for k in range(size):
            if slots.slot[k, INVOKE] != NEVER:
                latest = max(latest, slots.slot[k, INVOKE])
            latest = max(latest, slots.slot[k, ENDED])
            earliest[k] = latest
    return earliest


@compiled
def _block_maxima(since: Array) -> Array:
    """The latest excuse of each block of BLOCK offsets."""
    latest = np.full(len(since) // BLOCK + 1, LONG_AGO)
    for k in range(len(since)):
        latest[k // BLOCK] = max(latest[k // BLOCK], since[k])
    return latest


@compiled
def _latest(since: Array, latest: Array, begin: int, stop: int) -> int:
    """The latest excuse of the offsets [begin, stop)."""
    found, k = LONG_AGO, max(begin, 0)
    while k < stop:
        if k % BLOCK == 0 and k + BLOCK <= stop:
            found = max(found, latest[k // BLOCK])
            k += BLOCK
        else:
            found = max(found, since[k])
            k += 1
    return found
