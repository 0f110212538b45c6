"""The leader epochs of a log that was just opened: from its checkpoint, or from its batches if they are more
reliable.

Owns the choice between the two. Must not know how either is stored.
"""

from collections.abc import Sequence

from fencepost.impl.log.batch.batch_file import frames
from fencepost.impl.log.checkpoint.leader_epoch_cache import LeaderEpochCache
from fencepost.impl.log.segment.segment import Segment


def restore_epochs(
    epochs: LeaderEpochCache,
    segments: Sequence[Segment],
    recovered_from: int | None,
    read: list[tuple[int, int]],
    start: int,
    end: int,
    *,
    gaps: bool,
) -> None:
    """Combine the checkpoint and the batches.

    Below the recovered part the checkpoint is right; from there on the batches are. If the checkpoint has
    nothing about the first records (it is lost, or ahead of the checkpoint of the log start), all batches are
    read. The first epoch then begins with the log, even if compaction took its first batches: a follower with
    records of an earlier epoch there has to cut them. gaps: the first batch of an epoch may have been
    compacted away, so the checkpoint is used unless a batch contradicts it.
    """
    if recovered_from is not None:
        kept = [
            entry
            for entry in epochs.entries
            if entry[1] < recovered_from or (gaps and _is_possible(entry, read))
        ]
        known = {epoch for epoch, _ in kept}
        latest = max((epoch for epoch, offset in kept if offset < recovered_from), default=-1)
        missed = [entry for entry in read if entry[0] > latest and entry[0] not in known]
        epochs.rebuild(sorted([*kept, *missed]))
    epochs.truncate_from_end(end)
    if start < end and not (epochs.entries and epochs.entries[0][1] <= start):
        found = _epochs_of(segments)
        if not epochs.entries or not found or found[0][1] < epochs.entries[0][1]:
            epochs.rebuild(found)
        if epochs.entries:
            (first, _), *later = epochs.entries
            epochs.rebuild([(first, start), *later])
    epochs.truncate_from_start(start)


def _is_possible(entry: tuple[int, int], read: list[tuple[int, int]]) -> bool:
    """Whether every epoch that was read agrees with an entry of the checkpoint."""
    epoch, start = entry
    return all((base < start) == (other < epoch) for other, base in read)


def _epochs_of(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for segment in segments:
        for frame in frames(segment.file, 0, segment.size):
            if frame.leader_epoch >= 0 and (not found or frame.leader_epoch > found[-1][0]):
                found.append((frame.leader_epoch, frame.base_offset))
    return found
