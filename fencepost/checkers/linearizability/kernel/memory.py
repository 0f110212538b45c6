"""The memory of visited configurations: nodes in buckets, and the domination between them.

Owns rule 4 of `search`. Must not know steps.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.linearizability.kernel.arrays import (
    BEST,
    CHAIN,
    LEVEL,
    NODES,
    OPERATION,
    PARENT,
    QUEUE,
    STATE,
    SearchPart,
    Work,
)
from fencepost.checkers.linearizability.kernel.step_table import mix
from fencepost.checkers.operation_columns import Array


@compiled
def used(work: Work, node: int, slot: int) -> bool:
    """Whether the bit `slot` of the mask of `node` is set in `work`."""
    return bool((work.masks[node, slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1))


@compiled
def covered(part: SearchPart, work: Work, node: int, level: int, state: int) -> bool:
    """Whether `node` equals or dominates the configuration (`level`, `state`, mask in `scratch` of `work`) of
    `part`: rule 4."""
    if work.nodes[node, LEVEL] != level or work.nodes[node, STATE] != state:
        return False
    for word in range(part.words):
        if work.masks[node, word] != work.scratch[word]:
            return False
    more = np.uint64(0)
    for word in range(part.words, len(work.scratch)):
        more |= work.masks[node, word] & ~work.scratch[word]
    return not more


@compiled
def bucket_of(part: SearchPart, work: Work, level: int, state: int, mask: Array) -> int:
    """The bucket of a configuration. Configurations that differ only in unknown operations share a bucket.

    Args:
        part: the part of the history.
        work: the memory; it gives the number of buckets.
        level: completions that are satisfied.
        state: the number of the state.
        mask: the operations that happened early.

    Returns:
        an index into `work.buckets`.
    """
    key = mix((level << 32) | state)
    for word in range(part.words):
        key = mix(key ^ mask[word])
    return np.int64(key & np.uint64(len(work.buckets) - 1))  # type: ignore[return-value]


@compiled
def insert(part: SearchPart, work: Work, level: int, state: int, parent: int, op: int) -> int:
    """Add a node for the configuration in `scratch`.

    Args:
        part: the part of the history.
        work: the memory; it must have room for a node.
        level: completions that are satisfied.
        state: the number of the state.
        parent: the node that it came from.
        op: the operation that led to it.

    Returns:
        the node; -1 if a known node covers the configuration.
    """
    bucket = bucket_of(part, work, level, state, work.scratch)
    node = work.buckets[bucket]
    while node >= 0:
        if covered(part, work, node, level, state):
            return -1
        node = work.nodes[node, CHAIN]
    new = work.control[NODES]
    work.control[NODES] = new + 1
    work.nodes[new, LEVEL], work.nodes[new, STATE] = level, state
    work.nodes[new, PARENT], work.nodes[new, OPERATION] = parent, op
    work.nodes[new, CHAIN], work.nodes[new, QUEUE] = work.buckets[bucket], -1
    work.buckets[bucket] = new
    for word in range(len(work.scratch)):
        work.masks[new, word] = work.scratch[word]
    if level > work.nodes[work.control[BEST], LEVEL]:
        work.control[BEST] = new
    return int(new)


@compiled(when_asked=True)
def rehash(work: Work, part: SearchPart) -> None:
    """Insert all nodes of `work` again, after its buckets grew. `part` is the part of the history."""
    work.buckets[:] = -1
    for node in range(work.control[NODES]):
        level, state = work.nodes[node, LEVEL], work.nodes[node, STATE]
        bucket = bucket_of(part, work, level, state, work.masks[node])
        work.nodes[node, CHAIN] = work.buckets[bucket]
        work.buckets[bucket] = node
