"""The producer snapshots of a log directory: written at an offset, loaded, replayed up to the log's end; and
the transaction indexes, which the same replay rebuilds.

Owns which snapshot is used. Must not know the rules of sequence numbers. A snapshot beyond the end of the log
describes batches that no longer exist. It is removed durably before anything else is written there. Otherwise
a power loss could bring it back after the log has grown past it with other batches.
"""

from collections.abc import Iterable, Sequence

from fencepost.impl.core.file_system import FileSystem
from fencepost.impl.log.batch.batch_file import chunks
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_of
from fencepost.impl.log.batch.header import BatchHeader, read_headers
from fencepost.impl.log.batch.record_batch import CorruptBatchError, each_record
from fencepost.impl.log.checkpoint.checkpoint_file import read_file
from fencepost.impl.log.index.transaction_index import AbortedTransaction
from fencepost.impl.log.layout import SNAPSHOT, parse_segment_name, segment_path
from fencepost.impl.log.producer.producer_state import EndedTransaction, ProducerState
from fencepost.impl.log.producer.snapshot import decode_snapshot, encode_snapshot
from fencepost.impl.log.segment.segment import Segment


def write_snapshot(files: FileSystem, directory: str, offset: int, state: ProducerState) -> None:
    """Write a snapshot. The content is durable; the name becomes durable with the next sync of the directory.

    Args:
        files: the file system.
        directory: the replica's directory.
        offset: the offset of the state; it names the file.
        state: the state of the producers.
    """
    path = segment_path(directory, offset, SNAPSHOT)
    if files.exists(path):
        files.remove(path)
    file = files.open(path)
    file.append(encode_snapshot(state))
    file.sync()
    file.close()


def snapshot_offsets(files: FileSystem, directory: str) -> list[int]:
    """The offsets of all snapshots.

    Args:
        files: the file system.
        directory: the replica's directory.

    Returns:
        the offsets, ascending.
    """
    names = [parse_segment_name(name) for name in files.list(directory)]
    return [name.offset for name in names if name and name.kind == SNAPSHOT and not name.suffix]


def remove_snapshots(files: FileSystem, directory: str, *, above: int | None = None, below: int = 0) -> bool:
    """Remove snapshots. Sync the directory afterwards.

    Args:
        files: the file system.
        directory: the replica's directory.
        above: remove those with a larger offset; None: none.
        below: remove those with a smaller offset; 0: none.

    Returns:
        whether there were any.
    """
    doomed = [
        offset
        for offset in snapshot_offsets(files, directory)
        if offset < below or (above is not None and offset > above)
    ]
    for offset in doomed:
        files.remove(segment_path(directory, offset, SNAPSHOT))
    return bool(doomed)


def load_producers(
    files: FileSystem,
    directory: str,
    segments: Sequence[Segment],
    end_offset: int,
    state_type: type[ProducerState],
    *,
    recovered_from: int | None = None,
) -> ProducerState:
    """The state at `end_offset`: the latest readable snapshot plus the batches after it. Those that cannot
    be read are removed.

    recovered_from: the segments from this offset on have lost their aborted transactions, which are noted
    again. Until the next `sync` of the segment, a crash loses them again.
    """
    state = state_type(end_offset=segments[0].base_offset)
    newest = end_offset if recovered_from is None else min(end_offset, recovered_from)
    for offset in reversed(snapshot_offsets(files, directory)):
        if segments[0].base_offset <= offset <= end_offset:
            path = segment_path(directory, offset, SNAPSHOT)
            found = decode_snapshot(read_file(files, path), offset)
            if found is None:
                files.remove(path)  # a crash left it while it was written (Kafka: CorruptSnapshotException)
            elif offset <= newest:
                state = state_type(found.producers, offset)
                break
    for segment in segments:
        if segment.base_offset < end_offset and segment.next_offset > state.end_offset:
            _replay(segment, state, note=recovered_from is not None and segment.base_offset >= recovered_from)
    state.end_offset = end_offset
    return state


def secure_snapshot(
    files: FileSystem, directory: str, segments: Sequence[Segment], state_type: type[ProducerState]
) -> None:
    """Rebuild the snapshot at the base of the last segment if it is lost or bad (Kafka:
    rebuildProducerState). Retention may soon delete the batches, and then their producers would be known in
    memory only.

    Args:
        files: the file system.
        directory: the replica's directory.
        segments: the segments of the log.
        state_type: the class of the producer state.
    """
    base = segments[-1].base_offset
    if len(segments) == 1:
        return
    if decode_snapshot(read_file(files, segment_path(directory, base, SNAPSHOT)), base) is not None:
        return
    state = load_producers(files, directory, segments, base, state_type)
    if state.producers:
        write_snapshot(files, directory, base, state)
        files.sync_directory(directory)


def note_aborted(segment: Segment, state: ProducerState, ended: EndedTransaction | None) -> None:
    """If a transaction was aborted, write it into the index of the segment with its marker. state: right
    after the marker."""
    if ended is not None and ended.aborted:
        segment.transactions.append(
            AbortedTransaction(
                producer_id=ended.producer_id,
                first_offset=ended.first_offset,
                last_offset=ended.last_offset,
                last_stable_offset=state.stable_after(ended),
            )
        )


def find_aborted_again(
    files: FileSystem,
    directory: str,
    segments: Sequence[Segment],
    segment: Segment,
    state_type: type[ProducerState],
) -> None:
    """Rebuild the transaction index of a segment. It is durable, except for its name.

    Args:
        files: the file system.
        directory: the replica's directory.
        segments: the segments of the log.
        segment: the one with the lost index.
        state_type: the class of the producer state.
    """
    state = load_producers(files, directory, segments, segment.base_offset, state_type)
    segment.transactions.reset()
    _replay(segment, state, note=True)
    segment.transactions.write(sync=True)


def settle_aborted(files: FileSystem, directory: str, segments: Iterable[Segment]) -> None:
    """Make the transaction indexes that recovery rebuilt durable, including their names.

    Args:
        files: the file system.
        directory: the replica's directory.
        segments: the segments of these indexes.
    """
    written = [segment for segment in segments if len(segment.transactions)]
    for segment in written:
        segment.transactions.write(sync=True)
    if written:
        files.sync_directory(directory)


def _replay(segment: Segment, state: ProducerState, *, note: bool) -> None:
    start = segment.position_of(state.end_offset)
    if start is None:
        return
    for _, data in chunks(segment.file, start.position, segment.size):
        for header in read_headers(data, check_crc=False):
            if header.base_offset >= state.end_offset:
                ended = state.update(header, marker_of(header, data))
                if note:
                    note_aborted(segment, state, ended)


def marker_of(header: BatchHeader, data: bytes) -> EndTransaction | None:
    """The transaction marker in a batch, if it has one.

    A control batch with a correct checksum and invalid records was written so, by a broker that accepted it
    from a client. It is not a marker, and the log continues after it (docs/decisions/record-validation.md).

    Args:
        header: the header of the batch.
        data: the buffer that holds it.

    Returns:
        the marker, or None.
    """
    if not header.is_control:
        return None
    try:
        first = next(each_record(data, header), None)
    except CorruptBatchError:
        return None
    return None if first is None else end_transaction_of(first)
