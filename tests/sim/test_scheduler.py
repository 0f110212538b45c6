"""Virtual time and the clock of a host."""

import pytest

from fencepost.sim.clock import Clock
from fencepost.sim.scheduler import RunawayError, Scheduler


def test_events_run_in_time_order_and_ties_in_the_order_of_scheduling():
    """The order of events is a function of the calls made."""
    scheduler, seen = Scheduler(), []
    for time, name in ((20, "c"), (10, "a"), (20, "d"), (10, "b")):
        scheduler.at(time, lambda name: seen.append((scheduler.now, name)), name)
    scheduler.run_until(20)
    assert seen == [(10, "a"), (10, "b"), (20, "c"), (20, "d")]


def test_time_stands_where_the_run_was_told_to_stop():
    """run_until includes its instant, leaves later events alone, and stands at its instant after it."""
    scheduler, seen = Scheduler(), []
    scheduler.after(10, seen.append, 1)
    scheduler.after(11, seen.append, 2)
    scheduler.run_until(10)
    assert (seen, scheduler.now, scheduler.next_time()) == ([1], 10, 11)


def test_an_event_in_the_past_runs_now():
    """Time never goes back."""
    scheduler, seen = Scheduler(), []
    scheduler.run_until(100)
    scheduler.at(5, lambda: seen.append(scheduler.now))
    scheduler.run_until(100)
    assert seen == [100]


def test_a_cancelled_event_does_not_run():
    """cancel forgets an event, and next_time does not see it."""
    scheduler, seen = Scheduler(), []
    handle = scheduler.at(5, seen.append, 1)
    scheduler.at(6, seen.append, 2)
    scheduler.cancel(handle)
    assert scheduler.next_time() == 6
    scheduler.run_until(10)
    assert seen == [2]


def test_stop_returns_after_the_running_event():
    """A run can end at the event that a caller waits for, and go on from there."""
    scheduler, seen = Scheduler(), []
    scheduler.at(1, scheduler.stop)
    scheduler.at(1, seen.append, 1)
    scheduler.run_until(10)
    assert (seen, scheduler.now) == ([], 1)
    scheduler.run_until(10)
    assert (seen, scheduler.now) == ([1], 10)


def test_a_run_without_end_is_refused():
    """A run has a bound on its events; beyond it one sentence says where it was."""
    scheduler = Scheduler(maximum_events=100)

    def again() -> None:
        scheduler.after(0, again)

    again()
    with pytest.raises(RunawayError, match="at most 100 events") as caught:
        scheduler.run_until(1)
    assert "again" in str(caught.value)


def test_a_clock_is_the_world_plus_its_offset_and_goes_back_only_if_asked():
    """Host time and world time translate into each other."""
    scheduler = Scheduler()
    clock = Clock(scheduler, offset=1_000)
    scheduler.run_until(5)
    assert clock.now() == 1_005
    assert clock.to_global(1_005) == 5
    clock.jump(10)
    with pytest.raises(AssertionError, match="goes back"):
        clock.jump(-1)
    clock.jump(-20, backwards=True)
    assert clock.now() == 995


def test_only_what_waits_can_be_cancelled():
    """A handle of an event that has run, or was cancelled, means nothing any more: who cancels it is wrong
    about the world."""
    scheduler = Scheduler()
    run, cancelled = scheduler.at(1, lambda: None), scheduler.at(2, lambda: None)
    scheduler.cancel(cancelled)
    scheduler.run_until(5)
    for handle in (run, cancelled):
        with pytest.raises(KeyError):
            scheduler.cancel(handle)
