"""INCARNATION: a request for an earlier incarnation of a broker has no effect.

Owns earlier_incarnation_obeyed. An incarnation is a registration: its broker epoch is the czxid of
/brokers/ids/N (KIP-380). The rule uses the knowledge of the receiver: a broker knows its own registration,
and a controller reports in its mark which one it knew.
"""

from collections.abc import Callable, Mapping

import msgspec
from attrs import define, field

from fencepost.checkers.invariants.findings import Findings
from fencepost.traces.decoding import from_json
from fencepost.traces.events import Event, Name

SHUTDOWN = "controlled_shutdown"
"""The mark of a controller that carried out a controlled shutdown. broker_epoch: that of the request; detail:
JSON {known_broker_epoch}."""


class _Detail(msgspec.Struct, frozen=True):
    known_broker_epoch: int = -1


def known_broker_epoch(detail: str) -> int:
    """The registration that a controller knew, from its mark. -1 if the mark does not report it or is not
    JSON: a trace may come from any tool."""
    try:
        return from_json(detail, _Detail).known_broker_epoch if detail else -1
    except msgspec.DecodeError:
        return -1


@define
class Incarnation:
    """The state of the invariant."""

    findings: Findings
    # The broker epoch of each broker, with the position of its registration.
    registered: dict[int, tuple[int, int]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """Registrations, and requests that were obeyed."""
        return {
            Name.BROKER_REGISTERED: self._registered,
            Name.CONTROL_REQUEST_APPLIED: self._applied,
            Name.MARK: self._mark,
        }

    def _registered(self, position: int, event: Event) -> None:
        self.registered[event.node] = event.broker_epoch, position

    def _applied(self, position: int, event: Event) -> None:
        epoch, since = self.registered.get(event.node, (-1, -1))
        if 0 <= event.broker_epoch < epoch:
            self._found(
                position,
                since,
                f"broker {event.node} of broker epoch {epoch} to refuse a request for an earlier one",
                f"it applied a {event.cause or 'control request'} for broker epoch {event.broker_epoch}",
            )

    def _mark(self, position: int, event: Event) -> None:
        if event.cause != SHUTDOWN:
            return
        known = known_broker_epoch(event.detail)
        if event.broker_epoch < known:
            self._found(
                position,
                self.registered.get(event.leader, (-1, -1))[1],
                f"controller {event.node} to refuse a controlled shutdown that was asked for before broker "
                f"{event.leader} registered with broker epoch {known}",
                f"it carried out one of broker epoch {event.broker_epoch}",
            )

    def _found(self, position: int, since: int, expected: str, seen: str) -> None:
        self.findings.add(
            "earlier_incarnation_obeyed",
            expected=expected,
            seen=seen,
            events=(since, position) if since >= 0 else (position,),
        )
