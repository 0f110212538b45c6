"""The command: faults and the control port of a running proxy, its summary, and what it refuses."""

import json
import signal
import subprocess
import sys
import urllib.request

import confluent_kafka as ck
import pytest
from wire_lab import wire_lab

from fencepost.cli import run
from fencepost.traces.errors import ExitCode
from fencepost.traces.events import Name
from fencepost.traces.parts import read_recording
from fencepost.traces.plan import TopicOptions

PROXY = "from fencepost.cli import main; main()"


def test_faults_and_the_control_port_of_a_running_proxy(tmp_path):
    """A fault of the command line strikes; the control port answers state, takes another, heals, judges;
    Ctrl-C ends with a summary."""
    live = tmp_path / "live"
    with wire_lab(TopicOptions(name="orders", partitions=1), brokers=1) as lab:
        command = [
            "proxy",
            "--upstream",
            f"127.0.0.1:{lab.ports[1]}",
            "--listen",
            "127.0.0.1:0",
            "--record",
            str(live),
        ]
        command += [
            "--control",
            "0",
            "--fault",
            "lose answer to Produce on orders-0, 1 in 3",
            "--json",
            "--no-view",
        ]
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
