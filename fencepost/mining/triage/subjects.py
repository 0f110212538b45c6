"""How an event of a group, or of a transaction, relates to what was known of it, in words of its step.

Owns: what such events say in their details, and these relations. Must not know: findings, groups of bugs.

The columns of an event have epochs of leaders, controllers and brokers; event_steps.py compares them. A
consumer group's generation and a producer's epoch are in the detail, and the same rule holds for them: a
number below what was known before, or a step that comes before what it waits for, is strange.

    generation behind        the group's generation is lower than in its event before
    generation ahead         it is higher by more than one
    members gone             loaded without members, although it had some
    producer epoch behind    the transactional id's producer epoch is lower than in its event before
    producer epoch kept      a producer starts in the epoch that the one before had
    state other than before  loaded in another state than the last one: a transaction's states are in the log
    before all markers       complete, and a partition of the transaction has no marker of this end
    not as decided           a marker that says otherwise than the transaction's coordinator had written
    marker again             a partition that has the marker of this end gets another one
    coordinator epoch behind a marker of an older coordinator than the producer's last one

The state of a group or a transactional id at the end of its trace is a fact of its own, if it cannot stay so:
a transaction that is open, or decided and not complete, or a group that rebalances. A trace that ends so was
given up, or its events were cut off.
"""

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import define, field, frozen

from fencepost.traces.decoding import from_json
from fencepost.traces.events import Name

Flags = npt.NDArray[np.bool_]
Place = tuple[str, int]
ASKED = (Name.GROUP_PHASE, Name.TRANSACTION_PHASE, Name.MARKER_WRITTEN)
"""Events that are compared."""
LOADED = "loaded"
"""Why a group or a transaction is in a state that another coordinator wrote."""
BEGINS, PREPARES, COMPLETES = "Empty", "Prepare", "Complete"
"""Kafka's states of a transaction, or how their names begin."""
COMMITS = "Commit"
"""How the name of a state ends in which the transaction commits."""
OPEN, REBALANCES = "Ongoing", "Rebalance"
"""A transaction's state in which its producer may write; how the names of a group's states end in which its
members have no assignment."""


class Detail(msgspec.Struct):
    """What an event says it is about."""

    group: str = ""
    topic: str = ""
    partition: int = -1
    generation: int = -1
    members: list[str] = []
    transactional_id: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    coordinator_epoch: int = -1
    # As "topic-partition".
    partitions: list[str] = []
    commit: bool | None = None
    why: str = ""


def detail_of(text: str | None) -> Detail:
    """What a detail says; nothing if it is no such JSON. text: of the event."""
    try:
        found: Detail = from_json(text or "", Detail)
        return found
    except msgspec.MsgspecError:
        return Detail()


@frozen(kw_only=True)
class _Group:
    """A group as its last event shows it."""

    generation: int
    has_members: bool
    state: str


@frozen(kw_only=True)
class _Producer:
    """A transactional id as its last event shows it."""

    producer_id: int
    epoch: int
    state: str


@define
class _End:
    """The end of a producer's transaction, from its decision on."""

    epoch: int
    commit: bool
    # That need a marker.
    partitions: frozenset[str]
    # That have one.
    written: set[str] = field(factory=set)


