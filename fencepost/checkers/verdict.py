"""Verdicts and certificates: what a judge answers.

Ok, Illegal, Unknown, or Assumption broken; never an exception, and only Ok is Ok.
"""

from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from fencepost.traces.anomalies import BY_NAME, first_by_rank


class Decision(StrEnum):
    """The four answers."""

    OK = "ok"
    ILLEGAL = "illegal"
    UNKNOWN = "unknown"
    ASSUMPTION_BROKEN = "assumption_broken"


@frozen(kw_only=True)
class Finding:
    """One anomaly with its certificate: the fewest operations (or events) that prove it.

    anomaly: a name of the anomaly table. check: the judge that found it. operations: op ids, the convicting
    ones first; events: positions in the trace's events. expected, seen: one clause each. uncertainty_ns: the
    smallest clock uncertainty that would clear it (-1: none would).
    """

    anomaly: str
    check: str
    expected: str
    seen: str
    topic: str | None = None
    partition: int = -1
    offset: int = -1
    operations: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    uncertainty_ns: int = -1

    def __attrs_post_init__(self) -> None:
        assert self.anomaly in BY_NAME, f"{self.anomaly} is not in the anomaly table"


@frozen(kw_only=True)
class Verdict:
    """What one check (or all of them) says of one trace. reason: for Unknown and Assumption broken, which
    limit or contradiction; for Illegal, why not everything was told."""

    decision: Decision
    check: str
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    @property
    def anomaly(self) -> str | None:
        """The anomaly that names this verdict, by the table's precedence; None where there is none."""
        return first_by_rank({finding.anomaly for finding in self.findings})


def by_rank(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the order of the anomaly table, the one that names the trace first."""
    return sorted(findings, key=lambda finding: (BY_NAME[finding.anomaly].rank, finding.anomaly))


def combine(verdicts: "tuple[Verdict, ...]", *, check: str = "all") -> Verdict:
    """One verdict for several: Illegal wins, then Assumption broken, then Unknown, then Ok."""
    for decision in (Decision.ILLEGAL, Decision.ASSUMPTION_BROKEN, Decision.UNKNOWN):
        chosen = [verdict for verdict in verdicts if verdict.decision is decision]
        if chosen:
            return Verdict(
                decision=decision,
                check=check,
                findings=tuple(finding for verdict in verdicts for finding in verdict.findings),
                reason="; ".join(verdict.reason for verdict in chosen if verdict.reason),
            )
    return Verdict(decision=Decision.OK, check=check)
