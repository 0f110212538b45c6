"""The end of one side is the end of the other, at once: a client of the proxy hears of a dead broker as it
would without it, and a broker of a dead client."""

import socket
import struct

import pytest
from proxy_lab import proxy_lab

PATIENCE_S = 60
HELLO = struct.pack(">ihhih", 10, 18, 0, 7, -1)
"""ApiVersions 0, number 7, without a client id."""
RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: close sends a reset, as the kernel does for a process that died with bytes unread."""


@pytest.fixture
def both():
    """(the client's socket, the broker's) of a connection through the proxy that has carried a request."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        proxy_lab(f"127.0.0.1:{listener.getsockname()[1]}") as lab,
        socket.create_connection(("127.0.0.1", lab.port), PATIENCE_S) as client,
    ):
        listener.settimeout(PATIENCE_S)
        with listener.accept()[0] as broker:
            broker.settimeout(PATIENCE_S)
            client.sendall(HELLO)
            assert broker.recv(100) == HELLO
            yield client, broker


def ended(side):
    """Whether a socket hears an end or a reset, not silence."""
    try:
        return side.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("dies", [0, 1])
def test_a_side_that_dies_ends_the_other(both, dies, reset):
    """Rule: a process that was killed, whether its socket is reset or closed, is noticed by the other side
    through the proxy."""
    died, other = both[dies], both[1 - dies]
    if reset:
        died.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    died.close()
    assert ended(other)


def test_a_broker_that_hangs_ends_nothing(both):
    """Rule: as with Kafka itself, a stopped broker is the client's time-out to notice; when it goes on, its
    answer arrives."""
    client, broker = both
    client.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(PATIENCE_S)
    answer = struct.pack(">iihi", 10, 7, 0, 0)
    broker.sendall(answer)
    assert client.recv(100) == answer
