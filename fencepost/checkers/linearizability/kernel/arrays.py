"""What a search works on: the arrays of a part, the table of steps, and its own memory.

Owns layouts and the numbers that stand in them. Must not know what is done with them.
"""

from typing import NamedTuple

from fencepost.checkers.operation_columns import Array

IMPOSSIBLE, MISSING = -1, -2
"""Entries of the table of steps besides states."""
WORD = 64

LINEARIZABLE, ILLEGAL, PAUSED, ASKS, FULL = range(5)
"""What `search` answers: decided; its budget is used up; steps are missing (`Work.asked`); the nodes are
full."""

LEVEL, STATE, PARENT, OPERATION, CHAIN, QUEUE = range(6)
"""Columns of a node: level and state; the node and the operation that it came from; the next node in its
bucket, and in its level's queue."""
HEAD, TAIL, CANDIDATE = range(3)
"""Columns of a frame: the node of a level's queue that is being expanded, the last one, and the next
operation to try."""
NODES, FRAMES, CURSOR, BEST, FOUND, ASKED, ASKED_STATE, STEPS, VISITS = range(9)
"""Entries of the control block: counts of nodes and frames; the level that `occupant` shows; the deepest
node; the node and operation that linearized everything (node << 32 | operation); how many steps are missing,
and of which state; steps tried, and operations looked at, so far."""


class SearchPart(NamedTuple):
    """One part of a history. Operations are numbered by invocation; `slot` is a bit of the mask.

    call: each operation's call; observes: whether that never changes a state. slot: known ones reuse the
    slots of completed ones, unknown ones have one each, from the first word behind the known. order: rank of
    its completion, R and more for unknown ones. returns: operations with a completion, in its order (R of
    them). invoked: how many operations are invoked before each completion. unknown: unknown ones by
    invocation; unknown_before: how many of them are invoked before each completion. twin: the unknown
    operation with the same call invoked before, -1 if none. words: of known slots. reach: for the operation
    of each completion that observes, the number of the question whether a state can still lead to it, else
    -1; observer: the first level from each on that has one (R: none); reset: the first operation that resets
    among those completing at each level or later, except those that overwrite; lands: the state that follows
    one of these, else -1; lost: those of them with an unknown outcome.
    """

    call: Array
    observes: Array
    slot: Array
    order: Array
    returns: Array
    invoked: Array
    unknown: Array
    unknown_before: Array
    twin: Array
    words: int
    reach: Array
    observer: Array
    reset: Array
    lands: Array
    lost: Array


class StepTable(NamedTuple):
    """The table of steps, open addressing. keys: state << 32 | call, -1 empty; values: state, or
    IMPOSSIBLE."""

    keys: Array
    values: Array


class Work(NamedTuple):
    """The memory of a search. nodes, masks: row by row; buckets: first node of each bucket; occupant: the
    open known operation in each slot; scratch: the mask under construction; asked: calls whose steps are
    missing."""

    nodes: Array
    masks: Array
    buckets: Array
    frames: Array
    occupant: Array
    scratch: Array
    asked: Array
    control: Array
