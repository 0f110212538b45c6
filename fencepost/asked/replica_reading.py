"""Reading a part of one replica's log by Fetch, as a client does that does not choose.

Owns the loop and its bounds. Must not know what the records mean.
"""

from collections.abc import Iterator

from attrs import define, evolve, field

from fencepost.asked.step import Part, Reply, Step, error_of
from fencepost.impl.log.batch.batch_file import whole_batches
from fencepost.impl.log.batch.header import BatchHeader, CorruptBatchError, read_headers
from fencepost.impl.log.batch.record_batch import Record, each_record
from fencepost.impl.messages.broker_api import NO_EPOCH, FetchPartition, FetchRequest
from fencepost.impl.messages.topic_partition import TopicPartition

FETCH_BYTES = 1024 * 1024
"""Of one answer: max.partition.fetch.bytes of Kafka's consumers."""
MOST_FETCHES = 64
"""Of one replica in one round. A run writes a few MiB; what is beyond it is not read, and the event says
so."""
CORRUPT = "CORRUPT_MESSAGE"


@define(eq=False)
class Extent:
    """What was read of a replica."""

    # Batches with their records, in the order of offsets.
    batches: list[tuple[BatchHeader, tuple[Record, ...]]] = field(factory=list)
    # From where, and up to where: everything between them was read.
    start: int = 0
    end_offset: int = 0
    high_watermark: int = -1
    log_start_offset: int = -1
    # Why reading ended before the high watermark; empty if it did not.
    error: str = ""
    # The replies as one: the time of the first question and of the last answer. None: the broker was not
    # asked.
    whole: Reply | None = None
    # Whether there was more than the answers hold.
    cut: bool = False


def read(step: Step, start: int, leader_epoch: int = NO_EPOCH, most: int = MOST_FETCHES) -> Part:
    """Read from an offset up to the replica's high watermark, as it is in the answers.

    Args:
        step: whom is asked about which partition; its request does not count.
        start: the first offset.
        leader_epoch: in which the leader is asked; NO_EPOCH for any replica.
        most: how many answers.

    Returns:
        The extent.
    """
    assert step.key is not None, "a fetch is about a partition"
    extent = Extent(start=start, end_offset=start)
    for number in range(most):
        extent.cut = number == most - 1
        reply = yield evolve(step, request=_fetch(step.key, extent.end_offset, leader_epoch))
        assert reply is not None, "a step is answered by a reply"
        if reply.skipped:
            extent.cut = extent.whole is not None
            break
        extent.whole = reply if extent.whole is None else evolve(extent.whole, answered=reply.answered)
        if not _take(extent, reply):
            extent.cut = bool(extent.error) and bool(extent.batches)
            break
    return extent


def _fetch(key: TopicPartition, offset: int, leader_epoch: int) -> FetchRequest:
    return FetchRequest(
        correlation_id=0,
        replica_id=-1,
        max_wait=0,
        max_bytes=FETCH_BYTES,
        partitions=(FetchPartition(partition=key, offset=offset, leader_epoch=leader_epoch),),
        from_follower=leader_epoch == NO_EPOCH,
    )


def _take(extent: Extent, reply: Reply) -> bool:
    """Whether there may be more."""
    if error := error_of(reply):
        extent.error = error
        return False
    (part,) = reply.message.partitions
    if error := error_of(evolve(reply, message=part)):
        extent.error = error
        return False
    extent.high_watermark, extent.log_start_offset = part.high_watermark, part.log_start_offset
    try:
        whole = part.records[: whole_batches(part.records, below=1 << 62)]  # the last one may be torn
        if part.records and not whole:
            extent.error = CORRUPT
        for header, records in _decoded(whole):
            if header.next_offset > extent.end_offset:
                extent.batches.append((header, records))
                extent.end_offset = header.next_offset
    except CorruptBatchError:
        extent.error = CORRUPT
        return False
    return bool(whole) and extent.end_offset < extent.high_watermark


def _decoded(data: bytes) -> Iterator[tuple[BatchHeader, tuple[Record, ...]]]:
    for header in read_headers(data):
        yield header, tuple(each_record(data, header))
