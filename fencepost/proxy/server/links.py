"""Links between brokers, in bytes only: cut without a reset, one way or both, or delayed, by pair and
listener.

Owns the sockets of such links. Must not know what passes. A link listens where its source is sent to reach
its target, and passes bytes on. While it is cut nothing is read and nothing is closed, in the way that is
cut: neither side hears a thing, as when a switch has died; what was under way waits in the sockets and goes
on after the heal. A connection that begins while a link is cut is accepted, as a kernel does for a process
that hangs, and reaches its target after the heal.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum

from attrs import define, field, frozen

from fencepost.traces.errors import EnvironmentError_, FencepostError

READ_BYTES = 64 * 1024
MOST_DELAYED = 16 * 1024 * 1024
"""Bytes of a connection and way that wait for their time; the side that sends more is not read until they are
gone."""
MOST_CONNECTIONS = 10_000
"""Each takes two descriptors and two buffers; three brokers need about twenty."""
LONGEST_DELAY_MS = 600_000
"""Ten minutes: longer than every time-out of a broker."""
CONNECT_S = 10.0
"""Of loopback, where a connection is made at once unless the machine is overloaded."""
Address = tuple[str, int]


class Way(StrEnum):
    """THERE: from the source to the target. BACK: what the target sends on the same connections. BOTH:
    neither passes."""

    THERE = "there"
    BACK = "back"
    BOTH = "both"


@frozen
class Pair:
    """A link's name."""

    source: str
    target: str
    # Which one of the target's.
    listener: str = ""

    def __str__(self) -> str:
        listener = f" ({self.listener})" if self.listener else ""
        return f"{self.source} -> {self.target}{listener}"


@define(eq=False)
class Stream:
    """One way of a connection: what arrives at `reader` leaves by `writer`, in its order and not before its
    time."""

    link: "Link"
    way: Way
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    # (when it leaves, bytes); no bytes: the end.
    waiting: "deque[tuple[float, bytes]]" = field(factory=deque)
    held: int = 0
    _changed: asyncio.Event = field(factory=asyncio.Event)

    async def run(self) -> None:
        """Until the end of the bytes has been passed on, or a side is lost."""
        sending = asyncio.ensure_future(self._send())
        try:
            while True:
                await self.link.open[self.way].wait()
                if self.held > MOST_DELAYED:
                    await asyncio.sleep(0.01)
                    continue
                data = await self.reader.read(READ_BYTES)
                self._push(data)
                if not data:
                    break
            await sending
        finally:
            sending.cancel()

    def _push(self, data: bytes) -> None:
        due = asyncio.get_running_loop().time() + self.link.delays_ms[self.way] / 1000
        self.waiting.append((due, data))
        self.held += len(data)
        self._changed.set()

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self.waiting:
                self._changed.clear()
                await self._changed.wait()
            due, data = self.waiting[0]
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            await self.link.open[self.way].wait()  # also what was read before the cut
            self.waiting.popleft()
            self.held -= len(data)
            if not data:
                with contextlib.suppress(OSError):
                    self.writer.write_eof()
                return
            self.writer.write(data)
            await self.writer.drain()


