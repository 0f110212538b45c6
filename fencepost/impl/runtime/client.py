"""A client core in the real world: an event loop, TCP to the brokers of a cluster, the wall clock.

Owns their lifetime, and the client's node id. Must not know the core. The node id is random: brokers
distinguish their clients by it.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from attrs import define, field

from fencepost.impl.core.broker_context import FIRST_CLIENT
from fencepost.impl.core.core_interface import Core
from fencepost.impl.messages.broker_api import Message
from fencepost.impl.runtime.addresses import Address
from fencepost.impl.runtime.core_driver import Driver, HostClock, Messenger
from fencepost.impl.runtime.network import Network
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation

CLIENT_IDS = 1 << 40


class ClientNetwork(Messenger, Protocol):
    """The connections of a client."""

    async def close(self) -> None:
        """Close the connections."""
        ...


Connect = Callable[[int, Callable[[int, Message], None]], ClientNetwork]
"""connect(node id, receive) returns the network of a client; receive(broker, message) gets the responses."""


@define(eq=False)
class RunningClient:
    """driver: steps the core. halted: why the core gave up; "" if it did not."""

    driver: Driver
    network: ClientNetwork
    halted: str = ""
    _changed: asyncio.Event = field(factory=asyncio.Event)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is evaluated after every completion. Raises EnvironmentError_ if
        the core gave up."""
        while not condition():
            if self.halted:
                raise EnvironmentError_(expected="a client that runs", seen=self.halted, where="the client")
            self._changed.clear()
            await self._changed.wait()

    def changed(self) -> None:
        """Something completed, or was read: wake the waiting calls."""
        self._changed.set()

    def stopped(self, reason: str) -> None:
        """The core gave up."""
        self.halted = reason
        self.changed()


@asynccontextmanager
async def running(
    core: Core,
    connect: Connect | Mapping[int, Address],
    on_complete: Callable[[Operation], None],
    on_begin: Callable[[Operation], None] = lambda operation: None,
) -> AsyncIterator[RunningClient]:
    """Run a client core until the block ends.

    connect: makes its network; alternatively the addresses of our brokers. on_complete: called with every
    finished operation. on_begin: called with operations that a core begins by itself.
    """
    loop, node = asyncio.get_running_loop(), FIRST_CLIENT + secrets.randbelow(CLIENT_IDS)

    def completed(operation: Operation) -> None:
        on_complete(operation)
        client.changed()

    driver = Driver(
        node=node,
        core=core,
        clock=HostClock(),
        loop=loop,
        on_event=_ignored,
        on_halt=lambda reason: client.stopped(reason),
        on_complete=completed,
        on_begin=on_begin,
    )
    network: ClientNetwork = (
        Network(node, connect, driver.receive)
        if isinstance(connect, Mapping)
        else connect(node, driver.receive)
    )
    driver.network = network
    client = RunningClient(driver, network)
    driver.start()
    try:
        yield client
    finally:
        driver.stop()
        await network.close()


def _ignored(event: Event) -> None:
    """A client has no protocol events."""
