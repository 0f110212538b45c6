"""What copies of the brokers' directories say after a run, as events of its trace.

Owns which of it becomes an event, and its bounds. Must not know how files are read or compared (audit/), or
which record may be lost (checkers).

The run is over: nobody writes to its topics, and each of its records had time to reach every replica. So what
is wrong in the copies is wrong for good, but for two things: a replica that is behind above the lower high
watermark is on its way, and where brokers did not come back nothing is at its end.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from attrs import evolve, frozen

from fencepost.audit.joined import Joined, join
from fencepost.audit.partition import audit_partition
from fencepost.audit.runs import dumps_of
from fencepost.audit.survey import AuditRequest, survey
from fencepost.campaign.real.copies import copy_directories
from fencepost.checkers.verdict import Finding
from fencepost.traces.errors import FencepostError
from fencepost.traces.events import AUDIT_FOUND, NOT_EVERYWHERE, Event, Name
from fencepost.traces.operations import Operation

MOST_BYTES = 64 << 20
"""Segments of all replicas that are read after a run, which writes less than a megabyte. At some 50 MB a
second that is a second."""
MOST_SENTENCES = 50
"""Records of a run that are reported with where they are; the others are counted."""
ON_ITS_WAY = "uncommitted_divergence"
LEFT_OUT = "audit_left_out"
"""The cause of a mark: what was not read, and why."""


@frozen(kw_only=True)
class Audit:
    """Whose files are read, and what their topics are called."""

    directories: Mapping[int, Path]
    """The log directory of each broker; none: nothing is said."""
    copies: Path
    """The folder that gets the copies."""
    names: Mapping[str, str]
    """The topic in the trace by the directories' name. Others are not read."""

    def events(self, operations: Iterable[Operation], time: int, *, judged: bool) -> tuple[Event, ...]:
        """The replicas' logs at the end, what is wrong with them, and which acknowledged records are not
        everywhere.

        Args:
            operations: the history.
            time: of the events, in nanoseconds of the trace.
            judged: whether what is wrong is reported; no for a run in which something never came.

        Returns:
            the events. What could not be read is a mark among them.
        """
        try:
            places = copy_directories(self.directories, self.names, self.copies)
            if not places:
                return ()
            found = survey(AuditRequest(places=places, topics=tuple(self.names)))
            if found.bytes > MOST_BYTES:
                return (
                    _mark(time, LEFT_OUT, why=f"{found.bytes:,} bytes of segments, above {MOST_BYTES:,}"),
                )
            parts = [found.findings]
            parts += (audit_partition(found, key, lambda size: None).findings for key in found.partitions)
            joined = join(found, operations, self.names)
            dumps = tuple(dumps_of(found, self.names, time))
        except (FencepostError, OSError) as error:
            return (_mark(time, LEFT_OUT, why=str(error)),)
        wrong = [one for part in parts for one in part.found if judged and one.anomaly != ON_ITS_WAY]
        unread = [f"{one.path.name}: {one.reason}" for part in parts for one in part.unreadable]
        return (
            *dumps,
            *(_mark(time, LEFT_OUT, why=why) for why in unread[:MOST_SENTENCES]),
            *(self._found(time, one) for one in wrong),
            *_placed(time, joined),
        )

    def _found(self, time: int, one: Finding) -> Event:
        topic = None if one.topic is None else self.names.get(one.topic, one.topic)
        mark = _mark(time, AUDIT_FOUND, anomaly=one.anomaly, expected=one.expected, seen=one.seen)
        return evolve(mark, topic=topic, partition=one.partition, offset=one.offset)


def _placed(time: int, joined: Joined) -> Iterator[Event]:
    for each in joined.placements[:MOST_SENTENCES]:
        mark = _mark(time, NOT_EVERYWHERE, says=each.sentence)
        yield evolve(mark, topic=each.topic, partition=each.partition, offset=each.offset)
    if more := joined.more + len(joined.placements[MOST_SENTENCES:]):
        yield _mark(time, NOT_EVERYWHERE, says=f"and {more} more")


def _mark(time: int, cause: str, **detail: str) -> Event:
    return Event(time=time, name=Name.MARK, cause=cause, detail=msgspec.json.encode(detail).decode())
