"""The comparison of two topics from its beginning to its result, and again from where a kill ended it.

Owns the order of the steps, and the state file. Must not know how the result is printed.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from fencepost.audit.topics.comparison import Compared, compare
from fencepost.audit.topics.group_offsets import NOWHERE, GroupOffset, group_offset
from fencepost.audit.topics.topic_cluster import TopicCluster, TopicPlace, same_partitions
from fencepost.audit.topics.topic_reading import begin, read_topic, see_growth
from fencepost.audit.topics.topic_store import Side, TopicStore
from fencepost.traces.errors import EnvironmentError_, FencepostError

STATE = "audit.sqlite3"


@frozen(kw_only=True)
class TopicAuditOrder:
    """What to compare."""

    source: TopicPlace
    target: TopicPlace
    groups: tuple[str, ...] = ()
    # Where the state is kept; None: in a temporary file.
    folder: Path | None = None
    # Go on with what is there.
    resume: bool = False


@frozen(kw_only=True)
class TopicAudit:
    """The result."""

    compared: Compared
    groups: tuple[GroupOffset, ...]
    partitions: int
    source_records: int
    target_records: int
    # Sentences.
    not_judged: tuple[str, ...]


Progress = Callable[[str, int, int], None]
"""progress(what, done, of)."""


def audit_topics(order: TopicAuditOrder, progress: Progress) -> TopicAudit:
    """Compare two topics.

    Args:
        order: which.
        progress: called often.

    Raises:
        FencepostError: no such topic, other partitions, a state of something else.
        EnvironmentError_: a broker does not answer or refuses; the state cannot be written.
    """
    if order.folder is not None:
        order.folder.mkdir(parents=True, exist_ok=True)
    path = None if order.folder is None else order.folder / STATE
    store = TopicStore.open(path)
    try:
        _claim(store, order, path)
        return asyncio.run(_audit(store, order, progress))
    except sqlite3.OperationalError as error:
        raise EnvironmentError_(
            expected="room for the state, and nobody else who writes it",
            seen=str(error),
            where=str(path or "the temporary folder"),
            hint="--out FOLDER keeps it elsewhere, and --resume goes on",
        ) from None
    finally:
        store.close()


def _claim(store: TopicStore, order: TopicAuditOrder, path: Path | None) -> None:
    mine = f"{order.source.text} {order.target.text}"
    theirs = store.note("topics")
    if theirs is not None and not order.resume:
        raise FencepostError(
            expected="a folder without a state",
            seen=f"the state of {theirs}",
            where=str(path),
            hint="--resume goes on with it; another --out begins anew",
        )
    if theirs not in (None, mine):
        raise FencepostError(expected=f"the state of {mine}", seen=f"that of {theirs}", where=str(path))
    store.note("topics", mine)


async def _audit(store: TopicStore, order: TopicAuditOrder, progress: Progress) -> TopicAudit:
    source, target = TopicCluster(order.source), TopicCluster(order.target)
    try:
        await source.open()
        await target.open()
        same_partitions(source, target)
        if not store.extents(Side.SOURCE):
            await begin(store, source, target)
        for side, cluster in ((Side.SOURCE, source), (Side.TARGET, target)):
            await _read(store, side, cluster, progress)
        await see_growth(store, source)
        sentences, compacted = list[str](), list[bool]()
        for cluster in (source, target):
            policy = await cluster.cleanup_policy()
            if policy is None:
                sentences.append(
                    f"whether the {cluster.place.word} is compacted: its settings are refused, so it is "
                    "taken to be"
                )
            compacted.append(policy is None or "compact" in policy)
        partitions = len(store.extents(Side.SOURCE))
        progress("comparing", 0, partitions)
        compared = compare(
            store,
            source_compacted=compacted[0],
            target_compacted=compacted[1],
            done=lambda number: progress("comparing", number + 1, partitions),
        )
        groups = await _groups(store, order.groups, source, target, sentences)
        return TopicAudit(
            compared=compared,
            groups=groups,
            partitions=partitions,
            source_records=store.count(Side.SOURCE),
            target_records=store.count(Side.TARGET),
            not_judged=(*sentences, *compared.not_judged),
        )
    finally:
        await source.close()
        await target.close()


async def _read(store: TopicStore, side: Side, cluster: TopicCluster, progress: Progress) -> None:
    extents = store.extents(side)
    whole = sum(one.end - one.start for one in extents)
    so_far = sum(min(one.next, one.end) - one.start for one in extents)

    def done(offsets: int) -> None:
        nonlocal so_far
        so_far += offsets
        progress(f"reading the {side.word}", so_far, whole)

    await read_topic(store, side, cluster, done)


async def _groups(
    store: TopicStore,
    groups: tuple[str, ...],
    source: TopicCluster,
    target: TopicCluster,
    sentences: list[str],
) -> tuple[GroupOffset, ...]:
    found = []
    for group in groups:
        try:
            mine, theirs = await source.committed(group), await target.committed(group)
        except EnvironmentError_ as error:
            sentences.append(f"group {group}: {error}")
            continue
        if not mine:
            sentences.append(f"group {group}: it has committed nothing of the topic at the source")
        for partition, offset in sorted(mine.items()):
            end = await target.end(partition, committed=False)
            committed = theirs.get(partition, NOWHERE)
            found.append(group_offset(store, group, partition, offset, committed, end))
    return tuple(found)
