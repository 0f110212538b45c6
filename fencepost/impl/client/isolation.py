"""What a reader of committed records is shown of what it fetched (isolation.level=read_committed, KIP-98).

Owns the walk over batches and aborted transactions. Must not know requests. The leader says which
transactions were aborted; an aborted one is skipped from its first offset to its marker.
"""

from collections.abc import Iterator

from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.header import BatchHeader, read_headers
from fencepost.impl.log.batch.record_batch import read_records


def committed_batches(
    data: bytes, aborted: tuple[tuple[int, int], ...]
) -> Iterator[tuple[BatchHeader, bool]]:
    """(header, whether its records are to be shown) of each batch. aborted: (producer id, first offset),
    sorted by offsets. Raises CorruptBatchError."""
    waiting, skipped = list(aborted), set[int]()
    for header in read_headers(data):
        while waiting and waiting[0][1] <= header.last_offset:
            skipped.add(waiting.pop(0)[0])
        if header.is_control:
            marker = next((end_transaction_of(record) for record in read_records(data, header)), None)
            if marker is not None and not marker.commit:
                skipped.discard(header.producer_id)
            yield header, False
        else:
            yield header, not (header.is_transactional and header.producer_id in skipped)
