"""The leader epoch cache and the truncation that it decides: KIP-101, KIP-279 and KAFKA-7415 as pure
functions.

Owns: (epoch, start offset) entries, the OffsetsForLeaderEpoch answer, the follower's next truncation offset.
Used by the explorable system and by the refinement of real runs alike. Must not know replicas, roles or
ZooKeeper.

An entry says: records from `start offset` on (up to the next entry) were written in `epoch`. A leader enters
its epoch on election, before it writes (KAFKA-7415), so that it can tell a follower with an in-between epoch
where the fork is.
"""

from collections.abc import Sequence

Epochs = tuple[tuple[int, int], ...]
"""(epoch, start offset), both strictly increasing."""

UNDEFINED = (-1, -1)
"""The answer of a leader that knows nothing about the epoch asked for."""


def assign(epochs: Epochs, epoch: int, start_offset: int) -> Epochs:
    """Enter an epoch. Entries that contradict it (an epoch or a start not below its own) are dropped, as
    Kafka's truncateAndAppend does."""
    if epochs and epochs[-1][0] == epoch and start_offset >= epochs[-1][1]:
        return epochs
    kept = tuple(entry for entry in epochs if entry[0] < epoch and entry[1] < start_offset)
    return (*kept, (epoch, start_offset))


def truncate(epochs: Epochs, end_offset: int) -> Epochs:
    """The cache of a log that was cut at `end_offset`, also where the cut removed no record (KAFKA-10706)."""
    return tuple(entry for entry in epochs if entry[1] < end_offset)


def truncate_start(epochs: Epochs, start_offset: int) -> Epochs:
    """The cache of a log that starts at `start_offset` now: the epoch of its first record begins there, as
    Kafka's truncateFromStart says."""
    before = tuple(entry for entry in epochs if entry[1] <= start_offset)
    return (*((before[-1][0], start_offset) for _ in before[-1:]), *epochs[len(before) :])


def lineage(record_epochs: Sequence[int]) -> Epochs:
    """The entries that the records themselves prove (offset = index)."""
    entries: list[tuple[int, int]] = []
    for offset, epoch in enumerate(record_epochs):
        if not entries or entries[-1][0] != epoch:
            entries.append((epoch, offset))
    return tuple(entries)


def latest_epoch(epochs: Epochs) -> int:
    """The epoch that a follower asks about; -1 for an empty cache."""
    return epochs[-1][0] if epochs else -1


def end_offset_for(epochs: Epochs, log_end_offset: int, asked: int) -> tuple[int, int]:
    """KIP-279's answer: (largest epoch <= asked, where it ends). Below the first entry: (asked, first start),
    KAFKA-7415."""
    if asked < 0 or not epochs:
        return UNDEFINED
    if asked == epochs[-1][0]:
        return asked, log_end_offset
    later = next((index for index, entry in enumerate(epochs) if entry[0] > asked), None)
    if later is None:
        return UNDEFINED
    return (epochs[later - 1][0] if later else asked), epochs[later][1]


def end_offset_for_kip_101(epochs: Epochs, log_end_offset: int, asked: int) -> tuple[int, int]:
    """KIP-101's answer, without KIP-279: an end offset and no word of the epoch that it belongs to."""
    if asked < 0 or not epochs or asked < epochs[0][0]:
        return UNDEFINED
    return -1, end_offset_for(epochs, log_end_offset, asked)[1]


def next_truncation(
    epochs: Epochs, log_end_offset: int, high_watermark: int, answer: tuple[int, int]
) -> tuple[int, bool]:
    """Where a follower truncates on this answer, and whether it is done (else it asks again).

    Kafka's getOffsetTruncationState: no answer: the high watermark; an answer without an epoch (KIP-101): its
    end; mine is that epoch too: the lower end; it is not: the end of my largest epoch below it, and again.
    """
    epoch, end_offset = answer
    if end_offset < 0:
        return min(high_watermark, log_end_offset), True
    if epoch < 0:
        return min(end_offset, log_end_offset), True
    own_epoch, own_end = end_offset_for(epochs, log_end_offset, epoch)
    if own_end < 0:
        return min(end_offset, log_end_offset), True
    if own_epoch != epoch:
        return min(own_end, log_end_offset), False
    return min(own_end, end_offset, log_end_offset), True
