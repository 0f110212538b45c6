"""The one table of anomalies: name, definition, the invariant it breaks, what implies it, and which wins.

Judges name their findings by this table only. When several anomalies hold for one trace, the one with the
lowest `rank` is the trace's name: shrinking keeps *that* anomaly.

Rows are data, a line each, in files by family: cluster.jsonl (what brokers and controllers do and keep),
control.jsonl (who is in the ISR, who is assigned, what is left of a deleted topic), liveness.jsonl (what did
not come true, happened without a cause, or was said too early), log.jsonl (one log as its clients see it),
client.jsonl (consumers, producers, transactions, groups, and any history against a sequential model),
application.jsonl (what an application did with records, by its own lines).
"""

from collections.abc import Iterable
from pathlib import Path

from fencepost.traces.anomalies.anomaly import Anomaly
from fencepost.traces.decoding import rows_of

__all__ = [
    "ANOMALIES",
    "APPLICATION",
    "ASSERTION_FAILED",
    "BY_FAMILY",
    "BY_NAME",
    "ONES_OWN",
    "Anomaly",
    "first_by_rank",
    "names_by_rank",
]

ASSERTION_FAILED = "assertion_failed"
"""The anomaly of every assertion of a test on a service; the check of the finding is the assertion's name."""
ONES_OWN = "assert_that"
"""The assertion that only its description tells from others."""

_FOLDER = Path(__file__).parent
BY_FAMILY: dict[str, tuple[Anomaly, ...]] = {
    name: rows_of(_FOLDER / f"{name}.jsonl", Anomaly)
    for name in ("cluster", "control", "liveness", "log", "client", "application")
}
"""The rows of each file."""
APPLICATION = BY_FAMILY["application"]
"""Those of what an application did."""
ANOMALIES: tuple[Anomaly, ...] = tuple(
    sorted(
        (anomaly for rows in BY_FAMILY.values() for anomaly in rows),
        key=lambda anomaly: (anomaly.rank, anomaly.name),
    )
)

BY_NAME: dict[str, Anomaly] = {anomaly.name: anomaly for anomaly in ANOMALIES}


def names_by_rank(names: Iterable[str]) -> list[str]:
    """Names of anomalies, the worst first, in the order of the alphabet among equals."""
    return sorted(names, key=lambda name: (BY_NAME[name].rank, name))


def first_by_rank(names: "set[str]") -> str | None:
    """The anomaly that names the trace: the worst of them; None for an empty set."""
    return next(iter(names_by_rank(names)), None)
