"""Under chaos a service is started again, as whoever runs services does it; without chaos it is not."""

import signal
import sys
import time

import pytest

from fencepost.kafka.services import MOST_STARTS, Services

SLEEPS = [sys.executable, "-c", "import time; time.sleep(1e6)"]
ENDS_WELL = [
    sys.executable,
    "-c",
    "import signal, sys; signal.signal(15, lambda *_: sys.exit()); signal.pause()",
]


class Cluster:
    """What the keeper asks."""

    def __init__(self):
        self.struck = {"replace": [], "restart": []}
        self.running = set()

    def ask(self, verb, **arguments):
        if verb == "take_struck":
            found, self.struck = self.struck, {"replace": [], "restart": []}
            return found
        self.running = (self.running | set(arguments["began"])) - set(arguments["ended"])
        return None


@pytest.fixture
def kept():
    cluster, services = Cluster(), Services()
    services.keep(cluster.ask)
    return cluster, services


def until(condition):
    while not condition():
        time.sleep(0.01)


def test_one_that_was_killed_runs_again_and_the_cluster_knows_it(kept):
    """Rule: the process that runs is the one that chaos may strike."""
    cluster, services = kept
    with services.service(SLEEPS, "", None) as service:
        first = service.pid
        until(lambda: cluster.running == {first})
        service._process.send_signal(signal.SIGKILL)  # as chaos does it
        until(lambda: service.pid != first and cluster.running == {service.pid})
    assert cluster.running == set()


def test_one_that_is_replaced_goes_on_next_to_the_other(kept):
    """Rule: both are services, and both end with the block."""
    cluster, services = kept
    with services.service(SLEEPS, "", None) as service:
        first = service.pid
        cluster.struck = {"replace": [first], "restart": []}
        until(lambda: len(cluster.running) == 2)
        assert first in cluster.running and service.pid in cluster.running - {first}
    assert cluster.running == set()


def test_one_that_was_asked_to_end_runs_again_though_it_ended_well(kept):
    """Rule: an exit code of 0 is the end of a service only where chaos has not asked for it."""
    cluster, services = kept
    with services.service(ENDS_WELL, "", None) as service:
        first = service.pid
        cluster.struck = {"replace": [], "restart": [first]}
        until(lambda: first in service.to_restart)
        service._process.send_signal(signal.SIGTERM)
        until(lambda: service.pid != first)


def test_the_test_itself_may_end_it(kept):
    """Rule: what the test kills stays dead."""
    _, services = kept
    with services.service(SLEEPS, "", None) as service:
        service.kill()
        service.wait(60)
        services.tend()
        assert service.poll() == -signal.SIGKILL and service.starts == 1 and services.ended() == ""


def test_one_that_never_runs_is_named_in_the_end(kept):
    """Rule: starts have a bound, and the wait says what ended."""
    _, services = kept
    with services.service([sys.executable, "-c", "raise SystemExit(3)"], "", None) as service:
        until(lambda: services.ended())
        assert service.starts == MOST_STARTS and "exit code 3" in services.ended()
