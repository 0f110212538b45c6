"""NO-CRASH: no broker, controller or client ends by an assertion or an exception of its own, and none is
about to take a step that its own states do not allow.

Owns implementation_error and illegal_transition, which Kafka logs as an error of a state change. What the
process did wrong before, and what follows from its end, are for the other invariants.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define, frozen

from fencepost.checkers.invariants.findings import Findings
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name

REFUSED = "illegal_transition_refused"
"""The cause of the mark that says so (docs/reference/state-machines.md)."""


@frozen(kw_only=True)
class ErrorDetail:
    """What an implementation_error says in its detail."""

    # The exception's message.
    says: str = ""
    # What was being stepped: the kind of input.
    during: str = ""
    # The innermost frames, the one that raised first.
    at: tuple[str, ...] = ()
    # Of a client; -1 for a broker.
    process: int = -1


@define
class NoCrash:
    """Every such end is a finding; the first one is the certificate."""

    findings: Findings

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """The events that say so."""
        return {Name.IMPLEMENTATION_ERROR: self._failed, Name.MARK: self._marked}

    def _failed(self, position: int, event: Event) -> None:
        who = f"broker {event.node}" if event.node >= 0 else "a client"
        self.findings.add(
            "implementation_error",
            expected=f"{who} to go on, or to refuse what it cannot do",
            seen=error_in_words(event),
            events=(position,),
        )

    def _marked(self, position: int, event: Event) -> None:
        if event.cause == REFUSED:
            self.findings.add(
                "illegal_transition",
                expected=f"broker {event.node} to go only from a state to one that may follow it",
                seen=f"{event.detail}, which it refused",
                topic=event.topic,
                partition=event.partition,
                events=(position,),
            )


def error_in_words(event: Event) -> str:
    """The exception, what was being stepped, and where: as far as the event says so."""
    try:
        detail = from_json(event.detail or "{}", ErrorDetail)
    except msgspec.DecodeError:
        return f"{event.cause}: {event.detail}"
    words = f"{event.cause}: {detail.says}" if detail.says else event.cause
    if detail.process >= 0:
        words = f"in process {detail.process}, {words}"
    if detail.during:
        words += f", at {detail.during}"
    return f"{words}, in {', called from '.join(detail.at)}" if detail.at else words
