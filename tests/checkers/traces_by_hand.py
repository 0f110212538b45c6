"""Traces written by hand: one function per event, in the words of a story. Topic t, partition 0, value ids as
given."""

from typing import Any

from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation
from fencepost.traces.trace import Claims, LossRange, Trace
from tests.checkers import lab

ON = {"topic": "t", "partition": 0}


def event(name: Name, **columns: Any) -> Event:
    """An event at time 0; `trace` stamps it with its position."""
    return Event(time=columns.pop("time", 0), name=name, **columns)


def _of_replica(name: Name, node: int, epoch: int, **columns: Any) -> Event:
    return event(name, node=node, leader_epoch=epoch, **columns, **ON)


def trace(
    *events: Event, operations: tuple[Operation, ...] = (), claims: Claims | None = None, plan: str = ""
) -> Trace:
    """A trace of these events, one nanosecond apart unless they say their time."""
    stamped = tuple(
        item if item.time else event(**{**columns(item), "time": position})
        for position, item in enumerate(events)
    )
    return lab.trace(operations, trace_id=1, plan=plan, claims=claims or Claims(), events=stamped)


def columns(item: Event) -> dict[str, Any]:
    """An event's columns by name."""
    return {name: getattr(item, name) for name in Event.__slots__ if name != "__weakref__"}


def state(
    node: int, leader: int, epoch: int, *isr: int, version: int = -1, controller_epoch: int = 1
) -> Event:
    """ZooKeeper's state of the partition was written."""
    return _of_replica(
        Name.PARTITION_STATE,
        node,
        epoch,
        leader=leader,
        isr=isr,
        zk_version=version,
        controller_epoch=controller_epoch,
    )


def leads(node: int, epoch: int, *isr: int, end: int = 0, hw: int = 0) -> Event:
    """A broker became leader."""
    return _of_replica(Name.BECAME_LEADER, node, epoch, leader=node, isr=isr, offset=end, high_watermark=hw)


def follows(node: int, leader: int, epoch: int, *, end: int = 0, hw: int = 0) -> Event:
    """A broker became follower."""
    return _of_replica(Name.BECAME_FOLLOWER, node, epoch, leader=leader, offset=end, high_watermark=hw)


def appends(node: int, epoch: int, offset: int, *values: int) -> Event:
    """A leader appended."""
    return _of_replica(Name.APPENDED, node, epoch, offset=offset, values=values, cause="leader")


def copies(node: int, epoch: int, offset: int, *values: int) -> Event:
    """A follower appended records of a leader epoch."""
    return _of_replica(Name.APPENDED, node, epoch, offset=offset, values=values, cause="follower")


def cuts(
    node: int, leader: int, epoch: int, end: int, to: int, cause: str = "leader_epoch", hw: int = 0
) -> Event:
    """A follower truncated its log."""
    return _of_replica(
        Name.TRUNCATED, node, epoch, leader=leader, offset=to, end_offset=end, high_watermark=hw, cause=cause
    )


def shows(node: int, epoch: int, hw: int) -> Event:
    """A leader moved its high watermark: it is exposed."""
    return _of_replica(Name.HIGH_WATERMARK, node, epoch, high_watermark=hw, cause="leader")


def hears(node: int, epoch: int, hw: int) -> Event:
    """A follower moved its high watermark."""
    return _of_replica(Name.HIGH_WATERMARK, node, epoch, high_watermark=hw, cause="follower")


def isr_updated(node: int, epoch: int, *isr: int) -> Event:
    """A leader learned that its ISR change was accepted."""
    return _of_replica(Name.ISR_UPDATED, node, epoch, isr=isr, cause="shrink")


def starts(node: int) -> Event:
    """A process came up."""
    return event(Name.BROKER_STARTED, node=node)


def recovers(node: int, end: int, epoch: int = -1, hw: int = 0, start: int = -1) -> Event:
    """A log was opened. start: where it begins, -1: not said."""
    return _of_replica(Name.LOG_RECOVERED, node, epoch, offset=end, high_watermark=hw, log_start_offset=start)


def fault(kind: str, node: int) -> Event:
    """A fault hit a host."""
    return event(Name.FAULT_BEGAN, node=node, cause=kind)


def dump(node: int, epoch: int, offset: int, *values: int, end: int, hw: int) -> Event:
    """A run of records of the final dump."""
    return _of_replica(
        Name.REPLICA_LOG, node, epoch, offset=offset, values=values, end_offset=end, high_watermark=hw
    )


def loss(start: int, end: int) -> Claims:
    """Claims that allow the loss of offsets [start, end)."""
    return Claims(loss=(LossRange(topic="t", partition=0, start=start, end=end, reason="test"),))


def read(
    op_id: int, function: Function, invoke: int, complete: int, end: int, epoch: int = 0, clock: int = 0
) -> Operation:
    """A poll or list_offsets that showed `end`."""
    listed = function is Function.LIST_OFFSETS
    return lab.operation(
        *(op_id, function, invoke, complete),
        **lab.T0,
        clock_id=clock,
        offset=end if listed else 0,
        end_offset=end,
        leader_epoch=epoch,
    )


def healthy_start(*values: int) -> list[Event]:
    """Brokers 1, 2, 3; 1 leads epoch 0; the values are written, fetched by all and committed."""
    events = [state(1, 1, 0, 1, 2, 3, version=0), leads(1, 0, 1, 2, 3), follows(2, 1, 0), follows(3, 1, 0)]
    if values:
        events += [appends(1, 0, 0, *values), copies(2, 0, 0, *values), copies(3, 0, 0, *values)]
        events += [shows(1, 0, len(values)), hears(2, 0, len(values)), hears(3, 0, len(values))]
    return events
