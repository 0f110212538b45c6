"""Waiting that a busy machine does not shorten.

Owns what counts as waiting. Must not know what is waited for. A turn counts MOST_TURN_S at most: while the
machine is busy with other work a turn takes longer, and so does what is waited for.
"""

import time

from attrs import define, field

MOST_TURN_S = 0.02
"""Four turns of a run's loop on an idle machine."""
RESTART_S = 8.0
"""Time without a new record before clients that reported trouble are restarted: above their session
time-out."""


@define
class Patience:
    """Seconds that were waited."""

    waited_s: float = 0.0
    _before: float = field(factory=time.monotonic)

    def turn(self) -> float:
        """Count the time since the last turn; answers all that counted."""
        now = time.monotonic()
        self.waited_s += min(now - self._before, MOST_TURN_S)
        self._before = now
        return self.waited_s
