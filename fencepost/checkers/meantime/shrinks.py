"""JUSTIFIED: a leader removes a follower from the ISR only if it has lagged for replica.lag.time.max.ms.

Owns needless_shrink and idle_isr_change. A proposal with fewer members than the leader's current ISR is a
shrink, one with more members an expansion. A leader assumes that every member of its first ISR was caught up
when it began to lead. Hosts with wrong clocks in the run are not checked, and a quarter of the time is
tolerated: a step of a slow host begins long before its events are recorded.
"""

from collections.abc import Callable, Mapping

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.traces.events import Event, Name

CLOCKS = ("clock_jump", "clock_drift")
"""Kinds of fault that change a host's clock."""


@define
class Shrinks:
    """The state of the rules.

    lag_ns: replica.lag.time.max.ms. led: by leader and partition, when and where it became leader, and the
    ISR then; a later epoch of the same leader changes nothing. odd: hosts with wrong clocks.
    """

    findings: Findings
    lag_ns: int
    led: dict[tuple[int, Key], tuple[int, int, tuple[int, ...]]] = field(factory=dict)
    believed: dict[tuple[int, Key], tuple[tuple[int, ...], int]] = field(factory=dict)
    """The ISR that a leader uses, and the position at which it reported it."""
    odd: set[int] = field(factory=set)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Leaders and their proposals."""
        return {
            Name.BECAME_LEADER: self._became_leader,
            Name.BECAME_FOLLOWER: self._became_follower,
            Name.BROKER_STARTED: self._started,
            Name.ISR_PROPOSED: self._proposed,
            Name.ISR_UPDATED: self._updated,
            Name.FAULT_BEGAN: self._fault,
        }

    def _became_leader(self, position: int, event: Event) -> None:
        self.led.setdefault((event.node, (event.topic, event.partition)), (event.time, position, event.isr))
        self._updated(position, event)

    def _updated(self, position: int, event: Event) -> None:
        self.believed[event.node, (event.topic, event.partition)] = event.isr, position

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
        self._changes(key, position, event)
        since, began, isr = self.led.get((event.node, key), (-1, -1, ()))
        early = event.time - since < self.lag_ns * 3 // 4
        if event.cause != "shrink" or event.node in self.odd or not early or set(isr) <= set(event.isr):
            return
        self.findings.add(
            "needless_shrink",
            expected=f"leader {event.node} to wait for {self.lag_ns // 1_000_000} ms before it finds that a "
            f"follower lags",
            seen=f"it led for {(event.time - since) // 1_000_000} ms when it proposed ISR {list(event.isr)}",
            topic=event.topic,
            partition=event.partition,
            events=(began, position),
        )

    def _changes(self, key: Key, position: int, event: Event) -> None:
        known, since = self.believed.get((event.node, key), ((), -1))
        before, after = set(known), set(event.isr)
        if since < 0 or (after < before if event.cause == "shrink" else before < after):
            return
        self.findings.add(
            "idle_isr_change",
            expected=f"a leader that uses ISR {list(known)} to {event.cause} it",
            seen=f"leader {event.node} proposed {list(event.isr)}",
            topic=event.topic,
            partition=event.partition,
            events=(since, position),
        )
