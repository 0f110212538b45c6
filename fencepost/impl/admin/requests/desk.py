"""Requests of administration without a response yet.

Owns which requests wait, how many may wait, and for how long. Must not know what they wait for: a ticket says
whether it is done. A ticket is answered at most once; when it is done or overdue it is removed.
"""

from collections.abc import Callable

from attrs import define, field

from fencepost.impl.core.broker_context import BrokerContext
from fencepost.impl.messages.admin_api import AdminResponse

ADMIN_TIMER = "admin_request"
MOST_WAITING = 1_000
"""The most requests without a response; a further one is answered at once with a timeout. Reason: people and
tools send a few at a time."""
Respond = Callable[[], AdminResponse]


@define(eq=False)
class Ticket:
    """A waiting request."""

    # The number of the ticket in this process; it increases.
    number: int
    # The sender.
    source: int
    # That of the request.
    correlation_id: int
    # Makes the response if the time is up first.
    overdue: Respond
    # Returns the response once the request has taken effect, None before. Not set while the request is being
    # carried out.
    done: Callable[[], AdminResponse | None] | None = None


@define
class AdminDesk:
    """The waiting requests of one broker."""

    broker_context: BrokerContext
    # Tickets without a response.
    open: dict[int, Ticket] = field(factory=dict)
    # Those of them with `done`.
    looking: dict[int, Ticket] = field(factory=dict)
    _last: int = 0

    def admit(
        self, source: int, correlation_id: int, overdue: Respond, timeout_ms: int | None = None
    ) -> Ticket | None:
        """A ticket for a request. If there are too many, the request is answered at once.

        Args:
            source: the sender.
            correlation_id: that of the request.
            overdue: makes the response if the time is up first.
            timeout_ms: the timeout; None: no bound yet.

        Returns:
            the ticket; None if there are too many.
        """
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
        self, ticket: Ticket, timeout_ms: int, done: Callable[[], AdminResponse | None], overdue: Respond
    ) -> None:
        """The request was carried out. Answer it when it has taken effect, or when the time is up.

        Args:
            ticket: the request.
            timeout_ms: its timeout.
            done: returns the response once the request has taken effect, None before.
            overdue: makes the response if the time is up first.
        """
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
        """Answer a request, unless it was answered before.

        Args:
            ticket: the request.
            response: the response.
        """
        if self.open.pop(ticket.number, None) is None:
            return
        self.looking.pop(ticket.number, None)
        self.broker_context.cancel_timer((ADMIN_TIMER, ticket.number))
        self.broker_context.reply(ticket.source, response, ticket.correlation_id)

    def look(self) -> None:
        """Something changed: answer the requests that have taken effect."""
        for ticket in list(self.looking.values()):
            assert ticket.done is not None
            response = ticket.done()
            if response is not None:
                self.answer(ticket, response)

    def on_timer(self, number: int) -> None:
        """The time of a request is up."""
        ticket = self.open.get(number)
        if ticket is not None:
            self.answer(ticket, ticket.overdue())
