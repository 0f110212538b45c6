"""What differs from what was expected of a simulated host, as events (ANSWERED) of its run.

Owns the count of one observer: what it records is bounded.
"""

from collections.abc import Callable

import msgspec
from attrs import define

from fencepost.campaign.observed.justified import Reason
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.events import Event, Name

MOST_EVENTS = 20
"""Of one observer: one is enough to convict, and a mistake that is made with each request fills the trace."""
Place = tuple[str | None, int]
"""Topic and partition."""
NOWHERE: Place = (None, -1)
"""Of no partition, or of several."""


def place_of(key: TopicPartition | None) -> Place:
    """Where a difference about a partition is.

    Args:
        key: the partition, if it is about one.

    Returns:
        its topic and number, or NOWHERE.
    """
    return NOWHERE if key is None else (key.topic, key.partition)


@define(eq=False)
class Differences:
    """Those that one observer found."""

    # Virtual nanoseconds.
    now: Callable[[], int]
    record: Callable[[Event], None]
    found: int = 0

    def add(
        self,
        node: int,
        cause: str,
        place: Place,
        request: str,
        reason: Reason,
        **more: int,
    ) -> None:
        """Record a difference, if there are not too many.

        Args:
            node: the host that is wrong.
            cause: in what way: the kinds are those of the event ANSWERED.
            place: of which partition.
            request: the kind of message or row.
            reason: of what, expected, seen.
            more: other columns of the event's detail; `since`, in virtual nanoseconds, is now otherwise.
        """
        self.found += 1
        if self.found > MOST_EVENTS:
            return
        of, expected, seen = reason
        detail = {"request": request, "since": self.now()} | more
        detail |= {"expected": f"{of}: {expected}" if of else f"{expected}", "seen": f"{seen}"}
        self.record(
            Event(
                time=self.now(),
                name=Name.ANSWERED,
                node=node,
                topic=place[0],
                partition=place[1],
                cause=cause,
                detail=msgspec.json.encode(detail).decode(),
            )
        )
