"""Splits: which row groups and journal frames there are to judge, found without reading them.

Owns the list of work, and which input is visibly unreadable. Must not know Spark, judges.

A split is the unit that a task reads: one row group of a part (its three files together), or a run of frames
of a journal that is not sealed yet. A run that is in a readable part and in a journal belongs only to the
part's split. A trace id that is in two row groups belongs to the first, and the second split knows
that it is repeated.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from attrs import evolve, field, frozen

from fencepost.mining.inputs.walk import identity
from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.journal import Frame, Scan, scan
from fencepost.traces.parquet.row_groups import RowGroup, groups_of, read_group
from fencepost.traces.store import TraceStore, trace_ids_of

JOURNAL_SPLIT_BYTES = 4 * 1024 * 1024
"""Compressed bytes of journal frames in one split; they grow some twenty-fold as columns."""


@frozen(kw_only=True)
class Split:
    """One unit of reading."""

    # The folder as the caller named it.
    source: str
    # The file and its part, for a person.
    place: str
    # Compressed.
    size_bytes: int
    # A row group of a part; None: frames of the journal.
    group: RowGroup | None = None
    journal: Path | None = None
    frames: tuple[Frame, ...] = field(default=(), repr=False)
    # Trace ids of the row group that are in an earlier one too.
    repeated: tuple[int, ...] = ()


@frozen(kw_only=True)
class Unreadable:
    """A piece of the input that could not be read."""

    source: str
    place: str
    reason: str
    # The run, -1 where a whole file or row group is meant.
    trace_id: int = -1


@frozen(kw_only=True)
class Work:
    """Everything that the inputs hold: splits in the order of the inputs, and what could not even be
    opened."""

    splits: tuple[Split, ...]
    unreadable: tuple[Unreadable, ...]


def _journal_splits(source: str, journal: Path, frames: list[Frame]) -> Iterator[Split]:
    batch: list[Frame] = []
    size = 0
    for frame in [*frames, None]:
        if batch and (frame is None or size >= JOURNAL_SPLIT_BYTES):
            yield Split(
                source=source, place=str(journal), size_bytes=size, journal=journal, frames=tuple(batch)
            )
            batch, size = [], 0
        if frame is not None:
            batch.append(frame)
            size += frame.length


def _of_parts(source: str, store: TraceStore) -> Iterator[Split | Unreadable]:
    for lost in store.lost_parts():
        reason = f"{lost}: expected its file in traces/, saw none: the runs of this part are not judged"
        yield Unreadable(source=source, place=str(lost), reason=reason)
    for part in store.parts():
        try:
            groups = groups_of(part)
        except TraceError as error:
            yield Unreadable(source=source, place=str(part.traces), reason=str(error))
            continue
        for group in groups:
            if not (group.traces or group.operations or group.events or group.differs):
                continue
            place = f"{part.operations}, row group {group.index}"
            yield Split(source=source, place=place, size_bytes=group.size_bytes, group=group)


def _overlap(splits: list[Split]) -> bool:
    """Whether row groups may share a trace id; their footers say from where to where ids go, so that the ids
    need not be read."""
    ranges = sorted(
        (split.group.first_trace, split.group.last_trace)
        for split in splits
        if split.group is not None
        and split.group.first_trace is not None
        and split.group.last_trace is not None
    )
    return len(ranges) < len(splits) or any(above[0] <= below[1] for below, above in pairwise(ranges))


def _without_repeats(splits: list[Split]) -> tuple[list[Split], set[int]]:
    """(the splits of readable parts, each with the traces that are in an earlier one; all trace
    ids). A row group that turns out to be unreadable is reported by its task."""
    parts = {split.group.part.number: split.group.part for split in splits if split.group is not None}
    by_group: dict[tuple[int, int], list[int]] = {}
    for number, part in parts.items():
        with contextlib.suppress(TraceError):
            by_group.update({(number, index): ids for index, ids in enumerate(trace_ids_of(part))})
    seen: set[int] = set()
    known = []
    for split in splits:
        assert split.group is not None, f"not of a part: {split.place}"
        ids = by_group.get((split.group.part.number, split.group.index), [])
        known.append(evolve(split, repeated=tuple(sorted(seen.intersection(ids)))))
        seen.update(ids)
    return known, seen


def _of_journals(source: str, store: TraceStore, sealed: set[int]) -> Iterator[Split | Unreadable]:
    for journal in store.journals():
        try:
            found: Scan = scan(journal)
        except TraceError as error:
            yield Unreadable(source=source, place=str(journal), reason=str(error))
            continue
        for offset in found.damaged:
            reason = "a run's checksum fails; run its seed again"
            yield Unreadable(source=source, place=f"{journal}, byte {offset}", reason=reason)
        frames = [frame for frame in found.frames if frame.trace_id not in sealed]
        sealed.update(frame.trace_id for frame in frames)
        yield from _journal_splits(source, journal, frames)


def work_of(inputs: list[Path]) -> Work:
    """The splits of all inputs. Raises FencepostError for no input, the same one twice, or one that is no
    folder of traces."""
    if not inputs:
        raise FencepostError(expected="a folder of traces", seen="none", where="the inputs")
    if len({identity(path) if path.exists() else path for path in inputs}) != len(inputs):
        raise FencepostError(
            expected="each folder of traces once", seen="the same one twice", where="the inputs"
        )
    splits: list[Split] = []
    unreadable: list[Unreadable] = []
    for path in inputs:
        store, source = TraceStore.open(path.absolute()), str(path)
        found = list(_of_parts(source, store))
        own = [one for one in found if isinstance(one, Split)]
        sealed: set[int] = set()
        if store.journals() or _overlap(own):
            own, sealed = _without_repeats(own)
        in_journals = list(_of_journals(source, store, sealed))
        splits += [*own, *(one for one in in_journals if isinstance(one, Split))]
        unreadable += [one for one in (*found, *in_journals) if isinstance(one, Unreadable)]
    return Work(splits=tuple(splits), unreadable=tuple(unreadable))


def profiles_of(splits: Iterable[Split]) -> tuple[Counter[str], int]:
    """How many traces the splits have of each profile, and how many further ones in journals, which do not
    say it. What cannot be read has none; its task says why."""
    counts: Counter[str] = Counter()
    frames = 0
    for split in splits:
        frames += len(split.frames)
        if split.group is not None:
            with contextlib.suppress(TraceError):
                read = read_group(split.group.part.traces, "traces", split.group.index, columns=["profile"])
                counts.update(str(profile) for profile in read.column("profile").to_pylist())
    return counts, frames
