"""Triage of few bad traces, in memory: the bugs that Spark would find, without its fixed cost of many small
queries.

Owns the relations of grouping.py and overrepresented.py in plain Python, and the size up to which they are
used. Must not know Spark, or how groups are made (clusters.py).

A test compares every bug with Spark's (tests/mining/triage/test_small.py); docs/decisions/small-triage.md has
the measurement.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from fencepost.mining.triage.bugs import Shared
from fencepost.mining.triage.clusters import (
    MOST_ITEMS,
    MOST_SIGNATURES,
    Clusters,
    Signature,
    clusters_of,
    space_of,
)
from fencepost.mining.triage.overrepresented import MOST_PER_BUG, PAIR, VERDICT, reported
from fencepost.mining.triage.rows import ALL
from fencepost.traces.tables import values_of

MOST_VALUES = 5_000_000
"""Values of the tables `evidence` and `spectra` that are counted in memory. A bad run of a campaign has a few
hundred. The decision has what so many cost here and on Spark."""

CONTRAST = ("profile", "feature", "traces")
Row = dict[str, Any]
Counts = dict[str, dict[str, int]]


def values_in(*folders: Path) -> int:
    """Values of all columns of tables, elements of lists included, by their footers."""
    files = [pq.read_metadata(path) for folder in folders for path in sorted(folder.glob("*.parquet"))]
    return sum(
        int(file.row_group(group).column(column).num_values)
        for file in files
        for group in range(file.num_row_groups)
        for column in range(file.num_columns)
    )


def rows_of(folder: Path) -> list[Row]:
    """The rows of a table. Each word of a file is in memory once, however many rows have it."""
    rows: list[Row] = []
    for path in sorted(folder.glob("*.parquet")):
        table = _coded(path)
        columns = map(values_of, table.columns)
        rows += (dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True))
    return rows


def _coded(path: Path) -> Any:
    """A file of a table, its words as dictionaries."""
    metadata = pq.read_metadata(path)
    names = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    try:
        return pq.read_table(path, read_dictionary=names, use_threads=False, partitioning=None)
    except pa.ArrowNotImplementedError:  # lists with more words than a file's dictionary holds
        return pq.read_table(path, use_threads=False, partitioning=None)


def summed(folder: Path) -> list[Row]:
    """The rows of `contrast`, those of all tasks with one profile and feature as one. So more traces or tasks
    hardly make more of them."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.glob("*.parquet")):
        table = _coded(path)
        profiles, features, traces = (values_of(table.column(name)) for name in CONTRAST)
        for profile, feature, count in zip(profiles, features, traces, strict=True):
            counts[profile, feature] += count
    return [dict(zip(CONTRAST, (*key, count), strict=True)) for key, count in counts.items()]


@frozen(kw_only=True, eq=False)
class Labelled:
    """Bad traces in their groups."""

    # Rows of `evidence`, each with its `label`, and the labels of the bugs that it shows `also`.
    rows: list[Row]
    clusters: Clusters
    # Healthy traces.
    healthy: int


def labelled(evidence: Sequence[Row], contrast: Sequence[Row]) -> Labelled:
    """The groups of the bad traces.

    Args:
        evidence: a row for each bad trace.
        contrast: rows of healthy traces by profile and feature.
    """
    healthy: Counter[str] = Counter()
    for row in contrast:
        if row["feature"] == ALL:
            healthy[row["profile"]] += row["traces"]
    named: dict[str, Counter[str]] = defaultdict(Counter)
    here: dict[str, Counter[str]] = defaultdict(Counter)
    for row in evidence:
        for item in row["items"]:
            named[item][row["anomaly"]] += 1
            here[item][row["profile"]] += 1
    rated = {item: (sum(by.values()), max(by.values())) for item, by in named.items()}
    rated = {item: both for item, both in rated.items() if both[0] > 1 or len(evidence) == 1}
    asked = sorted(rated, key=lambda item: (-rated[item][0], item))[: 4 * MOST_ITEMS]
    steps = {re.sub("^(convicts|here|between): ", "step: ", item) for item in asked}
    having: dict[str, Counter[str]] = defaultdict(Counter)
    for row in contrast:
        if row["feature"] in steps:
            having[row["feature"]][row["profile"]] += row["traces"]
    space = space_of(
        {item: rated[item] for item in asked}, here, having, bad=len(evidence), healthy=dict(healthy)
    )
    signed = [(row, *_signature(row, space.places)) for row in evidence]
    counted = Counter(text for _, _, text in signed)
    seen = {text: (row["anomaly"], kept) for row, kept, text in signed}
    top = sorted(counted, key=lambda text: (-counted[text], text))[:MOST_SIGNATURES]
    clusters = clusters_of(
        [
            Signature(text=text, anomaly=seen[text][0], kept=seen[text][1], traces=counted[text])
            for text in top
        ],
        space,
        sum(healthy.values()),
    )
    rows = []
    for row, kept, text in signed:
        label = clusters.label(text, row["anomaly"], kept)
        rows.append({**row, "label": label, "also": clusters.also(label, kept)})
    return Labelled(rows=rows, clusters=clusters, healthy=sum(healthy.values()))


