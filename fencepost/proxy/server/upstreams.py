"""The addresses of a cluster: which of them answers, and how often none did.

Owns connections to brokers as far as they are made. Must not know what passes on them.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from fencepost.proxy.proxied_cluster import Address
from fencepost.traces.errors import EnvironmentError_

LOG = logging.getLogger("fencepost.proxy")
CONNECT_S = 10.0
"""Of a connection to a broker, TLS included (socket.connection.setup.timeout.ms); its addresses share it."""
PROBE_S = 0.5
"""Between two probes of a cluster that does not answer yet."""
LOG_S = 60.0
"""Between two lines about brokers that cannot be reached: a client tries again several times a second."""


@frozen(kw_only=True)
class Sides:
    """How both sides talk."""

    # TLS towards clients.
    listener: ssl.SSLContext | None = None
    # Towards brokers; None: plain TCP.
    upstream: ssl.SSLContext | None = None
    # To ask a broker's certificate for; "" for the host that the broker is called by.
    server_name: str = ""


@define(eq=False)
class Upstreams:
    """What is known of brokers that are connected to."""

    sides: Sides
    # Connections of clients that ended because no address of their broker could be reached.
    unreachable: int = field(default=0, init=False)
    # How many of them a line of the log has named.
    _logged: int = field(default=0, init=False)
    # When that was, in seconds on the monotonic clock.
    _logged_at: float = field(default=-LOG_S, init=False)

    async def connect(
        self, addresses: Sequence[Address], made: Callable[[], asyncio.BaseProtocol]
    ) -> tuple[Address, asyncio.BaseProtocol]:
        """Connect to the first address that answers.

        Args:
            addresses: of one broker, or of a cluster, in the order in which they are tried.
            made: makes the protocol of a connection.

        Returns:
            the address, and its protocol.

        Raises:
            OSError: that none answers, with the reason of each.
        """
        loop, reasons = asyncio.get_running_loop(), []
        for host, port in addresses:
            name = (self.sides.server_name or host) if self.sides.upstream is not None else None
            try:
                async with asyncio.timeout(CONNECT_S / len(addresses)):
                    _, protocol = await loop.create_connection(
                        made, host, port, ssl=self.sides.upstream, server_hostname=name
                    )
                    return (host, port), protocol
            except (OSError, TimeoutError) as error:
                reasons.append(f"{host}:{port} cannot be reached: {error or 'time-out'}")
        raise OSError("; ".join(reasons))

    async def probe(self, addresses: Sequence[Address], wait_s: float) -> list[str]:
        """Wait until an address answers.

        Args:
            addresses: of the cluster.
            wait_s: seconds to wait for the first that answers; 0: one try each.

        Returns:
            why each of the others cannot be reached.

        Raises:
            EnvironmentError_: if none answers in time.
        """
        deadline = time.monotonic() + wait_s
        while True:
            reasons = []
            for address in addresses:
                try:
                    _, protocol = await self.connect((address,), _Probe)
                except OSError as error:
                    reasons.append(str(error))
                else:
                    assert isinstance(protocol, _Probe)
                    protocol.end()
            if len(reasons) < len(addresses):
                return reasons
            if time.monotonic() >= deadline:
                raise EnvironmentError_(
                    expected="a broker of the cluster that accepts connections",
                    seen="; ".join(reasons),
                    where="the upstream brokers",
                    hint="start the cluster first, or let the proxy wait for it: --wait-for-upstream SECONDS",
                )
            await asyncio.sleep(PROBE_S)

    def lost(self, client: str, reason: str) -> None:
        """A client's connection ends because its broker cannot be reached: it is counted, and now and then
        logged.

        Args:
            client: its address.
            reason: in words.
        """
        self.unreachable += 1
        if time.monotonic() - self._logged_at >= LOG_S:
            more = self.unreachable - self._logged - 1
            others = f" ({more} more since the last such line)" if more else ""
            LOG.warning("%s: connection closed: %s%s", client, reason, others)
            self._logged, self._logged_at = self.unreachable, time.monotonic()


@define(eq=False)
class _Probe(asyncio.Protocol):
    """A connection that says nothing."""

    transport: asyncio.BaseTransport | None = field(default=None, init=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It answers."""
        self.transport = transport

    def end(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            if self.transport is not None:
                self.transport.close()
