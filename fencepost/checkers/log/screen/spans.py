"""The range of offsets of each log, so that slots can be indexed by offset.

Owns the span of a log, and when a log is too sparse for that. Must not know rules. Part of the screen.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.log.appends_and_reads import Appends, Kind, Reads
from fencepost.checkers.log.extras import Extras
from fencepost.checkers.log.rules import Profile, Rules
from fencepost.checkers.operation_columns import NEVER, Array

FAILED = int(Kind.FAILED)
STRONG = int(Profile.STRONG)

SPARSEST = 16
"""With more offsets per record than this, indexing by offset would waste memory. Such logs are checked by
sorting instead."""


class Span(NamedTuple):
    """The offsets that a log uses, [low, low + size); size -1: too sparse."""

    low: int
    size: int


@compiled
def spans_of(appends: Appends, reads: Reads, rules: Rules, extras: Extras) -> tuple[Array, Array]:
    """The span of each group.

    Args:
        appends: the appends, by group.
        reads: the reads, by group.
        rules: the rules of each group.
        extras: the columns for special logs.

    Returns:
        low and size of each group, as in Span.
    """
    groups = len(rules.profile)
    low, size = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for g in range(groups):
        low[g], size[g] = _span(appends, reads, rules, extras, g)
    return low, size


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
        if reads.start[r + 1] > reads.start[r]:  # an ordered read is between its first and its last record
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
