"""Services under test as processes, and the wait for what they do."""

import sys

import pytest

import fencepost.kafka
from fencepost.kafka import services
from fencepost.traces.errors import EnvironmentError_


@pytest.fixture(scope="module")
def kafka():
    with fencepost.kafka.cluster(brokers=1, listen=False) as cluster:
        yield cluster


def test_a_service_that_ended_is_named_at_once(kafka):
    """Rule: nobody waits for a service that has died; the text has its command, its exit code, the
    cluster."""
    with (
        kafka.service([sys.executable, "-c", "raise SystemExit(3)"]),
        pytest.raises(AssertionError, match=r"ended with exit code 3: .*SystemExit\(3\)(?s:.*)'healthy'"),
    ):
        kafka.until(lambda: False, timeout_s=1e6)


def test_a_service_may_end_well_or_be_killed(kafka):
    """Rule: a service that is done, or that the test itself has killed, ends no wait."""
    for code, kill in (("pass", False), ("import time; time.sleep(1e6)", True)):
        looks = []

        def enough(looks=looks):
            looks.append(1)
            return len(looks) > 3

        with kafka.service([sys.executable, "-c", code]) as process:
            if kill:
                process.kill()
            process.wait()
            kafka.until(enough, timeout_s=1e6)
        assert len(looks) == 4 and process.poll() is not None


def test_a_command_that_does_not_start_gets_a_sentence(kafka):
    """Rule: one sentence, no traceback, and nothing is left to wait for."""
    with (
        pytest.raises(EnvironmentError_, match="expected a command that starts"),
        kafka.service(["/no/such"]),
    ):
        pass
    kafka.until(lambda: True)


class Clock:
    """Time that passes by sleeping."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(services, "time", clock)
    return clock


def waited(clock, timeout_s, events, condition=lambda: False):
    """How long a wait lasted, and what it said."""
    with pytest.raises(AssertionError) as failed:
        services.until(condition, timeout_s, ended=lambda: "", state=lambda: {"events": events()})
    return clock.now, str(failed.value)


def test_a_wait_goes_on_while_something_is_recorded(clock):
    """Rule: the time-out counts from the last thing that was recorded, so that a crowded machine makes no
    test red; a cluster that records for ever does not make it wait for ever."""
    seconds, words = waited(clock, 10, lambda: 5)
    assert 10 <= seconds < 12 and "'events': 5" in words
    clock.now = 0.0
    seconds, _ = waited(clock, 10, lambda: min(clock.now, 35) // 1)
    assert 45 <= seconds < 47
    clock.now = 0.0
    seconds, _ = waited(clock, 10, lambda: clock.now // 1)
    assert 100 <= seconds < 102


def test_what_a_service_did_before_it_ended_counts(clock):
    """Rule: the condition is looked at once more after a service was seen to have ended."""
    answers = iter([False, True])
    services.until(lambda: next(answers), 10, ended=lambda: "the service ended", state=lambda: {"events": 0})
