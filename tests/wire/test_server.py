"""Hostile peers, TLS and SASL, through real sockets: one connection ends with one line in the log, and
nothing else is harmed."""

import asyncio
import logging
import random
import socket
import ssl
import struct
import subprocess
from datetime import timedelta

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from confluent_kafka import Producer
from kio.schema.fetch.v4 import request as fetch_v4
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.produce.v7 import request as produce_v7
from wire_core import VIEW, answer, request_bytes
from wire_lab import BOUND_S, HOST, until, wire_lab

from fencepost.cli import run
from fencepost.impl.log.values import batch_of
from fencepost.traces.plan import TopicOptions
from fencepost.wire.frames import framed
from fencepost.wire.limits import EVERY_S, Complaints, Limits
from fencepost.wire.server import Security, Server

SMALL = Limits(request_bytes=1 << 20, buffered_bytes=1 << 20, connections=50, unread_bytes=10 << 20)
METADATA = request_bytes(1, MetadataRequest(topics=None))


@pytest.fixture(scope="module")
def lab():
    """One broker is enough (brokers=1 works)."""
    with wire_lab(TopicOptions(name="t", replication_factor=1), brokers=1, server={"limits": SMALL}) as made:
        yield made


class EveryLine(Complaints):
    """A log that withholds nothing: for what is counted by its lines."""

    def line(self, source, now_s):
        return ""


@pytest.fixture(autouse=True)
def nothing_said(lab):
    """Each test begins with a log that has not spoken of this host."""
    lab.servers[1].complaints = Complaints()


def connected(lab):
    """A socket to broker 1."""
    return socket.create_connection((HOST, lab.ports[1]), timeout=BOUND_S)


def is_closed(peer):
    """Waits until the broker has closed; whether it said nothing before."""
    try:
        return peer.recv(1_000) == b""
    except ConnectionResetError:
        return True


def is_served(lab):
    """Whether another client still gets its answer."""
    with connected(lab) as peer:
        peer.sendall(METADATA)
        return peer.recv(8)[4:] == b"\0\0\0\1"


HOSTILE = {
    "negative length": struct.pack(">i", -5),
    "huge length": struct.pack(">i", 2**31 - 1),
    "above the bound": struct.pack(">i", SMALL.request_bytes + 1),
    "another protocol": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    "TLS without TLS": bytes.fromhex("16030100a5010000a10303"),
    "unknown API": framed(struct.pack(">hhih", 9_999, 0, 1, -1)),
    "unknown version": framed(struct.pack(">hhih", 1, 99, 1, -1)),
    "controller's API": framed(struct.pack(">hhih", 4, 0, 1, -1)),
    "an array of 2^31 - 1": framed(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1)),
    "an empty frame": framed(b""),
    "random bytes in a frame": framed(random.Random(1).randbytes(300)),
    "a produce that ends inside": framed(struct.pack(">hhih", 0, 7, 1, -1) + b"\xff\xff\0\1"),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_end_their_connection_with_one_line(lab, caplog, data):
    """The line names the peer and the reason; a neighbour that was there before goes on."""
    caplog.set_level(logging.WARNING, "fencepost.wire")
    with connected(lab) as neighbour, connected(lab) as peer:
        peer.sendall(data)
        assert is_closed(peer)
        name = f"{peer.getsockname()[0]}:{peer.getsockname()[1]}"
        neighbour.sendall(METADATA)
        assert neighbour.recv(8)[4:] == b"\0\0\0\1"
    lines = [record.message for record in caplog.records if record.name == "fencepost.wire"]
    assert len(lines) == 1 and lines[0].startswith(f"{name}: connection closed: ")


def test_many_hostile_connections_of_a_host_are_one_line(lab, caplog):
    """Rule: who sends nonsense on twenty connections does not fill the log: the first is a line, the others
    are counted."""
    caplog.set_level(logging.WARNING, "fencepost.wire")
    for _ in range(20):
        with connected(lab) as peer:
            peer.sendall(framed(b""))
            assert is_closed(peer)
    assert len([record for record in caplog.records if record.name == "fencepost.wire"]) == 1
    now_s = lab.loop.time() + EVERY_S
    assert lab.servers[1].complaints.line(HOST, now_s) == f"; 19 more from {HOST} since its last line"


def test_random_bytes_harm_nobody(lab):
    """A few hundred connections of noise, some with a true frame first."""
    rng = random.Random(4711)
    for number in range(200):
        with connected(lab) as peer:
            noise = bytearray(METADATA * rng.randrange(2) + rng.randbytes(rng.randrange(1, 200)))
            if number % 2:  # a length that fits, so that the header and the body are read
                body = struct.pack(
                    ">hhih", rng.choice((0, 1, 2, 3, 8, 9, 10, 11, 18)), rng.randrange(12), 1, -1
                )
                noise = bytearray(framed(body + rng.randbytes(rng.randrange(60))))
            peer.sendall(noise)
            peer.shutdown(socket.SHUT_WR)
            while True:
                try:
                    if not peer.recv(65_536):
                        break
                except ConnectionResetError:
                    break
    assert is_served(lab)


