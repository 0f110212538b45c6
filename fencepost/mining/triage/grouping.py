"""Bad traces into groups, on Spark: items weighed, signatures counted, the most frequent ones clustered,
every trace given to its group.

Owns: the named relations below and their bounds. Must not know: how evidence comes about (evidence.py), what
a weight is made of (weights.py).

    evidence    a row per bad trace, as tasks wrote it
    contrast    a row per task, profile and feature: healthy traces that have it
    rated       a row per item: bad traces that have it, healthy traces that have its step
    signed      a row per bad trace: its signature, which is the items that weigh anything, sorted
    labelled    a row per bad trace: the number of its bug

Only distinct items and distinct signatures come to the driver, MOST_ITEMS and MOST_SIGNATURES at most, the
most frequent first. Every other trace is given to the group that it is most like, by a vectorised function on
the executors.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from fencepost.mining.triage.owning import by_cause
from fencepost.mining.triage.rows import ALL
from fencepost.mining.triage.splitting import Items, split
from fencepost.mining.triage.weights import (
    ALIKE,
    Matrix,
    cluster,
    common_of,
    healthy_name,
    vectors,
    weight_of,
)

MOST_ITEMS = 4_000
"""Coordinates of a vector; 1,500 vectors of them are 48 MB. Items are canonical, so that their number hardly
grows with the traces."""
MOST_SIGNATURES = 1_500
"""Signatures that are clustered on the driver, some seconds of work; the rest is assigned to the resulting
groups."""
PARTITIONS = 8
"""Partitions of a shuffle: triage shuffles little in comparison with what was judged."""
USUAL = 0.5
"""A group's own items are those that at least this share of its traces has."""
MOST_OWN = 40
"""Items that are kept of a group, the heaviest first."""


@frozen(kw_only=True, eq=False)
class Grouping:
    """labelled: source, trace_id, profile, operations, anomaly, features, replay, label. names, items: by
    label."""

    labelled: Any
    names: dict[int, str]
    items: dict[int, dict[str, float]]
    bad: int
    healthy: int


@frozen(kw_only=True, eq=False)
class _Space:
    """The coordinates. places: of items; weights: of each; common: the share of comparable healthy traces
    that have each item's step."""

    places: dict[str, int]
    weights: tuple[float, ...]
    common: tuple[float, ...]

    def vectors(self, signatures: Sequence[tuple[str, Sequence[str]]]) -> Matrix:
        """As in weights.py."""
        return vectors(signatures, self.places, self.weights)


def group(evidence: Any, contrast: Any) -> Grouping:
    """The groups of the bad traces. evidence, contrast: DataFrames with the columns of the results of these
    names."""
    from pyspark.sql import functions as sql

    of_profile = contrast.where(sql.col("feature") == ALL).groupBy("profile").agg(sql.sum("traces"))
    healthy = {row[0]: int(row[1]) for row in of_profile.collect()}
    bad = int(evidence.count())
    space = _space(evidence, contrast, bad, healthy)
    places = list(space.places)
    known = sql.array(*[sql.lit(place) for place in places]) if places else sql.array().cast("array<string>")
    signed = evidence.withColumn("kept", sql.array_sort(sql.array_intersect("items", known)))
    signed = signed.withColumn(
        "signature", sql.sha2(sql.concat_ws("\n", sql.col("anomaly"), sql.concat_ws("\n", "kept")), 256)
    )
    counted = signed.groupBy("signature").agg(
        sql.count("*").alias("traces"), sql.min("anomaly").alias("anomaly"), sql.min("kept").alias("kept")
    )
    top = counted.orderBy(sql.desc("traces"), "signature").limit(MOST_SIGNATURES).collect()
    top = sorted(top, key=lambda row: row["signature"])
    signatures = [(row["anomaly"], row["kept"]) for row in top]
    counts = [int(row["traces"]) for row in top]
    rows = space.vectors(signatures)
    grouped_items = Items(present=rows > 0, names=tuple(places), common=np.array(space.common, float))
    labels = split(_alone(cluster(rows, counts), rows, signatures), grouped_items, counts)
    labels = by_cause(labels, grouped_items, counts, sum(healthy.values()))
    labels = _by_size(labels, counts, signatures)
    labelled = _labelled(signed, [row["signature"] for row in top], labels, rows, counts, space)
    items = {label: _own(label, labels, rows, counts, places) for label in sorted(set(labels))}
    anomalies = {label: _anomaly(label, labels, counts, signatures) for label in items}
    names = {label: _name(anomalies[label], items[label]) for label in items}
    return Grouping(labelled=labelled, names=names, items=items, bad=bad, healthy=sum(healthy.values()))


