"""Faults as bars on the lane of the broker that they hit.

Owns: when a fault began and ended, and whom it hit. Must not know drawing.
"""

from typing import Any

from attrs import frozen

from fencepost.report.event_words import event_in_words, fault_detail, fault_nodes
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace


@frozen(kw_only=True)
class FaultBar:
    """kind: of fault. nodes: the brokers hit; empty where it hits no broker. broker: of the request that it
    struck; -1 if it struck none. began, ended: positions of the
    events; ended is None if the trace ends first."""

    kind: str
    nodes: tuple[int, ...]
    broker: int
    began: int
    ended: int | None
    words: str


def faults_of(trace: Trace) -> list[FaultBar]:
    """Every fault that began, in order. A skipped fault hit no broker and is shown only among the events."""
    under_way: dict[Any, tuple[int, Event]] = {}
    found: list[FaultBar] = []
    for position, event in enumerate(trace.events):
        if event.name not in (Name.FAULT_BEGAN, Name.FAULT_ENDED):
            continue
        number = fault_detail(event).get("fault")
        key = number if isinstance(number, int) else (event.cause, event.node)
        if event.name is Name.FAULT_BEGAN:
            under_way[key] = position, event
        elif key in under_way:
            found.append(_bar(*under_way.pop(key), position))
    found += [_bar(position, event, None) for position, event in under_way.values()]
    return sorted(found, key=lambda bar: bar.began)


def _bar(began: int, event: Event, ended: int | None) -> FaultBar:
    broker = fault_detail(event).get("broker")
    return FaultBar(
        kind=event.cause,
        nodes=fault_nodes(event),
        broker=broker if isinstance(broker, int) else -1,
        began=began,
        ended=ended,
        words=event_in_words(event),
    )