@define(eq=False)
class Link:
    """From a listener of ours to a target."""

    pair: Pair
    target: Address
    address: Address = ("", 0)
    # Whether bytes pass, by way.
    open: dict[Way, asyncio.Event] = field(factory=dict)
    delays_ms: dict[Way, int] = field(factory=dict)
    connections: int = 0
    _server: asyncio.Server | None = None
    _tasks: "set[asyncio.Task[None]]" = field(factory=set)
    # Whether `close` has begun: a connection that it cancels ends in silence.
    _closing: bool = False

    async def listen(self, address: Address) -> None:
        """Raises EnvironmentError_ for an address that is taken."""
        for way in (Way.THERE, Way.BACK):
            self.open[way] = asyncio.Event()
            self.open[way].set()
            self.delays_ms[way] = 0
        try:
            self._server = await asyncio.start_server(self._accepted, *address)
        except OSError as error:
            raise EnvironmentError_(
                expected="a free address",
                seen=error.strerror or str(error),
                where=f"{address[0]}:{address[1]}, link {self.pair}",
            ) from None
        self.address = self._server.sockets[0].getsockname()[:2]

    @property
    def cut(self) -> tuple[Way, ...]:
        """The ways in which nothing passes."""
        return tuple(way for way, event in self.open.items() if not event.is_set())

    def set(self, way: Way, *, passes: bool | None = None, delay_ms: int | None = None) -> None:
        """Cut or heal, or delay, in one way or both."""
        for one in (Way.THERE, Way.BACK) if way is Way.BOTH else (way,):
            if delay_ms is not None:
                self.delays_ms[one] = delay_ms
            if passes is not None:
                (self.open[one].set if passes else self.open[one].clear)()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        far: asyncio.StreamWriter | None = None
        try:
            if self.connections > MOST_CONNECTIONS:
                return
            await self.open[Way.THERE].wait()
            async with asyncio.timeout(CONNECT_S):
                far_reader, far = await asyncio.open_connection(*self.target)
            there = Stream(self, Way.THERE, reader, far)
            back = Stream(self, Way.BACK, far_reader, writer)
            ways = [asyncio.ensure_future(there.run()), asyncio.ensure_future(back.run())]
            try:
                await asyncio.gather(*ways)
            finally:
                for one in ways:
                    one.cancel()
        except (OSError, TimeoutError):
            await self._both_open()  # a reset is news, too
        except asyncio.CancelledError:
            if not self._closing:
                raise
        finally:
            self.connections -= 1
            self._tasks.discard(task)
            for each in (writer, far):
                if each is not None:
                    each.transport.abort() if each.transport.get_write_buffer_size() else each.close()

    async def _both_open(self) -> None:
        for event in self.open.values():
            await event.wait()

    async def close(self) -> None:
        """Cut every connection and stop listening."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@define(eq=False)
class Links:
    """The links of a cluster, by pair. Everything is called in the loop's thread."""

    links: dict[Pair, Link] = field(factory=dict)

    async def add(self, pair: Pair, target: Address, listen: Address = ("127.0.0.1", 0)) -> Address:
        """A link of this pair to the target; returns where the source is to be sent. Raises EnvironmentError_
        for an address that is taken, FencepostError for a pair that has a link."""
        if pair in self.links:
            raise FencepostError(expected="a new pair", seen="one that has a link", where=str(pair))
        link = Link(pair, target)
        await link.listen(listen)
        self.links[pair] = link
        return link.address

    def cut(
        self, source: str = "*", target: str = "*", listener: str = "*", way: Way = Way.BOTH
    ) -> list[Pair]:
        """Nothing passes any more, without a reset, in this way; "*": any. Returns the pairs. Raises
        FencepostError for none."""
        return self._set(source, target, listener, way, passes=False)

    def delay(
        self,
        milliseconds: int,
        source: str = "*",
        target: str = "*",
        listener: str = "*",
        way: Way = Way.BOTH,
    ) -> list[Pair]:
        """Every byte from now on takes longer.

        Args:
            milliseconds: how much longer; 0: no longer.
            source: the client or broker, or "*".
            target: the broker, or "*".
            listener: its name, or "*".
            way: in which direction.

        Returns:
            The pairs that it concerns.

        Raises:
            FencepostError: if nothing has that name.
        """
        if not 0 <= milliseconds <= LONGEST_DELAY_MS:
            raise FencepostError(
                expected=f"0 to {LONGEST_DELAY_MS} milliseconds",
                seen=str(milliseconds),
                where="a delay of links",
            )
        return self._set(source, target, listener, way, delay_ms=milliseconds)

    def heal(self, source: str = "*", target: str = "*", listener: str = "*") -> list[Pair]:
        """Bytes pass again, without delay.

        Args:
            source: the client or broker, or "*".
            target: the broker, or "*".
            listener: its name, or "*".

        Returns:
            The pairs that it concerns.
        """
        return self._set(source, target, listener, Way.BOTH, passes=True, delay_ms=0)

    def state(self) -> list[dict[str, object]]:
        """Each link and what it does now."""
        return [
            {
                "source": pair.source,
                "target": pair.target,
                "listener": pair.listener,
                "listen": f"{link.address[0]}:{link.address[1]}",
                "upstream": f"{link.target[0]}:{link.target[1]}",
                "cut": [way.value for way in link.cut],
                "delay_ms": {way.value: ms for way, ms in link.delays_ms.items()},
                "connections": link.connections,
            }
            for pair, link in self.links.items()
        ]

    async def close(self) -> None:
        """Cut every connection and stop listening."""
        for link in self.links.values():
            await link.close()

    def _set(
        self,
        source: str,
        target: str,
        listener: str,
        way: Way,
        *,
        passes: bool | None = None,
        delay_ms: int | None = None,
    ) -> list[Pair]:
        found = list(self._matching(source, target, listener))
        if not found:
            known: Iterable[str] = sorted(map(str, self.links))
            raise FencepostError(
                expected=f"one of the links {', '.join(known) or '(none)'}",
                seen=str(Pair(source, target, listener)),
                where="links",
            )
        for pair in found:
            self.links[pair].set(way, passes=passes, delay_ms=delay_ms)
        return found

    def _matching(self, *wanted: str) -> Iterator[Pair]:
        for pair in self.links:
            names = (pair.source, pair.target, pair.listener)
            if all(want in ("*", name) for want, name in zip(wanted, names, strict=True)):
                yield pair
