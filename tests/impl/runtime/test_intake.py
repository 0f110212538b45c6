"""Memory grows with what arrived of a frame, never with what was announced, and all connections together have
a bound."""

import asyncio
import struct
import tracemalloc

import pytest

from fencepost.impl.messages.broker_api import (
    FetchedPartition,
    FetchResponse,
    MetadataRequest,
    TopicPartition,
)
from fencepost.impl.runtime import network as network_module
from fencepost.impl.runtime.codec import encode
from fencepost.impl.runtime.intake import MAXIMUM_CLIENT_FRAME, MEBIBYTE, MOST_UNFINISHED_BYTES, Intake
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.tcp_frames import framed, greeting
from fencepost.traces.kafka_names.outcomes import ErrorCode

HOST, SOON_S = "127.0.0.1", 300


class Desk:
    """A network that listens, connections to it, and what reached the core."""

    def __init__(self, intake: Intake | None = None) -> None:
        self.heard: list = []
        self.network = Network(1, {}, lambda source, message: self.heard.append((source, message)))
        if intake is not None:
            self.network.intake = intake
        self.streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, announced: int, sent: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client that announces a frame and sends a part of it."""
        reader, writer = await asyncio.open_connection(HOST, self.port)
        self.streams.append((reader, writer))
        writer.write(greeting(1000 + len(self.streams)) + struct.pack("!I", announced) + bytes(sent))
        await writer.drain()
        return reader, writer

    async def until(self, condition) -> None:
        """Wait; a bound, no measure."""
        for _ in range(SOON_S * 200):
            if condition():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it did not come true")

    def run(self, story) -> None:
        async def body() -> None:
            self.port = await self.network.listen(HOST, 0)
            try:
                await asyncio.wait_for(story(), 3 * SOON_S)
            finally:
                for _, writer in self.streams:
                    writer.close()
                await self.network.close()

        asyncio.run(body())


def test_what_is_announced_takes_no_memory() -> None:
    """Issue 27, point 19: eight slow connections that announce 90 MiB each took 806 MB. They are closed at
    the length; a MiB each of the largest frame that may be takes 8 MiB."""
    desk = Desk()

    async def story() -> None:
        for _ in range(8):
            reader, _ = await desk.open(90 * MEBIBYTE, 0)
            assert await reader.read() == b""
        assert desk.network.refused == 8
        tracemalloc.start()
        try:
            for _ in range(8):
                await desk.open(MAXIMUM_CLIENT_FRAME, MEBIBYTE)
            await desk.until(lambda: desk.network.intake.total == 8 * MEBIBYTE)
            assert tracemalloc.get_traced_memory()[1] < 24 * MEBIBYTE
        finally:
            tracemalloc.stop()
        assert not desk.heard

    desk.run(story)
    assert desk.network.intake.total == 0 and not desk.network.intake.unfinished


def test_the_largest_unfinished_frame_goes_when_all_are_too_much() -> None:
    """The others stay, and a small request gets through meanwhile."""
    desk = Desk(Intake(1_000_000, 500_000))

    async def story() -> None:
        first, _ = await desk.open(900_000, 200_000)
        await desk.until(lambda: desk.network.intake.total == 200_000)
        largest, _ = await desk.open(900_000, 250_000)
        await desk.until(lambda: desk.network.intake.total == 450_000)
        _, last = await desk.open(900_000, 100_000)
        assert await largest.read() == b""
        await desk.until(lambda: desk.network.intake.total == 300_000)
        assert desk.network.refused == 1 and not first.at_eof()
        _, small = await asyncio.open_connection(HOST, desk.port)
        small.write(greeting(2000) + framed(encode(MetadataRequest(correlation_id=7))))
        await desk.until(lambda: desk.heard == [(2000, MetadataRequest(correlation_id=7))])
        small.close()
        last.close()
        await desk.until(lambda: desk.network.intake.total == 200_000)

    desk.run(story)


def test_frames_arrive_in_pieces_of_any_size() -> None:
    """Byte by byte, two in one piece, and the largest that may be."""
    desk = Desk()
    asked = framed(encode(MetadataRequest(correlation_id=1)))

    async def story() -> None:
        _, writer = await asyncio.open_connection(HOST, desk.port)
        for byte in greeting(1000) + asked:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write(asked + asked)
        await desk.until(lambda: len(desk.heard) == 3)
        writer.write(struct.pack("!I", MAXIMUM_CLIENT_FRAME) + bytes(MAXIMUM_CLIENT_FRAME))
        await desk.until(lambda: desk.network.refused == 1)  # it came whole, and is no message
        writer.close()

    desk.run(story)
    assert MOST_UNFINISHED_BYTES == 32 * MAXIMUM_CLIENT_FRAME


def test_clients_that_do_not_read_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers wait for a client up to a bound, and for all of them up to another; the connection with most of
    them goes."""
    monkeypatch.setattr(network_module, "MOST_BUFFERED_BYTES", 24 * MEBIBYTE)
    desk = Desk()
    part = FetchedPartition(
        partition=TopicPartition("t", 0), error=ErrorCode.NONE, records=bytes(8 * MEBIBYTE)
    )
    answer = FetchResponse(correlation_id=1, partitions=(part,))

    async def story() -> None:
        for _ in range(2):
            await desk.open(100, 1)
        await desk.until(lambda: len(desk.network._clients) == 2)
        slow, slower = sorted(desk.network._clients)
        desk.network.send(slow, answer)
        for _ in range(3):
            desk.network.send(slower, answer)
        await desk.until(lambda: set(desk.network._clients) == {slow})

    desk.run(story)


def test_who_does_not_greet_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection says who it is within a bounded time, or ends."""
    monkeypatch.setattr(network_module, "GREETING_S", 0.05)
    desk = Desk()

    async def story() -> None:
        reader, writer = await asyncio.open_connection(HOST, desk.port)
        assert await reader.read() == b""
        writer.close()

    desk.run(story)
