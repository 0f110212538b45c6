"""Anomalies of liveness: what did not come true, what happened without a cause, what was said too early.

Owns these rows of the table. Must not know the others.
"""

from fencepost.traces.anomalies.anomaly import Anomaly


def _row(name: str, definition: str, breaks: str = "LIVENESS", rank: int = 70) -> Anomaly:
    return Anomaly(name=name, rank=rank, breaks=breaks, definition=definition)


LIVENESS: tuple[Anomaly, ...] = (
    _row("session_lost", "a broker whose process ran lost its registration, and nothing explains it"),
    _row("no_controller", "for longer than an election takes there was no controller"),
    _row("controller_moved", "another broker became controller, and nothing explains it"),
    _row(
        "late_preferred_election",
        "a preferred replica was in the ISR for longer than the balance interval, and another one led",
    ),
    _row("late_reassignment", "a reassignment that was accepted did not complete within its bound"),
    _row("needless_truncation", "a replica cut its log long after the last election, or anything else"),
)