@define
class _Known:
    """What is known within one trace."""

    groups: dict[str, _Group] = field(factory=dict)
    producers: dict[str, _Producer] = field(factory=dict)
    ends: dict[int, _End] = field(factory=dict)
    coordinators: dict[int, int] = field(factory=dict)

    def group(self, state: str, detail: Detail) -> list[str]:
        """The relations of a group's event."""
        before = self.groups.get(detail.group)
        self.groups[detail.group] = _Group(
            generation=detail.generation, has_members=bool(detail.members), state=state
        )
        if before is None or detail.generation < 0:
            return []
        said = {
            "generation behind": detail.generation < before.generation,
            "generation ahead": detail.generation > before.generation + 1,
            "members gone": detail.why == LOADED and before.has_members and not detail.members,
        }
        return [word for word, holds in said.items() if holds]

    def transaction(self, state: str, detail: Detail) -> list[str]:
        """The relations of a transaction's event."""
        before, producer = self.producers.get(detail.transactional_id), detail.producer_id
        self.producers[detail.transactional_id] = _Producer(
            producer_id=producer, epoch=detail.producer_epoch, state=state
        )
        loaded, end = detail.why == LOADED, self.ends.get(producer)
        said = {}
        if before is not None and before.producer_id == producer:
            said["producer epoch behind"] = detail.producer_epoch < before.epoch
            starts = state == BEGINS and not loaded
            said["producer epoch kept"] = starts and detail.producer_epoch == before.epoch
        if before is not None:
            said["state other than before"] = loaded and state != before.state
        if state.startswith(COMPLETES) and not loaded and end is not None:
            said["before all markers"] = not end.partitions <= end.written
        if state.startswith(PREPARES) and (end is None or end.epoch != detail.producer_epoch or not loaded):
            self.ends[producer] = _End(
                epoch=detail.producer_epoch,
                commit=state.endswith(COMMITS),
                partitions=frozenset(detail.partitions),
            )
        return [word for word, holds in said.items() if holds]

    def marker(self, place: str, detail: Detail) -> list[str]:
        """The relations of a marker. place: where it is written, as "topic-partition"."""
        newest = self.coordinators.get(detail.producer_id, -1)
        self.coordinators[detail.producer_id] = max(newest, detail.coordinator_epoch)
        said = {"coordinator epoch behind": detail.coordinator_epoch < newest}
        end = self.ends.get(detail.producer_id)
        if end is not None:
            said["not as decided"] = detail.commit is not end.commit
            said["marker again"] = place in end.written
            end.written.add(place)
        return [word for word, holds in said.items() if holds]

    def left(self) -> list[str]:
        """What is in a state that cannot stay so."""
        transactions = [producer.state for producer in self.producers.values()]
        said = {
            "a transaction that is open": OPEN in transactions,
            "a transaction that is decided": any(state.startswith(PREPARES) for state in transactions),
            "a group that rebalances": any(one.state.endswith(REBALANCES) for one in self.groups.values()),
        }
        return [word for word, holds in said.items() if holds]


@frozen(kw_only=True, eq=False)
class Relations:
    """What the events of groups and transactions say."""

    # Words and the rows that get them.
    words: list[tuple[str, Flags]]
    # Numbers of traces, and what is in a state at their end that cannot stay so.
    left: list[tuple[int, str]]


def relations(
    events: pa.Table, trace: npt.NDArray[np.int64], names: npt.NDArray[np.int64], code_of: dict[Name, int]
) -> Relations:
    """What the events of groups and transactions say.

    Args:
        events: of whole traces.
        trace: the number of each row's trace; rows of a trace are together.
        names: of each row, as numbers.
        code_of: these numbers.
    """
    rows = np.flatnonzero(np.isin(names, [code_of[name] for name in ASKED]))
    asked: Any = events.select(["name", "topic", "partition", "cause", "detail"]).take(
        pa.array(rows, pa.int64())
    )
    said: dict[str, list[int]] = {}
    left: list[tuple[int, str]] = []
    known, current = _Known(), -1
    columns = (asked.column(name).to_pylist() for name in asked.column_names)
    for row, name, topic, partition, cause, text in zip(rows.tolist(), *columns, strict=True):
        if trace[row] != current:
            left += [(current, word) for word in known.left()]
            known, current = _Known(), int(trace[row])
        detail = detail_of(text)
        if name == Name.GROUP_PHASE:
            words = known.group(cause or "", detail)
        elif name == Name.TRANSACTION_PHASE:
            words = known.transaction(cause or "", detail)
        else:
            words = known.marker(f"{topic}-{partition}", detail)
        for word in words:
            said.setdefault(word, []).append(row)
    left += [(current, word) for word in known.left()]
    found = []
    for word in sorted(said):
        flags = np.zeros(len(names), bool)
        flags[said[word]] = True
        found.append((word, flags))
    return Relations(words=found, left=left)
