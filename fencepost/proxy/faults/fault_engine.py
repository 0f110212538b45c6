"""Faults at the level of requests, carried out: which request is hit by which fault, and the verdicts of the
hook that follow.

Owns the faults that are armed, their schedules, and what lasts longer than a request (a leader that has
moved, a member that is forgotten, a client that is throttled). Must not know sockets or the clock: time is a
parameter, in nanoseconds, and must not go back. Chance is a function of (seed, fault, how many fitted
before), so that one fault more or less leaves the others as they were.

One request is hit by one fault at most: the first that is armed. What lasts goes before what is new.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, evolve, field, frozen

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.proxy.faults.allowed import refuse_illegal
from fencepost.proxy.faults.carry import carry_answer, carry_request
from fencepost.proxy.faults.chance import one_of
from fencepost.proxy.faults.fault import RequestFault
from fencepost.proxy.faults.lasting import MILLISECOND, Lasting
from fencepost.proxy.faults.request import Asked, Carried, Plan
from fencepost.proxy.faults.seen import Seen
from fencepost.proxy.faults.verbs import ANY, OBSERVE, VERBS
from fencepost.traces.errors import PlanError
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import PASS, Replace, Verdict

MOST_ARMED = 1_000
"""Faults at a time: each request is held against each of them."""
MOST_PLANNED = 100_000
"""Requests without an answer that something is planned for: ten for each of the connections that a broker
takes (wire/limits.py). Plans of connections that ended go first."""
ON_ANSWERS = frozenset({"stale answer", "reshape"})
"""Verbs that count answers that they can change, not requests."""
OPENING = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
"""Requests that ANY leaves out: a client that cannot connect meets no other fault."""


@frozen(kw_only=True)
class Struck:
    """A fault hit a request."""

    # Of the fault.
    number: int
    fault: RequestFault
    # When, nanoseconds.
    time: int
    # When it is over: of delays, moves and throttles later than `time`.
    until: int
    # Where the request was.
    broker: int
    # Its connection.
    source: int
    # Its client id.
    client: str
    # Of the request.
    api: str
    # That were hit; empty for requests without any.
    partitions: tuple[TopicPartition, ...]
    # Of the request, empty without one.
    group: str


@define(eq=False, kw_only=True)
class _Armed:
    fault: RequestFault
    # When it was armed.
    since: int
    # Requests, or answers, that it could have hit.
    fitted: int = 0
    # That it hits: a request counts when it is chosen, and no more if its answer turns out to have nothing to
    # be hit. Invariant: at most fault.most.
    struck: int = 0


@define(eq=False, kw_only=True)
class RequestFaults:
    """All faults of one cluster."""

    # Of their chance.
    seed: int = 0
    # Called for each hit.
    record: Callable[[Struck], None] = lambda struck: None
    # That were looked at.
    requests: int = field(default=0, init=False)
    # Hits of all faults so far, of those that have ended, too.
    struck: int = field(default=0, init=False)
    _armed: dict[int, _Armed] = field(factory=dict, init=False)
    _last_number: int = field(default=0, init=False)
    # What happens to an answer, by connection and correlation id; with the fault's number.
    _plans: dict[tuple[int, int], tuple[int, Plan]] = field(factory=dict, init=False)
    _lasting: Lasting = field(factory=Lasting, init=False)
    _seen: Seen = field(factory=Seen, init=False)

    # ---- what users call

    def arm(self, fault: RequestFault, now: int) -> int:
        """From now on this fault may strike; answers its number. Raises PlanError for one that no correct
        broker does and that does not say so, and beyond MOST_ARMED."""
        refuse_illegal(fault)
        if len(self._armed) >= MOST_ARMED:
            raise PlanError(
                expected=f"at most {MOST_ARMED} faults of requests at a time",
                seen="one more",
                where=f"the fault {str(fault)!r}",
                hint="end some of them",
            )
        self._last_number += 1
        self._armed[self._last_number] = _Armed(fault=fault, since=now)
        return self._last_number

    def end(self, number: int) -> None:
        """This fault strikes no more; what it did lasts as long as it was meant to. Nothing happens if it has
        ended."""
        self._armed.pop(number, None)

    def heal(self) -> None:
        """Every fault ends, with what lasts; members that were forgotten stay so: they have heard it."""
        self._armed.clear()
        self._plans.clear()
        self._lasting.heal()

    def active(self) -> list[tuple[int, RequestFault, int]]:
        """(number, fault, hits) of each fault that is armed."""
        return [(number, armed.fault, armed.struck) for number, armed in self._armed.items()]

    # ---- what the hook calls

    def request(self, now: int, broker: int, source: int, header: RequestHeader, body: Any) -> Verdict:
        """A request was decoded and is not yet carried out.

        Args:
            now: nanoseconds.
            broker: to which it goes.
            source: the connection.
            header: of the request.
            body: the request, decoded.
        """
        self.requests += 1
        asked = Asked(header, body)
        carried = self._lasting.request(now, source, asked)
        if carried is None:
            carried = self._new(now, broker, source, asked)
        wait = self._lasting.wait(now, source)
        if carried.plan is not None:
            while len(self._plans) >= MOST_PLANNED:
                del self._plans[next(iter(self._plans))]
            self._plans[source, header.correlation_id] = (carried.number, carried.plan)
        return carried.after(wait)

    def answer(
        self, now: int, broker: int, source: int, header: RequestHeader, body: Any, answer: Any
    ) -> Verdict:
        """A request was carried out, its answer was not sent. body: as it was carried out."""
        asked = Asked(header, body)
        self._seen.look(asked, answer)
        moved = self._lasting.answer(now, asked, answer, self._seen.brokers)
        try:
            return self._answered(now, broker, source, asked, answer, answer if moved is None else moved)
        finally:
            if any(armed.fault.verb == "reshape" for armed in self._armed.values()):
                self._seen.keep_batches(asked, answer)

    def _answered(self, now: int, broker: int, source: int, asked: Asked, answer: Any, given: Any) -> Verdict:
        number, plan = self._plans.pop((source, asked.header.correlation_id), (0, None))
        if plan is not None:
            carried = carry_answer(plan, asked, given)
            if carried is None:
                if plan.counts and number in self._armed:
                    self._armed[number].struck -= 1
                return _verdict(answer, given)
            if plan.counts:
                self._strike(now, broker, source, asked, number, plan.fault, carried)
            if carried.mute_ms:
                self._lasting.mute(source, now + carried.mute_ms * MILLISECOND)
            return carried.verdict
        for number, armed in self._armed.items():
            if armed.fault.verb not in ON_ANSWERS or not self._fits(armed, now, broker, asked):
                continue
            changed = self._seen.changed(armed.fault, asked, given)
            if changed is not None and self._due(number, armed):
                armed.struck += 1
                self._strike(now, broker, source, asked, number, armed.fault, changed)
                return changed.verdict
        return _verdict(answer, given)

    # ---- which fault strikes

    def _new(self, now: int, broker: int, source: int, asked: Asked) -> Carried:
        """The first fault that strikes; the others count the request."""
        found: Carried | None = None
        for number, armed in list(self._armed.items()):
            fault = armed.fault
            if fault.verb in ON_ANSWERS or not self._fits(armed, now, broker, asked):
                continue
            if fault.verb == OBSERVE:
                armed.struck += self._due(number, armed)
                continue
            carried = carry_request(fault, asked, self._lasting, now)
            if carried is None or not self._due(number, armed) or found is not None:
                continue
            found = evolve(carried, number=number)
            if carried.begin is not None:
                carried.begin()
            armed.struck += 1
            if carried.plan is None or not carried.plan.counts:
                self._strike(now, broker, source, asked, number, fault, carried)
        return Carried(verdict=PASS) if found is None else found

    def _fits(self, armed: _Armed, now: int, broker: int, asked: Asked) -> bool:
        fault, age_ms = armed.fault, (now - armed.since) // MILLISECOND
        only = VERBS[fault.verb].apis
        return (
            (fault.api == asked.api or (fault.api == ANY and asked.api not in OPENING))
            and (not only or asked.api in only)
            and fault.broker in (-1, broker)
            and fault.from_ms <= age_ms
            and (not fault.until_ms or age_ms < fault.until_ms)
            and asked.from_client(fault.client)
            and (not fault.group or asked.group == fault.group)
            and (not fault.topic or asked.names(fault.topic, fault.partition))
        )

    def _due(self, number: int, armed: _Armed) -> bool:
        """Whether this one of the requests that fit is hit."""
        armed.fitted += 1
        fault = armed.fault
        if fault.most and armed.struck >= fault.most:
            return False
        if fault.nth:
            return armed.fitted == fault.nth
        return one_of(fault.one_in, self.seed, number, armed.fitted)

    def _strike(
        self,
        now: int,
        broker: int,
        source: int,
        asked: Asked,
        number: int,
        fault: RequestFault,
        carried: Carried,
    ) -> None:
        self.struck += 1
        self.record(
            Struck(
                number=number,
                fault=fault,
                time=now,
                until=now + carried.lasts_ms * MILLISECOND,
                broker=broker,
                source=source,
                client=asked.header.client_id or "",
                api=asked.api,
                partitions=asked.hit(fault.topic, fault.partition),
                group=asked.group or "",
            )
        )


def _verdict(answer: Any, given: Any) -> Verdict:
    return PASS if given is answer else Replace(given)
