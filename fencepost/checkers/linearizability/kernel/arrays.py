"""The data of a search: the arrays of a part, the table of steps, and the working memory.

Owns the layouts and the numbers in them. Must not know how they are used.
"""

from typing import NamedTuple

from fencepost.checkers.operation_columns import Array

IMPOSSIBLE, MISSING = -1, -2
"""Entries of the table of steps other than states."""
WORD = 64

LINEARIZABLE, ILLEGAL, PAUSED, ASKS, FULL = range(5)
"""Return codes of `search`: the two decisions; the budget is used up; steps are missing (`Work.asked`); the
nodes are full."""

LEVEL, STATE, PARENT, OPERATION, CHAIN, QUEUE = range(6)
"""Columns of a node: level and state; the node and the operation that it came from; the next node in its
bucket, and in its level's queue."""
HEAD, TAIL, CANDIDATE = range(3)
"""Columns of a frame: the node of a level's queue that is being expanded, the last one, and the next
operation to try."""
NODES, FRAMES, CURSOR, BEST, FOUND, ASKED, ASKED_STATE, STEPS, VISITS = range(9)
"""Entries of the control block. NODES, FRAMES: counts. CURSOR: the level that `occupant` shows. BEST: the
deepest node. FOUND: the node and operation that linearized everything (node << 32 | operation). ASKED,
ASKED_STATE: the number of missing steps, and their state. STEPS, VISITS: steps tried and operations looked at
so far."""


class SearchPart(NamedTuple):
    """One part of a history. Operations are numbered by invocation. `slot` is a bit of the mask; R is the
    number of completions."""

    # The call of each operation.
    call: Array
    # Whether the operation never changes a state.
    observes: Array
    # The bit of each operation in the mask. Known operations reuse the slots of completed ones. Each unknown
    # operation has its own slot, from the first word after the known ones.
    slot: Array
    # The rank of each operation's completion; R and more for unknown ones.
    order: Array
    # The R operations with a completion, in the order of completion.
    returns: Array
    # For each completion the number of operations invoked before it.
    invoked: Array
    # The operations with an unknown outcome, by invocation.
    unknown: Array
    # For each completion the number of unknown operations invoked before it.
    unknown_before: Array
    # For each operation the previous unknown operation with the same call; -1 if there is none.
    twin: Array
    # Words of the mask that hold the known slots.
    words: int
    # For each completion of an observer the number of the question whether a state can still lead to it; else
    # -1.
    reach: Array
    # For each level the first level from there on with an entry in `reach`; R if there is none.
    observer: Array
    # For each level the first operation that resets, among those that complete at this level or later.
    # Operations that overwrite do not count.
    reset: Array
    # For an operation that overwrites, the state after it; else -1.
    lands: Array
    # The operations that overwrite and have an unknown outcome.
    lost: Array


class StepTable(NamedTuple):
    """The table of steps, a hash table with open addressing. keys: state << 32 | call, -1 if empty; values: a
    state, or IMPOSSIBLE."""

    keys: Array
    values: Array


class Work(NamedTuple):
    """The memory of a search."""

    # One row per configuration; the columns are LEVEL to QUEUE.
    nodes: Array
    # For each node the operations that happened early, one bit per slot.
    masks: Array
    # The first node of each hash bucket.
    buckets: Array
    # One row per level that was reached; the columns are HEAD, TAIL and CANDIDATE.
    frames: Array
    # The open known operation in each slot.
    occupant: Array
    # The mask under construction.
    scratch: Array
    # The calls with missing steps.
    asked: Array
    # The control block; the entries are NODES to VISITS.
    control: Array
