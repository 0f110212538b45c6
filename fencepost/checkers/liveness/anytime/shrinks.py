"""JUSTIFIED: a leader removes a follower from the ISR only if it has lagged for replica.lag.time.max.ms.

Owns needless_shrink and idle_isr_change: what is proposed as a shrink has fewer members than the leader goes
by, an expansion more. A leader takes it that everybody in its first ISR was caught up when it began to lead;
who joined since, or left and came back, may lag from the first moment: it was caught up with the high
watermark, not with the log. Hosts whose clocks were wrong in the run are not asked, and a quarter of the time
is conceded: a step of a slow host begins long before its events are recorded, and may end long after it was
slow.
"""

from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.checkers.invariants.replicas import Key
from fencepost.record.facts import busy_since, fault_of
from fencepost.traces.events import Event, Name

SLOW = ("pause", "slow_fsync", "slow_host")
"""Kinds of fault under which a step lasts long: it began to lead at the beginning, which nobody saw."""
FREQUENT = frozenset({Name.APPENDED, Name.HIGH_WATERMARK, Name.CONTROL_REQUEST_APPLIED})
"""What brokers record most often."""
CLOCKS = ("clock_jump", "clock_drift")
"""Kinds of fault that change a host's clock."""


@define
class Shrinks:
    """lag_ns: replica.lag.time.max.ms. led: by leader and partition, when and where it became that, and who
    of the ISR then was in it ever since; a later epoch of the same leader changes nothing. odd: hosts whose
    clocks were wrong."""

    findings: Findings
    lag_ns: int
    # All of the trace.
    events: Sequence[Event]
    led: dict[tuple[int, Key], tuple[int, int, tuple[int, ...]]] = field(factory=dict)
    # The ISR that a leader uses, and the position at which it reported it.
    believed: dict[tuple[int, Key], tuple[tuple[int, ...], int]] = field(factory=dict)
    odd: set[int] = field(factory=set)
    # Faults of SLOW that last, by broker.
    slow: dict[int, set[str]] = field(factory=dict)
    # When the last one of them ended.
    slowed: dict[int, int] = field(factory=dict)
    # By broker: when it had been busy last, and since when. A request for many new partitions is one step:
    # the leader's clock begins with it, and what it became is reported when it ends.
    busy: dict[int, tuple[int, int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Leaders and their proposals."""
        return {
            Name.BECAME_LEADER: self._became_leader,
            Name.BECAME_FOLLOWER: self._became_follower,
            Name.BROKER_STARTED: self._started,
            Name.BUSY: self._busy,
            Name.ISR_PROPOSED: self._proposed,
            Name.ISR_UPDATED: self._updated,
            Name.FAULT_BEGAN: self._fault,
            Name.FAULT_ENDED: self._ended,
        }

    def _became_leader(self, position: int, event: Event) -> None:
        at, begun = self.busy.get(event.node, (-1, 0))
        since = begun if at == event.time else event.time
        slowed = self.slowed.get(event.node, -1)
        if slowed >= 0 and slowed >= (begin := self._began(position, event)):
            since = min(since, begin)
        place = event.node, (event.topic, event.partition)
        self.led.setdefault(place, (since, position, event.isr))
        self._updated(position, event)

    def _began(self, position: int, event: Event) -> int:
        """When the step that recorded an event began at the earliest: a broker takes one at a time, and its
        events are recorded when the step ends."""
        of_node = (
            one.time
            for one in reversed(self.events[:position])
            if one.node == event.node and one.name in FREQUENT and one.time != event.time
        )
        return next(of_node, 0)

    def _busy(self, position: int, event: Event) -> None:
        self.busy[event.node] = event.time, busy_since(event)

    def _updated(self, position: int, event: Event) -> None:
        place = event.node, (event.topic, event.partition)
        self.believed[place] = event.isr, position
        if place in self.led:
            since, began, isr = self.led[place]
            if not set(isr) <= set(event.isr):
                self.led[place] = since, began, tuple(member for member in isr if member in event.isr)

    def _became_follower(self, position: int, event: Event) -> None:
        self.led.pop((event.node, (event.topic, event.partition)), None)

    def _started(self, position: int, event: Event) -> None:
        for place in [place for place in self.led if place[0] == event.node]:
            del self.led[place]

    def _fault(self, position: int, event: Event) -> None:
        if event.cause in CLOCKS:
            self.odd.add(event.node)
        elif event.cause in SLOW:
            self.slow.setdefault(event.node, set()).add(fault_of(event))

    def _ended(self, position: int, event: Event) -> None:
        active = self.slow.get(event.node, set())
        if fault_of(event) in active:
            active.discard(fault_of(event))
            self.slowed[event.node] = event.time

    def _is_odd(self, node: int, since: int) -> bool:
        """Whether its time is another one, or its steps were slow when it began to lead."""
        ended = self.slowed.get(node)
        slow = bool(self.slow.get(node)) or (ended is not None and ended >= since - self.lag_ns)
        return node in self.odd or slow

    def _proposed(self, position: int, event: Event) -> None:
        key = event.topic, event.partition
        self._changes(key, position, event)
        since, began, isr = self.led.get((event.node, key), (-1, -1, ()))
        early = event.time - since < self.lag_ns * 3 // 4
        if event.cause != "shrink" or not early or set(isr) <= set(event.isr):
            return
        if self._is_odd(event.node, since):
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
