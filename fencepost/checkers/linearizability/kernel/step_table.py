"""The table of steps: the state after each call in each state, for the steps that the model computed.

Owns a hash table with open addressing. Must not know states, calls or searches.
"""

import numpy as np

from fencepost.checkers.compiled import compiled
from fencepost.checkers.linearizability.kernel.arrays import MISSING, StepTable
from fencepost.checkers.operation_columns import Array


@compiled
def mix(value: int) -> int:
    """A 64-bit finalizer (the constants of MurmurHash3)."""
    x = np.uint64(value)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> np.uint64(33)
    return x  # type: ignore[return-value]


@compiled
def find_step(steps: StepTable, state: int, call: int) -> int:
    """The state after `call` in `state` by the table `steps`; IMPOSSIBLE, or MISSING."""
    key = (state << 32) | call
    last = len(steps.keys) - 1
    bucket = np.int64(mix(key) & np.uint64(last))
    while steps.keys[bucket] != key:
        if steps.keys[bucket] < 0:
            return MISSING
        bucket = (bucket + 1) & last
    return int(steps.values[bucket])


@compiled(when_asked=True)
def put_steps(steps: StepTable, keys: Array, values: Array) -> None:
    """Store entries that are not in the table yet.

    Args:
        steps: the table; it must have room for the entries.
        keys: state << 32 | call, int64.
        values: the states after the calls, or IMPOSSIBLE; int32, as many as `keys`.
    """
    last = len(steps.keys) - 1
    for i in range(len(keys)):
        if keys[i] >= 0:
            bucket = np.int64(mix(keys[i]) & np.uint64(last))
            while steps.keys[bucket] >= 0:
                bucket = (bucket + 1) & last
            # the value before the key: an interruption between the two stores nothing
            steps.values[bucket] = values[i]
            steps.keys[bucket] = keys[i]
