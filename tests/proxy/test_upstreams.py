"""The brokers that the proxy is pointed at: a list of them, some or all of which do not answer."""

import asyncio
import contextlib
import json
import logging
import signal
import socket
import subprocess
import sys
import urllib.request

import confluent_kafka as ck
import pytest
from proxy_lab import proxy_lab
from wire_lab import wire_lab

from fencepost.cli import run
from fencepost.proxy.server import upstreams
from fencepost.traces.errors import ExitCode
from fencepost.traces.events import Name
from fencepost.traces.parts import read_recording
from fencepost.traces.plan import TopicOptions

PROXY = "from fencepost.cli import main; main()"
PATIENCE_S = 60
SOCKETS = {}
"""By address, those that do not listen yet."""


@pytest.fixture
def closed():
    """An address at which nothing listens, and nothing else will."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        address = ("127.0.0.1", made.getsockname()[1])
        SOCKETS[address] = made
        yield address


def named(*addresses):
    return ",".join(f"{host}:{port}" for host, port in addresses)


def start(upstream, *more):
    command = ["proxy", "--upstream", upstream, "--listen", "127.0.0.1:0", "--json", "--no-view", *more]
    return subprocess.Popen(
        [sys.executable, "-c", PROXY, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    return json.loads(out.splitlines()[-1]), err


def test_a_list_of_brokers_is_split_and_one_that_answers_is_used(closed):
    """Rule: --upstream takes a list; brokers that do not answer are named, and the next one is used."""
    with wire_lab(TopicOptions(name="orders", partitions=1), brokers=1) as lab:
        process = start(f"{named(closed)}, 127.0.0.1:{lab.ports[1]}")
        assert process.stderr is not None and process.stdout is not None
        started = json.loads(process.stdout.readline())
        assert started["upstream"] == named(closed, ("127.0.0.1", lab.ports[1]))
        producer, heard = ck.Producer({"bootstrap.servers": started["listen"], "log_level": 0}), []
        producer.produce("orders", b"x", on_delivery=lambda e, m: heard.append(e))
        producer.flush(600)
        summary, err = ended(process)
    assert heard == [None]
    assert summary["brokers unreachable"] == 0
    assert f"{named(closed)} cannot be reached" in " ".join(err.split())


def test_without_any_broker_it_does_not_start(closed, tmp_path, capsys):
    """Rule: one sentence that names each address, exit code 2, and no record is begun."""
    live = tmp_path / "live"
    upstream = f"{named(closed)},{named(closed).replace('127.0.0.1', 'localhost')}"
    where = ["--listen", "127.0.0.1:0", "--record", str(live)]
    assert run(["proxy", "--upstream", upstream, *where]) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert f"{named(closed)} cannot be reached" in said and "localhost:" in said
    assert "--wait-for-upstream" in said and "Traceback" not in said
    assert not live.exists()


@pytest.mark.parametrize("text", ["127.0.0.1:1,", "127.0.0.1:1,nowhere", ","])
def test_a_list_with_a_gap_is_refused(text, capsys):
    """No traceback."""
    assert run(["proxy", "--upstream", text]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "expected HOST:PORT" in said and "Traceback" not in said


def test_it_waits_for_its_cluster_if_it_is_told_to(closed):
    """Rule: with --wait-for-upstream the proxy starts once a broker accepts connections, and not before."""
    waiting = upstreams.Upstreams(upstreams.Sides())
    tries = []

    async def cluster_starts(seconds):
        tries.append(seconds)
        if len(tries) == 3:
            closed_socket.listen()

    async def wait():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upstreams.asyncio, "sleep", cluster_starts)
            return await waiting.probe((closed,), 600)

    closed_socket = SOCKETS[closed]
    assert asyncio.run(wait()) == []
    assert len(tries) == 3


def test_a_broker_that_is_gone_is_counted_and_logged_once_a_minute(closed, caplog, monkeypatch):
    """Rule: a client's connection that ends because its broker cannot be reached is no silence: each is
    counted, and one line a minute names the address and how many there were."""
    caplog.set_level(logging.WARNING, logger="fencepost.proxy")

    def connect(lab):
        client = socket.create_connection(("127.0.0.1", lab.port), PATIENCE_S)
        with client, contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""

    with proxy_lab(named(closed)) as lab:
        for _ in range(5):
            connect(lab)
        assert lab.proxy.upstreams.unreachable == 5
        lines = [one.getMessage() for one in caplog.records]
        assert len(lines) == 1 and f"{named(closed)} cannot be reached" in lines[0]
        monkeypatch.setattr(upstreams, "LOG_S", 0.0)
        connect(lab)
        assert "(4 more since the last such line)" in caplog.records[-1].getMessage()


# The command: faults and the control port of a running proxy, its summary, and what it refuses.


def test_faults_and_the_control_port_of_a_running_proxy(tmp_path):
    """A fault of the command line strikes; the control port answers state, takes another, heals, judges;
    Ctrl-C ends with a summary."""
    live = tmp_path / "live"
    with wire_lab(TopicOptions(name="orders", partitions=1), brokers=1) as lab:
        command = f"proxy --upstream 127.0.0.1:{lab.ports[1]} --listen 127.0.0.1:0 --control 0 --json".split()
        command += ["--no-view", "--record", str(live)]
        command += ["--fault", "lose answer to Produce on orders-0, 1 in 3"]
        process = subprocess.Popen(
            [sys.executable, "-c", PROXY, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stderr is not None
        control = process.stderr.readline().split("127.0.0.1:")[1].split(",")[0]
        started = json.loads(process.stdout.readline())
        token = (live / "control-token").read_text().strip()

        def call(verb, **arguments):
            request = urllib.request.Request(
                f"http://127.0.0.1:{control}/{verb}",
                data=json.dumps(arguments).encode(),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            return json.loads(urllib.request.urlopen(request, timeout=600).read())

        settings = {"socket.timeout.ms": 1_000, "enable.idempotence": True, "log_level": 0, "linger.ms": 0}
        producer, told = ck.Producer({"bootstrap.servers": started["listen"], **settings}), []
        for n in range(12):
            producer.produce("orders", b"%d" % n, on_delivery=lambda e, m: told.append(e))
            producer.flush(600)
        assert told == [None] * 12
        state = call("state")
        assert state["faults"][0]["struck"] > 0 and state["record"]["records acknowledged"] == 12
        assert call("fault", text="cut before Metadata")["fault"] > 0
        assert len(call("state")["faults"]) == 2
        call("heal")
        assert call("state")["faults"] == []
        assert call("verdict")["decision"] in ("ok", "assumption_broken")  # nobody has read
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=600)
    assert json.loads(out.splitlines()[-1])["records acknowledged"] == 12
    (folder,) = live.glob("run-*")
    began = [event for event in read_recording(folder).events if event.name is Name.FAULT_BEGAN]
    assert began and {event.cause for event in began} == {"lose_answer"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--upstream HOST:PORT is needed"),
        (["--upstream", "nowhere"], "expected HOST:PORT"),
        (["--upstream", "127.0.0.1:1", "--watch"], "name its folder with --record"),
        (["--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--fault", "dance on orders"], "expected"),
    ],
)
def test_what_cannot_begin_is_refused_in_one_sentence(arguments, says, capsys):
    """No traceback."""
    assert run(["proxy", *arguments]) == ExitCode.USAGE
    heard = capsys.readouterr().err
    assert says in heard and "Traceback" not in heard
