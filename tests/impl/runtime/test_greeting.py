"""Only brokers of this cluster come in by the inter-broker listener, and only with what is theirs to say."""

import asyncio
import logging
import os

import msgspec
import pytest

from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.runtime.codec import encode
from fencepost.impl.runtime.greeting import (
    CREDENTIALS,
    Credentials,
    broker_greeting,
    make_credentials,
    read_credentials,
)
from fencepost.impl.runtime.network import Network
from fencepost.impl.runtime.tcp_frames import PROTOCOL, framed, greeting
from fencepost.systems.node import parse_arguments
from fencepost.traces.errors import EnvironmentError_

HOST, SOON_S = "127.0.0.1", 300
OURS = Credentials(cluster_id="here", secret="s" * 64)


def control(controller: int) -> kafka.LeaderAndIsrRequest:
    return kafka.LeaderAndIsrRequest(
        correlation_id=1,
        controller_id=controller,
        controller_epoch=9,
        broker_epoch=9,
        partitions=(),
        live_brokers=(),
    )


def fetch(replica: int) -> kafka.FetchRequest:
    return kafka.FetchRequest(correlation_id=1, replica_id=replica, max_wait=0, max_bytes=1, partitions=())


def heard_of(data: bytes, credentials: Credentials | None = OURS) -> list:
    """What reaches the core of broker 1 of a connection to its inter-broker listener."""
    heard: list = []

    async def story() -> None:
        network = Network(
            1, {}, lambda source, message: heard.append((source, message)), credentials=credentials
        )
        port = await network.listen_to_brokers(HOST, 0)
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(data)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), SOON_S) == b""
            writer.close()
        finally:
            await network.close()

    asyncio.run(story())
    return heard


def test_a_broker_with_the_secret_is_heard() -> None:
    """Its control requests and its fetches, under its own number."""
    data = broker_greeting(2, OURS) + framed(encode(control(2))) + framed(encode(fetch(2)))
    assert heard_of(data) == [(2, control(2)), (2, fetch(2))]


STRANGERS = {
    "no secret": greeting(2),
    "a client": greeting(1000),
    "a wrong secret": broker_greeting(2, Credentials(cluster_id="here", secret="t" * 64)),
    "nearly the secret": broker_greeting(2, Credentials(cluster_id="here", secret="s" * 63)),
    "a secret that is no text of ours": broker_greeting(
        2, Credentials(cluster_id="here", secret="\N{SNOWMAN}")
    ),
    "another cluster": broker_greeting(2, Credentials(cluster_id="there", secret="s" * 64)),
    "a client's number": broker_greeting(1000, OURS),
    "number 0": broker_greeting(0, OURS),
    "another protocol": framed(msgspec.msgpack.encode([PROTOCOL + "x", 2, "here", "s" * 64])),
    "a secret of bytes": framed(msgspec.msgpack.encode([PROTOCOL, 2, "here", b"s" * 64])),
}


@pytest.mark.parametrize("hello", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_not(hello: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Issue 27, point 16: anybody who said that he was broker 1 was obeyed. The log says why not, and never
    repeats a secret."""
    caplog.set_level(logging.INFO, "fencepost.network")
    assert heard_of(hello + framed(encode(control(2)))) == []
    assert "expected the greeting of a broker of this cluster" in caplog.text
    assert "sss" not in caplog.text and "ttt" not in caplog.text


def test_without_credentials_nobody_is_a_broker() -> None:
    """A broker that is alone refuses every peer."""
    assert heard_of(broker_greeting(2, OURS) + framed(encode(control(2))), credentials=None) == []


@pytest.mark.parametrize("message", [control(3), fetch(3), fetch(-1)])
def test_a_broker_speaks_for_itself_only(message: kafka.Message) -> None:
    """A message that names another controller or replica than the connection's broker closes it."""
    assert heard_of(broker_greeting(2, OURS) + framed(encode(message))) == []


@pytest.mark.parametrize("name", ["live_brokers", "shutting_down"])
@pytest.mark.parametrize("broker", [1_000, 1 << 48, -1, 0])
def test_no_peer_calls_a_client_a_broker(name: str, broker: int) -> None:
    """A follower would fetch from it: over a client's connection the request would be taken for an answer."""
    values = {"live_brokers": (1, 2), "shutting_down": (), name: (1, broker)}
    told = kafka.UpdateMetadataRequest(
        correlation_id=1, controller_id=2, controller_epoch=9, broker_epoch=9, partitions=(), **values
    )
    assert heard_of(broker_greeting(2, OURS) + framed(encode(told))) == []


def test_the_file_is_its_owners_and_new_each_time(tmp_path) -> None:
    """Mode 0600 whatever the umask; what others may read is refused, as is what is none."""
    before = os.umask(0)
    try:
        made = make_credentials(tmp_path)
    finally:
        os.umask(before)
    path = tmp_path / CREDENTIALS
    assert path.stat().st_mode & 0o777 == 0o600 and read_credentials(path) == made
    assert len(made.cluster_id) == 22 and len(made.secret) == 64 and made.secret not in repr(made)
    assert make_credentials(tmp_path) != made
    path.chmod(0o640)
    with pytest.raises(
        EnvironmentError_, match="expected credentials that only their owner can read, saw mode 640"
    ):
        read_credentials(path)
    path.chmod(0o600)
    path.write_text("{}")
    with pytest.raises(EnvironmentError_, match="expected the credentials of a cluster"):
        read_credentials(path)
    path.write_text('{"cluster_id": "here", "secret": ""}')  # everybody would know it
    with pytest.raises(EnvironmentError_, match="a secret of 64 characters, saw one of 0"):
        read_credentials(path)
    with pytest.raises(EnvironmentError_, match="No such file"):
        read_credentials(tmp_path / "nowhere")


def test_a_broker_with_peers_needs_credentials(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    """The process ends with one sentence, not with a broker that nobody believes."""
    arguments = [
        "--broker=1",
        "--peer=1=127.0.0.1:9093",
        "--zookeeper=127.0.0.1:2181",
        "--listen=127.0.0.1:9092",
    ]
    arguments.append(f"--directory={tmp_path}")
    assert parse_arguments(arguments).credentials is None
    with pytest.raises(SystemExit):
        parse_arguments([*arguments, "--peer=2=127.0.0.1:9094"])
    assert "expected --credentials" in capsys.readouterr().err
    made = make_credentials(tmp_path)
    arguments += ["--peer=2=127.0.0.1:9094", f"--credentials={tmp_path / CREDENTIALS}"]
    assert parse_arguments(arguments).credentials == made
