"""Texts made of identifiable pieces: which keys are certainly legal.

Owns a second, compiled form of the decision of `deciders.texts`, for all keys of a history in one call. It
only says "legal" or "not known". Must not know operations.

The reasons are those of the decider. If no piece is a prefix of another one, a text splits in one way only. A
put, the appends after it that gets show, and these gets form a chain. A chain is a cluster of
`deciders.zones`. Every other case is left to the decider.
"""

from typing import NamedTuple

import numpy as np

from fencepost.checkers.compiled import compiled, compiled_within
from fencepost.checkers.operation_columns import NEVER, Array

GET, PUT, APPEND = range(3)
BEFORE = -NEVER


class Texts(NamedTuple):
    """Operations by row."""

    # The function of each operation.
    kind: Array
    # The bytes of all texts.
    data: Array
    # Where the text begins that each operation put, appended or returned.
    start: Array
    # The length of this text in bytes.
    size: Array
    # Invocation times.
    invoke: Array
    # Completion times; NEVER if the outcome is unknown.
    complete: Array


class Chains(NamedTuple):
    """The chains of one key, by root: 0 for the initial text, n + 1 for the n-th writer in the order of
    texts."""

    # The longest get of each chain; -1 if there is none.
    witness: Array
    # Where the members of each chain begin in the arrays below.
    begin: Array
    # The number of members of each chain.
    length: Array
    # The member's place among the writers; -1 for the initial text.
    who: Array
    # The length of the text up to and including the member.
    end: Array
    # The earliest completion of the gets that end with the member.
    read_complete: Array
    # The latest invocation of the gets that end with the member.
    read_invoke: Array


@compiled_within
def compare(texts: Texts, a: int, a_size: int, b: int, b_size: int) -> int:
    """Compare two byte ranges.

    Args:
        texts: it has the bytes.
        a, a_size: start and length of the first range.
        b, b_size: start and length of the second range.

    Returns:
        negative, 0 or positive; -2 if the first is a proper prefix of the second, 2 if the second is one of
        the first.
    """
    for i in range(min(a_size, b_size)):
        if texts.data[a + i] != texts.data[b + i]:
            return -1 if texts.data[a + i] < texts.data[b + i] else 1
    return 0 if a_size == b_size else -2 if a_size < b_size else 2


@compiled
def in_order(texts: Texts, rows: Array) -> Array:
    """The rows in the order of their texts, by merging."""
    now, after = rows.copy(), rows.copy()
    width = 1
    while width < len(rows):
        for low in range(0, len(rows), 2 * width):
            middle, high = min(low + width, len(rows)), min(low + 2 * width, len(rows))
            a, b = low, middle
            for at in range(low, high):
                first = b >= high
                if a < middle and b < high:
                    one, other = now[a], now[b]
                    first = (
                        compare(
                            texts, texts.start[one], texts.size[one], texts.start[other], texts.size[other]
                        )
                        <= 0
                    )
                after[at] = now[a] if first else now[b]
                a += first
                b += not first
        now, after = after, now
        width *= 2
    return now


@compiled_within
def piece_at(texts: Texts, writers: Array, at: int, size: int) -> int:
    """Find the writer of the next piece.

    Args:
        texts: it has the bytes.
        writers: rows of the writers in the order of their texts.
        at, size: the range of bytes that begins with the piece.

    Returns:
        the place in `writers` of the writer with a text that these bytes begin with; -1 if there is none.
    """
    low, high = 0, len(writers)
    while low < high:
        middle = (low + high) // 2
        row = writers[middle]
        if compare(texts, texts.start[row], texts.size[row], at, size) <= 0:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return -1
    row = writers[low - 1]
    order = compare(texts, texts.start[row], texts.size[row], at, size)
    return low - 1 if order == 0 or order == -2 else -1


@compiled
def follow(texts: Texts, writers: Array, gets: Array, roots: Array, chains: Chains) -> bool:
    """Find the members of each chain in its longest get.

    Args:
        texts: the operations.
        writers: rows of the writers in the order of their texts.
        gets: rows of the gets.
        roots: the root of each get.
        chains: the chains; their members are filled in.

    Returns:
        False if a text cannot be split, or if an append is in two places.
    """
    taken = np.zeros(len(writers), np.bool_)
    used = 0
    for n in range(len(gets)):
        row = gets[n]
        root = 0
        if texts.size[row]:
            place = piece_at(texts, writers, texts.start[row], texts.size[row])
            if place < 0:
                return False
            root = place + 1 if texts.kind[writers[place]] == PUT else 0
        roots[n] = root
        longest = chains.witness[root]
        if longest < 0 or texts.size[row] > texts.size[longest]:
            chains.witness[root] = row
    for root in range(len(chains.witness)):
        row = chains.witness[root]
        if row < 0:
            continue
        at = texts.size[writers[root - 1]] if root else 0
        chains.begin[root] = used
        chains.who[used], chains.end[used] = root - 1, at
        used += 1
        while at < texts.size[row]:
            place = piece_at(texts, writers, texts.start[row] + at, texts.size[row] - at)
            if place < 0 or taken[place] or texts.kind[writers[place]] != APPEND:
                return False
            taken[place] = True
            at += texts.size[writers[place]]
            chains.who[used], chains.end[used] = place, at
            used += 1
        chains.length[root] = used - chains.begin[root]
    for place in range(len(writers)):
        if taken[place]:
            chains.witness[place + 1] = -2
    return True


