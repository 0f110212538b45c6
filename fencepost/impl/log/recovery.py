"""Loading the segments of a log: without reading them after a clean stop, by reading them after any other
stop.

Owns the repair of a directory. Half-made compactions are undone or finished. Files without a segment are
removed. Segments from the recovery point on are read byte by byte and truncated at the first bad batch,
everything after it is removed, and indexes are rebuilt. Must not know the rules of epochs or producers; it
passes every batch that it reads to a sink. The result is durable.

Why a truncation removes the later segments too: batches after the hole would be a log that no leader ever
had. A gap that existed before any damage is different: compaction leaves gaps, and only the topic's owner can
say that it never ran.
"""

from collections.abc import Sequence

from attrs import define, field, frozen

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.batch_file import Frame, checked_frames, chunks
from fencepost.impl.log.batch.record_batch import CorruptBatchError
from fencepost.impl.log.layout import (
    CLEANED,
    DELETED,
    INDEX,
    INDEXES,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    SegmentName,
    parse_segment_name,
    segment_path,
)
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segment.segment import Segment


@frozen(kw_only=True)
class Loaded:
    """The result of loading.

    Attributes:
        segments: in order, at least one.
        recovered_from: the offset from which on batches were read and checked; None if none had to be.
        epochs: (leader epoch, base offset) of the first batch of each epoch from there on.
        cut: whether anything was removed.
    """

    segments: list[Segment]
    recovered_from: int | None
    epochs: list[tuple[int, int]]
    cut: bool


@define
class LogRecovery:
    """The recovery of one log."""

    # The file system.
    files: FileSystem
    # The replica's directory.
    directory: str
    # The options of the log.
    options: LogOptions
    # Everything below it was synced once.
    recovery_point: int = 0
    # The first offset that may be read.
    log_start_offset: int = 0
    # Whether the log was closed completely.
    clean: bool = False
    # (leader epoch, base offset) of the first batch of each epoch that was read.
    epochs: list[tuple[int, int]] = field(factory=list)

    def load(self) -> Loaded:
        """The segments of the directory, ready for use."""
        bases = self._tidy_names()
        segments = [Segment.open(self.files, self.directory, base, self.options) for base in bases]
        first_bad = len(segments) if self.clean else self._recover_from(bases)
        first_bad = min(first_bad, self._first_unbelievable(segments[:first_bad]))
        recovered_from = segments[first_bad].base_offset if first_bad < len(segments) else None
        cut = self._recover(segments, first_bad)
        if not segments:
            segments = [create_segment(self.files, self.directory, self.log_start_offset, self.options)]
        for segment in segments[:-1]:
            segment.seal()
            segment.release()
        return Loaded(segments=segments, recovered_from=recovered_from, epochs=self.epochs, cut=cut)

    def _recover_from(self, bases: list[int]) -> int:
        """The number of the segment that holds the recovery point. The last segment is always included,
        because it may have grown since."""
        below = [number for number, base in enumerate(bases) if base <= self.recovery_point]
        return below[-1] if below else 0

    def _first_unbelievable(self, segments: list[Segment]) -> int:
        """The number of the first segment that overlaps the next one, leaves an illegal gap, or does not end
        with a whole batch. Rebuilds missing or bad indexes."""
        previous: Segment | None = None
        for number, segment in enumerate(segments):
            try:
                segment.load()
            except CorruptBatchError:
                return number
            if previous is not None and not self._continues(previous, segment):
                return number - 1
            previous = segment
        return len(segments)

    def _continues(self, before: Segment, segment: Segment) -> bool:
        if self.options.has_gaps:
            return before.next_offset <= segment.base_offset
        return before.next_offset == segment.base_offset

    # ---- reading what cannot be trusted

    def _recover(self, segments: list[Segment], first: int) -> bool:
        """Read the segments from number `first` on and keep the good part."""
        for number in range(first, len(segments)):
            segment = segments[number]
            gap = number > 0 and not self._continues(segments[number - 1], segment)
            if not gap:
                cut = self.recover_segment(segment)
                self.make_durable(segment)
            if gap or cut:
                self._drop(segments, number + (not gap))
                return True
        if first < len(segments):
            self.files.sync_directory(self.directory)
        return False

    def recover_segment(self, segment: Segment) -> bool:
        """Protection L3: every byte is read and every checksum compared; the file is truncated before the
        first bad batch."""
        expected = None if self.options.has_gaps else segment.base_offset
        return segment.recover(expected, self._see)

    def make_durable(self, segment: Segment) -> None:
        """Protection: everything that was read is rewritten, unless it is below the recovery point.

        After a failed sync, Linux marks the pages as clean: they can be read, a later sync succeeds without
        writing them, and a power loss removes them (Rebello et al., Can Applications Recover from fsync
        Failures?, ATC 2020). This process cannot know whether that happened to the process before it.
        """
        if segment.next_offset > self.recovery_point:
            segment.rewrite()
        segment.sync(indexes=True)

    def _see(self, batch: Frame) -> None:
        if batch.leader_epoch >= 0 and (not self.epochs or self.epochs[-1][0] < batch.leader_epoch):
            self.epochs.append((batch.leader_epoch, batch.base_offset))

    def _drop(self, segments: list[Segment], first: int) -> None:
        """Remove the segments from number `first` on, the last one first, so that a crash in between leaves
        no hole."""
        for segment in reversed(segments[first:]):
            segment.close()
            remove_segment_files(self.files, self.directory, segment.base_offset)
        del segments[first:]
        self.files.sync_directory(self.directory)

    # ---- names

    def _tidy_names(self) -> list[int]:
        """Undo or finish what a crash interrupted; returns the base offsets of the segments."""
        names = [name for name in map(parse_segment_name, self.files.list(self.directory)) if name]
        incomplete = self._incomplete_swaps(names)
        stale = [name for name in names if name.suffix in (CLEANED, DELETED) or name in incomplete]
        for name in stale:
            self.files.remove(f"{self.directory}/{name}")
        swaps = [
            name for name in names if name.kind == LOG and name.suffix == SWAP and name not in incomplete
        ]
        for name in swaps:
            if mend_swap(self.files, self.directory, name.offset, self.options):
                self.put_in_place(name.offset)
        bases = self._bases()
        orphans = [
            name
            for name in map(parse_segment_name, self.files.list(self.directory))
            if name and ((name.kind in INDEXES and name.offset not in bases) or name.suffix)
        ]
        for name in orphans:
            self.files.remove(f"{self.directory}/{name}")
        if stale or swaps or orphans:
            self.files.sync_directory(self.directory)
        return bases

    def put_in_place(self, base_offset: int) -> None:
        """Protection KAFKA-2118: a compacted segment takes its place when all that it was made of is gone."""
        finish_swap(self.files, self.directory, base_offset, self.options)

    def _incomplete_swaps(self, names: list[SegmentName]) -> list[SegmentName]:
        """Kafka renames a segment's log first and its indexes after it. While one of them is still
        `.cleaned`, all old segments exist (KAFKA-6264)."""
        cleaned = [name.offset for name in names if name.suffix == CLEANED]
        return [name for name in names if name.suffix == SWAP and cleaned and name.offset >= min(cleaned)]

    def _bases(self) -> list[int]:
        names = [parse_segment_name(name) for name in self.files.list(self.directory)]
        return [name.offset for name in names if name and name.kind == LOG and not name.suffix]


