"""How long the steps of brokers may have taken: a broker takes one at a time, and its events are recorded
when the step ends.

Owns the last step of each broker, and the steps in which it cleaned logs or deleted segments. Must not know
rules. All that is known of the beginning of a step is that it came after the events of the one before.
"""

from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from fencepost.traces.events import Event, Name


@define
class Steps:
    """The steps of all brokers."""

    # By broker: when the last two of its steps ended that recorded anything, in nanoseconds.
    ends: dict[int, tuple[int, int]] = field(factory=dict)
    # By broker: beginning and end of the steps in which it worked on old segments, nanoseconds.
    cleaned: dict[int, list[tuple[int, int]]] = field(factory=dict)

    def handlers(self) -> Mapping[Name, Callable[[int, Event], None]]:
        """What brokers record most often, and work on old segments."""
        return {
            Name.APPENDED: self._ended,
            Name.HIGH_WATERMARK: self._ended,
            Name.CONTROL_REQUEST_APPLIED: self._ended,
            Name.COMPACTED: self._cleaned,
            Name.LOG_START: self._cleaned,
        }

    def _ended(self, position: int, event: Event) -> None:
        last = self.ends.get(event.node, (0, 0))[1]
        if event.time != last:
            self.ends[event.node] = last, event.time

    def _cleaned(self, position: int, event: Event) -> None:
        if event.name is Name.COMPACTED or event.cause == "retention":
            step = self.begin(event.node, event.time), event.time
            spans = self.cleaned.setdefault(event.node, [])
            if not spans or spans[-1] != step:
                spans.append(step)
            self._ended(position, event)

    def begin(self, node: int, end: int) -> int:
        """When a step began at the earliest.

        Args:
            node: the broker.
            end: when the step ended, which is now; nanoseconds.

        Returns:
            nanoseconds.
        """
        before, last = self.ends.get(node, (end, end))
        return before if last == end else last

    def cleaning(self, begin: int, end: int, nodes: Iterable[int]) -> int:
        """For how long brokers may have worked on old segments.

        Args:
            begin: of the time that counts, in nanoseconds.
            end: of it.
            nodes: the brokers.

        Returns:
            nanoseconds, of all of them together: one may have waited for the other.
        """
        total = 0
        for node in nodes:
            for began, ended in reversed(self.cleaned.get(node, ())):
                if ended <= begin:
                    break
                total += max(0, min(end, ended) - max(began, begin))
        return total
