"""A contradiction between what an application saw and the log, and what several judges ask of a run.

Owns the form of a finding. Must not know any rule.
"""

from collections.abc import Iterable

from attrs import frozen

from fencepost.torture.driver_process import Command
from fencepost.torture.judging.outcome import Outcome as Run
from fencepost.torture.record_contents import place_of
from fencepost.traces.trace import LossRange


@frozen(kw_only=True)
class Finding:
    """One contradiction."""

    anomaly: str
    expected: str
    seen: str

    def __str__(self) -> str:
        return f"{self.anomaly}: expected {self.expected}, saw {self.seen}"


class Allowed:
    """Places that faults of the brokers may have taken back: no client is at fault for them."""

    def __init__(self, ranges: Iterable[LossRange]) -> None:
        self._ranges = {(f"{one.topic}-{one.partition}", one.start, one.end) for one in ranges}

    def __contains__(self, where: tuple[str, int]) -> bool:
        return any(place == where[0] and start <= where[1] < end for place, start, end in self._ranges)


def topic_of(place: str) -> str:
    """The topic of a partition that is named as `t-0`."""
    return place.rpartition("-")[0]


def acknowledged(command: Command) -> tuple[str, int]:
    """The partition and the offset that the answer to an append names; -1: no offset. A library that writes a
    record to another partition than it was sent to is judged for that alone (`wrong_record`).

    Args:
        command: the append.
    """
    fields = {**command.fields, **(command.answer or {})}
    return place_of(fields), -1 if fields.get("offset") is None else fields["offset"]


def delivered(run: Run, until_ns: int | None = None) -> tuple[set[tuple[str, int]], dict[str, int]]:
    """Partition and offset of what the group's members were handed, and the highest offset of each partition.

    Args:
        run: what the application saw.
        until_ns: by polls that began before this moment, monotonic nanoseconds; None: by all.
    """
    handed = {
        (place_of(record), record["offset"])
        for polls in run.polls.values()
        for poll in polls
        if until_ns is None or poll.sent_ns <= until_ns
        for record in (poll.answer or {}).get("records") or ()
    }
    highest: dict[str, int] = {}
    for place, offset in handed:
        highest[place] = max(offset, highest.get(place, -1))
    return handed, highest
