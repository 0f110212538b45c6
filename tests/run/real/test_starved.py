"""Who got no processor, according to a late sentinel and to the scheduler."""

import os
import threading
import time

from fencepost.run.real.starved import AROUND_S, LOOK_S, NANOSECONDS, Sentinel, waits_of

WAITED = int(0.6 * LOOK_S * NANOSECONDS)


def test_a_broker_whose_thread_waited_for_most_of_the_time_is_reported() -> None:
    """Rule: one thread is enough, as one sends its heartbeats; what all threads waited for together is not,
    nor is the first look, nor a thread that is new."""
    said = {7: {"1": 0, "2": 0}, 8: {"1": 0, "2": 0, "3": 0}}
    reported: list[tuple[float, float, int]] = []
    sentinel = Sentinel(lambda *one: reported.append(one), lambda: {1: 7, -1: 8}, lambda pid: dict(said[pid]))
    sentinel.look_at_brokers(0.0, LOOK_S)
    said[7]["2"] = WAITED
    said[8] |= {"1": WAITED // 3, "2": WAITED // 3, "3": WAITED // 3, "4": 10 * WAITED}
    sentinel.look_at_brokers(LOOK_S, 2 * LOOK_S)
    assert reported == [(LOOK_S - AROUND_S, 2 * LOOK_S + AROUND_S, 1)]
    sentinel.look_at_brokers(2 * LOOK_S, 3 * LOOK_S)
    assert len(reported) == 1


def test_the_scheduler_says_what_each_thread_waited() -> None:
    """Rule: of a process that is there, each thread; of one that is not, nothing."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        waits = waits_of(os.getpid())
        assert not waits or {str(os.getpid()), str(other.native_id)} <= waits.keys()
        assert all(wait >= 0 for wait in waits.values())
    finally:
        over.set()
        other.join()
    assert waits_of(2**22 + 1) == {}


def test_a_sentinel_that_is_late_reports_everybody() -> None:
    """Rule: its own lateness is everybody's."""
    reported: list[tuple[float, float, int]] = []

    def slow() -> dict[int, int]:
        time.sleep(0.3)  # as if it got no processor meanwhile
        return {}

    with Sentinel(lambda *one: reported.append(one), slow):
        deadline = time.monotonic() + 20
        while not reported and time.monotonic() < deadline:
            time.sleep(0.05)
    assert reported and reported[0][2] == -1
