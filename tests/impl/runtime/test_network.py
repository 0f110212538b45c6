"""Messages travel over TCP in order; a malformed frame closes its own connection and nothing else."""

import asyncio
import logging
import struct
import tracemalloc

import pytest

from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.runtime import network as network_module
from fencepost.impl.runtime.codec import encode
from fencepost.impl.runtime.greeting import Credentials, broker_greeting
from fencepost.impl.runtime.intake import MAXIMUM_CLIENT_FRAME, MEBIBYTE, MOST_UNFINISHED_BYTES, Intake
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.tcp_frames import framed, greeting, read_frame
from fencepost.traces.kafka_names.outcomes import ErrorCode

HOST, SOON_S = "127.0.0.1", 300
CREDENTIALS = Credentials(cluster_id="here", secret="s" * 64)


def ask(number):
    """What a client asks."""
    return kafka.MetadataRequest(correlation_id=number)


def tell(number):
    """What a broker says to another."""
    return kafka.ControlResponse(correlation_id=number, kind="LeaderAndIsrRequest", error=ErrorCode.NONE)


async def eventually(condition):
    """Wait until it holds; a bound, no measure."""
    for _ in range(SOON_S * 200):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come true")


async def pair():
    """Two brokers that listen, and what each has heard. addresses: where clients come."""
    heard, addresses, peers, networks = {1: [], 2: []}, {}, {}, {}
    for node in (1, 2):
        networks[node] = Network(
            node, peers, lambda source, message, node=node: heard[node].append((source, message)), CREDENTIALS
        )
        peers[node] = (HOST, await networks[node].listen_to_brokers(HOST, 0))
        addresses[node] = (HOST, await networks[node].listen(HOST, 0))
    return networks, heard, addresses


def run(story):
    """Run an async story with two networks, and close them."""

    async def body():
        networks, heard, addresses = await pair()
        try:
            await asyncio.wait_for(story(networks, heard, addresses), 3 * SOON_S)
        finally:
            for network in networks.values():
                await network.close()

    asyncio.run(body())


def test_messages_arrive_in_order_in_both_directions_and_at_oneself():
    """Rule: what one broker sends to another arrives in order, with its source; a broker can send to
    itself."""

    async def story(networks, heard, addresses):
        for number in range(500):
            networks[1].send(2, tell(number))
            networks[2].send(1, tell(number))
        await eventually(lambda: len(heard[1]) == len(heard[2]) == 500)
        assert heard[2] == [(1, tell(number)) for number in range(500)]
        networks[1].send(1, tell(7))
        await eventually(lambda: heard[1][-1] == (1, tell(7)))

    run(story)


def test_a_message_of_many_megabytes_arrives():
    """Rule: a frame may be far larger than any buffer on the way."""

    async def story(networks, heard, addresses):
        part = kafka.FetchedPartition(
            partition=kafka.TopicPartition("t", 0), error=ErrorCode.NONE, records=bytes(range(256)) * 20_000
        )
        large = kafka.FetchResponse(correlation_id=1, partitions=(part,))
        networks[1].send(2, large)
        networks[1].send(2, tell(2))
        await eventually(lambda: len(heard[2]) == 2)
        assert heard[2] == [(1, large), (1, tell(2))]

    run(story)


def test_a_broker_that_was_down_is_reached_when_it_is_back():
    """Rule: messages to a broker that is down are lost, not kept; once it listens again new ones arrive."""

    async def story(networks, heard, addresses):
        networks[1].send(2, tell(1))
        await eventually(lambda: heard[2])
        await networks[2].close()
        for number in range(20):
            networks[1].send(2, tell(number))
            await asyncio.sleep(0.005)
        again = Network(
            2, {}, lambda source, message: heard[2].append((source, message)), credentials=CREDENTIALS
        )
        await again.listen_to_brokers(*networks[1].addresses[2])
        try:
            for _ in range(SOON_S * 20):
                networks[1].send(2, tell(99))
                await asyncio.sleep(0.05)
                if heard[2][-1] == (1, tell(99)):
                    return
            raise AssertionError("broker 2 was never reached again")
        finally:
            await again.close()

    run(story)


