"""TLS on either side, and SASL of whatever mechanism: it passes, and nothing of it is on disk."""

import asyncio
import base64
import struct

import confluent_kafka as ck
import pytest
from kafka_jars import VARIABLE, Jars, classpath, free_port
from proxy_lab import proxy_lab
from tls_lab import certificate, client_side, server_side
from wire_lab import wire_lab

from fencepost.proxy.exchange import Close, ToBroker, ToClient
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.proxied_cluster import Cluster
from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Kept, Values
from fencepost.proxy.server.upstreams import Sides
from fencepost.traces.events import Name
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import TopicOptions
from fencepost.wire.client import Access, look_around
from fencepost.wire.server import Security

PASSWORD = "correct horse battery"
COUNT = 20


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=["plain", "tls"])
def secured(request, files):
    """A cluster that asks for SASL/PLAIN, with and without TLS."""
    tls = server_side(files) if request.param == "tls" else None
    security = Security(tls=tls, users={"alice": PASSWORD})
    topic = TopicOptions(name="t", replication_factor=1)
    with wire_lab(topic, brokers=1, server={"security": security}) as made:
        made.tls = tls is not None
        yield made


def settings(proxy, files, *, tls, password=PASSWORD, mechanism="PLAIN"):
    """Of a client."""
    return {
        "bootstrap.servers": proxy.bootstrap,
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "log_level": 0,
    } | ({"ssl.ca.location": str(files[0])} if tls else {})


def said_to_a_client(given):
    """Errors by delivery report of COUNT records, and how many a consumer reads of them."""
    producer, told = ck.Producer(given), []
    for n in range(COUNT):
        producer.produce("t", b"%d" % n, on_delivery=lambda error, message: told.append(error))
    producer.flush(600)
    consumer = ck.Consumer(given | {"group.id": "g", "enable.auto.commit": False})
    consumer.assign([ck.TopicPartition("t", 0, 0)])
    got = 0
    while got < COUNT and (found := consumer.consume(500, 30)):
        got += sum(one.error() is None for one in found)
    consumer.close()
    return told, got


def nothing_secret(folder):
    """Whether no file has the password, as it is or as SASL writes it."""
    disk = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "key")
    secret = PASSWORD.encode()
    told = (secret, b"\0alice\0" + secret, base64.b64encode(secret), secret.hex().encode())
    assert disk and b"sasl_authenticate" in disk
    return not any(one in disk for one in told)


@pytest.mark.parametrize("tls", [False, True])
def test_tls_on_either_side_and_sasl_pass(secured, files, tmp_path, tls):
    """Rule: four pairs of sides; every record arrives and is in the trace, the password is nowhere."""
    sides = Sides(
        listener=server_side(files) if tls else None,
        upstream=client_side(files) if secured.tls else None,
    )
    with proxy_lab(secured.bootstrap, tmp_path, {"kept": Kept.FULL}, sides=sides) as proxy:
        told, got = said_to_a_client(settings(proxy, files, tls=tls))
    assert told == [None] * COUNT and got >= COUNT
    rows = proxy.trace().operations
    sent = [row for row in rows if row.function is Function.APPEND and row.argument is None]
    assert sum(len(row.records) for row in sent if row.outcome is Outcome.OK) == COUNT
    assert nothing_secret(tmp_path)


def test_a_wrong_password_is_the_brokers_no(secured, files, tmp_path):
    """Rule: the client hears what the broker says; the attempt is in the record, its bytes are not."""
    sides = Sides(upstream=client_side(files) if secured.tls else None)
    with proxy_lab(secured.bootstrap, tmp_path, sides=sides) as proxy:
        heard = []
        given = settings(proxy, files, tls=False, password=PASSWORD[::-1])
        producer = ck.Producer(given | {"error_cb": lambda error: heard.append(error.name())})
        for _ in range(60):
            producer.poll(0.5)
            if "_AUTHENTICATION" in heard:
                break
        assert "_AUTHENTICATION" in heard
    asked = [e for e in proxy.trace().events if e.name is Name.REQUEST and e.cause == "sasl_authenticate"]
    assert asked
    disk = b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
    assert PASSWORD[::-1].encode() not in disk


def test_a_client_without_tls_hurts_nobody(files, tmp_path, secured):
    """Rule: a listener with TLS does not serve plain bytes, and goes on."""
    upstream = client_side(files) if secured.tls else None
    sides = Sides(listener=server_side(files), upstream=upstream)
    with proxy_lab(secured.bootstrap, tmp_path, sides=sides) as proxy:
        with pytest.raises(ck.KafkaException):
            ck.Producer(settings(proxy, files, tls=False)).list_topics(timeout=3)
        assert ck.Producer(settings(proxy, files, tls=True)).list_topics(timeout=60).topics


