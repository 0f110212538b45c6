"""Reads two topics into a store, up to the ends that they had when it began.

Owns what is read, in which order, and how reading goes on after a kill. Must not know what is compared.
"""

from collections.abc import Callable

from attrs import frozen

from fencepost.audit.topics.topic_cluster import TopicCluster
from fencepost.audit.topics.topic_store import Extent, Side, TopicStore, row_of
from fencepost.impl.client.isolation import committed_batches
from fencepost.impl.log.batch.batch_file import whole_batches
from fencepost.impl.log.batch.header import CorruptBatchError, TimestampType
from fencepost.impl.log.batch.record_batch import each_record
from fencepost.impl.messages.broker_api import FetchedPartition
from fencepost.traces.errors import EnvironmentError_

MOST_EMPTY = 60
"""Answers without a record below the end, one after the other: half a minute."""


@frozen
class _Taken:
    """Of one answer: rows, the next offset, whether the broker sets the times."""

    rows: list[tuple[int | None, ...]]
    after: int
    append_time: bool


async def begin(store: TopicStore, source: TopicCluster, target: TopicCluster) -> None:
    """Write down the extents, first those of the source: what it had then may be at the target now.

    Args:
        store: an empty one.
        source: open.
        target: open, with the same partitions.
    """
    extents = []
    for side, cluster in ((Side.SOURCE, source), (Side.TARGET, target)):
        for partition in sorted(cluster.leaders):
            end = await cluster.end(partition)
            latest = max(end, await cluster.end(partition, committed=False))
            start = await cluster.start(partition)
            extents.append(
                Extent(
                    side=side,
                    partition=partition,
                    start=start,
                    end=max(start, end),
                    next=start,
                    latest=latest,
                )
            )
    store.begin(extents)


async def read_topic(
    store: TopicStore, side: Side, cluster: TopicCluster, done: Callable[[int], None]
) -> None:
    """Read what is not read yet.

    Args:
        store: begun.
        side: whose.
        cluster: open.
        done: called with the number of offsets after each answer.

    Raises:
        EnvironmentError_: an answer does not come, or is damaged.
    """
    for extent in store.extents(side):
        position, at, empty = store.next_position(extent), extent.next, 0
        while at < extent.end:
            fetched = await cluster.fetch(extent.partition, at)
            if fetched is None:
                after = await _moved_start(store, extent, cluster, at)
            else:
                taken = _taken(fetched, at, extent, cluster)
                store.add(extent, position, taken.rows, taken.after, taken.append_time)
                position, after = position + len(taken.rows), taken.after
                empty = empty + 1 if after == at else 0
                if empty >= MOST_EMPTY:
                    raise _damaged(cluster, extent, at, f"{empty} empty answers")
            done(after - at)
            at = after


async def _moved_start(store: TopicStore, extent: Extent, cluster: TopicCluster, at: int) -> int:
    start = await cluster.start(extent.partition)
    if start <= at:
        raise _damaged(cluster, extent, at, f"OFFSET_OUT_OF_RANGE, and a log that begins at {start}")
    store.mark(extent, "overtaken")
    after = min(start, extent.end)
    store.mark(extent, "next", after)
    return after


def _taken(fetched: FetchedPartition, at: int, extent: Extent, cluster: TopicCluster) -> _Taken:
    data = fetched.records[: whole_batches(fetched.records, below=1 << 62)]  # the last one may be cut off
    if fetched.records and not data:
        raise _damaged(cluster, extent, at, "bytes that are no whole batch")
    rows, after, append_time = [], at, False
    try:
        for header, visible in committed_batches(data, fetched.aborted):
            after = max(after, header.next_offset)
            if visible:
                append_time = append_time or header.timestamp_type is TimestampType.LOG_APPEND
                rows += [row_of(one) for one in each_record(data, header) if at <= one.offset < extent.end]
    except CorruptBatchError as error:
        raise _damaged(cluster, extent, at, str(error)) from None
    return _Taken(rows, after, append_time)


def _damaged(cluster: TopicCluster, extent: Extent, at: int, seen: str) -> EnvironmentError_:
    return EnvironmentError_(
        expected=f"the records of partition {extent.partition} from offset {at} on",
        seen=seen,
        where=f"the {cluster.place.word} {cluster.place.text}",
        hint="--resume goes on where this call ended",
    )


async def see_growth(store: TopicStore, source: TopicCluster) -> None:
    """Write down which partitions of the source went on since the comparison began.

    Args:
        store: begun.
        source: open.
    """
    for extent in store.extents(Side.SOURCE):
        if await source.end(extent.partition, committed=False) > extent.end:
            store.mark(extent, "grew")