def create_segment(files: FileSystem, directory: str, base_offset: int, options: LogOptions) -> Segment:
    """Create an empty segment with a durable name. Files of this base that a crash left are emptied.

    Args:
        files: the file system.
        directory: the replica's directory.
        base_offset: the base offset.
        options: the options of the log.

    Returns:
        the segment.
    """
    segment = Segment.open(files, directory, base_offset, options)
    if segment.size:
        segment.file.truncate(0)
        segment.file.sync()
        segment.size = 0
    segment.start_empty()
    files.sync_directory(directory)
    return segment


def remove_segment_files(files: FileSystem, directory: str, base_offset: int) -> None:
    """Remove the files of a segment, its batches first; without them the other files have no effect. Sync the
    directory afterwards.

    Args:
        files: the file system.
        directory: the replica's directory.
        base_offset: the base offset of the segment.
    """
    for kind in (LOG, *INDEXES, SNAPSHOT):
        path = segment_path(directory, base_offset, kind)
        if files.exists(path):
            files.remove(path)


def remove_all(files: FileSystem, directory: str, segments: Sequence[Segment]) -> None:
    """Remove every segment durably, the last one first, so that a crash in between leaves no hole.

    Args:
        files: the file system.
        directory: the replica's directory.
        segments: the segments to remove.
    """
    for segment in reversed(segments):
        segment.close()
        remove_segment_files(files, directory, segment.base_offset)
    files.sync_directory(directory)


def mend_swap(files: FileSystem, directory: str, base_offset: int, options: LogOptions) -> bool:
    """Whether a `.swap` may replace the segments that it was made of.

    It was durable before it got its name, so only a lying or rotting disk can have damaged it. If it is
    damaged and the segment that it would replace still exists, that segment stays, and the swap is an orphan.
    If not, the swap is truncated before its first bad batch, as in Kafka.

    Args:
        files: the file system.
        directory: the replica's directory.
        base_offset: the base offset of the swap.
        options: the options of the log.

    Returns:
        whether to use it.
    """
    swap = Segment.open(files, directory, base_offset, options, suffix=SWAP)
    try:
        for _, data in chunks(swap.file, 0, swap.size):
            for _ in checked_frames(data):
                pass
    except CorruptBatchError:
        if files.exists(segment_path(directory, base_offset, LOG)):
            return False
        swap.recover(None, lambda batch: None)
        swap.sync(indexes=False)
    finally:
        swap.close()
    return True


def finish_swap(
    files: FileSystem, directory: str, base_offset: int, options: LogOptions, *, end_offset: int = 0
) -> None:
    """Replace the original segments by a compacted one (`.swap`, durable). Can be repeated after a crash at
    any point.

    It replaces every segment that begins inside of it or below end_offset. After a crash only the former
    condition is known. Then an old segment after its last batch, with superseded records only, may stay; that
    costs space until the next compaction.
    """
    swap = Segment.open(files, directory, base_offset, options, suffix=SWAP)
    swap.rebuild_indexes()
    end_offset = max(end_offset, swap.next_offset)
    names = [parse_segment_name(name) for name in files.list(directory)]
    inside = [
        name.offset
        for name in names
        if name and name.kind == LOG and not name.suffix and base_offset < name.offset < end_offset
    ]
    swap.close()
    for offset in reversed(inside):
        remove_segment_files(files, directory, offset)
    aborted = segment_path(directory, base_offset, TRANSACTION_INDEX, SWAP)
    if files.exists(aborted):
        files.rename(aborted, segment_path(directory, base_offset, TRANSACTION_INDEX))
    for kind in (INDEX, TIME_INDEX):
        for suffix in ("", SWAP):
            path = segment_path(directory, base_offset, kind, suffix)
            if files.exists(path):
                files.remove(path)
    files.sync_directory(
        directory
    )  # the log is renamed last: while it is `.swap`, a start repeats all of this
    files.rename(segment_path(directory, base_offset, LOG, SWAP), segment_path(directory, base_offset, LOG))
    files.sync_directory(directory)
