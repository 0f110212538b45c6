"""Messages travel over TCP in order; a malformed frame closes its own connection and nothing else."""

import asyncio
import logging
import struct

import pytest

from fencepost.impl.messages.broker_api import (
    ControlResponse,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    MetadataRequest,
    MetadataResponse,
    TopicPartition,
)
from fencepost.impl.runtime.codec import encode
from fencepost.impl.runtime.greeting import Credentials, broker_greeting
from fencepost.impl.runtime.intake import MAXIMUM_CLIENT_FRAME
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.tcp_frames import framed, greeting, read_frame
from fencepost.traces.kafka_names.outcomes import ErrorCode

HOST, SOON_S = "127.0.0.1", 300
CREDENTIALS = Credentials(cluster_id="here", secret="s" * 64)


def ask(number):
    """What a client asks."""
    return MetadataRequest(correlation_id=number)


def tell(number):
    """What a broker says to another."""
    return ControlResponse(correlation_id=number, kind="LeaderAndIsrRequest", error=ErrorCode.NONE)


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
            node,
            peers,
            lambda source, message, node=node: heard[node].append((source, message)),
            CREDENTIALS,
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
        part = FetchedPartition(
            partition=TopicPartition("t", 0), error=ErrorCode.NONE, records=bytes(range(256)) * 20_000
        )
        large = FetchResponse(correlation_id=1, partitions=(part,))
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
        answer = MetadataResponse(correlation_id=1, partitions=(), live_brokers=(1, 2))
        networks[1].send(1000, answer)
        assert await read_frame(reader) == encode(answer)
        writer.close()
        networks[1].send(1001, answer)

    run(story)


CONTROL = LeaderAndIsrRequest(
    correlation_id=1, controller_id=1, controller_epoch=9, broker_epoch=9, partitions=(), live_brokers=()
)
REPLICA_FETCH = FetchRequest(correlation_id=1, replica_id=2, max_wait=0, max_bytes=1, partitions=())
BAD = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "a greeting that is too long": struct.pack("!I", 100_000),
    "a strange greeting": framed(b"\x91\x01"),
    "a frame that is too long": greeting(1000) + struct.pack("!I", MAXIMUM_CLIENT_FRAME + 1),
    "no message": greeting(1000) + framed(b"\xc1"),
    "a message that is not for brokers": greeting(1000)
    + framed(encode(MetadataResponse(correlation_id=1, partitions=(), live_brokers=()))),
    "a broker's greeting": broker_greeting(2, CREDENTIALS),
    "a client with a broker's id": greeting(2),
    "a control request": greeting(1000) + framed(encode(CONTROL)),
    "a replica's fetch": greeting(1000) + framed(encode(REPLICA_FETCH)),
    "a follower's answer": greeting(1000) + framed(encode(FetchResponse(correlation_id=1, partitions=()))),
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
