"""Places, a log and an offset, as numbers; and the places that lineage names.

Owns the numbers and the decoding of lineage. Must not know rules or operations. A log is one partition of one
trace; its number orders by trace, topic and partition. A place is one number, too, which orders by log and
offset. Where such numbers would not fit into 64 bits, logs and offsets are replaced by their ranks.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.arrow_arrays import NONE, Array, Arrow, arrow
from fencepost.checkers.operation_columns import MOST_PARTITION, is_place
from fencepost.checkers.sorting import numbered

BETWEEN, SOURCE, DASH = " ", "@", "-"
"""The lineage of an append is `topic-partition@offset` for each record, with blanks between them."""
OFFSET = "^[0-9]{1,18}$"
"""Reason for 18 digits: 19 may not fit into 64 bits."""
AT_ONCE = 1 << 16
"""Appends whose lineage is split together. Reason: the memory of one part is that of the next, in the
processor's caches; all at once, the system cleared fresh memory for a third of the check's time."""
LARGEST = 1 << 62
"""Numbers of places are below this."""


@frozen(kw_only=True, eq=False)
class Named:
    """Places as traces name them, one entry per place."""

    # The index of the trace.
    trace: Array
    # Index into `topics`; -1: no place.
    topic: Array
    # The partition.
    partition: Array
    # The offset; -1 if it is not known.
    offset: Array
    # The names of topics.
    topics: tuple[str, ...]


@frozen(kw_only=True, eq=False)
class Places:
    """Numbered places, one entry per place."""

    # The number of the log; -1: no place.
    log: Array
    # The offset, as it was named.
    offset: Array
    # The number of the place. It orders by log and offset; without meaning where one of them is -1.
    key: Array

    def taken(self, indices: Array) -> "Places":
        """These places only."""
        return Places(log=self.log[indices], offset=self.offset[indices], key=self.key[indices])


@frozen(kw_only=True, eq=False)
class Logs:
    """The meaning of the numbers of logs: (trace * topics + topic) * width + partition."""

    # The names of topics, sorted.
    topics: tuple[str, ...]
    # More than any partition.
    width: int
    # For each log its number in that form, if logs have ranks; None if they have that form.
    ranked: Array | None

    def named(self, log: int) -> tuple[int, str, int]:
        """The index of the trace, the topic and the partition of a log."""
        number = log if self.ranked is None else int(self.ranked[log])
        of_topic, partition = divmod(number, self.width)
        trace, topic = divmod(of_topic, len(self.topics))
        return trace, self.topics[topic], partition


def places_of(groups: Sequence[Named]) -> tuple[Logs, list[Places]]:
    """Number the places of all groups alike.

    Args:
        groups: places.

    Returns:
        the meaning of the numbers, and the places of each group.
    """
    topics = tuple(sorted({topic for group in groups for topic in group.topics}))
    code = {topic: number for number, topic in enumerate(topics)}
    width = 1 + min(_highest(groups, "partition"), MOST_PARTITION)
    span = 2 + _highest(groups, "offset")
    logs = [_log(group, [code[topic] for topic in group.topics], len(topics), width) for group in groups]
    offsets = [group.offset for group in groups]
    ranked = None
    if (1 + _highest(groups, "trace")) * len(topics) * width * span >= LARGEST:
        ranked, logs = _ranks(logs)
        _, offsets = _ranks(offsets)
        span = 2 + max(int(each.max(initial=0)) for each in offsets)
    places = [
        Places(log=log, offset=group.offset, key=log * span + offset + 1)
        for group, log, offset in zip(groups, logs, offsets, strict=True)
    ]
    return Logs(topics=topics, width=width, ranked=ranked), places


def _highest(groups: Sequence[Named], name: str) -> int:
    return max((int(getattr(group, name).max(initial=0)) for group in groups), default=0)


def _log(group: Named, codes: list[int], topics: int, width: int) -> Array:
    topic = np.array([*codes, NONE], np.int64)[group.topic]  # -1 takes the last one
    good = is_place(topic, group.partition)
    number = (group.trace.astype(np.int64) * topics + topic) * width + group.partition
    return np.where(good, number, NONE)


def _ranks(arrays: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The distinct entries of all arrays but -1, and the rank of each entry; -1 stays."""
    distinct, _ = numbered(np.concatenate(arrays))
    distinct = distinct[distinct >= 0]
    return distinct, [np.where(each >= 0, np.searchsorted(distinct, each), NONE) for each in arrays]


def sources_of(texts: Arrow, appends: Array, records: Array) -> tuple[Array, Array, Array, tuple[str, ...]]:
    """The places that lineage names.

    Args:
        texts: the lineage of each operation, strings; null: none.
        appends: which of these operations are asked for.
        records: how many records each of those has.

    Returns:
        for each record of these appends, in order: topic, partition and offset, as in `Named`; and the names
        of the topics. Lineage that does not name as many places as there are records names none.
    """
    ends = np.cumsum(records)
    topic, partition, offset = (np.full(int(records.sum()), NONE) for _ in range(3))
    codes: dict[str, int] = {}
    for first in range(0, len(appends), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        counts = records[some]
        at, names, index, offsets = _split(texts.take(pa.array(appends[some])), counts)
        at += ends[first] - counts[0]
        known = [_log_name(name) for name in names]
        numbers = [codes.setdefault(name, len(codes)) if name else NONE for name, _ in known]
        topic[at] = np.array(numbers, np.int64)[index]
        partition[at] = np.array([number for _, number in known], np.int64)[index]
        offset[at] = offsets
    return topic, partition, offset, tuple(codes)


def _split(texts: Arrow, records: Array) -> tuple[Array, list[str], Array, Array]:
    """The places that these texts name: for each one the index of its record, the log's name as an index of
    the names, and the offset."""
    lists = arrow.split_pattern(arrow.fill_null(texts, ""), BETWEEN)
    whole = np.asarray(arrow.list_value_length(lists)).astype(np.int64) == records
    flat = np.flatnonzero(np.repeat(whole, records))
    pairs = arrow.split_pattern(
        arrow.list_flatten(lists.filter(pa.array(whole))), SOURCE, max_splits=1, reverse=True
    )
    two = np.asarray(arrow.list_value_length(pairs)) == 2
    halves = arrow.list_flatten(pairs.filter(pa.array(two)))
    names, numbers = halves[::2].dictionary_encode(), halves[1::2]
    legal = np.asarray(arrow.match_substring_regex(numbers, OFFSET)).astype(np.bool_)
    offsets = np.asarray(arrow.cast(numbers.filter(pa.array(legal)), pa.int64()))
    return flat[two][legal], names.dictionary.to_pylist(), np.asarray(names.indices)[legal], offsets


def _log_name(name: str) -> tuple[str, int]:
    """Topic and partition; "" if the name names none."""
    topic, dash, partition = name.rpartition(DASH)
    if not (topic and dash and partition.isascii() and partition.isdigit() and len(partition) < 10):
        return "", NONE
    return topic, int(partition)
