"""A ZooKeeper server of our own starts, answers, keeps its data across a restart, and leaves no process
behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fencepost.impl.runtime.processes import ProcessId, end, identify, kill, send_signal, spawn, state
from fencepost.impl.runtime.zookeeper import server as zookeeper_server
from fencepost.impl.runtime.zookeeper.server import HOST, ZooKeeperServer, answers
from fencepost.traces.errors import EnvironmentError_, MissingExtraError

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); "
    "time.sleep(600)",
]


def begin(tmp_path, command):
    """A process, and the file of its words."""
    log = tmp_path / "log"
    with log.open("ab") as stream:
        return spawn(command, stream), log


@pytest.mark.java
def test_a_server_answers_and_is_gone_afterwards(tmp_path):
    """Rule: `start` returns when the server answers; after `stop` neither its process nor its port is there,
    and stopping again is harmless."""
    with ZooKeeperServer.start(tmp_path / "zk") as server:
        assert answers(HOST, server.port) and state(server.process) == "running"
    server.stop()
    assert state(server.process) == "dead" and not answers(HOST, server.port)


@pytest.mark.java
def test_an_interrupted_start_leaves_no_process(tmp_path, monkeypatch):
    """Rule: Ctrl-C while we wait for the server ends the server too."""
    seen = []

    def interrupt(process, port):
        seen.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(zookeeper_server, "_answers_soon", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ZooKeeperServer.start(tmp_path / "zk")
    assert [state(process) for process in seen] == ["dead"]


def test_what_is_missing_is_said_in_one_sentence(monkeypatch):
    """Rule: no Java and no PySpark are the environment's mistakes, each with what to do about it."""
    monkeypatch.setattr(zookeeper_server, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kazoo>=2.10' 'pyspark>=4.0'"):
        zookeeper_server.jars()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", "")
    with pytest.raises(EnvironmentError_, match=r"no java on the path.*--zookeeper HOST:PORT"):
        zookeeper_server.check_server()


def test_a_server_that_cannot_start_is_told_with_its_last_words(tmp_path, monkeypatch):
    """Rule: what the server said before it died is in the error."""
    monkeypatch.setattr(
        zookeeper_server, "_command", lambda options: [sys.executable, "-c", "print('no room')"]
    )
    with pytest.raises(EnvironmentError_, match="no room"):
        ZooKeeperServer.start(tmp_path / "zk")


def test_a_process_is_paused_resumed_and_killed(tmp_path):
    """Rule: the state of a process is what was last done to it."""
    process, _ = begin(tmp_path, SLEEPER)
    for number, expected in ((signal.SIGSTOP, "paused"), (signal.SIGCONT, "running")):
        assert send_signal(process, number)
        deadline = time.monotonic() + 600
        while state(process) != expected and time.monotonic() < deadline:
            time.sleep(0.01)
        assert state(process) == expected
    kill(process)
    assert state(process) == "dead" and not send_signal(process, signal.SIGTERM)


def test_a_process_that_does_not_listen_or_stands_still_is_ended_too(tmp_path):
    """Rule: `end` leaves nobody, whatever state they are in."""
    deaf, log = begin(tmp_path, DEAF)
    while "deaf" not in log.read_text():
        time.sleep(0.01)
    paused, _ = begin(tmp_path, SLEEPER)
    send_signal(paused, signal.SIGSTOP)
    end([deaf, paused], grace_s=0.2)
    assert (state(deaf), state(paused)) == ("dead", "dead")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_a_process_may_die_with_the_one_that_began_it(tmp_path):
    """Rule: a server of a test run does not outlive the run, not even one that is killed."""
    code = (
        "import sys, time; from fencepost.impl.runtime.processes import spawn\n"
        f"it = spawn({SLEEPER!r}, open({str(tmp_path / 'log')!r}, 'ab'), dies_with_us=True)\n"
        "print(it.pid, it.began, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        child = ProcessId(*map(int, parent.stdout.readline().split()))
        assert state(child) == "running"
        parent.kill()
    deadline = time.monotonic() + 600
    while state(child) != "dead" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state(child) == "dead"


def test_another_process_with_the_same_number_is_not_ours(tmp_path):
    """Rule: a process id that the system has given to somebody else is never signalled."""
    process, _ = begin(tmp_path, SLEEPER)
    if process.began:
        stranger = ProcessId(process.pid, process.began + 1)
        assert state(stranger) == "dead" and not send_signal(stranger, signal.SIGKILL)
    assert state(process) == "running" and identify(process.pid) == process
    end([process])


def test_a_dead_child_of_somebody_else_counts_as_dead():
    """Rule: a process that has ended and was not waited for yet is dead, not running."""
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert state(ProcessId(child.pid)) == "dead"
        child.returncode = 0