def test_a_client_is_answered_on_its_own_connection():
    """Rule: what is sent to a client goes back where it came from, and nowhere once it has gone."""

    async def story(networks, heard, addresses):
        reader, writer = await asyncio.open_connection(*addresses[1])
        writer.write(greeting(1000) + framed(encode(ask(1))))
        await eventually(lambda: heard[1] == [(1000, ask(1))])
        answer = kafka.MetadataResponse(correlation_id=1, partitions=(), live_brokers=(1, 2))
        networks[1].send(1000, answer)
        assert await read_frame(reader) == encode(answer)
        writer.close()
        networks[1].send(1001, answer)

    run(story)


CONTROL = kafka.LeaderAndIsrRequest(
    correlation_id=1, controller_id=1, controller_epoch=9, broker_epoch=9, partitions=(), live_brokers=()
)
REPLICA_FETCH = kafka.FetchRequest(correlation_id=1, replica_id=2, max_wait=0, max_bytes=1, partitions=())
BAD = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "a greeting that is too long": struct.pack("!I", 100_000),
    "a strange greeting": framed(b"\x91\x01"),
    "a frame that is too long": greeting(1000) + struct.pack("!I", MAXIMUM_CLIENT_FRAME + 1),
    "no message": greeting(1000) + framed(b"\xc1"),
    "a message that is not for brokers": greeting(1000)
    + framed(encode(kafka.MetadataResponse(correlation_id=1, partitions=(), live_brokers=()))),
    "a broker's greeting": broker_greeting(2, CREDENTIALS),
    "a client with a broker's id": greeting(2),
    "a control request": greeting(1000) + framed(encode(CONTROL)),
    "a replica's fetch": greeting(1000) + framed(encode(REPLICA_FETCH)),
    "a follower's answer": greeting(1000)
    + framed(encode(kafka.FetchResponse(correlation_id=1, partitions=()))),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_malformed_frame_closes_that_connection_and_nothing_else(data, caplog):
    """Rule: the connection ends, the reason is logged, nothing reaches the core, and others go on."""
    caplog.set_level(logging.WARNING, "fencepost.network")

    async def story(networks, heard, addresses):
        networks[2].send(1, tell(1))
        await eventually(lambda: heard[1])
        reader, writer = await asyncio.open_connection(*addresses[1])
        writer.write(data)
        assert await reader.read() == b""
        writer.close()
        assert networks[1].refused == 1 and "connection closed: expected" in caplog.text
        networks[2].send(1, tell(2))
        await eventually(lambda: len(heard[1]) == 2)
        assert heard[1] == [(2, tell(1)), (2, tell(2))]

    run(story)


def test_a_frame_cut_short_is_told(caplog):
    """Rule: a connection that ends inside a frame is logged, not silently taken for an end."""
    caplog.set_level(logging.WARNING, "fencepost.network")

    async def story(networks, heard, addresses):
        _, writer = await asyncio.open_connection(*addresses[1])
        writer.write(greeting(1000) + struct.pack("!I", 10) + b"abc")
        writer.close()
        await eventually(lambda: networks[1].refused == 1)
        assert "expected a frame of 10 bytes, saw 3" in caplog.text and not heard[1]

    run(story)


# Memory grows with what arrived of a frame, never with what was announced, and all connections together
# have a bound.


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
        small.write(greeting(2000) + framed(encode(kafka.MetadataRequest(correlation_id=7))))
        await desk.until(lambda: desk.heard == [(2000, kafka.MetadataRequest(correlation_id=7))])
        small.close()
        last.close()
        await desk.until(lambda: desk.network.intake.total == 200_000)

    desk.run(story)


def test_frames_arrive_in_pieces_of_any_size() -> None:
    """Byte by byte, two in one piece, and the largest that may be."""
    desk = Desk()
    asked = framed(encode(kafka.MetadataRequest(correlation_id=1)))

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
    part = kafka.FetchedPartition(
        partition=kafka.TopicPartition("t", 0), error=ErrorCode.NONE, records=bytes(8 * MEBIBYTE)
    )
    answer = kafka.FetchResponse(correlation_id=1, partitions=(part,))

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
