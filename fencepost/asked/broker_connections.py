"""Connections for questions, one to each broker.

Owns when they are opened and given up. Must not know what is asked. Each question has a time limit, because
a broker may be paused.
"""

import asyncio
from typing import Any

from attrs import define, field

from fencepost.wire.client import Access, Address, Link
from fencepost.wire.dialogue import Versions
from fencepost.wire.frames import ProtocolError


@define(eq=False)
class Links:
    """Opened when needed."""

    # By broker.
    addresses: dict[int, Address]
    access: Access = field(factory=Access)
    # Bytes of answers of all connections.
    received: int = 0
    _links: dict[int, Link] = field(factory=dict)
    # Held while a broker's connection is opened: two questions at once share it.
    _opening: dict[int, asyncio.Lock] = field(factory=dict)

    def learn(self, named: dict[int, Address]) -> None:
        """Take addresses over. One that is another broker's now is nobody else's: who answers there is not
        the one that was. named: as a broker's Metadata have them."""
        taken = set(named.values())
        self.addresses = {one: at for one, at in self.addresses.items() if at not in taken} | named

    async def link(self, broker: int) -> Link:
        """The open connection to a broker. Raises OSError, ProtocolError."""
        async with self._opening.setdefault(broker, asyncio.Lock()):
            return await self._opened(broker)

    async def _opened(self, broker: int) -> Link:
        link = self._links.get(broker)
        if link is None or link.ended().done():
            if broker not in self.addresses:  # it was away when another one was asked who is there
                raise OSError(f"no broker has named the address of broker {broker}")
            link = Link(self.addresses[broker], self.access)
            try:
                await link.open()
            except BaseException:
                await link.close()  # a broker that accepts and says nothing: its reader would stay
                raise
            self._links[broker] = link
        return link

    async def within(self, broker: int, body: Any, seconds: float) -> Any:
        """Ask a broker.

        Args:
            broker: its id.
            body: kio's request, or a function that makes it from the link.
            seconds: how long the answer is waited for, a new connection included.

        Returns:
            The answer.

        Raises:
            OSError, ProtocolError, TimeoutError: the connection is given up.
        """
        try:
            async with asyncio.timeout(seconds):
                link = await self.link(broker)
                before = link.received
                answer = await link.ask(body if not callable(body) else body(link))
                self.received += link.received - before
                return answer
        except (OSError, ProtocolError, TimeoutError):
            await self._forget(broker)
            raise

    def versions(self, broker: int) -> Versions | None:
        """What a broker speaks; None if there is no connection to it."""
        link = self._links.get(broker)
        return None if link is None else link.dialogue.versions

    async def _forget(self, broker: int) -> None:
        link = self._links.pop(broker, None)
        if link is not None:
            await link.close()

    async def close(self) -> None:
        """End every connection."""
        for broker in list(self._links):
            await self._forget(broker)