def _space(evidence: Any, contrast: Any, bad: int, healthy: Mapping[str, int]) -> _Space:
    """The items that more than one trace has and that weigh anything."""
    from pyspark.sql import functions as sql

    each = evidence.select("anomaly", "profile", sql.explode("items").alias("item")).persist()
    try:
        named = each.groupBy("item", "anomaly").agg(sql.count("*").alias("named")).groupBy("item")
        totals = named.agg(sql.sum("named").alias("bad"), sql.max("named").alias("named"))
        totals = totals.where(sql.col("bad") > 1) if bad > 1 else totals
        asked = totals.orderBy(sql.desc("bad"), "item").limit(4 * MOST_ITEMS)
        rated = {row["item"]: (int(row["bad"]), int(row["named"])) for row in asked.collect()}
        here, having = _by_profile(each, asked, contrast)
    finally:
        each.unpersist()
    weighed: dict[str, tuple[float, float]] = {}
    for item in sorted(rated, key=lambda item: (-rated[item][0], item)):
        with_item, most = rated[item]
        name = healthy_name(item)
        common = common_of(here[item], having.get(name, {}), healthy) if name else 0.0
        weight = weight_of(
            item,
            bad=bad,
            with_item=with_item,
            healthy=sum(healthy.values()),
            common=common,
            purity=most / with_item,
        )
        if weight > 0 and len(weighed) < MOST_ITEMS:
            weighed[item] = weight, common
    places = {item: place for place, item in enumerate(sorted(weighed))}
    return _Space(
        places=places,
        weights=tuple(weighed[item][0] for item in places),
        common=tuple(weighed[item][1] for item in places),
    )


def _by_profile(
    each: Any, asked: Any, contrast: Any
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Bad traces by item and profile; healthy ones by feature and profile."""
    from pyspark.sql import functions as sql

    here: dict[str, dict[str, int]] = {}
    chosen = asked.select("item")
    counted = each.join(sql.broadcast(chosen), "item").groupBy("item", "profile").count()
    for row in counted.collect():
        here.setdefault(row["item"], {})[row["profile"]] = int(row["count"])
    steps = sql.regexp_replace("item", "^(convicts|here|between): ", "step: ").alias("feature")
    wanted = sql.broadcast(chosen.select(steps).distinct())
    having: dict[str, dict[str, int]] = {}
    healthy = contrast.join(wanted, "feature").groupBy("feature", "profile").agg(sql.sum("traces"))
    for row in healthy.collect():
        having.setdefault(row[0], {})[row[1]] = int(row[2])
    return here, having


def _alone(labels: list[int], rows: Matrix, signatures: list[tuple[str, Any]]) -> list[int]:
    """Labels in which traces without any weighty item go together by their anomaly."""
    nothing = np.asarray(~rows.any(axis=1))
    first: dict[str, int] = {}
    return [
        first.setdefault(signatures[row][0], row) if nothing[row] else label
        for row, label in enumerate(labels)
    ]


def _by_size(labels: list[int], counts: list[int], signatures: list[tuple[str, Any]]) -> list[int]:
    """Labels from 1 on, the group with the most traces first; among equals by anomaly and items."""
    sizes: dict[int, int] = {}
    for label, count in zip(labels, counts, strict=True):
        sizes[label] = sizes.get(label, 0) + count
    order = sorted(sizes, key=lambda label: (-sizes[label], signatures[label][0], list(signatures[label][1])))
    number = {label: place + 1 for place, label in enumerate(order)}
    return [number[label] for label in labels]


def _members(label: int, labels: list[int]) -> list[int]:
    return [row for row, one in enumerate(labels) if one == label]


def _own(
    label: int, labels: list[int], rows: Matrix, counts: list[int], places: list[str]
) -> dict[str, float]:
    """The items that most traces of a group have, with their mean weight in it."""
    members = _members(label, labels)
    share = np.array(counts, float)[members]
    share /= share.sum()
    common = share @ (rows[members] > 0)
    mean = share @ rows[members]
    kept = [
        place
        for place in np.argsort(-mean, kind="stable").tolist()
        if common[place] >= USUAL and mean[place] > 0
    ]
    return {places[place]: round(float(mean[place]), 4) for place in kept[:MOST_OWN]}


def _anomaly(label: int, labels: list[int], counts: list[int], signatures: list[tuple[str, Any]]) -> str:
    """The anomaly that names most of a group's traces."""
    by: dict[str, int] = {}
    for row in _members(label, labels):
        by[signatures[row][0]] = by.get(signatures[row][0], 0) + counts[row]
    return min(by, key=lambda name: (-by[name], name))


def _name(anomaly: str, items: dict[str, float]) -> str:
    """The anomaly and four letters of what the group is known by: its heaviest items."""
    text = "\n".join(sorted(list(items)[:5]))
    return f"{anomaly}-{hashlib.sha256(text.encode()).hexdigest()[:4]}"


def _labelled(
    signed: Any, signatures: list[str], labels: list[int], rows: Matrix, counts: list[int], space: _Space
) -> Any:
    """Every trace with its label: by its signature, or by what it is most like."""
    import pandas as pd  # type: ignore[import-untyped]

    known = dict(zip(signatures, labels, strict=True))
    groups = sorted(set(labels))
    centres = np.array(
        [
            np.average(
                rows[_members(label, labels)],
                axis=0,
                weights=[counts[row] for row in _members(label, labels)],
            )
            for label in groups
        ]
    ).reshape(len(groups), len(space.places))

    def give(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            found = []
            for anomaly, kept, signature in zip(
                batch["anomaly"], batch["kept"], batch["signature"], strict=True
            ):
                label = known.get(signature)
                if label is None:
                    likeness = space.vectors([(anomaly, list(kept))]) @ centres.T
                    label = groups[int(likeness.argmax())] if likeness.max(initial=0) >= ALIKE / 2 else 0
                found.append(label)
            yield batch.drop(columns=["kept", "signature", "items"]).assign(label=pd.array(found, "int64"))

    kept = [field for field in signed.schema if field.name not in ("kept", "signature", "items")]
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in kept) + ", label bigint"
    return signed.mapInPandas(give, schema)
