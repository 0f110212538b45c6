"""The engine as a hook of wire/: one for each broker, or for each address of a proxy.

Owns the clock that is asked, and what the record says. Must not know faults.
"""

import json
from collections.abc import Callable
from typing import Any

from attrs import frozen

from fencepost.proxy.faults.fault_engine import RequestFaults, Struck
from fencepost.traces.events import Event, Name
from fencepost.wire.codec import RequestHeader
from fencepost.wire.hook import Verdict

FIRST_NUMBER = 1_000_000
"""Numbers of faults of requests in a trace; those of other faults are below."""


@frozen
class FaultHook:
    """broker: the one that these requests go to. now: nanoseconds, never going back."""

    faults: RequestFaults
    broker: int
    now: Callable[[], int]

    def on_request(self, source: int, header: RequestHeader, body: Any) -> Verdict:
        """As `Hook.on_request`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
        """
        return self.faults.request(self.now(), self.broker, source, header, body)

    def on_answer(self, source: int, header: RequestHeader, body: Any, answer: Any) -> Verdict:
        """As `Hook.on_answer`.

        Args:
            source: the connection.
            header: of the request.
            body: the request, decoded.
            answer: decoded, not sent yet.
        """
        return self.faults.answer(self.now(), self.broker, source, header, body, answer)


def events_of(struck: Struck, hit: int) -> tuple[Event, Event]:
    """The beginning and the end of a hit, for a trace. hit: a number of this hit's own. The end may be later
    than the beginning: it goes where its time is. The node of both is -1: a fault at a host interrupts all of
    its replicas (model/refinement), and this one does not."""
    one = len(struck.partitions) == 1
    number = FIRST_NUMBER + hit
    target = f"{struck.api} of {struck.client or 'a client without id'} at broker {struck.broker}"
    detail = {"fault": number, "target": target, "says": str(struck.fault), "broker": struck.broker}
    if not one and struck.partitions:
        detail["partitions"] = ", ".join(str(key) for key in struck.partitions[:8])
    if struck.group:
        detail["group"] = struck.group
    where: dict[str, Any] = (
        {"topic": struck.partitions[0].topic, "partition": struck.partitions[0].partition} if one else {}
    )
    began = Event(
        time=struck.time, name=Name.FAULT_BEGAN, cause=struck.fault.kind, detail=json.dumps(detail), **where
    )
    ended = Event(
        time=struck.until,
        name=Name.FAULT_ENDED,
        cause=struck.fault.kind,
        detail=json.dumps({"fault": number}),
        **where,
    )
    return began, ended
