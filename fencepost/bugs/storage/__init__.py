"""Planted bugs of the log, found by the log machine (machines): each removes one protection by
swapping one part.

Owns the table. The protections are in protections.py under the same ids. Must not know Hypothesis: the hunt
does.
"""

import re

from attrs import frozen

from fencepost.bugs.injected import INJECTED
from fencepost.bugs.storage import appending, log_loading_bugs, log_reading_bugs, removing
from fencepost.bugs.storage.protections import STORAGE_BY_BUG
from fencepost.traces.errors import FencepostError, unknown_name
from fencepost.traces.protections import Protection


@frozen(kw_only=True)
class LogBug:
    """bug: the zoo's id. role: the entry of `LogParts` that is swapped; part: by what. shows_as: what the
    machine complains of, a regular expression."""

    bug: str
    role: str
    part: type
    shows_as: str

    @property
    def injected(self) -> str:
        """Why it is no protection taken away, but a fault that is added; "" if it takes one away."""
        return INJECTED.get(self.bug, "")

    @property
    def protection(self) -> Protection:
        """What is missing."""
        return STORAGE_BY_BUG[self.bug]

    def shown_by(self, complaint: str) -> bool:
        """Whether this is how the bug shows, and not an accident."""
        return re.search(self.shows_as, complaint) is not None


LOST = "lost: |hole: "
OFFSETS_TWICE = r"out of order|AssertionError: \(\d+, \d+\)$"
"""The second form is the assertion of ProducerState.update: a batch below the end that it knows."""
FORGOTTEN = (
    "is forgotten|[Oo]f producer|last batch of producer|not recognised|before the restart|ahead of "
    "the log|expected sequence"
)

LOG_BUGS: dict[str, LogBug] = {
    bug: LogBug(bug=bug, role=role, part=part, shows_as=shows_as)
    for bug, role, part, shows_as in (
        ("KAFKA-10471", "directory", log_loading_bugs.MarkerGoesLast, "taken for clean"),
        ("KAFKA-5829", "log", log_loading_bugs.SnapshotsGo, FORGOTTEN),
        ("LOG-NO-CHECKSUM", "recovery", log_loading_bugs.NoChecksums, "CRC-32C"),
        ("LOG-FSYNCGATE", "recovery", log_loading_bugs.TrustsThePageCache, LOST),
        ("KAFKA-7866", "log", appending.EndMovesLast, OFFSETS_TWICE),
        ("KAFKA-6975", "log", appending.StartsWithWholeBatches, "a batch at the log end offset"),
        ("KAFKA-6003", "log", appending.ChecksItsLeader, "sequence 0"),
        ("KAFKA-6683", "log", appending.ProducersFirst, FORGOTTEN),
        ("KAFKA-5249", "log", appending.SnapshotOfAnotherOffset, FORGOTTEN),
        ("LOG-LAZY-FLUSH", "log", appending.FlushesNothing, LOST),
        ("LOG-GOES-ON", "log", appending.GoesOnAfterErrors, "appended at|lost|hole|bad|did not refuse"),
        ("KAFKA-2477", "log", log_reading_bugs.ReadsWhatTheFileHolds, "beyond the end|torn|bytes"),
        ("KAFKA-5634", "retention", removing.DeletesWhatIsNotCommitted, "deleted too much"),
        ("KAFKA-7400", "retention", removing.KeepsWhatNobodyMayRead, "below the log start"),
        ("KAFKA-10706", "log", removing.CutsEpochsWithRecords, "epochs of what was cut"),
        ("KAFKA-13194", "cleaner", removing.CompactsWhatIsNotCommitted, "hole: "),
        ("KAFKA-4529", "cleaner", removing.TombstonesGoAtOnce, "hole: .*value=None"),
        ("KAFKA-5490", "cleaner", removing.ForgetsProducers, FORGOTTEN),
        ("KAFKA-17076", "cleaner", removing.EndsWithTheLastRecord, "the last batch ended at"),
    )
}


def log_bug(bug: str) -> LogBug:
    """The bug of this id. Raises FencepostError."""
    found = LOG_BUGS.get(bug)
    if found is None:
        raise FencepostError(
            expected=f"one of {', '.join(sorted(LOG_BUGS))}",
            seen=unknown_name(bug, LOG_BUGS),
            where="planted bugs of the log",
            hint="`fencepost campaign bugs list` shows them",
        )
    return found
