"""The results of a watch, round by round.

Owns the reported counts and the exit code. Must not know Spark, files, the terminal.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from attrs import define, field, frozen

from fencepost.checkers.verdict import Decision
from fencepost.mining.watch.out import Row, Table
from fencepost.traces.errors import ExitCode, strongest

_WORST_FIRST = (Decision.ILLEGAL, Decision.ASSUMPTION_BROKEN, Decision.UNKNOWN, Decision.OK)


@frozen(kw_only=True)
class Round:
    """The result of one round."""

    number: int
    # How many arrived.
    files: int
    operations: int
    # Rows of the tables.
    tables: dict[Table, list[Row]]
    # Seconds from the oldest file's arrival until its findings were written.
    lag_s: float


@define
class Watched:
    """The results of a watch since it was started."""

    # The folder of the results.
    out: str
    # Counts since the start.
    rounds: int = 0
    files: int = 0
    operations: int = 0
    findings: int = 0
    quarantined: int = 0
    traces_ended: int = 0
    # These include earlier watches into the same folder.
    findings_in_all: int = 0
    quarantined_in_all: int = 0
    # Traces under way, their rows that were not judged yet, and those of which a file is missing.
    traces_under_way: int = 0
    waiting: int = 0
    incomplete: int = 0
    # Verdicts that are unknown or assumption broken, of traces that ended.
    undecided: int = 0
    # Lag of the latest round, seconds.
    lag_s: float = 0.0
    # Findings by anomaly, and ended traces by decision.
    anomalies: Counter[str] = field(factory=Counter)
    decisions: Counter[str] = field(factory=Counter)
    interrupted: bool = False

    def add(self, one: Round) -> None:
        """Count a round."""
        findings, quarantine = one.tables["findings"], one.tables["quarantine"]
        self.rounds += 1
        self.files += one.files
        self.operations += one.operations
        self.findings += len(findings)
        self.quarantined += len(quarantine)
        self.findings_in_all += len(findings)
        self.quarantined_in_all += len(quarantine)
        self.lag_s = one.lag_s
        self.anomalies.update(row[5] for row in findings)
        decided = _decisions(one.tables["verdicts"])
        self.traces_ended += len(decided)
        self.decisions.update(decided.values())
        undecided = (Decision.UNKNOWN.value, Decision.ASSUMPTION_BROKEN.value)
        self.undecided += sum(row[3] in undecided for row in one.tables["verdicts"])

    @property
    def exit_code(self) -> ExitCode:
        """As everywhere, of what arrived since the start; nothing new is nothing found."""
        codes = {ExitCode.NOTHING_FOUND}
        if self.interrupted:
            codes.add(ExitCode.INTERRUPTED)
        if self.quarantined and not self.operations:
            codes.add(ExitCode.USAGE)
        if self.findings:
            codes.add(ExitCode.FINDINGS)
        if self.quarantined:
            codes.add(ExitCode.QUARANTINED)
        if self.undecided or self.incomplete:
            codes.add(ExitCode.UNDECIDED)
        return strongest(codes)

    def to_row(self) -> dict[str, Any]:
        """As a JSON object."""
        names = (
            *(
                "out",
                "rounds",
                "files",
                "operations",
                "traces_under_way",
                "traces_ended",
                "waiting",
                "incomplete",
            ),
            *("findings", "findings_in_all", "quarantined", "quarantined_in_all", "undecided", "lag_s"),
            "interrupted",
        )
        return {
            **{name: getattr(self, name) for name in names},
            "anomalies": dict(sorted(self.anomalies.items())),
            "decisions": dict(sorted(self.decisions.items())),
        }


def _decisions(verdicts: Iterable[Row]) -> dict[tuple[str, int], str]:
    """The decision of all checks together of each trace."""
    found: dict[tuple[str, int], str] = {}
    for source, trace_id, _, decision, *_ in verdicts:
        known = found.get((source, trace_id), decision)
        found[source, trace_id] = min(known, decision, key=lambda one: _WORST_FIRST.index(Decision(one)))
    return found
