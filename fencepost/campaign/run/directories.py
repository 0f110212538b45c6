"""The directory of a replica when a run is over: files that belong to no segment, index entries that point at
no batch, and leader epochs, producers and aborted transactions that its batches contradict.

Owns the comparison of names, index entries, epochs, producers and transactions with the log, in their
plainest form. It reads past the simulated disk, so that no fault of the disk strikes it and no call is
counted. Must not know when it is asked.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from fencepost.campaign.observed.timed import HEADER_BYTES, Timed, batches_in

SIDECARS = ("index", "timeindex", "txnindex", "snapshot")
CHECKPOINT, TEMPORARY = "leader-epoch-checkpoint", ".tmp"
ATTRIBUTES, PRODUCER_ID, PRODUCER_EPOCH, SEQUENCE = slice(21, 23), slice(43, 51), slice(51, 53), slice(53, 57)
"""Bytes of a batch."""
TRANSACTIONAL, CONTROL = 0x10, 0x20
"""Bits of the lower byte of the attributes."""
MARKER_TYPE, ABORT = HEADER_BYTES + 8, 0
"""Where the only record of a marker's batch says how the transaction ends: after five bytes of the record and
the two of its key's version, the lower one of two."""
SEQUENCES = 1 << 31
"""After the largest sequence comes 0."""
MOST = 5
"""Of one replica: one is enough to convict."""
Segments = list[tuple[Any, dict[int, Timed]]]
"""The segments of a log, each with its batches by their positions."""


def wrong_files(log: Any) -> list[str]:
    """What is wrong with the files of a log, each in one clause.

    Args:
        log: of a partition; of one on a real disk only the names are compared.
    """
    if not all(hasattr(segment.file, "_file") for segment in log.segments.all):  # real files
        return sorted(_strays(log))[:MOST]
    segments = [(segment, dict(batches_in(segment.file._file.content))) for segment in log.segments.all]
    found = [*_strays(log), *(one for segment, batches in segments for one in _misleading(segment, batches))]
    if not log.files._struck:  # rot may have changed any byte since
        found += (*_epochs(log, segments), *_producers(log, segments), *_aborted(log, segments))
    return sorted(found)[:MOST]


def _epochs(log: Any, segments: Segments) -> Iterator[str]:
    """The checkpoint says what the log has in memory, and each batch is of the epoch of its offset."""
    entries = log.epochs.entries
    file = log.files._names.find_file(f"{log.directory}/{CHECKPOINT}")
    lines = [] if file is None else bytes(file.content).decode("utf-8", "replace").split("\n")[2:-1]
    written = [tuple(map(int, line.split())) for line in lines]
    if written != [tuple(entry) for entry in entries]:
        yield f"epochs {entries} are checkpointed as {written}"
    starts = [start for _, start in entries]
    for _, batches in segments:
        for batch in batches.values():
            if batch.last < log.log_start_offset:
                continue
            place = bisect_right(starts, max(batch.base, log.log_start_offset)) - 1
            if place < 0 or entries[place][0] != batch.leader_epoch:
                yield f"epochs {entries} contradict the batch {batch}"
                return


def _producers(log: Any, segments: Segments) -> Iterator[str]:
    """Of each producer the log remembers the last batch. Compaction may have removed that."""
    last: dict[int, tuple[int, int, int, int]] = {}
    for segment, batches in () if log.options.compact or not log.options.contiguous else segments:
        content = segment.file._file.content
        for at, batch in batches.items():
            header = content[at : at + HEADER_BYTES]
            producer = int.from_bytes(header[PRODUCER_ID], signed=True)
            if producer >= 0 and not header[ATTRIBUTES][1] & CONTROL:
                epoch = int.from_bytes(header[PRODUCER_EPOCH], signed=True)
                last[producer] = epoch, int.from_bytes(header[SEQUENCE], signed=True), batch.base, batch.last
    for producer, (epoch, sequence, base, offset) in sorted(last.items()):
        known = log.producers.producers.get(producer)
        if known is None or known.epoch != epoch or not known.batches or sequence < 0:
            continue
        seen = known.batches[-1].last_sequence, known.batches[-1].last_offset
        expected = (sequence + offset - base) % SEQUENCES, offset
        if seen != expected:
            yield f"producer {producer} is known by {seen}, and its last batch is {expected}"


def _aborted(log: Any, segments: Segments) -> Iterator[str]:
    """The transaction index of a segment has each aborted transaction with a marker in it, from its first
    record to the marker. Those that began before the log does are not asked for."""
    opened: dict[int, int] = {}
    for segment, batches in () if log.options.compact or not log.options.contiguous else segments:
        content = segment.file._file.content
        expected = []
        for at, batch in batches.items():
            attributes = content[at + ATTRIBUTES.stop - 1]
            if not attributes & TRANSACTIONAL:  # a marker is transactional, too
                continue
            producer = int.from_bytes(content[at : at + HEADER_BYTES][PRODUCER_ID], signed=True)
            if attributes & CONTROL:
                first = opened.pop(producer, None)
                if first is not None and content[at + MARKER_TYPE] == ABORT:
                    expected.append((producer, first, batch.last))
            else:
                opened.setdefault(producer, batch.base)
        index = segment.transactions
        content = index._entries  # a cut is in the file when it is written next
        if content is None:
            file = log.files._names.find_file(index.path)
            content = b"" if file is None else file.content
        entries = index.FORMAT.iter_unpack(bytes(content))
        began = segments[0][0].base_offset
        seen = [(producer, first, last) for _, producer, first, last, _ in entries if first >= began]
        if seen != expected:
            yield f"transaction index of {segment.base_offset}: {seen}, and the markers say {expected}"


def _strays(log: Any) -> Iterator[str]:
    """A snapshot of producers may also be inside of the log, where the log once ended. A crash leaves a half
    written checkpoint, which the next one overwrites."""
    bases = [segment.base_offset for segment in log.segments.all]
    wanted = {f"{base:020}.log" for base in bases}
    allowed = wanted | {f"{base:020}.{kind}" for base in bases for kind in SIDECARS}
    allowed |= {CHECKPOINT, CHECKPOINT + TEMPORARY}
    names = set(log.files.list(log.directory))
    for name in names - allowed:
        stem, _, kind = name.partition(".")
        inside = stem.isdigit() and bases[0] <= int(stem) <= log.log_end_offset
        if not (kind == "snapshot" and inside):
            yield f"{name} belongs to no segment"
    for name in wanted - names:
        yield f"{name} is missing"


def _misleading(segment: Any, batches: dict[int, Timed]) -> Iterator[str]:
    """An entry of an offset index has the position and the last offset of a batch. One of a time index has
    the largest time so far, and the last offset of the first batch with it."""
    offsets, times = segment.indexes.offsets, segment.indexes.times
    if not offsets._entries and not times._entries:
        return
    base = segment.base_offset
    for offset, position in offsets.FORMAT.iter_unpack(offsets._entries or b""):
        batch = batches.get(position)
        if batch is None or batch.last != base + offset:
            yield f"offset index of {base}: {base + offset} at {position}, where {batch} is"
    largest: dict[int, int] = {}
    latest = -1
    for batch in batches.values():
        if batch.timestamp_ms > latest:
            latest = largest[batch.last] = batch.timestamp_ms
    for timestamp_ms, offset in times.FORMAT.iter_unpack(times._entries or b""):
        if largest.get(base + offset) != timestamp_ms:
            yield f"time index of {base}: {timestamp_ms} at {base + offset}, where no batch is the latest"
