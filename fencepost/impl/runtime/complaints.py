"""How often the log speaks of one source: a peer that sends nonsense on a thousand connections is one line a
minute.

Owns the count of what was not said. Must not know clocks, sockets or what was wrong.
"""

from attrs import define, field

EVERY_S = 60.0
"""Seconds between two lines about one source."""
MOST_SOURCES = 1_000
"""Sources that are remembered; the one that was spoken of longest ago is forgotten first."""


@define(eq=False)
class Complaints:
    """What was said of each source."""

    # When the last line about it was said, and how many have not been said since; the longest ago first.
    _said: dict[str, tuple[float, int]] = field(factory=dict)

    def line(self, source: str, now_s: float) -> str | None:
        """What a line about this source says at its end: how many others were withheld; None: it is withheld,
        too. source: a host; now_s: of a monotonic clock."""
        last, withheld = self._said.get(source, (-EVERY_S, 0))
        if source in self._said and now_s - last < EVERY_S:
            self._said[source] = last, withheld + 1
            return None
        self._said.pop(source, None)
        if len(self._said) >= MOST_SOURCES:
            del self._said[next(iter(self._said))]
        self._said[source] = now_s, 0
        return f"; {withheld:,} more from {source} since its last line" if withheld else ""
