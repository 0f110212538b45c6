"""Faults of requests in an embedded cluster: carried out at its sockets, recorded as its other faults are,
and what clients heard because of them.

Owns the hook between the engine (proxy/faults) and the record. Must not know any fault. Everything here runs
in the loop's thread.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from fencepost.impl.messages.broker_api import ProduceRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.kafka.chaos import ApplicationChaos
from fencepost.kafka.recording.client_record import ClientRecord
from fencepost.proxy.faults import FaultHook, RequestFault, RequestFaults, Struck, events_of
from fencepost.proxy.faults.request import Asked
from fencepost.sim.scheduler import Scheduler
from fencepost.traces.events import Event
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import Cut, Delay, Drop, Half, Hold, Hook, Pass, Replace, Silence, Verdict
from fencepost.wire.shapes import rows_of

PRODUCE = 0
"""Its key."""
RECORDED = frozenset({PRODUCE, 1, 2})
"""Keys of Produce, Fetch and ListOffsets: what the record of clients is made of."""


def _batches(body: Any) -> dict[TopicPartition, Any]:
    """Of a Produce request, by partition."""
    return {
        TopicPartition(topic.name, each.index): each.records
        for topic in body.topic_data
        for each in topic.partition_data
    }


@define(eq=False)
class Heard:
    """A hook that reports to the record of clients what they sent that did not reach the broker, and which
    answers did not reach them as the broker gave them."""

    hook: Hook
    clients: ClientRecord
    broker: int

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """As `Hook.on_request`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
        """
        self.clients.begins(source, header.client_id or "")
        verdict = self.hook.on_request(source, header, body)
        if header.api_key == PRODUCE and not isinstance(verdict, Pass):
            self._kept_back(source, body, verdict)
        return verdict

    def _kept_back(self, source: int, body: Any, verdict: Verdict) -> None:
        """Record the batches that a client sent and that never reach the broker."""
        goes_on: Mapping[TopicPartition, Any] = {}
        if isinstance(verdict, Hold):
            goes_on = _batches(body)
        elif isinstance(verdict, Replace | Delay):
            given = body if verdict.body is None else verdict.body
            goes_on = {} if given.__type__.name == "response" else _batches(given)
        for key, records in _batches(body).items():
            if key not in goes_on and records:
                self.clients.kept_back(
                    self.broker,
                    source,
                    ProduceRequest(
                        correlation_id=0, partition=key, acks=body.acks, records=records, timeout=0
                    ),
                )

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """As `Hook.on_answer`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
            answer: decoded, not sent yet.
        """
        verdict = self.hook.on_answer(source, header, body, answer)
        if header.api_key in RECORDED:
            if isinstance(verdict, Cut | Silence | Drop | Half):
                self.clients.unheard(source)
            elif isinstance(verdict, Replace | Delay) and verdict.body is not None:
                given = rows_of(verdict.body)
                other = [key for key, row in rows_of(answer).items() if given.get(key) != row]
                self.clients.unheard(source, other)
        return verdict


@define(eq=False)
class Aimed:
    """A hook through which chaos sees the clients under test. What it arms meets the request at hand."""

    hook: Hook
    chaos: Callable[[], ApplicationChaos | None]

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """As `Hook.on_request`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
        """
        chaos = self.chaos()
        if chaos is None:
            return self.hook.on_request(source, header, body)
        chaos.on_request(source, Asked(header, body))
        verdict = self.hook.on_request(source, header, body)
        chaos.after_request()
        return verdict

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """As `Hook.on_answer`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
            answer: decoded, not sent yet.
        """
        chaos = self.chaos()
        if chaos is not None:
            chaos.on_answer(source, Asked(header, body), answer)
        return self.hook.on_answer(source, header, body, answer)


@define(eq=False, kw_only=True)
class ClusterFaults:
    """The faults of requests of one cluster."""

    seed: int
    scheduler: Callable[[], Scheduler]
    """The world's; known once the world is."""
    clients: ClientRecord
    recorded: Callable[[Event], None]
    """Takes an event down."""
    engine: RequestFaults = field(init=False)
    kinds: Counter[str] = field(factory=Counter, init=False)
    """Hits so far, by kind."""
    chaos: ApplicationChaos | None = field(default=None, init=False)
    """The one at applications; None: none was asked for."""

    def __attrs_post_init__(self) -> None:
        self.engine = RequestFaults(seed=self.seed, record=self._struck)

    @property
    def _now(self) -> int:
        return self.scheduler().now

    def hook(self, broker: int) -> Hook:
        """Of one broker's listener."""
        faults = FaultHook(self.engine, broker, lambda: self._now)
        return Heard(Aimed(faults, lambda: self.chaos), self.clients, broker)

    def arm(self, fault: RequestFault) -> int:
        """From now on it may strike; answers its number. Raises PlanError."""
        return self.engine.arm(fault, self._now)

    def _struck(self, struck: Struck) -> None:
        self.kinds[struck.fault.kind] += 1
        began, ended = events_of(struck, self.engine.struck)
        self.recorded(began)
        if ended.time <= self._now:
            self.recorded(ended)
        else:
            self.scheduler().after(ended.time - self._now, self.recorded, ended)
