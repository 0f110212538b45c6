"""A request without an answer ends its connection, as in Kafka's clients: the next one goes over another, and
the first may arrive later."""

import asyncio

from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.proxy.server.links import Link, Links, Pair, Way
from fencepost.systems.embedded import Embedded
from fencepost.wire import client as wire
from fencepost.wire.client import KafkaNetwork

PAIR = Pair("clients", "1")


async def until(condition):
    """Wait until it holds, at most ten minutes of a crowded machine."""
    async with asyncio.timeout(600):
        while not condition():
            await asyncio.sleep(0.01)


def test_an_impatient_lane_opens_another_connection():
    """The answer to the first request is held back; the second one is answered, over a new connection."""
    with Embedded() as system:
        host, _, port = system.bootstrap_servers().split(",")[0].rpartition(":")

        async def story():
            links, heard = Links(), []
            address = await links.add(PAIR, (host, int(port)))
            link: Link = links.links[PAIR]
            network = KafkaNetwork(
                {1: address}, lambda node, answer: heard.append(answer), patience_s={"any": 0.5}
            )
            network.send(1, MetadataRequest(correlation_id=1))
            await until(lambda: heard)
            link.set(Way.BACK, passes=False)
            network.send(1, MetadataRequest(correlation_id=2))
            lane = network._lanes[1, "any"]
            await until(lambda: lane._asking)
            await until(lambda: not lane._asking)
            link.set(Way.BACK, passes=True)
            network.send(1, MetadataRequest(correlation_id=3))
            await until(lambda: len(heard) > 1)
            await network.close()
            await links.close()
            return [answer.correlation_id for answer in heard]

        assert asyncio.run(story()) == [1, 3]


def test_what_was_sent_late_arrives_although_its_connection_was_closed():
    """The delay is over, a new connection is quick, and then the old bytes come."""

    async def story():
        came = []

        async def serve(reader, writer):
            came.append(await reader.read())
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        links = Links()
        address = await links.add(PAIR, server.sockets[0].getsockname()[:2])
        links.delay(3_000, "clients", "1", way=Way.THERE)
        _, late = await asyncio.open_connection(*address)
        late.write(b"late")
        await late.drain()
        await until(lambda: links.links[PAIR].connections == 1)
        await asyncio.sleep(0.2)
        late.close()
        links.heal("clients", "1")
        _, quick = await asyncio.open_connection(*address)
        quick.write(b"quick")
        quick.close()
        await until(lambda: len(came) == 2)
        await links.close()
        server.close()
        return came

    assert asyncio.run(story()) == [b"quick", b"late"]


class ClosingWriter:
    """A stream that is closed when it is told."""

    def __init__(self):
        self.closed = asyncio.Event()

    def close(self):
        """Not yet."""

    async def wait_closed(self):
        """Until then."""
        await self.closed.wait()


def test_a_cancellation_is_not_lost_in_the_end_of_a_connection():
    """It came at the moment at which the connection was closed: the task went on, connected anew, and whoever
    had cancelled it waited for ever."""

    async def story():
        link = wire.Link(("127.0.0.1", 1))
        link._writer = writer = ClosingWriter()
        closing = asyncio.ensure_future(link.close())
        await asyncio.sleep(0.01)
        writer.closed.set()
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        return closing.cancelled()

    assert asyncio.run(story())
