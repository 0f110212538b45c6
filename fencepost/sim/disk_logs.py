"""The logs on a disk, by their files: what a power loss cannot take from them, and what a broker asked to
sync.

Owns the step from durable bytes and names to log offsets, for the simulated and the mounted disk. The batches
are read by impl/log. Must not know a broker's memory, or the options of a topic: so every end comes for a log
without gaps and for one that may have been compacted.

A log's durable part is what every power loss leaves. Its end is the lowest end over all orders of names that
its directory may come back with, and in each the log ends where a segment has bytes that no sync has made
durable. A name that is not durable counts if the broker should have synced its directory. It should have if
it synced the file later, unless it called for that sync and the disk lied or failed.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol, TypeGuard, TypeVar

from attrs import define, field, frozen

from fencepost.impl.log.batch.batch_file import checked_frames
from fencepost.impl.log.batch.record_batch import CorruptBatchError
from fencepost.impl.log.checkpoint.log_checkpoints import parse_offsets
from fencepost.impl.log.layout import CLEAN_SHUTDOWN, LOG, RECOVERY_POINTS, SWAP, parse_segment_name
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.sim.disk_names import Directory, Names, Step
from fencepost.sim.disk_syncs import Syncs


class KeptFile(Protocol):
    """A file of a disk."""

    @property
    def syncs(self) -> Syncs:
        """Those that were called."""
        ...

    def shown(self) -> bytes:
        """The content, as a process sees it."""
        ...

    def sure(self) -> bytes:
        """The bytes at the beginning that no power loss changes."""
        ...


F = TypeVar("F", bound=KeptFile)


@frozen(kw_only=True)
class LogOnDisk:
    """One replica's log at a power loss, in offsets. An end is the first offset that is not in it."""

    topic: str
    partition: int
    # The end of what no power loss takes, if the log has no gaps.
    end: int
    # The same if gaps between offsets are normal.
    end_over_gaps: int
    # The end of what the broker had asked the disk to sync, whether the disk obeyed or not; -1: not known.
    asked: int = -1
    # The end of what the broker had written; -1: not known, because bytes before that are damaged.
    written: int = -1
    # The log's recovery point in the broker's checkpoint; -1: it has none.
    recovery_point: int = -1
    # The first offset of the newest segment: a roll has closed what is below it. -1: not known.
    rolled: int = -1
    # Whether the marker of a clean stop was there.
    clean: bool = False


@frozen
class _Segment:
    """One file of batches."""

    base: int
    # (base offset, last offset) of the whole ones.
    batches: tuple[tuple[int, int], ...]
    # They are all that there is of the file, and may be there after a power loss.
    whole: bool


@define(eq=False)
class _Reader:
    """Reads each file once."""

    # By what was read.
    cache: dict[bytes, tuple[tuple[int, int, int], ...]] = field(factory=dict)

    def batches(self, data: bytes) -> tuple[tuple[int, int, int], ...]:
        """(end position, base offset, last offset) of the whole batches at the beginning of `data`."""
        found = self.cache.get(data)
        if found is None:
            read: list[tuple[int, int, int]] = []
            try:
                for frame in checked_frames(data):
                    read.append((frame.position + frame.size, frame.base_offset, frame.last_offset))
            except CorruptBatchError:
                pass  # the log ends here
            found = self.cache[data] = tuple(read)
        return found

    def sure(self, base: int, file: KeptFile) -> _Segment:
        """A file as every power loss leaves it."""
        data = file.sure()
        found = self.batches(data)
        whole = data == file.shown() and (found[-1][0] if found else 0) == len(data)
        return _Segment(base, tuple(batch[1:] for batch in found), whole)

    def below(self, base: int, file: KeptFile, size: int) -> _Segment | None:
        """The first `size` bytes of a file, as a process sees it; None if they are damaged."""
        data = file.shown()
        found = [batch for batch in self.batches(data) if batch[0] <= size]
        if (found[-1][0] if found else 0) < size:
            return None
        return _Segment(base, tuple(batch[1:] for batch in found), size == len(data))

    def written(self, base: int, file: KeptFile) -> _Segment:
        """The whole batches of a file, as a process sees it."""
        data = file.shown()
        found = self.batches(data)
        whole = (found[-1][0] if found else 0) == len(data)
        return _Segment(base, tuple(batch[1:] for batch in found), whole)


def end_of(segments: Iterable[_Segment], *, gaps: bool) -> int:
    """Where a log of these segments surely ends.

    Args:
        segments: in any order.
        gaps: whether gaps between offsets are normal.

    Returns:
        the first offset after them; 0 for none.
    """
    end, known = 0, False
    for segment in sorted(segments, key=lambda each: each.base):
        if known and (segment.base < end or (segment.base > end and not gaps)):
            return min(end, segment.base)
        end, known = segment.base, True
        for first, last in segment.batches:
            if first < end or (first > end and not gaps):
                return end
            end = last + 1
        if not segment.whole:
            return end
    return end