def frame(key, version, number, body):
    """A request as it stands on the wire."""
    content = struct.pack(">hhih", key, version, number, 1) + b"c" + body
    return struct.pack(">i", len(content)) + content


def answer(number, body):
    content = struct.pack(">i", number) + body
    return struct.pack(">i", len(content)) + content


def text(value):
    return struct.pack(">h", len(value)) + value


@pytest.mark.parametrize(("mechanism", "tokens"), [("PLAIN", 1), ("SCRAM-SHA-256", 2), ("SCRAM-SHA-512", 2)])
def test_tokens_after_an_old_handshake_pass_unread(mechanism, tokens):
    """Rule: after SaslHandshake 0 the client's frames are tokens, not requests (KIP-43), as many as the
    mechanism has; none is written down, and requests follow."""
    lines: list[bytes] = []
    clock = iter(range(1, 1_000))
    pipe = Pipe(
        number=1,
        cluster=Cluster(lambda upstream: ("h", 1)),
        broker=("b", 1),
        client="c",
        now=lambda: next(clock),
        watcher=Recorder(lines=Lines(lines.append), values=Values(key=b"k")),
    )

    def passes(asked, told):
        assert pipe.from_client(asked) == [ToBroker(asked)]
        assert pipe.from_broker(told) == [ToClient(told)]
        pipe.settle()

    known = struct.pack(">hi", 0, 1) + text(mechanism.encode())
    passes(frame(17, 0, 1, text(mechanism.encode())), answer(1, known))
    for number in range(tokens):
        secret = b"token %d of alice" % number
        raw = struct.pack(">i", len(secret)) + secret
        passes(raw, raw)
    passes(frame(17, 0, 2, text(b"PLAIN")), answer(2, struct.pack(">hi", 33, 0)))  # refused: no token comes
    assert not any(b"of alice" in line for line in lines)
    assert sum(b"sasl_handshake" in line for line in lines) == 2
    (over,) = pipe.from_client(struct.pack(">i", 14) + b"one token more")
    assert isinstance(over, Close) and over.hostile == "client"


@pytest.mark.skipif(classpath() is None, reason=f"Apache Kafka's jars: ${VARIABLE} names no class path")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_over_tls_passes_to_apache_kafka(files, tmp_path, mechanism):
    """Rule: SCRAM over TLS on both sides with Apache Kafka; nothing of the exchange is on disk. Our own
    client comes in, too."""
    from confluent_kafka.admin import (
        AdminClient,
        NewTopic,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    (tmp_path / "kafka").mkdir()
    pem = tmp_path / "kafka" / "store.pem"
    pem.write_bytes(files[1].read_bytes() + files[0].read_bytes())
    kafka, inner = Jars(tmp_path / "kafka", classpath()), free_port()
    where = f"CLIENT://{kafka.bootstrap},INNER://127.0.0.1:{inner}"
    kafka.more = f"""listeners={where},CTRL://127.0.0.1:{kafka.controller}
advertised.listeners={where}
inter.broker.listener.name=INNER
listener.security.protocol.map=CLIENT:SASL_SSL,INNER:PLAINTEXT,CTRL:PLAINTEXT
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location={pem}
listener.name.client.sasl.enabled.mechanisms={mechanism}
listener.name.client.{mechanism.lower()}.sasl.jaas.config=\\
org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{inner}", "log_level": 0})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
        how = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], 8192)
        alice = UserScramCredentialUpsertion("alice", how, PASSWORD.encode())
        admin.alter_user_scram_credentials([alice])["alice"].result(60)
        host, port = kafka.bootstrap.rsplit(":", 1)
        login = Access(tls=client_side(files), user="alice", password=PASSWORD, mechanism=mechanism)
        brokers, _ = asyncio.run(look_around(((host, int(port)),), login))
        sides = Sides(listener=server_side(files), upstream=client_side(files))
        with proxy_lab(kafka.bootstrap, tmp_path / "live", sides=sides) as proxy:
            given = settings(proxy, files, tls=True, mechanism=mechanism)
            told, got = said_to_a_client(given)
    finally:
        kafka.stop()
    assert told == [None] * COUNT and got == COUNT and list(brokers) == [1]
    assert nothing_secret(tmp_path / "live")
    disk = b"".join(path.read_bytes() for path in (tmp_path / "live").rglob("*.jsonl"))
    assert b"n=alice" not in disk and b"i=8192" not in disk
