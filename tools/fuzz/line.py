"""Bytes over TCP to the runtime's network: what may happen to frames on a line that somebody else holds.

Owns sockets. Whatever is sent, the network refuses or hands on, never fails, and still serves a good client
afterwards.
"""

import asyncio
import struct
from collections.abc import Callable

from fencepost.impl.messages.broker_api import Message, MetadataRequest
from fencepost.impl.runtime.codec import MalformedError, decode, encode
from fencepost.impl.runtime.greeting import BROKER_MESSAGES, CLIENT_REQUESTS, Credentials, broker_greeting
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.tcp_frames import framed, greeting
from tools.fuzz.odd import Odd, as_sender

HOST, PATIENCE_S = "127.0.0.1", 60.0
CREDENTIALS = Credentials(cluster_id="fuzz", secret="s" * 64)
PER_CONNECTION = 10
BY_BROKER, FITTING = 0.3, 0.9
"""How often a connection is a peer's, and how often its greeting fits the listener."""
ATTEMPTS, UNWELCOME = 20, 0.03
"""How often a frame is drawn again, and how often one goes that will be refused."""
GOOD = 99_999
"""The client that asks at the end."""


def send_bytes(odd: Odd, count: int, arrived: Callable[[int, Message], None]) -> int:
    """Send so many frames, spread over connections. arrived: takes what the network lets through. Returns how
    many connections were refused. Raises AssertionError if the network made a mistake or does not serve any
    more."""
    return asyncio.run(_send(odd, count, arrived))


async def _send(odd: Odd, count: int, arrived: Callable[[int, Message], None]) -> int:
    mistakes: list[str] = []
    good: list[Message] = []

    def received(source: int, message: Message) -> None:
        if source == GOOD:
            good.append(message)
        else:
            arrived(source, message)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(str(context)))
    network = Network(1, {}, received, CREDENTIALS)
    ports = await network.listen(HOST, 0), await network.listen_to_brokers(HOST, 0)
    try:
        for _ in range(max(1, count // PER_CONNECTION)):
            await asyncio.wait_for(_connection(odd, ports), PATIENCE_S)
        _, writer = await asyncio.open_connection(HOST, ports[0])
        writer.write(greeting(GOOD) + framed(encode(MetadataRequest(correlation_id=1))))
        for _ in range(int(PATIENCE_S * 100)):
            if good:
                break
            await asyncio.sleep(0.01)
        writer.close()
    finally:
        await network.close()
    assert good, "the network does not serve any more"
    assert not mistakes, mistakes
    return network.refused


async def _connection(odd: Odd, ports: tuple[int, int]) -> None:
    draw = odd.draw
    by_broker = draw.random() < BY_BROKER
    hellos = (greeting(1_000 + draw.randrange(5)), broker_greeting(2, CREDENTIALS), b"")
    data = hellos[by_broker] if draw.random() < FITTING else draw.choice(hellos)
    for _ in range(PER_CONNECTION):
        data += _frame(odd, by_broker)
    try:
        reader, writer = await asyncio.open_connection(HOST, ports[by_broker])
        place = 0
        while place < len(data):
            size = draw.choice((1, 7, 1_000, 100_000))
            writer.write(data[place : place + size])
            place += size
            if draw.random() < 0.05:
                await asyncio.sleep(0)
        if draw.random() < 0.2:
            writer.transport.abort()
            return
        writer.write_eof()
        await reader.read()
        writer.close()
    except OSError:
        pass  # it closed before we had said everything


def _is_welcome(payload: bytes) -> bool:
    """Whether the codec lets it through: else the connection ends here, and nothing after it is tried."""
    try:
        decode(payload)
    except MalformedError:
        return False
    return True


def _frame(odd: Odd, by_broker: bool) -> bytes:
    """Mostly a good frame, so that the connection goes on; else one with changed bytes, a wrong length, or
    none."""
    draw = odd.draw
    for _ in range(ATTEMPTS):
        message = odd.message(BROKER_MESSAGES if by_broker else CLIENT_REQUESTS)
        payload = encode(as_sender(message, 2) if by_broker else message)
        if draw.random() < UNWELCOME or _is_welcome(payload):
            break
    choice = draw.random()
    if choice < 0.93:
        return framed(payload)
    if choice < 0.97 and payload:
        changed = bytearray(payload)
        for _ in range(draw.choice((1, 1, 5))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return framed(bytes(changed))
    if choice < 0.99:
        return (
            struct.pack("!I", draw.choice((0, 1, len(payload) + 9, 1 << 20, 1 << 31, (1 << 32) - 1)))
            + payload
        )
    return draw.choice(
        (
            framed(b"\x91" * 5_000),
            framed(b"\x90" * 1_000),
            framed(b"\xdd\xff\xff\xff\xff"),
            draw.randbytes(40),
        )
    )
