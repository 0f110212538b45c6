"""The fakes that other projects test their clients with, as systems: each in one process. Skipped by name
where Go, or confluent-kafka, is absent."""

import pytest

from fencepost.checkers.judges import judge
from fencepost.checkers.verdict import combine
from fencepost.run.real.real_run import RealRun
from fencepost.systems.fakes.kfake import program
from fencepost.systems.fakes.kfake.kfake_system import CONTROLLER, Kfake
from fencepost.systems.fakes.librdkafka_mock import LibrdkafkaMock
from fencepost.systems.system import UnsupportedError
from fencepost.traces.errors import EnvironmentError_
from fencepost.traces.events import Name
from fencepost.traces.operations import Outcome
from tests.run.real.small_plans import plan_of


def ran(system, plan, topic):
    """The trace of one run."""
    import asyncio

    return asyncio.run(RealRun(plan=plan, system=system, topic=topic, target="fake").go())


@pytest.fixture(scope="module")
def kfake():
    """One for all tests. Its first build takes seconds, and needs the module proxy."""
    if why := program.missing():
        pytest.skip(f"kfake {why}")
    system = Kfake()
    try:
        system.start()
    except EnvironmentError_ as error:
        pytest.skip(f"kfake cannot be built here: {error.seen}")
    yield system
    system.close()


def test_a_run_with_kfake_ends_ok(kfake):
    """A broker leaves the cluster and comes back: leadership moves, and everything acknowledged is read."""
    trace = ran(kfake, plan_of(("crash", 300, 300, "broker 1"), count=60), "a")
    assert combine(judge(trace)).decision.value == "ok" and kfake.healthy()
    assert any(event.name is Name.FAULT_BEGAN for event in trace.events)
    assert any(one.outcome is Outcome.OK for one in trace.operations)


def test_what_kfake_cannot_do_is_refused(kfake):
    """Its controller never moves, and it has one process for all brokers."""
    for verb in (lambda: kfake.kill(CONTROLLER), lambda: kfake.pause(1), lambda: kfake.cut("x", [(1, 2)])):
        with pytest.raises(UnsupportedError, match="a process for each broker"):
            verb()
    assert kfake.inside().can == {"kill"} and kfake.healthy()
    kfake.kill(3)
    assert not kfake.runs(3) and not kfake.healthy()
    kfake.restart(3)
    assert kfake.runs(3) and kfake.healthy()


def test_a_run_with_the_mock_of_librdkafka_ends_ok():
    """It makes a topic when asked about it; nothing can be broken, and no fault is carried out."""
    pytest.importorskip("confluent_kafka", reason="librdkafka's mock cluster needs confluent-kafka")
    system = LibrdkafkaMock()
    system.start()
    try:
        trace = ran(system, plan_of(count=40), "b")
        assert system.healthy() and not system.inside().can
    finally:
        system.close()
    system.close()
    assert combine(judge(trace)).decision.value == "ok"
    assert sum(one.outcome is Outcome.OK for one in trace.operations) > 20
    assert {one.partition for one in trace.operations if one.strong} == {0, 1, 2, 3}, "it made four"
