"""Copies of the brokers' directories after a run, read into its trace.

Owns that copies are read and not the files that brokers go on with. Must not know what becomes an event
(run/files_at_end.py).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from fencepost.audit.survey import AuditRequest
from fencepost.run.files_at_end import LEFT_OUT, FilesAtEnd, mark
from fencepost.run.real.copies import copy_directories
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation


@frozen(kw_only=True)
class Audit:
    """Whose files are read, and what their topics are called."""

    # The log directory of each broker; none: nothing is said.
    directories: Mapping[int, Path]
    # The folder that gets the copies.
    copies: Path
    # The topic in the trace by the directories' name. Others are not read.
    names: Mapping[str, str]

    def events(self, operations: Iterable[Operation], time: int, *, judged: bool) -> tuple[Event, ...]:
        """What the copies say (FilesAtEnd.events).

        Args:
            operations: the history.
            time: of the events, in nanoseconds of the trace.
            judged: as of FilesAtEnd.

        Returns:
            the events. What could not be read is a mark among them.
        """
        try:
            places = copy_directories(self.directories, self.names, self.copies)
        except OSError as error:
            return (mark(time, LEFT_OUT, why=str(error)),)
        if not places:
            return ()
        request = AuditRequest(places=places, topics=tuple(self.names))
        return FilesAtEnd(request=request, names=self.names, judged=judged, compared=True).events(
            operations, time
        )
