"""The leader epoch cache and the truncation based on it: KIP-101, KIP-279 and KAFKA-7415 as pure functions.

Owns (epoch, start offset) entries, the OffsetsForLeaderEpoch answer, and the follower's next truncation
offset. The explorable system and the refinement of real runs both use it. Must not know replicas, roles or
ZooKeeper.

An entry means: records from `start offset` on (up to the next entry) were written in `epoch`. A leader enters
its epoch at its election, before it writes (KAFKA-7415), so that it can answer a follower with an in-between
epoch.
"""

from collections.abc import Sequence

Epochs = tuple[tuple[int, int], ...]
"""(epoch, start offset), both strictly increasing."""

UNDEFINED = (-1, -1)
"""The answer of a leader that does not know the requested epoch."""


def assign(epochs: Epochs, epoch: int, start_offset: int) -> Epochs:
    """Enter an epoch. Entries that contradict it (with an epoch or a start not below its own) are removed, as
    in Kafka's truncateAndAppend."""
    if epochs and epochs[-1][0] == epoch and start_offset >= epochs[-1][1]:
        return epochs
    kept = tuple(entry for entry in epochs if entry[0] < epoch and entry[1] < start_offset)
    return (*kept, (epoch, start_offset))


def truncate(epochs: Epochs, end_offset: int) -> Epochs:
    """The cache of a log that was truncated to `end_offset`, even if no record was removed (KAFKA-10706)."""
    return tuple(entry for entry in epochs if entry[1] < end_offset)


def truncate_start(epochs: Epochs, start_offset: int) -> Epochs:
    """The cache of a log that now starts at `start_offset`: the epoch of its first record begins there, as in
    Kafka's truncateFromStart."""
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
    """KIP-279's answer: (largest epoch <= asked, its end offset). Below the first entry: (asked, first
    start), KAFKA-7415."""
    if asked < 0 or not epochs:
        return UNDEFINED
    if asked == epochs[-1][0]:
        return asked, log_end_offset
    later = next((index for index, entry in enumerate(epochs) if entry[0] > asked), None)
    if later is None:
        return UNDEFINED
    return (epochs[later - 1][0] if later else asked), epochs[later][1]


def end_offset_for_kip_101(epochs: Epochs, log_end_offset: int, asked: int) -> tuple[int, int]:
    """KIP-101's answer, without KIP-279: an end offset without the epoch that it belongs to.

    Args:
        epochs: the leader's cache.
        log_end_offset: the end of the leader's log.
        asked: the epoch that the follower asked about.

    Returns:
        (-1, end offset).
    """
    if asked < 0 or not epochs or asked < epochs[0][0]:
        return UNDEFINED
    return -1, end_offset_for(epochs, log_end_offset, asked)[1]


def next_truncation(
    epochs: Epochs, log_end_offset: int, high_watermark: int, answer: tuple[int, int]
) -> tuple[int, bool]:
    """Where a follower truncates after this answer, and whether it is done (otherwise it asks again).

    Kafka's getOffsetTruncationState. No answer: truncate to the high watermark. An answer without an epoch
    (KIP-101): to its end. The follower's epoch is the same: to the lower end. It differs: to the end of the
    follower's largest epoch below it, then ask again.
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
