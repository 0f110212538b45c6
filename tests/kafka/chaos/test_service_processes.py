"""Which process a connection belongs to."""

import os

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