def logs_on(
    names: Names[F], *, under_way: Iterable[str] = (), threads: bool = False
) -> tuple[LogOnDisk, ...]:
    """The logs in the directories at the top of a disk.

    Args:
        names: of the disk.
        under_way: paths that were cut, or got another name, in the step in which the power failed. Of a log
            with such a segment it is not known what was asked.
        threads: whether the power may fail between any two calls of the broker. Then a name should have been
            synced only after a second sync of its file: a flush of Kafka syncs the file first, then the
            directory. The top, in which the directories have their names, is never synced by Kafka, so that
            it is demanded only of a broker without threads. What a roll closed is not known either: Kafka
            syncs it in another thread, after the new segment was made.

    Returns:
        one for each directory with segments, by name.
    """
    reader, found = _Reader(), []
    top = names.find("")
    assert isinstance(top, Directory)
    points = parse_offsets(_shown(top, RECOVERY_POINTS))
    clean = CLEAN_SHUTDOWN in top.names
    unknown = {path.rpartition("/")[0] for path in under_way if _is_of_batches(path.rpartition("/")[2])}

    owed = partial(_owed, threads=threads)
    tops = list(names.outcomes("", owed))
    for name, directory in sorted(top.names.items()):
        key = _partition_of(name)
        shown = _segments(directory.names) if isinstance(directory, Directory) else {}
        if key is None or not shown:
            continue
        ends = [0, 0]
        if all(outcome.get(name) is directory for outcome in tops):
            states = [_sure(reader, outcome) for outcome in names.outcomes(name, owed)]
            ends = [min(_end_of_sure(state, gaps=gaps) for state in states) for gaps in (False, True)]
        asked, written = _calls(reader, shown)
        if name in unknown:
            asked = -1
        found.append(
            LogOnDisk(
                topic=key.topic,
                partition=key.partition,
                end=ends[0],
                end_over_gaps=ends[1],
                asked=asked,
                written=written,
                recovery_point=points.get(key, -1),
                rolled=-1 if threads else max(shown),
                clean=clean,
            )
        )
    return tuple(found)


def _owed(step: Step, *, threads: bool) -> bool:
    """Whether a broker should have synced the directory after this step."""
    for _, name, thing in step.changes:
        if _synced_since(thing, name, step.taken, threads=threads):
            return True
        if isinstance(thing, Directory) and not threads:
            inside = thing.names.items()
            if any(_synced_since(file, at, step.taken, threads=False) for at, file in inside):
                return True
    return False


def _calls(reader: _Reader, shown: Mapping[int, KeptFile]) -> tuple[int, int]:
    """The ends of what was asked for and of what was written; -1, -1 if bytes that were asked for are
    damaged."""
    asked = []
    for base, file in shown.items():
        segment = reader.below(base, file, file.syncs.asked)
        if segment is None:
            return -1, -1
        asked.append(segment)
    written = [reader.written(base, file) for base, file in shown.items()]
    return end_of(asked, gaps=True), end_of(written, gaps=True)


def _sure(reader: _Reader, outcome: Mapping[str, object]) -> tuple[list[_Segment], list[_Segment]]:
    """The segments of one order of names, and those that a compaction is about to put in place."""
    return (
        [reader.sure(base, file) for base, file in _segments(outcome).items()],
        [reader.sure(base, file) for base, file in _segments(outcome, SWAP).items()],
    )


def _end_of_sure(state: tuple[list[_Segment], list[_Segment]], *, gaps: bool) -> int:
    """A segment that compaction has written, and that is not whole, may have taken what it replaces along."""
    segments, swaps = state
    return min([end_of(segments, gaps=gaps), *(swap.base for swap in swaps if not swap.whole)])


def _segments(names: Mapping[str, object], suffix: str = "") -> dict[int, KeptFile]:
    """The files of batches in a directory, by base offset."""
    parsed = ((parse_segment_name(name), thing) for name, thing in names.items())
    return {
        name.offset: thing
        for name, thing in parsed
        if name is not None and name.kind == LOG and name.suffix == suffix and _is_file(thing)
    }


def _is_file(thing: object) -> TypeGuard[KeptFile]:
    return thing is not None and not isinstance(thing, Directory)


def _is_of_batches(name: str, *suffixes: str) -> bool:
    """Whether this is the name of a file of batches, with one of these suffixes if there are any."""
    parsed = parse_segment_name(name)
    return parsed is not None and parsed.kind == LOG and (not suffixes or parsed.suffix in suffixes)


def _synced_since(thing: object | None, name: str, moment: int, *, threads: bool) -> bool:
    """Whether a file of batches was synced after this moment; threads: twice."""
    if not _is_of_batches(name, "") or not _is_file(thing):
        return False
    return (thing.syncs.before_last if threads else thing.syncs.last) > moment


def _partition_of(name: str) -> TopicPartition | None:
    topic, _, number = name.rpartition("-")
    if not topic or not (number.isascii() and number.isdecimal()):
        return None
    return TopicPartition(topic, int(number))


def _shown(directory: Directory, name: str) -> bytes:
    file = directory.names.get(name)
    return file.shown() if _is_file(file) else b""
