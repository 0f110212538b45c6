"""What a reader of committed records is shown of what it fetched (isolation.level=read_committed, KIP-98).

Owns the walk over batches and aborted transactions. Must not know requests. The leader says which
transactions were aborted; an aborted one is skipped from its first offset to its marker.
"""

from collections import deque
from collections.abc import Iterator
from operator import itemgetter

from fencepost.impl.log.batch.control_records import end_transaction_of
from fencepost.impl.log.batch.header import BatchHeader, read_headers
from fencepost.impl.log.batch.record_batch import read_records


def committed_batches(
    data: bytes, aborted: tuple[tuple[int, int], ...]
) -> Iterator[tuple[BatchHeader, bool]]:
    """(header, whether its records are to be shown) of each batch.

    Args:
        data: what was fetched.
        aborted: (producer id, first offset) in any order. Kafka's brokers send them by the offsets of their
            markers, and of two transactions the one that began first may end last.

    Raises:
        CorruptBatchError: by the iterator.
    """
    waiting, skipped = deque(sorted(aborted, key=itemgetter(1))), set[int]()
    for header in read_headers(data):
        while waiting and waiting[0][1] <= header.last_offset:
            skipped.add(waiting.popleft()[0])
        if header.is_control:
            marker = next((end_transaction_of(record) for record in read_records(data, header)), None)
            if marker is not None and not marker.commit:
                skipped.discard(header.producer_id)
            yield header, False
        else:
            yield header, not (header.is_transactional and header.producer_id in skipped)
