"""Requests of administration that have no answer yet.

Owns who waits, how many may, and until when. Must not know what anybody waits for: a ticket says whether it
is done. Whatever happens, a ticket is answered at most once; one that is done, or overdue, is forgotten.
"""

from collections.abc import Callable

from attrs import define, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.messages.admin_api import AdminResponse

ADMIN_TIMER = "admin_request"
MOST_WAITING = 1_000
"""Requests without an answer; a further one is answered at once that its time is up. People and tools ask
a few at a time."""
Respond = Callable[[], AdminResponse]


@define(eq=False)
class Ticket:
    """A request that waits."""

    number: int
    """Of this process, counted up."""
    source: int
    """Who asked."""
    correlation_id: int
    """Of the request."""
    overdue: Respond
    """The answer if the time is up first."""
    done: Callable[[], AdminResponse | None] | None = None
    """The answer once what was asked for has come to pass, None before; not set while the request is being
    carried out."""


@define
class AdminDesk:
    """All of one broker."""

    broker_context: BrokerContext
    open: dict[int, Ticket] = field(factory=dict)
    """Without an answer."""
    looking: dict[int, Ticket] = field(factory=dict)
    """Those of them that say themselves when they are done."""
    _last: int = 0

    def admit(
        self, source: int, correlation_id: int, overdue: Respond, timeout_ms: int | None = None
    ) -> Ticket | None:
        """A ticket for a request; None if there are too many, and then it is answered. timeout_ms: None
        for one that has no bound yet."""
        if len(self.open) >= MOST_WAITING:
            self.broker_context.reply(source, overdue(), correlation_id)
            return None
        self._last += 1
        ticket = self.open[self._last] = Ticket(self._last, source, correlation_id, overdue)
        if timeout_ms is not None:
            self._limit(ticket, timeout_ms)
        return ticket

    def _limit(self, ticket: Ticket, timeout_ms: int) -> None:
        self.broker_context.set_timer((ADMIN_TIMER, ticket.number), max(0, timeout_ms))

    def wait(
        self,
        ticket: Ticket,
        timeout_ms: int,
        done: Callable[[], AdminResponse | None],
        overdue: Respond,
    ) -> None:
        """The request was carried out; it is answered when it has come to pass, or when the time is up."""
        if ticket.number not in self.open:
            return
        response = done()
        if response is not None or timeout_ms <= 0:
            self.answer(ticket, response or overdue())
            return
        ticket.done, ticket.overdue = done, overdue
        self.looking[ticket.number] = ticket
        self._limit(ticket, timeout_ms)

    def answer(self, ticket: Ticket, response: AdminResponse) -> None:
        """Unless it was answered before."""
        if self.open.pop(ticket.number, None) is None:
            return
        self.looking.pop(ticket.number, None)
        self.broker_context.cancel_timer((ADMIN_TIMER, ticket.number))
        self.broker_context.reply(ticket.source, response, ticket.correlation_id)

    def look(self) -> None:
        """Something happened: answer what has come to pass."""
        for ticket in list(self.looking.values()):
            assert ticket.done is not None
            response = ticket.done()
            if response is not None:
                self.answer(ticket, response)

    def on_timer(self, number: int) -> None:
        """A request's time is up."""
        ticket = self.open.get(number)
        if ticket is not None:
            self.answer(ticket, ticket.overdue())