def test_half_frames_hold_what_has_come_and_no_more(lab):
    """40 connections announce a megabyte each and send a kilobyte: that is what is held, and it goes with
    them."""
    server = lab.servers[1]
    peers = [connected(lab) for _ in range(40)]
    for peer in peers:
        peer.sendall(struct.pack(">i", 1 << 20) + bytes(1_000))
    until(lambda: server.buffered == 40 * 1_004)
    assert is_served(lab)
    for peer in peers:
        peer.close()
    until(lambda: server.buffered == 0 and server.connections == 0)


def test_unfinished_requests_are_bounded_over_all_connections(lab, caplog):
    """Three of 600 kB do not fit a bound of 1 MiB: the ones that exceed it are closed, not made to wait for
    room."""
    caplog.set_level(logging.WARNING, "fencepost.wire")
    server = lab.servers[1]
    server.complaints = EveryLine()
    peers = [connected(lab) for _ in range(3)]
    try:
        for peer in peers:
            try:
                peer.sendall(struct.pack(">i", 1 << 20) + bytes(600_000))
            except OSError:
                continue  # closed while it was sending
        until(lambda: sum("unfinished requests hold" in record.message for record in caplog.records) == 2)
        until(lambda: server.buffered <= SMALL.buffered_bytes)
    finally:
        for peer in peers:
            peer.close()
    until(lambda: server.connections == 0)
    assert is_served(lab)


def test_more_connections_than_there_may_be_are_refused(lab):
    """Those that are there go on; when they have gone there is room again."""
    until(lambda: lab.servers[1].connections == 0)
    peers = [connected(lab) for _ in range(SMALL.connections)]
    until(lambda: lab.servers[1].connections == SMALL.connections)
    with connected(lab) as late:
        assert is_closed(late)
    peers[7].sendall(METADATA)
    assert peers[7].recv(8)[4:] == b"\0\0\0\1"
    for peer in peers:
        peer.close()
    until(lambda: is_served(lab))


@pytest.fixture(scope="module")
def full(lab):
    """A Fetch whose answer has 8 MB: twice as much as a socket holds."""
    producer = Producer({"bootstrap.servers": lab.bootstrap, "message.max.bytes": 900_000})
    for _ in range(16):
        producer.produce("t", random.Random(1).randbytes(500_000))
        producer.flush(BOUND_S)
    part = fetch_v4.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    return fetch_v4.FetchRequest(
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=1 << 30,
        isolation_level=0,
        topics=(fetch_v4.FetchTopic(topic="t", partitions=(part,)),),
    )


def test_a_slow_reader_holds_one_answer(lab, full):
    """It asks for far more than it reads: the broker stops carrying out its requests, and serves the
    others."""
    server = lab.servers[1]
    with connected(lab) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        peer.sendall(b"".join(request_bytes(number, full) for number in range(1_000)))
        until(lambda: any(it.connection.blocked for it in list(server._peers.values())))
        (slow,) = [it for it in list(server._peers.values()) if it.connection.blocked]
        size = slow._transport.get_write_buffer_size()
        assert size <= 8_300_000, "one answer of sixteen records"
        for _ in range(20):
            assert is_served(lab)
        assert slow._transport.get_write_buffer_size() <= 8_300_000, "still one answer"
        assert slow.server.buffered <= 1 << 20
    until(lambda: slow not in list(server._peers.values()))


def test_what_slow_readers_hold_is_bounded_together(lab, full, caplog):
    """Six of them, 4 to 8 MB each, and a bound of 10 MiB: those that have waited longest are closed, with a
    line each, until it holds. One that reads is served."""
    caplog.set_level(logging.WARNING, "fencepost.wire")
    server, peers = lab.servers[1], []
    server.complaints = EveryLine()
    for _ in range(6):
        peer = connected(lab)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        peer.sendall(
            b"".join(request_bytes(number, full) for number in range(9))
        )  # sockets hold some answers, too
        peers.append(peer)
    until(lambda: sum("answers that nobody reads" in record.message for record in caplog.records) >= 3)
    until(lambda: 0 < server.unread <= SMALL.unread_bytes)
    assert is_served(lab)
    for peer in peers:
        peer.close()
    until(lambda: server.connections == 0 and server.unread == 0)


def test_a_client_that_has_gone_gets_no_second_answer(lab, full, monkeypatch):
    """Protection: it sent 200 fetches and left. As in Kafka's socket server the first answer that cannot be
    sent ends what it left: nobody works for it any more."""
    server, submitted = lab.servers[1], []
    submit = server.submit
    monkeypatch.setattr(server, "submit", lambda *asked: (submitted.append(asked), submit(*asked)))
    with connected(lab) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        peer.sendall(b"".join(request_bytes(number, full) for number in range(200)))
        until(lambda: submitted)
    until(lambda: server.connections == 0)
    assert len(submitted) <= 9, "what the sockets held, and one more"
    assert is_served(lab)


