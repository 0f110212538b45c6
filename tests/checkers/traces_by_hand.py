"""Traces written by hand: one function per event, in the words of a story. Topic t, partition 0, value ids as
given."""

from typing import Any

from fencepost.traces.events import Event, Name
from fencepost.traces.operations import Function, Operation, Outcome
from fencepost.traces.trace import Claims, LossRange, Trace

ON = {"topic": "t", "partition": 0}


def event(name: Name, **columns: Any) -> Event:
    """An event at time 0; `trace` stamps it with its position."""
    return Event(time=columns.pop("time", 0), name=name, **columns)


def trace(
    *events: Event, operations: tuple[Operation, ...] = (), claims: Claims | None = None, plan: str = ""
) -> Trace:
    """A trace of these events, one nanosecond apart unless they say their time."""
    stamped = tuple(
        item if item.time else event(**{**columns(item), "time": position})
        for position, item in enumerate(events)
    )
    return Trace(
        trace_id=1,
        plan=plan,
        seed=1,
        software_version="test",
        claims=claims or Claims(),
        operations=operations,
        events=stamped,
    )


def columns(item: Event) -> dict[str, Any]:
    """An event's columns by name."""
    return {name: getattr(item, name) for name in Event.__slots__ if name != "__weakref__"}


def state(
    node: int, leader: int, epoch: int, *isr: int, version: int = -1, controller_epoch: int = 1
) -> Event:
    """ZooKeeper's state of the partition was written."""
    return event(
        Name.PARTITION_STATE,
        node=node,
        leader=leader,
        leader_epoch=epoch,
        isr=isr,
        zk_version=version,
        controller_epoch=controller_epoch,
        **ON,
    )


def leads(node: int, epoch: int, *isr: int, end: int = 0, hw: int = 0) -> Event:
    """A broker became leader."""
    return event(
        Name.BECAME_LEADER,
        node=node,
        leader=node,
        leader_epoch=epoch,
        isr=isr,
        offset=end,
        high_watermark=hw,
        **ON,
    )


def follows(node: int, leader: int, epoch: int, *, end: int = 0, hw: int = 0) -> Event:
    """A broker became follower."""
    return event(
        Name.BECAME_FOLLOWER,
        node=node,
        leader=leader,
        leader_epoch=epoch,
        offset=end,
        high_watermark=hw,
        **ON,
    )


def appends(node: int, epoch: int, offset: int, *values: int) -> Event:
    """A leader appended."""
    return event(
        Name.APPENDED, node=node, leader_epoch=epoch, offset=offset, values=values, cause="leader", **ON
    )


def copies(node: int, epoch: int, offset: int, *values: int) -> Event:
    """A follower appended records of a leader epoch."""
    return event(
        Name.APPENDED, node=node, leader_epoch=epoch, offset=offset, values=values, cause="follower", **ON
    )


def cuts(
    node: int, leader: int, epoch: int, end: int, to: int, cause: str = "leader_epoch", hw: int = 0
) -> Event:
    """A follower truncated its log."""
    return event(
        Name.TRUNCATED,
        node=node,
        leader=leader,
        leader_epoch=epoch,
        offset=to,
        end_offset=end,
        high_watermark=hw,
        cause=cause,
        **ON,
    )


def shows(node: int, epoch: int, hw: int) -> Event:
    """A leader moved its high watermark: it is exposed."""
    return event(Name.HIGH_WATERMARK, node=node, leader_epoch=epoch, high_watermark=hw, cause="leader", **ON)


def hears(node: int, epoch: int, hw: int) -> Event:
    """A follower moved its high watermark."""
    return event(
        Name.HIGH_WATERMARK, node=node, leader_epoch=epoch, high_watermark=hw, cause="follower", **ON
    )


def isr_updated(node: int, epoch: int, *isr: int) -> Event:
    """A leader learned that its ISR change was accepted."""
    return event(Name.ISR_UPDATED, node=node, leader_epoch=epoch, isr=isr, cause="shrink", **ON)


def starts(node: int) -> Event:
    """A process came up."""
    return event(Name.BROKER_STARTED, node=node)


def recovers(node: int, end: int, epoch: int = -1, hw: int = 0, start: int = -1) -> Event:
    """A log was opened. start: where it begins, -1: not said."""
    return event(
        Name.LOG_RECOVERED,
        node=node,
        offset=end,
        leader_epoch=epoch,
        high_watermark=hw,
        log_start_offset=start,
        **ON,
    )


def fault(kind: str, node: int) -> Event:
    """A fault hit a host."""
    return event(Name.FAULT_BEGAN, node=node, cause=kind)


def dump(node: int, epoch: int, offset: int, *values: int, end: int, hw: int) -> Event:
    """A run of records of the final dump."""
    return event(
        Name.REPLICA_LOG,
        node=node,
        leader_epoch=epoch,
        offset=offset,
        values=values,
        end_offset=end,
        high_watermark=hw,
        **ON,
    )


def loss(start: int, end: int) -> Claims:
    """Claims that allow the loss of offsets [start, end)."""
    return Claims(loss=(LossRange(topic="t", partition=0, start=start, end=end, reason="test"),))


def read(
    op_id: int, function: Function, invoke: int, complete: int, end: int, epoch: int = 0, clock: int = 0
) -> Operation:
    """A poll or list_offsets that showed `end`."""
    listed = function is Function.LIST_OFFSETS
    return Operation(
        op_id=op_id,
        process=op_id,
        function=function,
        invoke_time=invoke,
        completion_time=complete,
        outcome=Outcome.OK,
        topic="t",
        partition=0,
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
