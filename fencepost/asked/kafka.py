"""Rounds over Kafka's wire, to any brokers.

Owns the translation of a step into one message, and its time limit. Must not know any question.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, evolve, field
from msgspec import Struct

from fencepost.asked.broker_connections import Links
from fencepost.asked.kafka_only import KAFKA_ONLY
from fencepost.asked.round import Agenda, round_of
from fencepost.asked.step import Conversation, Scope, Step
from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.traces.errors import PlanError
from fencepost.traces.events import Event
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.client import Access, Address, Link, look_around
from fencepost.wire.frames import ProtocolError
from fencepost.wire.outward import TRANSLATIONS

PATIENCE_S = 2.0
"""How long an answer is waited for: a busy machine takes a second now and then, and a paused broker must not
hold a round up for long."""


class Unspoken(Struct, frozen=True):
    """In place of an answer: the broker does not know such a message."""

    error: ErrorCode = ErrorCode.UNSUPPORTED_VERSION


@define(eq=False, kw_only=True)
class WireAsker:
    """Carries rounds out, one after the other."""

    links: Links
    # Nanoseconds of the trace.
    now: Callable[[], int]
    record: Callable[[Event], None]
    # Whether another row may be added to the trace.
    room: Callable[[], bool] = lambda: True
    # Seconds between two questions at least.
    pause_s: float = 0.0
    # Bytes of answers per second at most: after a large answer the pause is longer.
    bytes_per_second: float = float("inf")
    agenda: Agenda = field(factory=Agenda, init=False)
    # How many questions were sent.
    questions: int = field(default=0, init=False)
    # Seconds that the last answer costs.
    _debt_s: float = 0.0
    _busy: asyncio.Lock = field(factory=asyncio.Lock)

    async def ask(self, scope: Scope) -> None:
        """One round. scope: what it asks about."""
        async with self._busy:
            conversation = Conversation(
                round=round_of(evolve(scope, speaks=self.speaks), self.agenda),
                record=self.record,
                room=self.room,
            )
            step = conversation.begin(self.now())
            while step is not None:
                step = conversation.heard(await self.answer(step), self.now())

    def speaks(self, broker: int, request: type) -> bool:
        """Whether a broker that was asked something knows such a message."""
        versions = self.links.versions(broker)
        return request not in KAFKA_ONLY or KAFKA_ONLY[request].version(versions) is not None

    async def answer(self, step: Step) -> Any:
        """Put one question. None: no answer came. step: it."""
        await asyncio.sleep(max(self.pause_s, self._debt_s))
        self.questions += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                link = await self.links.link(step.broker)
            body, tell = _translated(link, step.request)
        except (OSError, TimeoutError):
            return None
        except ProtocolError:
            return Unspoken()
        before = self.links.received
        try:
            answer = await self.links.within(step.broker, body, PATIENCE_S)
        except (OSError, ProtocolError, TimeoutError):
            return None
        finally:
            self._debt_s = (self.links.received - before) / self.bytes_per_second
        if isinstance(step.request, MetadataRequest):
            self.links.learn({one.node_id: (one.host, one.port) for one in answer.brokers})
        return tell(step.request, answer)


def _translated(link: Link, request: Any) -> tuple[Any, Callable[[Any, Any], Any]]:
    if type(request) in KAFKA_ONLY:
        only = KAFKA_ONLY[type(request)]
        return only.ask(link, request), only.tell
    translation = TRANSLATIONS[type(request)]
    return translation.ask(link.dialogue, request), translation.tell


# ---- on its own


def ask_cluster(
    bootstrap: str,
    topics: Iterable[str],
    groups: Iterable[str],
    transactional_ids: Iterable[str],
    *,
    access: Access,
    guarded: bool,
) -> tuple[Event, ...]:
    """`fencepost.asked.ask`, with its parameters and its errors.

    Args:
        bootstrap: host:port, several with commas between them.
        topics: to ask about.
        groups: of consumers.
        transactional_ids: of producers.
        access: TLS and login.
        guarded: whether access rules may hide something.

    Returns:
        What was seen.
    """
    scope = Scope(
        brokers=(),
        topics=tuple(sorted(set(topics))),
        groups=tuple(sorted(set(groups))),
        transactional_ids=tuple(sorted(set(transactional_ids))),
        last=True,
        guarded=guarded,
    )
    return asyncio.run(_ask_once(_addresses(bootstrap), scope, access))


async def _ask_once(bootstrap: tuple[Address, ...], scope: Scope, access: Access) -> tuple[Event, ...]:
    addresses, metadata = await look_around(bootstrap, access)
    assigned = {replica for each in metadata.partitions for replica in each.replicas}  # some may be away
    first, events = time.monotonic_ns(), list[Event]()
    links = Links(dict(addresses), access)
    try:
        asker = WireAsker(links=links, now=lambda: time.monotonic_ns() - first, record=events.append)
        await asker.ask(evolve(scope, brokers=tuple(sorted({*addresses, *assigned}))))
    finally:
        await links.close()
    return tuple(events)


def _addresses(bootstrap: str) -> tuple[Address, ...]:
    found = []
    for one in bootstrap.split(","):
        host, _, port = one.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise PlanError(
                expected="host:port, several with commas between them",
                seen=one,
                where="the bootstrap servers",
            )
        found.append((host, int(port)))
    return tuple(found)
