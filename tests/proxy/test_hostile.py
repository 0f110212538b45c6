"""Hostile frames from either side: a connection ends, or it goes on; nothing else happens, and the record
stays readable."""

import asyncio
import base64
import json
import random
import socket
import struct
from contextlib import suppress

import confluent_kafka as ck
import pytest
from kafka_jars import VARIABLE, Jars, classpath, free_port
from kio.index import load_request_schema, load_response_schema
from proxy_lab import proxy_lab
from tls_lab import certificate, client_side, server_side
from wire_lab import wire_lab
from wire_values import random_entity

from fencepost.proxy.exchange import Close, ToBroker, ToClient, Wait
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.proxied_cluster import MOST_ADDRESSES, Cluster, Upstream
from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Kept, Values
from fencepost.proxy.server.upstreams import Sides
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_lines
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.plan import TopicOptions
from fencepost.wire.client import Access, look_around
from fencepost.wire.codec import write_request, write_response
from fencepost.wire.hook import PASS, Cut, Delay, Drop, Half, Last, Replace, Silence
from fencepost.wire.passing import understood
from fencepost.wire.server import Security

HEAD = '{"type":"trace","trace_id":0,"plan":"","seed":0,"software_version":"x"}\n'


def pipe_of(lines=None, hook=None, **options):
    """A pipe with a recorder that writes into `lines`."""
    clock = iter(range(1, 10**9))
    watcher = None if lines is None else Recorder(lines=Lines(lines.append), values=Values(key=b"k" * 32))
    cluster = Cluster(lambda upstream: ("127.0.0.1", 1_000 + len(cluster.local)))
    return Pipe(
        number=1,
        cluster=cluster,
        broker=("b", 1),
        client="c",
        now=lambda: next(clock),
        watcher=watcher,
        hook=hook,
        **options,
    )


WANTED = sorted(Recorder(lines=Lines(lambda line: None), values=Values(key=b"")).wanted | {3, 10, 18, 60})


@pytest.mark.parametrize("key", WANTED)
def test_whatever_fields_say_the_record_stays_readable(key):
    """Well-formed requests and answers with fields at their ends, at every version: each is passed on or ends
    its connection, and every line of the record is one that the reader takes."""
    lines: list[bytes] = []
    low, high = understood(key)
    passed = 0
    for version in {low, (low + high) // 2, high}:
        rng = random.Random(f"{key} {version}")
        for _ in range(15):
            pipe = pipe_of(lines)
            request = random_entity(load_request_schema(key, version), rng)
            actions = pipe.from_client(write_request(5, "client", request))
            if key == 0 and request.acks == 0:
                continue
            try:
                answer = write_response(5, random_entity(load_response_schema(key, version), rng))
            except (AttributeError, ValueError, OverflowError, struct.error):
                continue  # kio cannot write it
            actions += pipe.from_broker(answer)
            pipe.settle()
            assert all(isinstance(each, ToBroker | ToClient | Close) for each in actions)
            passed += any(isinstance(each, ToClient) for each in actions)
            pipe.ended("over")
            pipe.watcher.close()
    assert passed > 0
    rows = []
    for place, line in enumerate(lines):  # each pipe had a recorder of its own
        row = json.loads(line)
        rows.append(json.dumps(row | {"op_id": place} if "op_id" in row else row))
    (trace,) = read_lines([HEAD, *rows], where="lines")
    assert len(trace.events) > 0


@pytest.mark.parametrize("seed", range(5))
def test_bytes_that_are_changed_end_a_connection_or_pass(seed):
    """Mutated frames and noise from either side, in pieces: never anything but actions."""
    rng = random.Random(seed)
    hostile = 0
    for _ in range(150):
        key = rng.choice(WANTED)
        version = understood(key)[1]
        pipe = pipe_of([])
        request = bytearray(write_request(5, "client", random_entity(load_request_schema(key, version), rng)))
        answer = bytearray(rng.randbytes(rng.randrange(60)))
        for _ in range(rng.randrange(4)):
            request[rng.randrange(len(request))] = rng.randrange(256)
        actions = []
        while request:
            size = rng.randrange(1, len(request) + 1)
            actions += pipe.from_client(bytes(request[:size]))
            del request[:size]
        actions += pipe.from_broker(bytes(answer))
        pipe.settle()
        hostile += any(isinstance(each, Close) and each.hostile for each in actions)
    assert hostile > 20


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff\xff\xff\xff", "a length from 0"),
        (b"\x7f\xff\xff\xff", "a length from 0"),
        (b"\0\0\0\x02ab", "a request of at least"),
        (struct.pack(">ihhih", 10, 0, 99, 1, -1), "an API and a version"),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), "an API and a version"),
    ],
)
def test_what_is_no_request_ends_the_connection_with_one_sentence(data, says):
    """A length that no frame has, a frame that is no request, an API or a version that nobody offered."""
    (action,) = pipe_of().from_client(data)
    assert isinstance(action, Close) and action.hostile == "client" and says in action.reason


def test_an_answer_that_nobody_asked_for_ends_the_connection():
    """Without a request, and with another number than the oldest request's."""
    heartbeat = random_entity(load_request_schema(12, 3), random.Random(1))
    answer = write_response(8, random_entity(load_response_schema(12, 3), random.Random(1)))
    for asked in (b"", write_request(7, "c", heartbeat)):
        pipe = pipe_of()
        pipe.from_client(asked)
        (action,) = pipe.from_broker(answer)
        pipe.settle()
        assert isinstance(action, Close) and action.hostile == "broker"


