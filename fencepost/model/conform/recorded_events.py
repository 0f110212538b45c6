"""A trace's protocol events for ReplicationTrace.tla: partition by partition, with small numbers.

Owns the columns of each kind of event, which events are stutters, and the names of brokers and values. Must
not know which steps are legal.

TLC's integers have 32 bits, so value ids (64 bits) and brokers become indices in the order of appearance;
epochs and offsets are unchanged. An event of a host becomes an event of each of its partitions. Events that
are not part of the protocol are left out and counted.
"""

from collections.abc import Callable, Collection, Mapping

from attrs import define, field, frozen

from fencepost.model.refinement import ACTIONS, INTERRUPTING, LOSING
from fencepost.model.refinement.refinement_state import POWER_LOSS
from fencepost.model.tlc.values import Value, record
from fencepost.traces.errors import TraceError
from fencepost.traces.events import REPLICA_DELETED, Event, Name
from fencepost.traces.trace import Trace, plain

LARGEST = 2**31 - 1
"""TLC's largest integer."""
STOPPED = "stopped"
"""A fault that may have stopped a process during a step, and removed nothing from its files."""
REPLICA_EVENTS = frozenset(ACTIONS) - {Name.BROKER_STARTED, Name.FAULT_BEGAN} | {Name.LOG_START}
"""Events of one partition, which are steps there. Events of hosts (below) are steps of every partition; all
others are stutters."""


@frozen(kw_only=True)
class Recorded:
    """One partition of one trace."""

    # The trace.
    trace_id: int
    # The topic.
    topic: str
    # The partition.
    partition: int
    # Its events as TLA+ records.
    steps: tuple[Value, ...]
    # The position of each step in trace.events.
    positions: tuple[int, ...]
    # Events of the trace that are no steps of this partition.
    stutters: int
    # The number of brokers.
    brokers: int
    # Whether its topic allows unclean leader election.
    unclean: bool = False
    # Whether its logs may have gaps.
    compacted: bool = False


@define
class _Numbers:
    """Indices of values, in the order of appearance."""

    known: dict[int, int] = field(factory=dict)

    def of(self, item: int) -> int:
        return self.known.setdefault(item, len(self.known))


@define
class _Partition:
    """A partition under construction."""

    brokers: _Numbers = field(factory=_Numbers)
    values: _Numbers = field(factory=_Numbers)
    steps: list[Value] = field(factory=list)
    positions: list[int] = field(factory=list)

    def broker(self, node: int) -> int:
        """The index of a broker; -1 (none) is unchanged."""
        return node if node == -1 else self.brokers.of(node)

    def isr(self, event: Event) -> Value:
        return frozenset(self.broker(member) for member in event.isr)

    def records(self, event: Event) -> Value:
        return tuple((event.leader_epoch, self.values.of(value)) for value in event.values)

    def add(self, position: int, step: Value) -> None:
        self.steps.append(step)
        self.positions.append(position)


def recorded(
    trace: Trace, unclean: Collection[str] = (), compacted: Collection[str] = ()
) -> tuple[Recorded, ...]:
    """Each partition with protocol events in the trace. unclean, compacted: topics. Raises TraceError for
    numbers that TLC cannot represent."""
    partitions: dict[tuple[str, int], _Partition] = {}
    interrupted: dict[int, str] = {}
    for position, event in enumerate(trace.events):
        _check(position, event, trace.trace_id)
        if event.name in REPLICA_EVENTS:
            key = event.topic or "", event.partition
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = _Partition()
                for node, fault in interrupted.items():
                    partition.add(position, _interrupted(partition, node, fault))
            partition.add(position, _step(partition, event))
        elif event.name is Name.BROKER_STARTED:
            for partition in partitions.values():
                partition.add(position, record(name="started", node=partition.broker(event.node)))
        elif event.name in INTERRUPTING and event.node >= 0:
            fault = interrupted[event.node] = POWER_LOSS if event.cause in LOSING else STOPPED
            for partition in partitions.values():
                partition.add(position, _interrupted(partition, event.node, fault))
        elif event.name is Name.MARK and event.cause == REPLICA_DELETED:
            deleted_from = partitions.get((event.topic or "", event.partition))
            if deleted_from is not None:
                deleted_from.add(position, record(name="deleted", node=deleted_from.broker(event.node)))
    return tuple(
        Recorded(
            trace_id=trace.trace_id,
            topic=topic,
            partition=number,
            steps=tuple(partition.steps),
            positions=tuple(partition.positions),
            stutters=len(trace.events) - len(set(partition.positions)),
            brokers=len(partition.brokers.known),
            unclean=topic in unclean or plain(topic) in unclean,
            compacted=topic in compacted,
        )
        for (topic, number), partition in partitions.items()
    )


def _interrupted(partition: _Partition, node: int, fault: str) -> Value:
    return record(name="interrupted", node=partition.broker(node), cause=fault)


def _check(position: int, event: Event, trace_id: int) -> None:
    numbers = (event.leader_epoch, event.offset, event.end_offset, event.high_watermark, event.zk_version)
    if max(*numbers, event.log_start_offset) > LARGEST:
        raise TraceError(
            expected=f"epochs and offsets of at most {LARGEST}, TLC's largest integer",
            seen=str(max(*numbers, event.log_start_offset)),
            where=f"event {position} of trace {trace_id}",
        )


# ---- the events

_FIELDS: Mapping[str, Callable[[_Partition, Event], Value]] = {
    "name": lambda partition, event: event.name.value,
    "node": lambda partition, event: partition.broker(event.node),
    "leader": lambda partition, event: partition.broker(event.leader),
    "isr": _Partition.isr,
    "records": _Partition.records,
    "leads": lambda partition, event: event.cause == "leader",
    "cause": lambda partition, event: event.cause,
    "epoch": lambda partition, event: event.leader_epoch,
    "offset": lambda partition, event: event.offset,
    "end": lambda partition, event: event.end_offset,
    "watermark": lambda partition, event: event.high_watermark,
    "logStart": lambda partition, event: event.log_start_offset,
    "version": lambda partition, event: event.zk_version,
}
"""The fields of a step in TLA+, from its event."""
_ROLE = ("leader", "epoch", "offset", "watermark", "isr")
_STEPS: Mapping[Name, tuple[str, ...]] = {
    Name.PARTITION_STATE: ("leader", "isr", "epoch", "version"),
    Name.BECAME_LEADER: _ROLE,
    Name.BECAME_FOLLOWER: _ROLE,
    Name.APPENDED: ("leads", "epoch", "offset", "end", "records"),
    Name.TRUNCATED: ("epoch", "offset", "end", "cause"),
    Name.HIGH_WATERMARK: ("leads", "epoch", "watermark"),
    Name.ISR_UPDATED: ("epoch", "isr"),
    Name.LOG_RECOVERED: ("offset", "watermark", "logStart"),
    Name.LOG_START: ("epoch", "logStart"),
    Name.REPLICA_LOG: ("offset", "end", "records"),
}
"""What a step says besides its name and its broker."""


def _step(partition: _Partition, event: Event) -> Value:
    names = ("name", "node", *_STEPS[event.name])
    return record(**{name: _FIELDS[name](partition, event) for name in names})
