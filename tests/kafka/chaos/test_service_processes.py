"""Which process a connection belongs to."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from fencepost.kafka.chaos.service_processes import MOST_LOOKS, UNKNOWN, Processes


@pytest.fixture
def looks(monkeypatch):
    """Looks at a connection, of which `found` says what each finds; the last one again and again."""
    looks, found = [], [UNKNOWN]

    def of_port(self, port):
        looks.append(port)
        return found[min(len(looks), len(found)) - 1]

    monkeypatch.setattr(Processes, "_of_port", of_port)
    return looks, found


def running():
    processes = Processes()
    processes.add(os.getpid())
    return processes


def test_a_connection_that_one_look_missed_is_found_by_the_next(looks):
    """Rule: a service is not spared for good because it was busy when it connected."""
    made, found = looks
    found.append(7)
    processes = running()
    assert [processes.owner(1, 4_000) for _ in range(3)] == [UNKNOWN, 7, 7]
    assert len(made) == 2


def test_looks_at_a_connection_of_none_have_a_bound(looks):
    """Rule: each costs time, and the test's own clients send much."""
    made, _ = looks
    processes = running()
    assert {processes.owner(1, 4_000) for _ in range(100)} == {UNKNOWN}
    assert len(made) == MOST_LOOKS


CONNECTS = """
import socket, sys, time
held = []
for word in sys.argv[2:]:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", int(word)))
    one.connect(("127.0.0.1", int(sys.argv[1])))
    held.append(one)
print("connected", flush=True)
time.sleep(600)
"""


def test_a_connection_is_found_where_others_have_its_port():
    """Rule: a port belongs to many connections, to other servers, of other processes and closed ones."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        own = [stack.enter_context(socket.socket()) for _ in range(12)]
        for one in own:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
            one.connect(first.getsockname())
        ports = [one.getsockname()[1] for one in own]
        for one in own[:6]:
            one.close()  # this end waits for a minute
        words = [sys.executable, "-c", CONNECTS, *map(str, (second.getsockname()[1], *ports))]
        service = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
        stack.callback(service.kill)
        assert service.stdout.readline() == b"connected\n"
        processes = Processes()
        processes.add(service.pid)
        assert [processes.owner(place, port) for place, port in enumerate(ports)] == [service.pid] * len(
            ports
        )
