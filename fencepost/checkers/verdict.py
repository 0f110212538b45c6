"""Verdicts and certificates: the results of a check.

A verdict is Ok, Illegal, Unknown or Assumption broken. A check never raises because of a trace, and only Ok
means Ok.
"""

from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from fencepost.traces.anomalies import BY_NAME, first_by_rank
from fencepost.traces.anomalies.until_end import UNTIL_END
from fencepost.traces.events import Name
from fencepost.traces.operations import Outcome
from fencepost.traces.trace import Trace

AND = "; "
"""Between what was not judged and what was not judged either."""


class Decision(StrEnum):
    """The four decisions."""

    OK = "ok"
    ILLEGAL = "illegal"
    UNKNOWN = "unknown"
    ASSUMPTION_BROKEN = "assumption_broken"


@frozen(kw_only=True)
class Finding:
    """One anomaly with its certificate: the fewest operations (or events) that prove it."""

    # A name from the anomaly table.
    anomaly: str
    # The check that found it.
    check: str
    # What the protocol promises here, as one clause.
    expected: str
    # What the trace shows instead, as one clause.
    seen: str
    # The topic; None if the finding is not about one.
    topic: str | None = None
    # The partition; -1 if the finding is not about one.
    partition: int = -1
    # The offset; -1 if the finding is not about one.
    offset: int = -1
    # Topic, partition and offset of all records that the finding is about; empty if there is only the one
    # above.
    places: tuple[tuple[str, int, int], ...] = ()
    # Op ids that prove the finding; the convicting operations come first.
    operations: tuple[int, ...] = ()
    # Events that prove the finding, as positions in the trace's events.
    events: tuple[int, ...] = ()
    # Op ids that are no part of the proof: they failed, and each would explain it had it happened.
    excluded: tuple[int, ...] = ()
    # The smallest clock uncertainty, in nanoseconds, with which this would not be a finding (-1: no
    # uncertainty helps).
    uncertainty_ns: int = -1

    def __attrs_post_init__(self) -> None:
        assert self.anomaly in BY_NAME, f"{self.anomaly} is not in the anomaly table"


@frozen(kw_only=True)
class Verdict:
    """The result of one check (or of all checks) on one trace."""

    decision: Decision
    check: str
    findings: tuple[Finding, ...] = ()
    # For Unknown and Assumption broken, which limit was reached or what contradicts itself. For Illegal, why
    # more findings may be missing.
    reason: str = ""
    # What was not judged because the trace has no data for it, in one line (checkers/unjudged.py).
    unjudged: str = ""

    @property
    def anomaly(self) -> str | None:
        """The anomaly that names this verdict, by the table's precedence; None if there is none."""
        return first_by_rank({finding.anomaly for finding in self.findings})

    @property
    def says(self) -> str:
        """One line next to the decision: the reason, or else what was not judged for lack of data."""
        return self.reason or (f"not judged: {self.unjudged}" if self.unjudged else "")


def by_rank(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the order of the anomaly table. The first one names the trace."""
    return sorted(findings, key=lambda finding: (BY_NAME[finding.anomaly].rank, finding.anomaly))


ALL = "all"
"""The name of all checks combined."""


def combine(verdicts: "tuple[Verdict, ...]") -> Verdict:
    """Combine several verdicts into one. Illegal has precedence, then Assumption broken, then Unknown, then
    Ok.

    Args:
        verdicts: the verdicts.

    Returns:
        one verdict with all findings.
    """
    parts = (part for verdict in verdicts if verdict.unjudged for part in verdict.unjudged.split(AND))
    unjudged = AND.join(dict.fromkeys(parts))
    for decision in (Decision.ILLEGAL, Decision.ASSUMPTION_BROKEN, Decision.UNKNOWN):
        chosen = [verdict for verdict in verdicts if verdict.decision is decision]
        if chosen:
            return Verdict(
                decision=decision,
                check=ALL,
                findings=tuple(finding for verdict in verdicts for finding in verdict.findings),
                reason="; ".join(dict.fromkeys(verdict.reason for verdict in chosen if verdict.reason)),
                unjudged=unjudged,
            )
    return Verdict(decision=Decision.OK, check=ALL, unjudged=unjudged)


def nothing_succeeded(operations: int) -> str:
    """Why a history without one successful operation is not ok. operations: how many it has."""
    return f"none of the {operations} recorded operations succeeded: the history proves nothing"


_ONE_PLACE_OF_SEVERAL = frozenset({"transactions", "exactly_once"})
"""Checks that report each anomaly once for a trace."""


def standing(verdicts: Iterable[Verdict], prefix: Trace) -> tuple[Finding, ...]:
    """The findings of a prefix that no later row can withdraw.

    Args:
        verdicts: of the checks on the prefix.
        prefix: what they judged. Of a topic that was deleted in it nothing stands: what follows may be of
            another topic of the name.

    Returns:
        the findings, in the order of the verdicts. Each is proven by operations of known outcome.
    """
    deleted = {event.topic for event in prefix.events if event.name is Name.TOPIC_DELETION}
    open_ids = {row.op_id for row in prefix.operations if row.outcome is Outcome.UNKNOWN}
    return tuple(
        finding
        for verdict in verdicts
        for finding in verdict.findings
        if finding.anomaly not in UNTIL_END
        and open_ids.isdisjoint(finding.operations)
        and not (deleted and (finding.topic is None or finding.topic in deleted))
    )


Subject = tuple[str, str, str | None, int]
"""Check, anomaly, topic, partition."""


def subject_of(check: str, anomaly: str, topic: str | None, partition: int) -> Subject:
    """What is reported once of a trace under way.

    Args:
        check: that found it.
        anomaly: its name.
        topic: of the finding.
        partition: of the finding.

    Returns:
        the same; without the place where a check names one place of several, which may be another one later.
    """
    return (
        (check, anomaly, None, -1) if check in _ONE_PLACE_OF_SEVERAL else (check, anomaly, topic, partition)
    )
