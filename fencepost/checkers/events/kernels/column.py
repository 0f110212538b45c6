"""Events as the kernels read them.

Owns `Events` and look-ups in it. Must not know any rule. Few arrays with many columns, not one each: what a
kernel is handed decides how long it takes to compile.
"""

from typing import NamedTuple

from fencepost.checkers.compiled import compiled_within
from fencepost.checkers.operation_columns import Array

(
    NAME,
    CAUSE,
    NODE,
    KEY,
    TOPIC,
    LEADER,
    LEADER_EPOCH,
    CONTROLLER_EPOCH,
    BROKER_EPOCH,
    ZK_VERSION,
    OFFSET,
    END_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    ISR,
    REPLICAS,
    REPLICAS_AT,
    REPLICAS_TO,
    VALUES_AT,
    VALUES_TO,
    KNOWN_BROKER_EPOCH,
) = range(21)
"""Rows of `Events.of`. NAME, CAUSE: codes of words.py. NODE, LEADER: codes of brokers, -1 for nobody. KEY: of
topic and partition; TOPIC; both -1 without a topic. ISR, REPLICAS: bits. *_AT, *_TO: slices of `replica`
(codes, in order) and `value`. KNOWN_BROKER_EPOCH: of a mark of a controlled shutdown."""
ALLOWED_AT, COMPACTED_AT, KEYED_AT, UNCLEAN_AT = 0, 1, 2, 3
"""Of `Events.claims`, by trace, with one end more: where its slices of `allowed`, `compacted`, `keyed` and
`unclean` begin."""
ALLOWED_KEY, ALLOWED_START, ALLOWED_END = 0, 1, 2
RECORD, RECORD_KEY, IS_TOMBSTONE = 0, 1, 2
"""Of `Events.keyed`."""

STEPS = 4
MOST_NODES = 62
"""Sets of brokers are bits of one integer."""


class Events(NamedTuple):
    """of: by column and event, as above. allowed: ranges of offsets whose loss is allowed, ascending in each
    trace; compacted: topics; keyed: records of compacted topics (value, key, whether it is a tombstone), by
    value in each trace; unclean: topics that allow unclean leader election."""

    of: Array
    replica: Array
    value: Array
    claims: Array
    allowed: Array
    compacted: Array
    keyed: Array
    unclean: Array


def steps_of(state: object, events: Events, *rest: object) -> int:
    """About how many steps a screen takes: a handful for each event."""
    return STEPS * int(events.of.shape[1])


@compiled_within
def same_replicas(events: Events, one: int, other: int) -> bool:
    """Whether two events name the same replicas in the same order."""
    a, b = events.of[REPLICAS_AT, one], events.of[REPLICAS_AT, other]
    size = events.of[REPLICAS_TO, one] - a
    same = size == events.of[REPLICAS_TO, other] - b
    for k in range(size if same else 0):
        same &= events.replica[a + k] == events.replica[b + k]
    return bool(same)


@compiled_within
def end_of_loss(claims: Array, allowed: Array, trace: int, key: int, offset: int) -> int:
    """The first offset from `offset` on whose loss is not allowed. claims, allowed: as in `Events`."""
    for k in range(claims[trace, ALLOWED_AT], claims[trace + 1, ALLOWED_AT]):
        one = allowed[k]
        if one[ALLOWED_KEY] == key and one[ALLOWED_START] <= offset < one[ALLOWED_END]:
            offset = one[ALLOWED_END]
    return offset


@compiled_within
def claims_compaction(events: Events, trace: int) -> bool:
    """Whether the claims say that some topic is compacted."""
    return bool(events.claims[trace + 1, COMPACTED_AT] > events.claims[trace, COMPACTED_AT])


@compiled_within
def is_compacted(events: Events, trace: int, topic: int) -> bool:
    """Whether the claims say that a topic is compacted."""
    found = False
    for k in range(events.claims[trace, COMPACTED_AT], events.claims[trace + 1, COMPACTED_AT]):
        found |= events.compacted[k] == topic
    return bool(found)


@compiled_within
def is_unclean(events: Events, trace: int, topic: int) -> bool:
    """Whether a topic is known to allow unclean leader election."""
    found = False
    for k in range(events.claims[trace, UNCLEAN_AT], events.claims[trace + 1, UNCLEAN_AT]):
        found |= events.unclean[k] == topic
    return bool(found)


@compiled_within
def keyed_at(events: Events, trace: int, value: int) -> int:
    """Where the record of this value stands in `keyed`; -1 for one without a key."""
    low, high = events.claims[trace, KEYED_AT], events.claims[trace + 1, KEYED_AT]
    end = high
    while low < high:
        middle = (low + high) // 2
        if events.keyed[middle, RECORD] < value:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < end and events.keyed[low, RECORD] == value else -1
