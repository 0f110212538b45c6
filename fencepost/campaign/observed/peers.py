"""The messages between brokers of a simulated cluster, and brokers at rest: whether each message is what its
sender's state says, and whether a broker with nothing to do contradicts itself.

Owns the requests under way between brokers. It only reads: a run is the same with it. What is wrong is
recorded as an event (ANSWERED), and judged by the check `meantime`. Clients' requests are in answers.py.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.campaign.observed import between, transactional
from fencepost.campaign.observed.between import CONTROL, AskedByBroker
from fencepost.campaign.observed.differences import NOWHERE, Differences, place_of
from fencepost.campaign.observed.justified import Reason, partition_of
from fencepost.campaign.observed.resting import contradictions_in
from fencepost.impl.messages import broker_api
from fencepost.impl.messages.names import name_of
from fencepost.sim.host import Host
from fencepost.sim.scheduler import MILLISECOND
from fencepost.traces.events import Event
from fencepost.traces.outcomes import ErrorCode

FETCHES = 8
"""One of so many fetches between brokers is compared, and one of so many answers: they are nearly all of the
messages, and with each compared a run took a quarter longer."""
REQUESTS = {**between.REQUESTS, **transactional.REQUESTS}
ANSWERS = {**between.ANSWERS, **transactional.ANSWERS}
REST_EVERY = 16
"""Messages from other brokers between two looks at a broker at rest: one look costs as much as three
messages."""
MOST_WAITING = 10_000
"""Requests without an answer that are kept: those to a broker that is not registered never get one."""


@define(eq=False)
class PeerTap:
    """The messages of one broker's process to and from the others."""

    node: int
    host: Host
    # Virtual nanoseconds.
    now: Callable[[], int]
    record: Callable[[Event], None]
    # By sender and correlation id.
    asked: dict[tuple[int, int], AskedByBroker] = field(factory=dict)
    # The control request in flight by receiver: its channel, correlation id, the host's time of the step that
    # sent it, and the skew of the host's clock then.
    control: dict[int, tuple[Any, int, int, int]] = field(factory=dict)
    # The largest correlation id of a fetch, by sender.
    latest: dict[int, int] = field(factory=dict)
    # Messages that arrived, fetches among them, and fetches that left.
    arrived: int = 0
    fetched: int = 0
    fetches: int = 0
    differences: Differences = field(init=False)

    @differences.default
    def _none_yet(self) -> Differences:
        return Differences(self.now, self.record)

    def received(self, source: int, message: Any) -> None:
        """A message of another broker arrived.

        Args:
            source: the other broker.
            message: its request or answer.
        """
        core, host = self.host.core, self.host
        if core is None or core.broker_context.broker_epoch < 0 or core.shutdown.shutting_down:
            return
        kind = type(message)
        if kind in REQUESTS:
            asked = kind is not broker_api.FetchRequest or self._is_asked(source, message.correlation_id)
            if asked and len(self.asked) < MOST_WAITING:
                key = source, message.correlation_id
                self.asked.setdefault(key, AskedByBroker(source, message, self.now(), self._skew()))
        elif kind is broker_api.ControlResponse:
            known = self.control.get(source)
            if known is not None and known[1] == message.correlation_id:
                del self.control[source]
        self.arrived += 1
        if self.arrived % REST_EVERY == 0 and host.rests:
            for reason in contradictions_in(core, host.timers):
                self.differences.add(self.node, "resting", NOWHERE, "a state", reason)

    def _is_asked(self, source: int, correlation_id: int) -> bool:
        """Whether the answer to this fetch is compared. Of a second copy it is not known which answer is
        whose."""
        known = self.latest.get(source, -1)
        self.latest[source] = max(known, correlation_id)
        self.fetched += 1
        return correlation_id > known and self.fetched % FETCHES == 0

    def sent(self, target: int, message: Any) -> None:
        """A message leaves for another broker.

        Args:
            target: the other broker.
            message: the request or answer.
        """
        core, kind = self.host.core, type(message)
        if core is None or core.shutdown.shutting_down:
            return
        if kind is broker_api.FetchRequest:
            self.fetches += 1
            if self.fetches % FETCHES:
                return
        asks = REQUESTS.get(kind)
        if asks is not None:
            for reason in asks(core, target, message):
                self._of("unfounded", message, reason)
            if kind in CONTROL:
                self._in_flight(core, target, message)
            return
        answers = ANSWERS.get(kind)
        asked = None if answers is None else self.asked.pop((target, message.correlation_id), None)
        if answers is None or asked is None:
            return
        for reason in answers(core, asked, message):
            self._of("wrong", asked.request, reason)
        if kind is broker_api.FetchResponse:
            self._early(asked, message)

    def _early(self, asked: AskedByBroker, answer: broker_api.FetchResponse) -> None:
        """A fetch that finds nothing waits for all of its time."""
        if any(one.records or one.error is not ErrorCode.NONE for one in answer.partitions):
            return
        waited = self.now() - asked.since
        if self._skew() or asked.skew:
            return  # timers of a host that was wrong about the time may be early
        if waited < asked.request.max_wait:
            wait = f"no answer without records before {asked.request.max_wait // MILLISECOND} ms"
            self._of("wrong", asked.request, ("time", wait, f"one after {waited // MILLISECOND} ms"))

    def _in_flight(self, core: Any, target: int, request: Any) -> None:
        """The next control request leaves when the one before is answered, or was not answered in time. A
        controller that resigned and goes on as the same one has other channels."""
        channel, now = core.controller.state.channels.channels.get(target), core.broker_context.now
        known, skew = self.control.get(target), self._skew()
        if known is not None and channel is not None and known[0] is channel and known[3] == skew:
            least = core.broker_context.options.controller_request_timeout_ms * MILLISECOND
            if now - known[2] < least:
                expected = f"one for {least // MILLISECOND} ms"
                seen = f"another after {(now - known[2]) // MILLISECOND} ms"
                self._of("unfounded", request, (f"requests in flight to {target}", expected, seen))
        self.control[target] = (channel, request.correlation_id, now, skew)

    def _skew(self) -> int:
        """Differs between two moments if anything was wrong with the clock of the host."""
        return self.host.clock.now() - self.now()

    def ended(self) -> None:
        """The process ends."""
        for kept in (self.asked, self.control, self.latest):
            kept.clear()

    def _of(self, cause: str, request: Any, reason: Reason) -> None:
        place = place_of(partition_of(request))
        self.differences.add(self.node, cause, place, name_of(request), reason)
