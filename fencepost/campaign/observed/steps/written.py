"""What a log holds, read from the simulated files batch by batch.

Owns the decoding of coordinators' records for the models of steps. It reads past the disk, so that no fault
of the disk strikes it and no call is counted. Must not know groups or transactions.
"""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from fencepost.campaign.observed.timed import HEADER_BYTES, LENGTH, PREFIX_BYTES, batches_in
from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.header import CorruptBatchError, read_header
from fencepost.impl.log.batch.record_batch import Record, read_records


@frozen(kw_only=True)
class Batch:
    """A batch of a coordinator's partition."""

    # Of the first record, and of the last one.
    base: int
    last: int
    records: tuple[Record, ...]
    # Of a transactional batch, or a marker; -1 of any other.
    producer_id: int
    # Whether the transaction commits, of a marker; None of any other batch.
    commits: bool | None
    leader_epoch: int


def batches_from(log: Any, offset: int, end: int | None = None) -> Iterator[Batch]:
    """The batches of a log that begin in a range of offsets, in order.

    Args:
        log: of a partition.
        offset: the first one.
        end: the one after the last; None: up to the end of the log.

    Yields:
        the batches, up to the first damaged one.
    """
    limit = log.log_end_offset if end is None else end
    segments = log.segments.all
    for nth, segment in enumerate(segments):
        if nth + 1 < len(segments) and segments[nth + 1].base_offset <= offset:
            continue
        content = segment.file._file.content
        for at, batch in batches_in(content):
            if batch.base >= limit:
                return
            if batch.base < offset:
                continue
            size = PREFIX_BYTES + int.from_bytes(content[at : at + HEADER_BYTES][LENGTH])
            data = bytes(content[at : at + size])
            try:
                header = read_header(data)
                records = read_records(data, header)
            except CorruptBatchError:
                return
            marker = end_transaction_of(records[0]) if header.is_control and records else None
            yield Batch(
                base=batch.base,
                last=batch.last,
                records=records,
                producer_id=header.producer_id if header.is_transactional else -1,
                commits=None if marker is None else marker.commit,
                leader_epoch=batch.leader_epoch,
            )
