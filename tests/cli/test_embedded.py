"""`fencepost cluster up --embedded`: serves until Ctrl-C, then says what was recorded."""

import json
import signal
import subprocess
import sys

import pytest
from kafka import KafkaProducer

from fencepost.cli import run
from fencepost.traces.errors import ExitCode

PROGRAM = (
    "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nfrom fencepost.cli "
    "import main\nmain()\n"
)


def test_it_serves_until_ctrl_c_and_judges(tmp_path):
    """Rule: the address is the first line; Ctrl-C ends it with a verdict and exit code 0; files are in the
    folder that was named."""
    command = [sys.executable, "-c", PROGRAM, "cluster", "up", "--embedded", "--brokers", "1", "--json"]
    command += ["--directory", str(tmp_path / "files"), "--session-timeout-ms", "2000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        seen = json.loads(process.stdout.readline())
        client = KafkaProducer(bootstrap_servers=seen["bootstrap_servers"], acks="all", api_version=(2, 6))
        with pytest.raises(Exception):  # noqa: B017 - a client's own kind of error
            client.send("no such topic", b"1").get(1)
        client.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    assert "ok: " in errors and "events were recorded" in errors
    assert (tmp_path / "files" / "broker-1").is_dir()


def test_options_of_processes_are_refused(capsys):
    """Rule: what an embedded cluster does not have is said by name."""
    assert run(["cluster", "up", "--embedded", "--detach"]) is ExitCode.USAGE
    assert "--detach is for a cluster of processes" in capsys.readouterr().err
