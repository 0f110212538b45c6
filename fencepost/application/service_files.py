"""The files in which services under test write their events, and what they say within the trace of a cluster.

Owns where a service finds its file, and which facts of the cluster excuse an application. Must not know how
services run, or rules.
"""

import shutil
import tempfile
import weakref
from pathlib import Path

from attrs import define, evolve, field

from fencepost.application.event_columns import read_events
from fencepost.application.event_files import SUFFIX
from fencepost.application.tap_file import VARIABLE
from fencepost.checkers.application.application_judge import Claims
from fencepost.checkers.application.recorded import trace_of_events
from fencepost.traces.events import Event, Name
from fencepost.traces.trace import Trace

OFFSETS = "__consumer_offsets"
_GONE = frozenset({"record_never_received", "other_bytes", "offset_acknowledged_twice"})
_BELOW_START = frozenset({"record_never_received", "record_never_processed", "record_skipped_at_start"})
_COMMITS = frozenset({"processed_twice", "record_never_processed", "record_skipped_at_start"})


@define(eq=False)
class ServiceFiles:
    """The files of one cluster's services."""

    # What the services promise.
    claims: Claims = field(factory=Claims)
    # Made for the first service.
    _folder: Path | None = field(default=None, init=False)
    _count: int = field(default=0, init=False)

    def next_variables(self) -> dict[str, str]:
        """The environment of one more service: it names a file of its own."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="fencepost-events-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._count += 1
        return {VARIABLE: str(self._folder / f"service-{self._count}{SUFFIX}")}

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def joined(self, trace: Trace) -> Trace:
        """The trace of a cluster with what its services wrote, if they wrote anything.

        Args:
            trace: of the cluster, so far.

        Raises:
            TraceError: a file cannot be read, or there are too many events.
        """
        files = [] if self._folder is None else sorted(self._folder.glob(f"*{SUFFIX}"), key=_number)
        if not files:
            return trace
        events = read_events(files)
        lives = tuple(evolve(life, file=Path(life.file).name) for life in events.lives)
        claims = evolve(self.claims, allowed=self.claims.allowed | excused(trace))
        time = max((event.time for event in trace.events), default=0)
        added = trace_of_events(evolve(events, lives=lives), claims).events
        return evolve(trace, events=(*trace.events, *(evolve(event, time=time) for event in added)))


def _number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def excused(trace: Trace) -> frozenset[str]:
    """Anomalies of an application that the cluster may have caused: records that a broker cut off may have
    been acknowledged, and their offsets be given again; those that retention or compaction took cannot be
    processed any more; and where commits are lost, a group begins elsewhere.

    Args:
        trace: with the events of brokers.
    """
    found: frozenset[str] = frozenset()
    for event in trace.events:
        if event.name is Name.FAULT_BEGAN and event.cause in ("power_loss", "bit_rot"):
            found |= _GONE | _COMMITS
        elif event.name is Name.GROUP_OFFSET_EXPIRED or (event.topic == OFFSETS and _cuts(event)):
            found |= _COMMITS
        elif _cuts(event):
            found |= _GONE
        elif event.topic is not None and event.topic != OFFSETS and _shortens(event):
            found |= _BELOW_START
    return found


def _cuts(event: Event) -> bool:
    return event.name in (Name.TRUNCATED, Name.TOPIC_DELETION)


def _shortens(event: Event) -> bool:
    return event.name is Name.COMPACTED or (event.name is Name.LOG_START and event.log_start_offset > 0)