def test_addresses_are_bounded():
    """A broker that answers with garbage does not take every port."""
    cluster = Cluster(lambda upstream: ("127.0.0.1", 1))
    for number in range(MOST_ADDRESSES):
        cluster.assign(number, "h", 1)
    with pytest.raises(EnvironmentError_, match="at most"):
        cluster.assign(-5, "h", 1)
    assert cluster.assign(3, "h", 1) == cluster.local[Upstream(3, "h", 1)]


def test_unknown_requests_pass_when_they_may():
    """Unread, with their answers, and named."""
    named = []
    pipe = pipe_of([], pass_unknown=True, on_unread=lambda pipe, header: named.append(header.api_key))
    frame = struct.pack(">ihhih", 14, 999, 3, 7, -1) + b"body"
    assert pipe.from_client(frame) == [ToBroker(frame)]
    answer = struct.pack(">ii", 6, 7) + b"xy"
    assert pipe.from_broker(answer) == [ToClient(answer)]
    assert named == [999]


# ---- verdicts of a hook


class Says:
    def __init__(self, request=PASS, answer=PASS):
        self.request, self.answer, self.over = request, answer, []

    def on_request(self, source, header, body):
        return self.request

    def on_answer(self, source, header, body, answer):
        return self.answer

    def closed(self, source):
        self.over.append(source)


def heartbeat():
    rng = random.Random(2)
    request = write_request(7, "c", random_entity(load_request_schema(12, 3), rng))
    body = random_entity(load_response_schema(12, 3), rng)
    return request, body, write_response(7, body)


def test_verdicts_on_requests():
    """Cut, Drop, Delay, Silence, an answer of the hook's own, another request."""
    request, body, answer = heartbeat()
    hook = Says(request=Cut())
    assert pipe_of(hook=hook).from_client(request) == [Close("cut before a request", "", True)]
    assert hook.over == [1]
    assert pipe_of(hook=Says(request=Drop())).from_client(request) == []
    silent = pipe_of(hook=Says(request=Silence()))
    assert silent.from_client(request) == [] == silent.from_broker(answer) and not silent.closed
    late = pipe_of(hook=Says(request=Delay(50)))
    assert late.from_client(request + request) == [Wait(50, "requests")]
    assert late.woken("requests") == [ToBroker(request), Wait(50, "requests")]
    assert pipe_of(hook=Says(request=Replace(body))).from_client(request) == [ToClient(answer)]
    other = random_entity(load_request_schema(12, 3), random.Random(9))
    changed = pipe_of(hook=Says(request=Replace(other))).from_client(request)
    assert changed == [ToBroker(write_request(7, "c", other))]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (PASS, lambda answer: [ToClient(answer)]),
        (Cut(), lambda answer: [Close("cut before an answer", "", True)]),
        (Drop(), lambda answer: []),
        (Silence(), lambda answer: []),
        (Last(), lambda answer: [ToClient(answer), Close("cut after an answer")]),
        (Half(500), lambda answer: [ToClient(answer[: len(answer) // 2]), Close("half an answer")]),
        (Half(0), lambda answer: [ToClient(answer[:1]), Close("half an answer")]),
        (Half(1000), lambda answer: [ToClient(answer[:-1]), Close("half an answer")]),
        (Delay(9), lambda answer: [Wait(9, "answers")]),
    ],
)
def test_verdicts_on_answers(verdict, expected):
    """What a hook wants is what leaves."""
    request, _, answer = heartbeat()
    pipe = pipe_of(hook=Says(answer=verdict))
    pipe.from_client(request)
    assert pipe.from_broker(answer) == expected(answer)
    if isinstance(verdict, Delay):
        assert pipe.woken("answers") == [ToClient(answer)]


# ---- with sockets


def test_a_hostile_client_and_a_dead_broker_hurt_nobody_else(tmp_path):
    """Noise, half frames and floods end by themselves; the one next to them goes on; a broker that is not
    there ends a connection at once."""
    with (
        wire_lab(TopicOptions(name="orders"), brokers=1) as lab,
        proxy_lab(f"127.0.0.1:{lab.ports[1]}", tmp_path) as proxy,
    ):
        good = socket.create_connection(("127.0.0.1", proxy.port), 600)
        rng = random.Random(3)
        for _ in range(30):
            bad = socket.create_connection(("127.0.0.1", proxy.port), 600)
            bad.sendall(b"\xff" + rng.randbytes(rng.randrange(1, 5_000)))
            bad.settimeout(600)
            with suppress(ConnectionResetError):
                assert bad.recv(10) == b""
            bad.close()
        good.settimeout(600)
        good.sendall(struct.pack(">ihhih", 10, 18, 0, 5, -1))
        assert struct.unpack_from(">ii", good.recv(1_000))[1] == 5
        good.close()
    with proxy_lab("127.0.0.1:9") as nowhere:
        alone = socket.create_connection(("127.0.0.1", nowhere.port), 600)
        alone.settimeout(600)
        with suppress(ConnectionResetError):
            assert alone.recv(10) == b""


# TLS on either side, and SASL of whatever mechanism: it passes, and nothing of it is on disk.


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
    consumer = ck.Consumer(
        given | {"group.id": "g", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    consumer.assign([ck.TopicPartition("t", 0, 0)])
    got = 0
    while (one := consumer.poll(60)) is not None:
        if one.error() is None:
            got += 1
        elif one.error().code() == ck.KafkaError._PARTITION_EOF:
            break
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
        listener=server_side(files) if tls else None, upstream=client_side(files) if secured.tls else None
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
