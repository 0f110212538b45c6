"""From bad traces to bugs: items weighed, signatures counted, the most frequent ones clustered, every trace
given to its group, every group described.

Owns: the order of these steps, and how the rows that Spark's tasks wrote are counted. Must not know: Spark,
how evidence comes about (evidence.py), or what a group is made of (clusters.py).

    rated       items that more than one bad trace has, by anomaly and profile
    signature   of a bad trace: its anomaly, and those of its items that weigh anything, sorted
    top         the MOST_SIGNATURES most frequent signatures, which are clustered
    label       of a bad trace: the group of its signature, or the group that it is most like; 0: none

Each step is one walk over the files of `evidence`. Kept are only counts, one for each distinct item,
signature, or feature of a group.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from fencepost.mining.triage.bugs import Bug, Bugs, Example
from fencepost.mining.triage.clusters import (
    MOST_ITEMS,
    MOST_SIGNATURES,
    Clusters,
    Signature,
    Space,
    clusters_of,
    space_of,
)
from fencepost.mining.triage.overrepresented import candidates, passing
from fencepost.mining.triage.tables import Healthy, Row, parts_of, rows_of, size_of
from fencepost.mining.triage.triage_rows import ALL
from fencepost.mining.triage.weights import healthy_name
from fencepost.traces.anomalies import BY_NAME, first_by_rank

NO_EVENTS = "these histories have no protocol events: only their operations were compared"
NO_HEALTHY = "there is no healthy trace to hold them against: every step counts as strange"


@define(eq=False)
class _Tally:
    """Counts of the traces of one label."""

    traces: int = 0
    anomalies: Counter[str] = field(factory=Counter)
    profiles: Counter[str] = field(factory=Counter)
    features: Counter[str] = field(factory=Counter)
    # The example with the worst anomaly, among equals the one with the fewest operations; and its key.
    smallest: Example | None = None
    size: tuple[int, int, str, int] | None = None
    # The example that comes first by source and trace id.
    first: Example | None = None

    def add(self, row: Row) -> None:
        one = Example(**{name: row[name] for name in ("source", "trace_id", "operations", "replay")})
        self.traces += 1
        self.anomalies[row["anomaly"]] += 1
        self.profiles[row["profile"]] += 1
        self.features.update(row["features"])
        size = (BY_NAME[row["anomaly"]].rank, one.operations, one.source, one.trace_id)
        if self.size is None or size < self.size:
            self.size, self.smallest = size, one
        self.first = min(self.first or one, one, key=lambda it: (it.source, it.trace_id))


def group(evidence: Path, healthy: Healthy, write: Callable[[list[dict[str, Any]]], Any]) -> Bugs:
    """The bugs, the one with the worst anomaly first.

    Args:
        evidence: the folder of the table with a row for each bad trace.
        healthy: the traces to compare them with.
        write: is given rows of `groups`, as many as a file of evidence has at a time.
    """
    compared = sum(by.get(ALL, 0) for by in healthy.values())
    space = _space(evidence, healthy)
    clusters = clusters_of(_signatures(evidence, space.places), space, compared)
    tallies: dict[int, _Tally] = defaultdict(_Tally)
    shown: Counter[int] = Counter()
    for part in parts_of(evidence):
        groups = []
        for row in part:
            text, anomaly, *kept = _signature(row, space.places)
            label = clusters.label(text, anomaly, kept)
            also = clusters.also(label, kept)
            tallies[label].add(row)
            shown.update(also)
            place = {name: row[name] for name in ("source", "trace_id", "anomaly")}
            groups.append({**place, "bug": label, "also": also})
        write(groups)
    tested = {
        label: candidates(one.features, one.profiles, one.traces, healthy) for label, one in tallies.items()
    }
    pairs, others = (sum(getattr(one, name) for one in tested.values()) for name in ("pairs", "others"))
    bugs = tuple(
        evolve(
            _bug(label, tallies[label], clusters),
            also=shown[label],
            shares=passing(tested[label].shares, pairs, others),
            missing=_missing(tallies[label], compared),
        )
        for label in sorted(tallies)
    )
    return Bugs(bugs=bugs, bad=sum(bug.traces for bug in bugs), healthy=compared, tested=pairs + others)


def _space(evidence: Path, healthy: Healthy) -> Space:
    """The items that more than one trace has and that weigh anything."""
    bad = size_of(evidence)
    named: dict[str, Counter[str]] = defaultdict(Counter)
    here: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of(evidence, "anomaly", "profile", "items"):
        for item in row["items"]:
            named[item][row["anomaly"]] += 1
            here[item][row["profile"]] += 1
    rated = {item: (by.total(), max(by.values())) for item, by in named.items()}
    common = [item for item, (traces, _) in rated.items() if traces >= min(bad, 2)]
    chosen = sorted(common, key=lambda item: (-rated[item][0], item))[: 4 * MOST_ITEMS]
    names = {healthy_name(item) for item in chosen}
    having = {
        name: {profile: by[name] for profile, by in healthy.items() if name in by} for name in names - {""}
    }
    return space_of(
        {item: rated[item] for item in chosen},
        {item: dict(sorted(here[item].items())) for item in chosen},
        having,
        bad=bad,
        healthy={profile: by[ALL] for profile, by in healthy.items() if ALL in by},
    )


def _signatures(evidence: Path, places: Mapping[str, int]) -> list[Signature]:
    """The most frequent signatures; the first walk has their hashes only."""
    columns = ("anomaly", "items")
    counted = Counter(_signature(row, places)[0] for row in rows_of(evidence, *columns))
    top = set(sorted(counted, key=lambda text: (-counted[text], text))[:MOST_SIGNATURES])
    found: dict[str, Signature] = {}
    for row in rows_of(evidence, *columns):
        text, anomaly, *kept = _signature(row, places)
        if text in top and text not in found:
            found[text] = Signature(text=text, anomaly=anomaly, kept=kept, traces=counted[text])
    return list(found.values())


def _signature(row: Row, places: Mapping[str, int]) -> tuple[str, ...]:
    """The signature of a bad trace after a hash of it. places: the items that weigh anything."""
    kept = sorted(places.keys() & set(row["items"]))
    text = "\n".join((row["anomaly"], "\n".join(kept)))
    return hashlib.sha256(text.encode()).hexdigest(), row["anomaly"], *kept


def _bug(label: int, tally: _Tally, clusters: Clusters) -> Bug:
    """What is known of a bug without the other ones."""
    assert tally.smallest is not None and tally.first is not None
    anomalies = _most_first(tally.anomalies)
    anomaly = first_by_rank(set(anomalies)) or ""
    return Bug(
        number=label,
        name=clusters.names.get(label, f"{anomaly}-rest"),
        anomaly=anomaly,
        traces=tally.traces,
        anomalies=anomalies,
        profiles=_most_first(tally.profiles),
        first=tally.first,
        smallest=tally.smallest,
        items=clusters.items.get(label, {}),
    )


def _missing(tally: _Tally, healthy: int) -> tuple[str, ...]:
    events = any(one.startswith("step: ") for one in tally.features)
    return (*(() if events else (NO_EVENTS,)), *(() if healthy else (NO_HEALTHY,)))


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def coverage(spectra: Path) -> list[dict[str, Any]]:
    """The rows of the table `coverage`: how many judged traces of a profile have each feature. spectra: the
    folder of that table."""
    of: Counter[str] = Counter()
    having: Counter[tuple[str, str]] = Counter()
    for row in rows_of(spectra, "profile", "features"):
        of[row["profile"]] += 1
        having.update((row["profile"], feature) for feature in row["features"])
    return [
        {"profile": profile, "feature": feature, "traces": count, "of_traces": of[profile]}
        for (profile, feature), count in sorted(having.items())
    ]
