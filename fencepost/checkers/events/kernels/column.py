"""The events in the form that the kernels read.

Owns `Events` and look-ups in it. Must not know any rule. It has few arrays with many columns, because the
number of arguments determines the compile time of a kernel.
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
"""Rows of `Events.of`. NAME, CAUSE: codes of words.py. NODE, LEADER: codes of brokers, -1 for none. KEY: code
of topic and partition; TOPIC: code of the topic; both -1 without a topic. ISR, REPLICAS: bit sets. *_AT,
*_TO: slices of `replica` (codes, in order) and `value`. KNOWN_BROKER_EPOCH: from a mark of a controlled
shutdown."""
ALLOWED_AT, COMPACTED_AT, KEYED_AT, UNCLEAN_AT = 0, 1, 2, 3
"""Rows of `Events.claims`: where the slices of `allowed`, `compacted`, `keyed` and `unclean` begin for each
trace. There is one more column than traces, for the end."""
ALLOWED_KEY, ALLOWED_START, ALLOWED_END = 0, 1, 2
RECORD, RECORD_KEY, IS_TOMBSTONE = 0, 1, 2
"""Rows of `Events.keyed`."""

STEPS = 4
MOST_NODES = 62
"""The most brokers of a row group, because a set of brokers is the bits of one integer."""


class Events(NamedTuple):
    """The events of a row group."""

    # One column per event; the rows are NAME and following.
    of: Array
    # Codes of brokers, for the slices REPLICAS_AT to REPLICAS_TO.
    replica: Array
    # Value ids, for the slices VALUES_AT to VALUES_TO.
    value: Array
    # Where each trace's slices of the next four arrays begin.
    claims: Array
    # Ranges of offsets that may be lost, ascending in each trace.
    allowed: Array
    # Topics that are compacted.
    compacted: Array
    # Records of compacted topics (value, key, whether it is a tombstone), by value in each trace.
    keyed: Array
    # Topics that allow unclean leader election.
    unclean: Array


def steps_of(state: object, events: Events, *rest: object) -> int:
    """An estimate of the steps of a screen: a few per event of `events`. `state` does not matter."""
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
    """The first offset from `offset` on that may not be lost. claims, allowed: as in `Events`."""
    for k in range(claims[trace, ALLOWED_AT], claims[trace + 1, ALLOWED_AT]):
        one = allowed[k]
        if one[ALLOWED_KEY] == key and one[ALLOWED_START] <= offset < one[ALLOWED_END]:
            offset = one[ALLOWED_END]
    return offset


@compiled_within
def claims_compaction(events: Events, trace: int) -> bool:
    """Whether some topic of `trace` is compacted by the claims in `events`."""
    return bool(events.claims[trace + 1, COMPACTED_AT] > events.claims[trace, COMPACTED_AT])


@compiled_within
def is_compacted(events: Events, trace: int, topic: int) -> bool:
    """Whether a topic is compacted by the claims."""
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
    """The index in `keyed` of the record with this value; -1 if the record has no key."""
    low, high = events.claims[trace, KEYED_AT], events.claims[trace + 1, KEYED_AT]
    end = high
    while low < high:
        middle = (low + high) // 2
        if events.keyed[middle, RECORD] < value:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < end and events.keyed[low, RECORD] == value else -1