def _signature(row: Row, places: Mapping[str, int]) -> tuple[list[str], str]:
    """The weighty items of a bad trace, and the hash of them and its anomaly, as grouping.py has it."""
    kept = sorted(places.keys() & set(row["items"]))
    return kept, hashlib.sha256("\n".join((row["anomaly"], "\n".join(kept))).encode()).hexdigest()


def over_represented(rows: Sequence[Row], contrast: Sequence[Row]) -> tuple[dict[int, list[Shared]], int]:
    """As in overrepresented.py.

    Args:
        rows: of Labelled.
        contrast: rows of healthy traces by profile and feature.

    Returns:
        by label the features that pass, and how many pairs of label and feature were tested.
    """
    summed: Counts = defaultdict(lambda: defaultdict(int))
    for row in contrast:
        summed[row["profile"]][row["feature"]] += row["traces"]
    of_profile = {profile: by[ALL] for profile, by in sorted(summed.items()) if by.get(ALL, 0) > 0}
    by_label: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_label[row["label"]].append(row)
    pairs: Counter[bool] = Counter()
    top = []
    for label in sorted(by_label):
        tested = list(_tested(label, by_label[label], summed, of_profile))
        pairs.update(row["feature"].startswith(PAIR) for row in tested)
        more = [row for row in tested if row["bad"] / row["of_bad"] > row["healthy"]]
        more.sort(key=lambda row: (-row["ratio"], len(row["feature"]), row["feature"]))
        top += more[:MOST_PER_BUG]
    return reported(top, pairs), pairs.total()


def _tested(label: int, rows: Sequence[Row], summed: Counts, of_profile: Mapping[str, int]) -> Iterator[Row]:
    """Each feature of a bug's traces with its two measures."""
    profiles = Counter(row["profile"] for row in rows)
    own = {profile: count for profile, count in sorted(profiles.items()) if profile in of_profile}
    total = sum(own.values())
    if own:
        per_trace = {profile: count / total / of_profile[profile] for profile, count in own.items()}
    else:
        per_trace = {profile: 1 / sum(of_profile.values()) for profile in of_profile}
    of_healthy = sum(of_profile[profile] for profile in per_trace)
    bad = Counter(feature for row in rows for feature in row["features"] if not feature.startswith(VERDICT))
    for feature, a in bad.items():
        share = sum(summed[profile].get(feature, 0) * weight for profile, weight in per_trace.items())
        b, c = len(rows) - a, share * of_healthy
        d = of_healthy - c
        n = a + b + c + d
        cells = ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
        yield {
            "label": label,
            "feature": feature,
            "bad": a,
            "of_bad": len(rows),
            "healthy": share,
            "of_healthy": of_healthy,
            "ochiai": a / sqrt((a + b) * (a + c)),
            "ratio": 2 * sum(one * log(one * n / (row * column)) for one, row, column in cells if one > 0),
        }


def coverage(spectra: Iterable[Row]) -> list[Row]:
    """The rows of `coverage`. spectra: rows of that table."""
    of: Counter[str] = Counter()
    having: Counter[tuple[str, str]] = Counter()
    for row in spectra:
        of[row["profile"]] += 1
        having.update((row["profile"], feature) for feature in row["features"])
    return [
        {"profile": profile, "feature": feature, "traces": count, "of_traces": of[profile]}
        for (profile, feature), count in sorted(having.items())
    ]


def described(found: Labelled) -> Iterator[Row]:
    """Of each group, the one with the lowest number first: label, traces, how many of other groups show it
    also, smallest and first example, whether it has events, and counts of its anomalies and profiles (the
    most frequent first)."""
    also = Counter(label for row in found.rows for label in row["also"])
    by_label: dict[int, list[Row]] = defaultdict(list)
    for row in found.rows:
        by_label[row["label"]].append(row)
    for label, rows in sorted(by_label.items()):
        counts = {}
        for column in ("anomaly", "profile"):
            counted = Counter(row[column] for row in rows)
            counts[column] = dict(sorted(counted.items(), key=lambda one: (-one[1], one[0])))
        yield {
            "label": label,
            "traces": len(rows),
            "also": also[label],
            "smallest": _example(
                min(rows, key=lambda row: (row["operations"], row["source"], row["trace_id"]))
            ),
            "first": _example(min(rows, key=lambda row: (row["source"], row["trace_id"]))),
            "events": any(one.startswith("step: ") for row in rows for one in row["features"]),
            **counts,
        }


def _example(row: Row) -> Row:
    return {name: row[name] for name in ("source", "trace_id", "operations", "replay")}
