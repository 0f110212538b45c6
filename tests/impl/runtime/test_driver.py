"""The driver steps a core in order, keeps its timers, and releases nothing of a step whose files failed."""

import asyncio
import threading

import pytest

from fencepost.impl.core import core_interface
from fencepost.impl.core.core_interface import MessageArrived, Started
from fencepost.impl.log.batch.record_walk import MACHINE_CODE_AFTER, CompiledWalk
from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.impl.runtime.core_driver import Driver, HostClock
from fencepost.traces.events import Name

BOUND_S = 600


class Scripted:
    """A core that answers with what a function makes of each input."""

    def __init__(self, answers):
        self.answers, self.inputs = answers, []

    def step(self, input, now):
        self.inputs.append((input, now))
        return self.answers(input, now) or []

    def kinds(self):
        return [type(input) for input, _ in self.inputs]


class Line:
    """A network that keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, target, message):
        self.sent.append((target, message))


def drive(answers, until, start=lambda driver: driver.start()):
    """Drive a core until a condition holds; what was seen."""

    async def body():
        core, line, events, halts = Scripted(answers), Line(), [], []
        loop = asyncio.get_running_loop()
        driver = Driver(3, core, HostClock(), loop, events.append, halts.append, network=line)
        start(driver)
        for _ in range(BOUND_S * 200):
            if until(core, line, halts):
                break
            await asyncio.sleep(0.005)
        else:
            raise AssertionError("it did not come true")
        driver.stop()
        return core, line, events, halts

    return asyncio.run(body())


HELLO = core_interface.Send(1, MetadataRequest(correlation_id=1))


def test_timers_fire_in_order_and_a_cancelled_or_replaced_one_does_not():
    """Rule: a timer fires at its time, never before; setting its key again replaces it; cancelling forgets
    it."""

    def answers(input, now):
        if isinstance(input, Started):
            return [
                core_interface.SetTimer(("late",), now + 60_000_000),
                core_interface.SetTimer(("early",), now + 10_000_000),
                core_interface.SetTimer(("replaced",), now + 1_000_000),
                core_interface.SetTimer(("replaced",), now + 30_000_000),
                core_interface.SetTimer(("past",), now - 5),
                core_interface.SetTimer(("cancelled",), now + 5_000_000),
                core_interface.CancelTimer(("cancelled",)),
                core_interface.CancelTimer(("never set",)),
            ]
        return []

    core, *_ = drive(answers, lambda core, line, halts: len(core.inputs) >= 5)
    fired = [input.key[0] for input, _ in core.inputs if isinstance(input, core_interface.TimerFired)]
    assert fired == ["past", "early", "replaced", "late"]
    begun = core.inputs[0][1]
    assert core.inputs[-1][1] - begun >= 60_000_000, "host time has reached the deadline"
    assert [now for _, now in core.inputs] == sorted(now for _, now in core.inputs)


def test_an_input_that_comes_during_a_step_waits_for_its_end():
    """Rule: a core is never entered twice; what its own effects cause is stepped after all of them are
    released."""
    order = []

    class Echo(Line):
        def send(self, target, message):
            order.append("released")
            self.driver.receive(9, message)

    async def body():
        line = Echo()

        def answers(input, now):
            order.append(type(input).__name__)
            return [HELLO, HELLO] if isinstance(input, Started) else []

        loop = asyncio.get_running_loop()
        driver = Driver(3, Scripted(answers), HostClock(), loop, print, print, network=line)
        line.driver = driver
        driver.start()

    asyncio.run(body())
    assert order == ["Started", "released", "released", "MessageArrived", "MessageArrived"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("our mistake")])
def test_a_step_that_fails_releases_nothing_and_ends_the_process(error):
    """Rule: when a file call of a step fails, or the core itself, none of its effects leaves, and nothing is
    stepped any more."""

    def answers(input, now):
        if isinstance(input, Started):
            return [HELLO, core_interface.SetTimer(("tick",), now)]
        raise error

    core, line, _, halts = drive(answers, lambda core, line, halts: halts)
    assert core.kinds() == [Started, core_interface.TimerFired] and len(line.sent) == 1 and len(halts) == 1
    assert ("its files failed" in halts[0]) == isinstance(error, OSError)


def test_a_halt_is_the_last_thing_that_is_done():
    """Rule: effects after a Halt are not released, later inputs are not stepped."""

    def start(driver):
        driver.start()
        driver.receive(1, HELLO.message)

    core, line, _, halts = drive(
        lambda input, now: [HELLO, core_interface.Halt("enough"), HELLO],
        lambda core, line, halts: halts,
        start,
    )
    assert (core.kinds(), len(line.sent), halts) == ([Started], 1, ["enough"])


def test_trace_events_are_stamped_with_time_and_node():
    """Rule: the driver, not the core, says when and where."""
    core, _, events, _ = drive(
        lambda input, now: [core_interface.RecordEvent(Name.BROKER_STARTED, {})],
        lambda core, line, halts: MessageArrived not in core.kinds(),
    )
    assert [(it.node, it.name) for it in events] == [(3, Name.BROKER_STARTED)] and events[
        0
    ].time >= core.inputs[0][1]


def test_an_invocation_takes_its_turn_like_an_input():
    """Rule: whoever runs a core may call it between steps, never inside one, and its effects are released
    like a step's."""
    seen = []

    def answers(input, now):
        if isinstance(input, Started):
            drivers[0].accept(lambda at: seen.append("called") or [HELLO])
            seen.append("stepped")
        return []

    drivers = []

    def start(driver):
        drivers.append(driver)
        driver.start()

    _, line, _, halts = drive(answers, lambda core, line, halts: line.sent, start)
    assert seen == ["stepped", "called"] and len(line.sent) == 1 and halts == []


def test_machine_code_is_loaded_in_another_thread_once_it_is_due(monkeypatch):
    """Rule: records validated in plain Python make the process load machine code, once."""
    form, threads = CompiledWalk(), []
    monkeypatch.setattr("fencepost.impl.runtime.compiled_code.COMPILED_WALK", form)
    monkeypatch.setattr(CompiledWalk, "load", lambda form: threads.append(threading.current_thread()))

    def walked(input, now):
        form.walked += MACHINE_CODE_AFTER // 2

    def three(driver):
        driver.start()
        assert not threads
        driver.start()
        driver.start()

    drive(walked, lambda core, line, halts: threads, three)
    assert len(threads) == 1 and threads[0] is not threading.current_thread()
