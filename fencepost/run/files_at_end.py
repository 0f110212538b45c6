"""What the brokers' files say at the end of a run, as events of its trace, whatever the system.

Owns which of it becomes an event, and its bounds. Must not know how files are read or compared (audit/),
where they are, or which record may be lost (checkers).

The run is over: nobody writes to its topics, and each of its records had time to reach every replica. So what
is wrong is wrong for good, but for two things: a replica that is behind above the lower high watermark is on
its way, and where brokers did not come back nothing is at its end.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from attrs import evolve, frozen

from fencepost.audit.audit_findings import Findings
from fencepost.audit.joined import Joined, join
from fencepost.audit.partition import audit_alone, audit_partition
from fencepost.audit.runs import Recorded, dumps_of
from fencepost.audit.survey import AuditRequest, Survey, survey
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
class FilesAtEnd:
    """Whose files are read, and what is asked of them."""

    # The directories. Brokers are named by their numbers.
    request: AuditRequest
    # The topic in the trace by the directories' name; None: they have the same names.
    names: Mapping[str, str] | None = None
    # Whether what is wrong in the files is reported; no for a run in which something never came.
    judged: bool
    # Whether replicas are compared here, and with the history. No where the trace has each step of each
    # replica: its judges know better what may differ, and which records may be gone.
    compared: bool
    # What brokers recorded of their high watermarks and log starts; None: it is not known.
    recorded: Recorded | None = None
    # Beyond it nothing is read.
    most_bytes: int = MOST_BYTES

    def events(self, operations: Iterable[Operation], time: int) -> tuple[Event, ...]:
        """The replicas' logs, what is wrong in the files, and which acknowledged records are not everywhere.

        Args:
            operations: the history.
            time: of the events, in nanoseconds of the trace.

        Returns:
            the events. What could not be read is a mark among them.
        """
        try:
            found = survey(self.request)
            if found.bytes > self.most_bytes:
                return (
                    mark(time, LEFT_OUT, why=f"{found.bytes:,} bytes of segments, above {self.most_bytes:,}"),
                )
            parts = [found.findings, *self._parts(found)]
            joined = join(found, operations, self.names) if self.compared else Joined()
            dumps = tuple(dumps_of(found, self.names or {}, time, self.recorded))
        except (FencepostError, OSError) as error:
            return (mark(time, LEFT_OUT, why=str(error)),)
        unread = [f"{one.path.name}: {one.reason}" for part in parts for one in part.unreadable]
        return (
            *dumps,
            *(mark(time, LEFT_OUT, why=why) for why in unread[:MOST_SENTENCES]),
            *(self._wrong(time, parts) if self.judged else ()),
            *_placed(time, joined),
        )

    def _parts(self, found: Survey) -> Iterator[Findings]:
        for key in found.partitions:
            if self.compared:
                yield audit_partition(found, key, lambda size: None).findings
            elif self.judged:
                yield audit_alone(found, key)

    def _wrong(self, time: int, parts: Iterable[Findings]) -> Iterator[Event]:
        names = self.names or {}
        for one in (one for part in parts for one in part.found if one.anomaly != ON_ITS_WAY):
            topic = one.topic if one.topic is None else names.get(one.topic, one.topic)
            said = mark(time, AUDIT_FOUND, anomaly=one.anomaly, expected=one.expected, seen=one.seen)
            yield evolve(said, topic=topic, partition=one.partition, offset=one.offset)


def _placed(time: int, joined: Joined) -> Iterator[Event]:
    for each in joined.placements[:MOST_SENTENCES]:
        says = mark(time, NOT_EVERYWHERE, says=each.sentence)
        yield evolve(says, topic=each.topic, partition=each.partition, offset=each.offset)
    if more := joined.more + len(joined.placements[MOST_SENTENCES:]):
        yield mark(time, NOT_EVERYWHERE, says=f"and {more} more")


def mark(time: int, cause: str, **detail: str) -> Event:
    """A mark of the run.

    Args:
        time: in nanoseconds of the trace.
        cause: of the mark.
        detail: its fields.

    Returns:
        the event.
    """
    return Event(time=time, name=Name.MARK, cause=cause, detail=msgspec.json.encode(detail).decode())
