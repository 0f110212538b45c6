"""`cluster produce` and `cluster consume` with --bootstrap, and their client, against listeners of Kafka's
protocol."""

import asyncio
import io
import json
import sys

import pytest
from wire_core import VIEW, answer
from wire_lab import HOST, wire_lab

from fencepost.cli import run
from fencepost.impl.messages.broker_api import FetchRequest, MetadataRequest
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.plan import TopicOptions
from fencepost.wire.client import Access, KafkaNetwork, Link, look_around
from fencepost.wire.frames import ProtocolError
from fencepost.wire.sasl import login
from fencepost.wire.server import Security, Server

BOUND_S = 600


@pytest.fixture(scope="module")
def lab():
    """Three brokers."""
    with wire_lab(TopicOptions(name="lines", partitions=3), TopicOptions(name="more")) as made:
        yield made


@pytest.fixture
def tell(capsys, monkeypatch):
    """tell(arguments, standard input) -> exit code, standard output and error of a command."""

    def call(*arguments, given=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return int(code), *capsys.readouterr()

    return call


def test_lines_go_there_and_come_back_and_are_judged(lab, tell, tmp_path):
    """What `produce` sends by Kafka's protocol `consume` prints, alone and in a group, and the history of
    both is Ok."""
    history, where = tmp_path / "history.jsonl", ("--bootstrap", lab.bootstrap)
    lines = "".join(f"k{number % 7}:{number}\n" for number in range(500))
    for compression in ("none", "zstd"):
        code, out, _ = tell(
            "cluster",
            "produce",
            "lines",
            *where,
            "--key-separator",
            ":",
            "--compression",
            compression,
            "--record",
            history,
            "--json",
            given=lines,
        )
        assert (code, json.loads(out)["ok"]) == (0, 500)
    code, out, err = tell(
        "cluster",
        "consume",
        "lines",
        *where,
        "--from-beginning",
        "--max",
        1_000,
        "--record",
        history,
        "--json",
    )
    read = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and sorted(int(each["value"]) for each in read) == sorted([*range(500), *range(500)]), (
        err
    )
    assert len({(each["key"], each["partition"]) for each in read}) == 7, "a key has one partition"
    code, out, _ = tell("check", history, "--checks", "log,kafka", "--json")
    assert (code, json.loads(out)["decisions"]) == (0, {"ok": 1}), out
    code, out, err = tell(
        "cluster", "consume", "lines", *where, "--group", "g", "--from-beginning", "--max", 1_000
    )
    assert (code, out.count("\n")) == (0, 1_000), err


def test_a_mistake_is_one_sentence(lab, tell):
    """A topic that is not there, servers that do not answer, an address that is none, options without their
    master."""
    for arguments, sentence in (
        (("nosuch", "--bootstrap", lab.bootstrap), "expected one of the topics lines, more, saw 'nosuch'"),
        (("t", "--bootstrap", "127.0.0.1:1"), "expected a Kafka broker that answers"),
        (("t", "--bootstrap", "here"), "expected HOST:PORT, saw 'here'"),
        (("t", "--user", "me"), "--bootstrap, which is not given"),
        (
            ("t", "--user", "me", "--bootstrap", "127.0.0.1:1"),
            "expected the password of me in the environment variable FENCEPOST_PASSWORD, saw none",
        ),
    ):
        code, _, err = tell("cluster", "consume", *arguments)
        assert code == 2 and sentence in err and "Traceback" not in err


def test_a_connection_that_is_closed_at_once_hints_at_how_to_come_in():
    """A listener for TLS closes a plain connection: the sentence names the options. A dead one does not."""

    async def work():
        server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
        async with server:
            return await look_around((server.sockets[0].getsockname()[:2],), Access())

    with pytest.raises(EnvironmentError_, match=r"expects TLS or SASL closes .*: --tls-ca, --user"):
        asyncio.run(work())
    with pytest.raises(EnvironmentError_) as caught:
        asyncio.run(look_around(((HOST, 1),), Access()))
    assert "--tls-ca" not in str(caught.value)


def test_the_servers_that_answer_are_enough(lab):
    """A dead bootstrap server before them is no mistake."""
    servers = ((HOST, 1), *((HOST, port) for port in lab.ports.values()))
    addresses, metadata = asyncio.run(look_around(servers, Access()))
    assert addresses == {node: (HOST, port) for node, port in lab.ports.items()}
    assert {each.partition.topic for each in metadata.partitions} >= {"lines", "more"}


def test_a_name_and_a_password_let_in():
    """SASL/PLAIN as the client does it; the wrong password is one sentence, and not in it."""

    async def work(password):
        server = Server(
            broker=VIEW,
            submit=lambda source, request: server.answer(source, answer(request)),
            security=Security(users={"alice": "secret"}),
        )
        port = await server.listen(HOST, 0)
        try:
            return await look_around(((HOST, port),), Access(user="alice", password=password))
        finally:
            await server.close()

    assert asyncio.run(work("secret"))[1].live_brokers == (1, 2)
    with pytest.raises(
        EnvironmentError_, match="lets alice in by SASL/PLAIN, saw SASL_AUTHENTICATION_FAILED"
    ) as caught:
        asyncio.run(work("wrong"))
    assert "wrong" not in str(caught.value) and "secret" not in repr(Access(user="a", password="secret"))


def test_a_connection_that_breaks_loses_its_requests_and_the_next_one_works():
    """As on every network of ours: whoever sent it has a time-out."""

    async def work():
        heard, asked, dead = [], [], True

        def submit(source, request):
            asked.append(type(request).__name__)
            if dead:
                server.disconnect("a test")
            else:
                server.answer(source, answer(request))

        server = Server(broker=VIEW, submit=submit)
        port = await server.listen(HOST, 0)
        network = KafkaNetwork({1: (HOST, port)}, lambda node, message: heard.append((node, message)))
        try:
            network.send(1, MetadataRequest(correlation_id=1))
            network.send(7, MetadataRequest(correlation_id=2))  # nobody knows where 7 is
            while not asked:
                await asyncio.sleep(0.01)
            dead = False
            while not heard:
                network.send(1, MetadataRequest(correlation_id=3))
                await asyncio.sleep(0.05)
            assert {(node, message.correlation_id) for node, message in heard} == {(1, 3)}
            assert network.addresses[2] == ("two.example", 9093), "metadata moves the addresses"
        finally:
            await network.close()
            await server.close()

    asyncio.run(asyncio.wait_for(work(), BOUND_S))


def test_a_fetch_that_waits_holds_back_nothing_else():
    """Each kind of request has a connection of its own."""

    async def work():
        heard = []

        def submit(source, request):
            if not isinstance(request, FetchRequest):
                server.answer(source, answer(request))

        server = Server(broker=VIEW, submit=submit)
        port = await server.listen(HOST, 0)
        network = KafkaNetwork({1: (HOST, port)}, lambda node, message: heard.append(type(message).__name__))
        try:
            network.send(
                1, FetchRequest(correlation_id=1, replica_id=-1, max_wait=10**10, max_bytes=1, partitions=())
            )
            network.send(1, MetadataRequest(correlation_id=2))
            while "MetadataResponse" not in heard:
                await asyncio.sleep(0.01)
        finally:
            await network.close()
            await server.close()

    asyncio.run(asyncio.wait_for(work(), BOUND_S))


def test_a_link_says_when_the_broker_is_gone():
    """To whoever waits, and to whoever asks afterwards."""

    async def work():
        asked = []
        server = Server(broker=VIEW, submit=lambda source, request: asked.append(request))
        port = await server.listen(HOST, 0)
        link = Link((HOST, port))
        await link.open()
        waiting = asyncio.ensure_future(link.ask(link.dialogue.make(3, **ALL_TOPICS)))
        while not asked:
            await asyncio.sleep(0.01)
        server.disconnect("a test")
        with pytest.raises(OSError):
            await waiting
        await asyncio.wait((link.ended(),))
        with pytest.raises(OSError):
            await link.ask(link.dialogue.make(3, **ALL_TOPICS))
        await link.close()
        await server.close()

    asyncio.run(asyncio.wait_for(work(), BOUND_S))


ALL_TOPICS = {
    "topics": None,
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


SALTED = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def scram(challenge=SALTED, end="v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="):
    """The tokens of the example of RFC 7677."""
    tokens = login("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    said = [next(tokens), tokens.send(challenge.encode())]
    with pytest.raises(StopIteration):
        tokens.send(end.encode())
    return said


def test_a_login_by_scram_is_that_of_the_standard():
    """RFC 7677, section 3."""
    first, final = scram()
    assert first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert final.endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert next(login("SCRAM-SHA-512", "a,b=c", "x", "n")) == b"n,,n=a=2Cb=3Dc,r=n"


@pytest.mark.parametrize(
    "answers",
    [
        {"end": "v=AAAA"},
        {"end": "e=other-error"},
        {"challenge": SALTED.replace("rOpr", "xxxx")},
        {"challenge": "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"},
        {"challenge": SALTED.replace("4096", "99999999999")},
        {"challenge": SALTED.replace("W22Z", "?")},
        {"challenge": "\xff"},
    ],
)
def test_a_broker_that_does_not_know_the_password_is_refused(answers):
    """And one that would keep the client hashing, or reuses its nonce."""
    with pytest.raises(ProtocolError, match="SCRAM-SHA-256"):
        scram(**answers)
