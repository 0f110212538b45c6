"""The pace: virtual time follows the wall clock, and stalls do not count."""

import asyncio

import pytest

from fencepost.sim.scheduler import MILLISECOND, SECOND, Scheduler
from fencepost.systems.pace import LEAD, MOST_A_TURN, Pace


class Wall:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now = 7 * SECOND

    def __call__(self) -> int:
        return self.now


def paced(loop):
    """A scheduler and its pace, on a wall clock that a test sets, and what went wrong."""
    scheduler, wall, errors = Scheduler(), Wall(), []
    pace = Pace(scheduler, loop, wall, lambda: None, errors.append)
    return scheduler, wall, pace, errors


def take_turns(loop, pace, count):
    """Let this many turns happen."""
    end = pace.turns + count
    while pace.turns < end and pace.running:
        pace.wake()
        loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def loop():
    """An event loop that nobody else runs."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


def test_virtual_time_goes_as_far_as_the_wall_clock(loop):
    """Rule: an event happens when the wall clock has come to its time, and not a millisecond before."""
    scheduler, wall, pace, _ = paced(loop)
    happened = []
    for after in (5, 9, 30):
        scheduler.at(after * MILLISECOND, happened.append, after)
    pace.start()
    take_turns(loop, pace, 1)
    assert happened == []
    wall.now += 10 * MILLISECOND
    take_turns(loop, pace, 1)
    assert happened == [5, 9] and scheduler.now == 10 * MILLISECOND
    assert pace.stalled == 0


def test_a_stall_advances_virtual_time_by_one_turn_at_most(loop):
    """Rule: ten seconds without a turn are 50 ms of virtual time, and are never made up for."""
    scheduler, wall, pace, _ = paced(loop)
    happened = []
    scheduler.at(MOST_A_TURN + LEAD + 1, happened.append, "late")
    pace.start()
    take_turns(loop, pace, 1)
    wall.now += 10 * SECOND
    take_turns(loop, pace, 20)
    assert scheduler.now == MOST_A_TURN and happened == []
    assert pace.stalled == 10 * SECOND - MOST_A_TURN
    wall.now += MILLISECOND
    take_turns(loop, pace, 1)
    assert happened == ["late"]


def test_a_chain_of_events_a_microsecond_apart_is_one_turn(loop):
    """Rule: what is due within a millisecond happens now, so that a conversation does not wait for the
    system's timers."""
    scheduler, _, pace, _ = paced(loop)
    said = []

    def speak(word):
        said.append(word)
        if word < 500:
            scheduler.after(1_000, speak, word + 1)

    pace.start()
    scheduler.after(1_000, speak, 1)
    take_turns(loop, pace, 1)
    assert said == list(range(1, 501))
    assert scheduler.now <= LEAD


def test_an_idle_world_sleeps_for_less_than_a_stall(loop):
    """Rule: a sleep that the pace has planned itself counts in full."""
    _, _, pace, _ = paced(loop)
    pace.start()
    take_turns(loop, pace, 1)
    handle = pace._handle
    assert isinstance(handle, asyncio.TimerHandle)
    assert (handle.when() - loop.time()) * SECOND < MOST_A_TURN / 2
    pace.stop()
    assert handle.cancelled()


def test_a_mistake_in_an_event_stops_the_pace_and_is_reported_once(loop):
    """Rule: after an exception virtual time stands still, and whoever runs the pace hears of it."""
    scheduler, wall, pace, errors = paced(loop)
    scheduler.at(0, lambda: 1 // 0)
    pace.start()
    take_turns(loop, pace, 1)
    wall.now += SECOND
    pace.wake()
    pace.catch_up()
    loop.run_until_complete(asyncio.sleep(0))
    assert [type(error) for error in errors] == [ZeroDivisionError]
    assert not pace.running and pace.turns == 1


def test_an_input_finds_the_world_at_the_present_time(loop):
    """Rule: catch_up brings virtual time to the wall clock's before an input, and does nothing inside a
    turn."""
    scheduler, wall, pace, _ = paced(loop)
    pace.start()
    take_turns(loop, pace, 1)
    wall.now += 15 * MILLISECOND
    scheduler.at(3 * MILLISECOND, pace.catch_up)
    pace.catch_up()
    assert scheduler.now == 15 * MILLISECOND and pace.turns == 2
    pace.catch_up()
    assert pace.turns == 2
