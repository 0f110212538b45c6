"""What an audit has found so far, bounded.

Owns how many findings are kept. Must not know where they come from. A broken disk makes thousands of one
kind. The first ones show what is wrong; the others are counted.
"""

from collections import Counter

from attrs import define, field, frozen

from fencepost.audit.source import Place
from fencepost.checkers.verdict import Decision, Finding, Verdict
from fencepost.impl.log.flaw import Flaw

CHECK = "audit"
MOST_OF_ONE_KIND = 20
"""Findings of one anomaly that are kept of one partition."""
MOST_NOTES = 20
"""A report with more of them is not read."""


@frozen(kw_only=True)
class Unreadable:
    """A file, or a part of it, that was left out, and why in one clause."""

    path: Place
    reason: str


@define
class Findings:
    """The findings of one partition, or of the brokers' directories."""

    # None for the directories.
    topic: str | None = None
    partition: int = -1
    # Findings in the order in which they came; bounded.
    found: list[Finding] = field(factory=list)
    # Findings beyond the bound, by anomaly.
    more: Counter[str] = field(factory=Counter)
    # What a reader must know although it is not wrong; bounded.
    notes: list[str] = field(factory=list)
    # Files that could not be read; bounded.
    unreadable: list[Unreadable] = field(factory=list)

    def add(self, anomaly: str, *, expected: str, seen: str, offset: int = -1) -> None:
        """Something is wrong. expected, seen: one clause each, with the file and the byte."""
        finding = Finding(
            anomaly=anomaly,
            check=CHECK,
            expected=expected,
            seen=seen,
            topic=self.topic,
            partition=self.partition,
            offset=offset,
        )
        if sum(known.anomaly == anomaly for known in self.found) < MOST_OF_ONE_KIND:
            self.found.append(finding)
        else:
            self.more[anomaly] += 1

    def flaw(self, anomaly: str, flaw: Flaw, path: Place | str) -> None:
        """Report a finding about a file. anomaly: its name; flaw: what is wrong, and where; path: the
        file."""
        place = "" if flaw.position is None else f" at byte {flaw.position}"
        self.add(anomaly, expected=flaw.expected, seen=f"{flaw.seen} in {path}{place}")

    def note(self, text: str) -> None:
        """Nothing wrong."""
        if text not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(text)

    def left_out(self, path: Place, reason: str) -> None:
        """Report a file that could not be read. path: the file; reason: why."""
        self.unreadable.append(Unreadable(path=path, reason=reason))

    @property
    def count(self) -> int:
        """All findings, kept or not."""
        return len(self.found) + self.more.total()

    def verdict(self) -> Verdict:
        """Illegal with findings; without any Ok if everything could be read, else Unknown."""
        reason = "; ".join(f"{one.path}: {one.reason}" for one in self.unreadable[:MOST_NOTES])
        if self.found:
            decision = Decision.ILLEGAL
        else:
            decision = Decision.UNKNOWN if self.unreadable else Decision.OK
        return Verdict(
            decision=decision,
            check=CHECK,
            findings=tuple(sorted(self.found, key=lambda one: max(one.offset, 0))),
            reason=reason,
        )
