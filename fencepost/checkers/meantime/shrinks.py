"""JUSTIFIED: a leader takes a follower out of the ISR only when it has lagged for replica.lag.time.max.ms.

Owns needless_shrink. A leader takes it that everybody in its first ISR was caught up when it began to lead. Hosts whose clocks were wrong
in the run are not asked, and a quarter of the time is conceded: a step of a slow host begins long before its events are recorded.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

CLOCKS = ("clock_jump", "clock_drift")
"""Kinds of fault that make a host's time another one."""


@define
class Shrinks:
    """lag_ns: replica.lag.time.max.ms. led: by leader and partition, when and where it became that, and the ISR then; a later epoch of the same leader changes
    nothing. odd: hosts whose clocks were wrong."""

    findings: Findings
    lag_ns: int
    led: dict[tuple[int, Key], tuple[int, int, tuple[int, ...]]] = field(factory=dict)
    odd: set[int] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Leaders and their proposals."""
        return {
            Name.BECAME_LEADER: self._became_leader,
            Name.BECAME_FOLLOWER: self._became_follower,
            Name.BROKER_STARTED: self._started,
            Name.ISR_PROPOSED: self._proposed,
            Name.FAULT_BEGAN: self._fault,
        }

    def _became_leader(self, position: int, event: Event) -> None:
        self.led.setdefault((event.node, (event.topic, event.partition)), (event.time, position, event.isr))

    def _became_follower(self, position: int, event: Event) -> None:
        self.led.pop((event.node, (event.topic, event.partition)), None)

    def _started(self, position: int, event: Event) -> None:
        for place in [place for place in self.led if place[0] == event.node]:
            del self.led[place]

    def _fault(self, position: int, event: Event) -> None:
        if event.cause in CLOCKS:
            self.odd.add(event.node)

    def _proposed(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        since, began, isr = self.led.get((event.node, key), (-1, -1, ()))
        early = event.time - since < self.lag_ns * 3 // 4
        if event.cause != "shrink" or event.node in self.odd or not early or set(isr) <= set(event.isr):
            return
        self.findings.add(
            "needless_shrink",
            expected=f"leader {event.node} to wait for {self.lag_ns // 1_000_000} ms before it finds that a follower lags",
            seen=f"it led for {(event.time - since) // 1_000_000} ms when it proposed ISR {list(event.isr)}",
            topic=event.topic,
            partition=event.partition,
            events=(began, position),
        )
