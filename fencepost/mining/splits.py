"""Splits: which row groups and journal frames there are to judge, found without reading them.

Owns: the list of work and what of the input is unreadable from the outside. Must not know: Spark, judges.

A split is the unit that a task reads: one row group of a part (its three files together), or a run of frames of a journal that is
not sealed yet. A run that stands in a readable part and in a journal belongs to the part's split only.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from attrs import field, frozen

from fencepost.traces.errors import FencepostError, TraceError
from fencepost.traces.journal import Frame, Scan, scan
from fencepost.traces.parquet import Group, groups_of
from fencepost.traces.store import TraceStore, trace_ids_of

JOURNAL_SPLIT_BYTES = 4 * 1024 * 1024
"""Compressed bytes of journal frames in one split; they grow some twenty-fold as columns."""


@frozen(kw_only=True)
class Split:
    """One unit of reading. source: the folder as the caller named it; place: what a person would look at.

    group: a row group of a part; otherwise frames of the journal. size_bytes: compressed.
    """

    source: str
    place: str
    size_bytes: int
    group: Group | None = None
    journal: Path | None = None
    frames: tuple[Frame, ...] = field(default=(), repr=False)


@frozen(kw_only=True)
class Unreadable:
    """A piece of the input that could not be read. trace_id: the run, -1 where a whole file or row group is meant."""

    source: str
    place: str
    reason: str
    trace_id: int = -1


@frozen(kw_only=True)
class Work:
    """Everything that the inputs hold: splits in the order of the inputs, and what could not even be opened."""

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
    for part in store.parts():
        try:
            groups = groups_of(part)
        except TraceError as error:
            yield Unreadable(source=source, place=str(part.traces), reason=str(error))
            continue
        for group in groups:
            place = f"{part.operations}, row group {group.index}"
            yield Split(source=source, place=place, size_bytes=group.size_bytes, group=group)


def _sealed_ids(splits: list[Split]) -> set[int]:
    """Runs that readable parts hold; a row group that is not readable after all is its task's to report."""
    parts = {split.group.part.number: split.group.part for split in splits if split.group is not None}
    ids: set[int] = set()
    for part in parts.values():
        with contextlib.suppress(TraceError):
            ids.update(trace_id for group in trace_ids_of(part) for trace_id in group)
    return ids


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
    """The splits of all inputs. Raises FencepostError for no input, the same one twice, or one that is no folder of traces."""
    if not inputs:
        raise FencepostError(expected="a folder of traces", seen="none", where="the inputs")
    if len({path.resolve() for path in inputs}) != len(inputs):
        raise FencepostError(
            expected="each folder of traces once", seen="the same one twice", where="the inputs"
        )
    splits: list[Split] = []
    unreadable: list[Unreadable] = []
    for path in inputs:
        store, source = TraceStore.open(path.absolute()), str(path)
        of_parts = list(_of_parts(source, store))
        own = [found for found in of_parts if isinstance(found, Split)]
        sealed = _sealed_ids(own) if store.journals() else set()
        for found in [*of_parts, *_of_journals(source, store, sealed)]:
            if isinstance(found, Split):
                splits.append(found)
            else:
                unreadable.append(found)
    return Work(splits=tuple(splits), unreadable=tuple(unreadable))
