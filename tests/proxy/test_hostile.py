"""Hostile frames from either side: a connection ends, or it goes on; nothing else happens, and the record
stays readable."""

import json
import random
import socket
import struct
from contextlib import suppress

import pytest
from kio.index import load_request_schema, load_response_schema
from proxy_lab import proxy_lab
from wire_lab import wire_lab
from wire_values import random_entity

from fencepost.proxy.exchange import Close, ToBroker, ToClient, Wait
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.proxied_cluster import MOST_ADDRESSES, Cluster, Upstream
from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Values
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.jsonlines import read_lines
from fencepost.traces.plan import TopicOptions
from fencepost.wire.codec import write_request, write_response
from fencepost.wire.hook import PASS, Cut, Delay, Drop, Half, Last, Replace, Silence
from fencepost.wire.passing import understood

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
