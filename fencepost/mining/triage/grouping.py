"""From bad traces to bugs: items weighed, signatures counted, the most frequent ones clustered, every trace
given to its group, every group described.

Owns: the order of these steps and their bounds. Must not know: how evidence comes about (evidence.py), what
a group is made of (clusters.py), or who counts. Few bad traces are counted in this process (in_memory.py);
many are reduced by Spark (on_spark.py), to what is bounded here.

    rated       the MOST_ITEMS * 4 items that most bad traces have, by anomaly and profile
    signature   of a bad trace: its anomaly, and those of its items that weigh anything, sorted
    top         the MOST_SIGNATURES most frequent signatures, which are clustered
    label       of a bad trace: the group of its signature, or the group that it is most like; 0: none
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from attrs import evolve, frozen

from fencepost.mining.triage.bugs import Bugs
from fencepost.mining.triage.clusters import (
    MOST_ITEMS,
    MOST_SIGNATURES,
    Clusters,
    Signature,
    Space,
    clusters_of,
    space_of,
)
from fencepost.mining.triage.overrepresented import Healthy, passing
from fencepost.mining.triage.rows import ALL
from fencepost.mining.triage.tally import Described, Row
from fencepost.mining.triage.weights import healthy_name

Key = tuple[str, ...]
"""What is counted."""


@frozen(kw_only=True, eq=False)
class Labels:
    """The group of each bad trace."""

    clusters: Clusters

    def of(self, row: Row) -> tuple[int, list[int]]:
        """The label of a bad trace, and those of the other bugs that it shows too. row: of it."""
        text, anomaly, *kept = signature_of(row, self.clusters.space.places)
        label = self.clusters.label(text, anomaly, kept)
        return label, self.clusters.also(label, kept)


class Counted(Protocol):
    """Rows of a table, wherever they are counted."""

    def count(
        self,
        columns: Sequence[str],
        keys: Callable[[Row], Iterable[Key]],
        *,
        least: int = 1,
        most: int | None = None,
    ) -> dict[Key, int]:
        """How many rows have each key.

        Args:
            columns: that `keys` looks at.
            keys: of a row, each once.
            least: rows that a key must have.
            most: keys that are returned, those of the most rows, among equals the smallest; None: all.
        """

    def described(self, labels: Labels, healthy: Healthy) -> list[Described]:
        """The bug of each label. Rows are those of `evidence`."""


_TEXT: Any = pa.string()
_INT: Any = pa.int64()
GROUPS = pa.schema(
    [
        *(("source", _TEXT), ("trace_id", _INT), ("anomaly", _TEXT), ("bug", _INT)),
        ("also", pa.list_(pa.field("element", pa.int64()))),
    ]
)
"""The table `groups` (docs/how-to/triage.md)."""


def groups_of(rows: Iterable[Row], labels: Labels) -> pa.RecordBatch:
    """Rows of `groups`.

    Args:
        rows: of `evidence`.
        labels: of the traces.
    """
    found = []
    for row in rows:
        bug, also = labels.of(row)
        kept = {name: row[name] for name in ("source", "trace_id", "anomaly")}
        found.append({**kept, "bug": bug, "also": also})
    return pa.RecordBatch.from_pylist(found, schema=GROUPS)


def signature_of(row: Row, places: Mapping[str, int]) -> Key:
    """The signature of a bad trace after a hash of it. row: of the trace; places: the items that weigh
    anything."""
    parts = (row["anomaly"], *sorted(places.keys() & set(row["items"])))
    text = "\n".join((parts[0], "\n".join(parts[1:])))
    return hashlib.sha256(text.encode()).hexdigest(), *parts


def group(evidence: Counted, healthy: Healthy, write: Callable[[Labels], Any]) -> Bugs:
    """The bugs, the one with the most traces first.

    Args:
        evidence: of the bad traces.
        healthy: the traces to compare them with.
        write: is given the labels, before any bug is described.
    """
    (bad,) = evidence.count(["trace_id"], lambda row: [()]).values()
    space = _space(evidence, healthy, bad)
    places = space.places
    top = evidence.count(["anomaly", "items"], lambda row: [signature_of(row, places)], most=MOST_SIGNATURES)
    signatures = [
        Signature(text=text, anomaly=anomaly, kept=kept, traces=traces)
        for (text, anomaly, *kept), traces in top.items()
    ]
    compared = sum(by.get(ALL, 0) for by in healthy.values())
    clusters = clusters_of(signatures, space, compared)
    labels = Labels(clusters=clusters)
    write(labels)
    found = sorted(evidence.described(labels, healthy), key=lambda one: one.bug.number)
    pairs, others = sum(one.pairs for one in found), sum(one.others for one in found)
    also: Counter[int] = Counter()
    for one in found:
        also.update(one.also)
    bugs = [
        evolve(
            bug,
            name=clusters.names.get(bug.number, f"{bug.anomaly}-rest"),
            items=clusters.items.get(bug.number, {}),
            also=also[bug.number],
            shares=passing(bug.shares, pairs, others),
        )
        for bug in (one.bug for one in found)
    ]
    return Bugs(bugs=tuple(bugs), bad=bad, healthy=compared, tested=pairs + others)


def _space(evidence: Counted, healthy: Healthy, bad: int) -> Space:
    """The items that more than one trace has and that weigh anything."""
    most = evidence.count(
        ["items"], lambda row: ((item,) for item in row["items"]), least=min(bad, 2), most=4 * MOST_ITEMS
    )
    chosen = {item for (item,) in most}
    rated = evidence.count(
        ["anomaly", "profile", "items"],
        lambda row: ((item, row["anomaly"], row["profile"]) for item in row["items"] if item in chosen),
    )
    named: dict[str, Counter[str]] = defaultdict(Counter)
    here: dict[str, Counter[str]] = defaultdict(Counter)
    for (item, anomaly, profile), traces in sorted(rated.items()):
        named[item][anomaly] += traces
        here[item][profile] += traces
    having: dict[str, dict[str, int]] = {}
    for name in {healthy_name(item) for item in chosen} - {""}:
        having[name] = {profile: by[name] for profile, by in healthy.items() if name in by}
    return space_of(
        {item: (by.total(), max(by.values())) for item, by in named.items()},
        here,
        having,
        bad=bad,
        healthy={profile: by[ALL] for profile, by in healthy.items() if ALL in by},
    )


def coverage(spectra: Counted) -> list[dict[str, Any]]:
    """The rows of the table `coverage`: how many judged traces of a profile have each feature. spectra: rows
    of that table."""
    counts = spectra.count(
        ["profile", "features"], lambda row: ((row["profile"], one) for one in (ALL, *row["features"]))
    )
    return [
        {"profile": profile, "feature": feature, "traces": traces, "of_traces": counts[profile, ALL]}
        for (profile, feature), traces in sorted(counts.items())
        if feature != ALL
    ]