@compiled
def attach(texts: Texts, gets: Array, roots: Array, chains: Chains) -> bool:
    """Assign each get to the member with which its text ends.

    Args:
        texts: the operations.
        gets: rows of the gets.
        roots: the root of each get.
        chains: the chains; the times of the reads are filled in.

    Returns:
        False if the text of a get is not a prefix of the chain's longest text.
    """
    for n in range(len(gets)):
        row, root = gets[n], roots[n]
        whole = chains.witness[root]
        order = compare(texts, texts.start[row], texts.size[row], texts.start[whole], texts.size[whole])
        if order != 0 and order != -2:
            return False
        low, high = chains.begin[root], chains.begin[root] + chains.length[root]
        ends = chains.end[low:high]
        at = low + np.searchsorted(ends, texts.size[row])
        if at >= high or chains.end[at] != texts.size[row]:
            return False
        chains.read_complete[at] = min(chains.read_complete[at], texts.complete[row])
        chains.read_invoke[at] = max(chains.read_invoke[at], texts.invoke[row])
    return True


@compiled
def zone_of(texts: Texts, writers: Array, chains: Chains, root: int, zone: Array) -> bool:
    """The zone (earliest completion, latest invocation) of a chain. False if its members cannot happen one
    after another."""
    zone[0], zone[1] = (NEVER if root else BEFORE), BEFORE
    latest = BEFORE
    for at in range(chains.begin[root], chains.begin[root] + chains.length[root]):
        for reading in range(2):
            complete, invoke = NEVER, BEFORE
            if reading:
                complete, invoke = chains.read_complete[at], chains.read_invoke[at]
            elif chains.who[at] >= 0:
                row = writers[chains.who[at]]
                complete, invoke = texts.complete[row], texts.invoke[row]
            if complete < latest:
                return False
            latest = max(latest, invoke)
            zone[0], zone[1] = min(zone[0], complete), max(zone[1], invoke)
    return True


@compiled
def apart(zones: Array) -> bool:
    """Whether no zones exclude each other (`deciders.zones.zones_apart`)."""
    forward = zones[zones[:, 0] < zones[:, 1]]
    forward = forward[np.argsort(forward[:, 0])]
    for n in range(1, len(forward)):
        if forward[n, 0] < forward[n - 1, 1]:
            return False
    begins = forward[:, 0].copy()
    for n in range(len(zones)):
        first, last = zones[n]
        if last <= first:
            before = np.searchsorted(begins, last)
            if before and first < forward[before - 1, 1]:
                return False
    return True


@compiled
def key_is_legal(texts: Texts, rows: Array) -> bool:
    """Whether the operations on one key are certainly legal.

    Args:
        texts: the operations.
        rows: the rows of this key.

    Returns:
        False if they are not certainly legal; the decider must look at them.
    """
    kinds = texts.kind[rows]
    gets, writers = rows[kinds == GET], in_order(texts, rows[kinds != GET])
    for n in range(len(writers)):
        row, before = writers[n], writers[max(n - 1, 0)]
        if texts.size[row] == 0:
            return False
        if n:
            order = compare(texts, texts.start[before], texts.size[before], texts.start[row], texts.size[row])
            if order == 0 or order == -2:
                return False
    size = len(writers) + 1
    chains = Chains(
        np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64),
        np.zeros(size, np.int64), np.full(size, NEVER), np.full(size, BEFORE),
    )  # fmt: skip
    roots = np.zeros(len(gets), np.int64)
    if not follow(texts, writers, gets, roots, chains) or not attach(texts, gets, roots, chains):
        return False
    zones, used = np.empty((size, 2), np.int64), 0
    for root in range(size):
        if chains.witness[root] >= 0:
            if not zone_of(texts, writers, chains, root, zones[used]):
                return False
            used += 1
        elif root and chains.witness[root] == -1 and texts.complete[writers[root - 1]] != NEVER:
            zones[used, 0], zones[used, 1] = (
                texts.complete[writers[root - 1]],
                texts.invoke[writers[root - 1]],
            )
            used += 1
    return apart(zones[:used])


@compiled(when_asked=True)
def legal_keys(texts: Texts, key: Array, keys: int) -> Array:
    """For each key whether its operations are certainly legal. key: the key of each row."""
    first = np.zeros(keys + 2, np.int64)
    for row in range(len(key)):
        first[key[row] + 2] += 1
    for n in range(2, keys + 2):
        first[n] += first[n - 1]
    rows = np.empty(len(key), np.int64)
    for row in range(len(key)):
        rows[first[key[row] + 1]] = row
        first[key[row] + 1] += 1
    legal = np.empty(keys, np.bool_)
    for n in range(keys):
        legal[n] = key_is_legal(texts, rows[first[n] : first[n + 1]])
    return legal