def test_what_a_client_sent_whole_before_it_closed_is_carried_out(lab):
    """acks=0 and gone, as Kafka's socket server does it."""
    part = produce_v7.PartitionProduceData(index=0, records=batch_of((5,)))
    topic = produce_v7.TopicProduceData(name="t", partition_data=(part,))
    body = produce_v7.ProduceRequest(transactional_id=None, acks=0, timeout=timedelta(0), topic_data=(topic,))
    log = next(iter(lab.world.hosts.values())).core.replicas.partitions[("t", 0)].log
    before = log.log_end_offset
    with connected(lab) as peer:
        peer.sendall(b"".join(request_bytes(number, body) for number in range(20)))
    until(lambda: log.log_end_offset == before + 20)


def test_a_broker_that_does_not_serve_closes_its_connections(lab):
    """A request that the core would drop is not left without an answer; when it serves again, it serves."""
    server = lab.servers[1]
    with connected(lab) as peer:
        peer.sendall(METADATA)
        assert peer.recv(8)[4:] == b"\0\0\0\1"
        before, server.ready = server.ready, lambda: False
        try:
            with connected(lab) as late:
                assert is_closed(late)
            while peer.recv(65_536):
                pass  # the rest of the answer, then the end
        finally:
            server.ready = before
    assert is_served(lab)


def test_a_core_that_answers_at_once_answers_in_order():
    """The core may answer while it is asked: a broker in the same process does."""

    async def work():
        server = Server(broker=VIEW, submit=lambda source, request: server.answer(source, answer(request)))
        port = await server.listen(HOST, 0)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"".join(request_bytes(number, MetadataRequest(topics=None)) for number in range(500)))
        numbers = []
        for _ in range(500):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            numbers.append(struct.unpack(">i", (await reader.readexactly(size))[:4])[0])
        writer.close()
        await server.close()
        return numbers

    assert asyncio.run(asyncio.wait_for(work(), BOUND_S)) == list(range(500))


# ---- TLS and SASL


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 and its key, made by openssl."""
    folder = tmp_path_factory.mktemp("tls")
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            folder / "key.pem",
            "-out",
            folder / "cert.pem",
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"openssl makes no certificate here: {made.stderr[-200:]!r}")
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def secured(certificate):
    """A listener with TLS and SASL/PLAIN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    security = Security(tls=context, users={"alice": "secret"})
    with wire_lab(
        TopicOptions(name="t", replication_factor=1), brokers=1, server={"security": security}
    ) as made:
        yield made


def test_librdkafka_comes_in_by_tls_and_sasl(secured, certificate):
    """SASL_SSL with mechanism PLAIN."""
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": secured.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "secret",
            "ssl.ca.location": str(certificate[0]),
        }
    )
    producer.produce("t", b"v", on_delivery=lambda error, record: failures.append(error))
    assert producer.flush(BOUND_S) == 0 and failures == [None]


def test_aiokafka_comes_in_with_the_right_password_only(secured, certificate):
    """The wrong one is told so; the password is in no line of the log."""

    async def work(password):
        options = {
            "bootstrap_servers": secured.bootstrap,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": password,
            "ssl_context": ssl.create_default_context(cafile=certificate[0]),
        }
        async with AIOKafkaProducer(**options) as producer:
            return (await producer.send_and_wait("t", b"v")).offset

    assert asyncio.run(asyncio.wait_for(work("secret"), BOUND_S)) >= 0
    with pytest.raises(KafkaError):
        asyncio.run(asyncio.wait_for(work("wrong"), BOUND_S))


def test_a_client_without_tls_is_not_served_by_tls(secured):
    """It is closed in the handshake."""
    with connected(secured) as peer:
        peer.sendall(METADATA)
        assert b"\0\0\0\1" not in (peer.recv(100) or b"")


def test_doctor_comes_in_with_the_file_of_kafkas_own_tools(secured, certificate, tmp_path, capsys):
    """SASL_SSL by --command-config; a wrong password is one sentence and exit code 2."""
    config = tmp_path / "client.properties"
    for password, code in (("secret", 0), ("wrong", 2)):
        config.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={certificate[0]}\nsasl.jaas.config=org.apache.kafka.common.security."
            f'plain.PlainLoginModule required \\\n  username="alice" password="{password}";\n'
        )
        line = ("--bootstrap", secured.bootstrap, "--command-config", str(config), "--seconds", "1")
        assert run(["doctor", *line]) == code
        told = capsys.readouterr()
        assert (
            "0 findings, 0 notes; 1 brokers" in told.out
            if code == 0
            else "lets alice in by SASL/PLAIN" in told.err
        )
        assert "Traceback" not in told.err
