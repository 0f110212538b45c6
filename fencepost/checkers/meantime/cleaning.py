"""When brokers cleaned logs or deleted segments: while one does, it does nothing else.

Owns those spans. Must not know rules. A step is recorded when it ends, so that the time since the broker's
event before counts as such work.
"""

from collections import deque
from collections.abc import Iterable

from attrs import define, field

from fencepost.traces.events import Event, Name

MOST_SPANS = 32
"""Of one broker: a rule asks for the last seconds, and a broker cleans a few times in a second at most."""


@define
class Cleaning:
    """The work of each broker on old segments."""

    # When each broker last recorded an event, in nanoseconds: one that the rules read.
    heard: dict[int, int] = field(factory=dict)
    # By broker: beginning and end of the last spans in which it may have worked on old segments, nanoseconds.
    spans: dict[int, deque[tuple[int, int]]] = field(factory=dict)

    def learn(self, position: int, event: Event) -> None:
        """Take in that a broker cleaned a log or moved a log start.

        Args:
            position: of the event in the trace.
            event: that says so.
        """
        if event.name is Name.COMPACTED or event.cause == "retention":
            span = self.heard.get(event.node, event.time), event.time
            self.spans.setdefault(event.node, deque(maxlen=MOST_SPANS)).append(span)
            self.heard[event.node] = event.time

    def after(self, since: int, nodes: Iterable[int]) -> int:
        """For how long brokers may have worked on old segments.

        Args:
            since: a time in nanoseconds; earlier work does not count.
            nodes: the brokers.

        Returns:
            nanoseconds, of all of them together: one may have waited for the other.
        """
        spans = (span for node in nodes for span in self.spans.get(node, ()))
        return sum(max(0, end - max(begin, since)) for begin, end in spans)
