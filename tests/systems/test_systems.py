"""One test body for every system: what the interface promises holds in the simulation, the embedded cluster,
processes and, if it is asked for (FENCEPOST_APACHE_KAFKA=1), Apache Kafka itself."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost.sim.scheduler import MILLISECOND
from fencepost.sim.world import World
from fencepost.systems.apache_kafka.cluster import ApacheKafka
from fencepost.systems.apache_kafka.jars import RECOMMENDED, Release
from fencepost.systems.embedded import Embedded, quick_options
from fencepost.systems.process_system import Processes
from fencepost.systems.simulation import Simulation
from fencepost.systems.system import System, UnsupportedError
from fencepost.traces.errors import FencepostError
from fencepost.traces.plan import ClusterOptions

BROKERS = 2
PATIENCE_S = 600
"""Of the wall clock, for a crowded machine."""
PATIENCE_MS = 60_000
"""Of virtual time."""
apache_kafka = pytest.mark.skipif(
    not os.environ.get("FENCEPOST_APACHE_KAFKA"),
    reason="starts Apache Kafka from its jars (Maven fetches 45 MB a version): set FENCEPOST_APACHE_KAFKA=1",
)
Until = Callable[[Callable[[], bool]], None]


def _simulation() -> tuple[System, Until]:
    options = quick_options(BROKERS)
    world = World(7, session_timeout=options.zookeeper_session_timeout_ms * MILLISECOND)
    made = Simulation(world=world, options=options)
    for broker in made.brokers:
        made.add(broker)

    def until(condition: Callable[[], bool]) -> None:
        deadline = world.now + PATIENCE_MS * MILLISECOND
        while not condition():
            assert world.now < deadline, "virtual time is over"
            world.run_until(world.now + 10 * MILLISECOND)

    return made, until


def _by_the_wall_clock(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the time is over"
        time.sleep(0.05)


@pytest.fixture(
    params=[
        "simulation",
        "embedded",
        pytest.param("processes", marks=pytest.mark.java),
        *(pytest.param(version, marks=apache_kafka) for version in RECOMMENDED),
    ]
)
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[System, Until]]:
    """A system that has started, and how to wait in its time."""
    made: System
    until: Until = _by_the_wall_clock
    if request.param == "simulation":
        made, until = _simulation()
    elif request.param == "embedded":
        made = Embedded(options=quick_options(BROKERS), listen=False)
    elif request.param in RECOMMENDED:
        made = ApacheKafka(
            directory=tmp_path / "cluster", release=Release(version=request.param), size=BROKERS
        )
    else:
        made = Processes(directory=tmp_path / "cluster", options=ClusterOptions(brokers=BROKERS))
    try:
        made.start()
        yield made, until
    finally:
        made.close()
    made.close()


def test_brokers_go_and_come_back(under_test):
    """Rule: a system is healthy after its start, not while a broker is down, and again once it is back; verbs
    that do not apply do nothing."""
    system, until = under_test
    assert system.brokers == (1, 2)
    until(system.healthy)
    system.kill(2)
    system.kill(2)
    until(lambda: not system.healthy())
    system.resume(1)
    system.restart(1)
    system.restart(2)
    until(system.healthy)
    system.stop(1)
    until(lambda: not system.healthy())
    system.restart(2)
    until(lambda: _restarted(system, 1))


def _restarted(system: System, broker: int) -> bool:
    """Ask again until the stopping process has ended and a new one is registered."""
    system.restart(broker)
    return system.healthy()


def test_a_broker_that_is_none_is_refused(under_test):
    """Rule: a broker that the system does not have is an error in one sentence, and nothing changes."""
    system, until = under_test
    for verb in (system.kill, system.pause, system.resume, system.stop, system.restart):
        with pytest.raises(FencepostError, match=r"expected .*saw 9"):
            verb(9)
    until(system.healthy)


def test_what_a_system_cannot_do_it_refuses(under_test):
    """Rule: links are cut and power fails where the system can do that; elsewhere it says so. Directories are
    there if files are real."""
    system, until = under_test
    inside = system.inside()
    if inside.real_processes:
        for call in (lambda: system.power_off(1), lambda: system.cut("wall", [(1, 2)])):
            with pytest.raises(UnsupportedError):
                call()
        assert all(path.is_dir() for path in system.directories().values())
    else:
        system.cut("wall", [(1, 2), (2, 1)])
        system.heal("wall")
        system.power_off(2)
        until(lambda: not system.healthy())
        system.restart(2)
        until(system.healthy)
    assert bool(system.directories()) is inside.real_files
    system.heal("no such cut")
