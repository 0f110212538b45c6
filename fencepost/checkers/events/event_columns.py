"""Rows of an `events` table as flat integer arrays, for many traces together.

Owns the conversion from Arrow to `Events`, and which rows cannot be converted: too many brokers for a bit
set, offsets beyond the end of every log of the trace, or a broker twice in an ISR. Traces with such rows are
`odd`, and their columns must not be used. Must not know rules.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from fencepost.checkers.arrow_arrays import (
    NONE,
    Array,
    Arrow,
    integer_array,
    list_children,
    recoded,
    slice_starts,
    string_codes,
    table_column,
)
from fencepost.checkers.events.kernels import column as place
from fencepost.checkers.events.kernels import words
from fencepost.checkers.events.kernels.column import MOST_NODES, Events
from fencepost.checkers.invariants.incarnation import known_broker_epoch
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Name
from fencepost.traces.trace import Trace

FAR = 1 << 40
"""Offsets from here on make a trace odd. Sums with smaller offsets cannot overflow."""
_NUMBERS = (
    *("leader_epoch", "controller_epoch", "broker_epoch", "zk_version"),
    *("offset", "end_offset", "high_watermark", "log_start_offset"),
)
_NEVER_SAID = int(np.iinfo(np.int64).min)


@frozen(kw_only=True, eq=False)
class EventColumns:
    """The events of a row group."""

    # All rows.
    events: Events
    # Trace t has the rows from start[t] to start[t + 1].
    start: Array
    # For each trace a bound on the offsets of its logs.
    capacity: Array
    # Traces that cannot be represented as columns.
    odd: Array
    # The number of broker codes.
    nodes: int
    # The number of partition codes.
    keys: int
    # The names of topics by code.
    topics: tuple[str, ...]


@frozen
class Keys:
    """Codes of partitions.

    codes: of each row's topic and partition, -1 without a topic. known: code by (topic, partition). odd: rows
    that cannot be coded.
    """

    codes: Array
    known: dict[tuple[int, int], int]
    odd: Array


def columns_of_events(table: pa.Table, traces: Sequence[Trace]) -> EventColumns:
    """Convert the rows of an `events` table.

    Args:
        table: the rows.
        traces: the headers of all its traces.

    Returns:
        the columns.

    Raises:
        TraceError: for a row of no trace, an unknown name, or a missing column.
    """
    table, start = rows_by_trace(table.unify_dictionaries(), traces)
    column = {name: table_column(table, name) for name in table.column_names}
    topics, topic = string_codes(column["topic"])
    keys = keys_of(topic, integer_array(column["partition"]))
    replicas_at, replicas = list_children(column["replicas"])
    isr_at, isr = list_children(column["isr"])
    values_at, values = list_children(column["values"])
    raw = [
        integer_array(column["node"]),
        integer_array(column["leader"]),
        integer_array(replicas),
        integer_array(isr),
    ]
    (node, leader, replica, member), nodes = _node_codes(raw)
    replica_bits, replica_odd = _bits(replicas_at, replica)
    isr_bits, isr_odd = _bits(isr_at, member)
    numbers = {name: integer_array(column[name]) for name in _NUMBERS}
    name, cause = _names(column["name"]), _causes(column["cause"])
    reach = np.maximum(numbers["offset"], numbers["end_offset"])
    odd_rows = keys.odd | replica_odd | isr_odd | (node < NONE) | (leader < NONE) | (reach >= FAR)
    shutdown = (name == words.MARK) & (cause == words.SHUTDOWN)
    events = Events(
        of=_stacked(
            {
                "name": name,
                "cause": cause,
                "node": node,
                "key": keys.codes,
                "topic": topic,
                "leader": leader,
                **numbers,
                "isr": isr_bits,
                "replicas": replica_bits,
                "replicas_at": replicas_at[:-1],
                "replicas_to": replicas_at[1:],
                "values_at": values_at[:-1],
                "values_to": values_at[1:],
                "known_broker_epoch": _known_broker_epochs(shutdown, column["detail"]),
            }
        ),
        replica=replica,
        value=integer_array(values),
        **claims_of(traces, topics, keys.known),
    )
    reach = np.maximum(np.minimum(numbers["offset"], FAR) + np.diff(values_at), np.minimum(reach, FAR))
    odd = _any_of(start, odd_rows)
    required = [one for name, one in column.items() if name != "topic"]
    if any(one.null_count for one in (*required, replicas, isr, values)):
        odd[:] = True
    return EventColumns(
        events=events,
        start=start,
        capacity=_highest_of(start, reach),
        odd=odd,
        nodes=nodes,
        keys=len(keys.known),
        topics=tuple(topics),
    )


def rows_by_trace(table: pa.Table, traces: Sequence[Trace]) -> tuple[pa.Table, Array]:
    """The rows in the order of `traces`, and the index where each trace begins."""
    ids = integer_array(table_column(table, "trace_id"))
    heads = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
    index = {trace.trace_id: position for position, trace in enumerate(traces)}
    strange = sorted({trace_id for trace_id in ids[heads].tolist() if trace_id not in index})
    if strange:
        raise TraceError(
            expected="a row in traces for every trace", seen=f"none for {strange[0]}", where="events"
        )
    found = np.array([index[trace_id] for trace_id in ids[heads].tolist()], np.int64)
    lengths = np.diff(heads, append=len(ids))
    if (np.diff(found) <= 0).any():
        table = table.take(np.argsort(np.repeat(found, lengths), kind="stable")).combine_chunks()
    return table, slice_starts(np.bincount(found, lengths, len(traces)).astype(np.int64))


def _names(column: Arrow) -> Array:
    names, indices = string_codes(column)
    strange = sorted(set(names) - {name.value for name in Name})
    if strange:
        raise TraceError(expected="a known event name", seen=repr(strange[0]), where="events")
    return recoded(indices, [words.NAME_CODES.get(Name(name), words.OTHER) for name in names])


def _causes(column: Arrow) -> Array:
    causes, indices = string_codes(column)
    return recoded(indices, [words.CAUSE_CODES.get(cause, words.OTHER_CAUSE) for cause in causes])


def keys_of(topic: Array, partition: Array) -> Keys:
    """Number the pairs of topic and partition."""
    odd = partition < NONE
    pair = topic * (max(int(partition.max(initial=NONE)), NONE) + 2) + partition + 2
    pair[odd | (topic < 0)] = 0  # a number that belongs to no pair
    if (highest := int(pair.max(initial=0))) <= 4 * len(pair) + 1024:
        present = np.zeros(highest + 1, np.bool_)
        present[pair] = True
        rows = np.zeros(highest + 1, np.int64)
        rows[pair] = np.arange(len(pair))
        codes = (np.cumsum(present) - 1)[pair]
        first = rows[present]
    else:
        _, first, codes = np.unique(pair, return_index=True, return_inverse=True)
    known = {
        (a, b): code
        for code, (a, b) in enumerate(zip(topic[first].tolist(), partition[first].tolist(), strict=True))
    }
    return Keys(np.where(topic >= 0, codes, NONE), known, odd)


def _node_codes(raw: list[Array]) -> tuple[list[Array], int]:
    """Brokers as small numbers. -1 stays; -2 means that there is no number left for it."""
    lowest = min(int(one.min(initial=NONE)) for one in raw)
    highest = max(int(one.max(initial=NONE)) for one in raw)
    if lowest >= NONE and highest < MOST_NODES:
        return raw, highest + 1
    known = np.unique(np.concatenate(raw))
    known = known[known >= 0][:MOST_NODES]
    codes = []
    for one in raw:
        at = np.minimum(np.searchsorted(known, one), max(len(known) - 1, 0))
        found = known[at] == one if len(known) else np.zeros(len(one), np.bool_)
        codes.append(np.where(found, at, np.where(one == NONE, NONE, NONE - 1)))
    return codes, len(known)


def _bits(at: Array, codes: Array) -> tuple[Array, Array]:
    """Each slice as a bit set, and which slices are not sets of known brokers."""
    some = np.flatnonzero(np.diff(at))
    bits, odd = np.zeros(len(at) - 1, np.int64), np.zeros(len(at) - 1, np.bool_)
    if len(some):
        each = np.left_shift(1, np.maximum(codes, 0))
        bits[some] = np.bitwise_or.reduceat(each, at[some])
        twice = bits[some] != np.add.reduceat(each, at[some])
        odd[some] = twice | (np.minimum.reduceat(codes, at[some]) < 0)
    return bits, odd


def _known_broker_epochs(marked: Array, detail: Arrow) -> Array:
    """The broker epoch that a controller knew, from its mark of a controlled shutdown."""
    known = np.full(len(marked), _NEVER_SAID, np.int64)
    for row in np.flatnonzero(marked).tolist():
        text = detail[row].as_py()
        if text:
            known[row] = min(known_broker_epoch(text), np.iinfo(np.int64).max)
    return known


def _stacked(columns: dict[str, Array]) -> Array:
    """The columns as rows of one array, in the order that the kernels expect."""
    stacked = np.empty((len(columns), len(columns["name"])), np.int64)
    for name, values in columns.items():
        stacked[getattr(place, name.upper())] = values
    return stacked


def claims_of(
    traces: Sequence[Trace], topics: Sequence[str], known: Mapping[tuple[int, int], int]
) -> dict[str, Array]:
    """Allowed loss and compacted topics, for the topics and partitions of a table; without keys. known: code
    by (topic, partition)."""
    codes = {name: code for code, name in enumerate(topics)}
    allowed: list[tuple[int, ...]] = []
    compacted: list[int] = []
    starts = [(0, 0, 0, 0)]
    for trace in traces:
        for loss in sorted(trace.claims.loss, key=lambda loss: loss.start):
            key = known.get((codes.get(loss.topic, NONE), loss.partition))
            if key is not None and loss.topic in codes:
                allowed.append((key, *(min(max(end, -1), FAR) for end in (loss.start, loss.end))))
        compacted += [codes[topic] for topic in trace.claims.compacted if topic in codes]
        starts.append((len(allowed), len(compacted), 0, 0))
    return {
        "claims": np.array(starts, np.int64),
        "allowed": np.array(allowed, np.int64).reshape(-1, 3),
        "compacted": np.array(compacted, np.int64),
        "keyed": np.empty((0, 3), np.int64),
        "unclean": np.empty(0, np.int64),
    }


def _any_of(start: Array, rows: Array) -> Array:
    """Which slices contain a marked row."""
    marked = np.zeros(len(start) - 1, np.bool_)
    marked[np.searchsorted(start, np.flatnonzero(rows), side="right") - 1] = True
    return marked


def _highest_of(start: Array, numbers: Array) -> Array:
    """The highest value of each slice, at least 0."""
    highest, some = np.zeros(len(start) - 1, np.int64), np.flatnonzero(np.diff(start))
    if len(some):
        highest[some] = np.maximum(np.maximum.reduceat(numbers, start[some]), 0)
    return highest
