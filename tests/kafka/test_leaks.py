"""A hundred clusters leave nothing: here a dozen, under xdist, with planted leaks; `python -m bench
fixture` has the hundred."""

import json
import socket
from collections import defaultdict
from importlib.metadata import entry_points

pytest_plugins = ["pytester"]
INSTALLED = any(point.value == "fencepost.pytest_plugin" for point in entry_points(group="pytest11"))
SUITE = """
import gc, json, os, threading
from pathlib import Path
import pytest
from kafka import KafkaProducer

LEAK, HERE, kept = {leak!r}, Path(__file__).parent, []

@pytest.fixture(autouse=True)
def counted():
    '''What this process holds before a test.'''
    gc.collect()
    held = {{
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "objects": len(gc.get_objects()),
    }}
    with open(HERE / f"held-{{os.getpid()}}", "a") as out:
        out.write(json.dumps(held) + "\\n")

@pytest.mark.fencepost_kafka(brokers=2)
@pytest.mark.parametrize("number", range({tests}))
def test_one(fencepost_kafka, number):
    servers = fencepost_kafka.bootstrap_servers.split(",")
    with open(HERE / "servers", "a") as out:
        out.write("\\n".join(servers) + "\\n")
    fencepost_kafka.lose_answer("Produce", "t")
    client = KafkaProducer(bootstrap_servers=servers, acks="all", retries=50, retry_backoff_ms=20)
    client.send("t", b"%d" % number).get(60)
    client.close()
    if "thread" in LEAK:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    if "file" in LEAK:
        kept.append(open(__file__))
    if "memory" in LEAK:
        kept.append(fencepost_kafka)
"""
SMALL = 400
"""Objects a test that pytest itself keeps of it (its report, its stash); a cluster has many thousands."""
FIRST = 2
"""Tests that load what is loaded once."""


def grown(suite, leak, tests, *options):
    """What a process holds more after each test, from its third one on; the ports that still answer."""
    suite.makepyfile(SUITE.format(leak=leak, tests=tests))
    loaded = [] if INSTALLED else ["-p", "fencepost.pytest_plugin"]
    result = suite.runpytest_subprocess(*loaded, "-p", "no:cacheprovider", "-q", *options)
    assert result.parseoutcomes()["passed"] == tests
    most = defaultdict(float)
    compared = 0
    for path in suite.path.glob("held-*"):
        rows = [json.loads(line) for line in path.read_text().splitlines()][FIRST:]
        compared += max(len(rows) - 1, 0)
        if len(rows) > 1:
            for name in rows[0]:
                most[name] = max(most[name], (rows[-1][name] - rows[0][name]) / (len(rows) - 1))
    assert compared >= 2, "too few tests in any one process"
    return dict(most), [port for port in (suite.path / "servers").read_text().split() if answers(port)]


def answers(server):
    """Whether somebody listens there."""
    host, _, port = server.rpartition(":")
    with socket.socket() as connection:
        return connection.connect_ex((host, int(port))) == 0


def test_tests_leave_no_thread_file_port_or_memory(pytester):
    """Rule: a dozen tests on two workers leave no thread, no open file, no port, and no more memory than
    pytest itself keeps of a test."""
    most, open_ports = grown(pytester, (), 12, "-n", "2")
    assert open_ports == [] and not (pytester.path / ".fencepost").exists()
    assert (most["threads"], most["files"]) == (0, 0)
    assert most["objects"] < SMALL, most


def test_planted_leaks_are_seen(pytester):
    """Rule: a thread, a file, and a closed cluster that something still holds are what the test above
    sees."""
    most, _ = grown(pytester, ("thread", "file", "memory"), 5)
    assert most["threads"] >= 1 and most["files"] >= 1 and most["objects"] >= SMALL, most
