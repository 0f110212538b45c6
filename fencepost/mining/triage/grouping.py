"""Bad traces into groups, on Spark: items weighed, signatures counted, the most frequent ones clustered,
every trace given to its group.

Owns: the named relations below and their bounds. Must not know: how evidence comes about (evidence.py), what
a group is made of (clusters.py).

    evidence    a row per bad trace, as tasks wrote it
    contrast    a row per task, profile and feature: healthy traces that have it
    rated       a row per item: bad traces that have it, healthy traces that have its step
    signed      a row per bad trace: its signature, which is the items that weigh anything, sorted
    labelled    a row per bad trace: the number of its bug, and those of the bugs that it shows also

Only distinct items and distinct signatures come to the driver, MOST_ITEMS and MOST_SIGNATURES at most, the
most frequent first. Every other trace is given to the group that it is most like, by a vectorised function on
the executors.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from fencepost.mining.triage.clusters import (
    MOST_ITEMS,
    MOST_SIGNATURES,
    Clusters,
    Signature,
    Space,
    clusters_of,
    space_of,
)
from fencepost.mining.triage.rows import ALL

PARTITIONS = 8
"""Partitions of a shuffle: triage shuffles little in comparison with what was judged."""


@frozen(kw_only=True, eq=False)
class Grouping:
    """labelled: source, trace_id, profile, operations, anomaly, features, replay, label, also. names, items:
    by label."""

    labelled: Any
    names: dict[int, str]
    items: dict[int, dict[str, float]]
    bad: int
    healthy: int


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
    found = clusters_of(
        [
            Signature(text=row["signature"], anomaly=row["anomaly"], kept=row["kept"], traces=row["traces"])
            for row in top
        ],
        space,
        sum(healthy.values()),
    )
    return Grouping(
        labelled=_labelled(signed, found),
        names=found.names,
        items=found.items,
        bad=bad,
        healthy=sum(healthy.values()),
    )


def _space(evidence: Any, contrast: Any, bad: int, healthy: Mapping[str, int]) -> Space:
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
    return space_of(rated, here, having, bad=bad, healthy=healthy)


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


def _labelled(signed: Any, clusters: Clusters) -> Any:
    """Every trace with its label, by its signature or by what it is most like, and the others that it shows
    also."""
    import pandas as pd  # type: ignore[import-untyped]

    def give(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            columns = (batch["signature"], batch["anomaly"], batch["kept"])
            found = [clusters.label(*row) for row in zip(*columns, strict=True)]
            also = [clusters.also(*row) for row in zip(found, batch["kept"], strict=True)]
            rest = batch.drop(columns=["kept", "signature", "items"])
            yield rest.assign(label=pd.array(found, "int64"), also=also)

    kept = [field for field in signed.schema if field.name not in ("kept", "signature", "items")]
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in kept)
    schema += ", label bigint, also array<bigint>"
    return signed.mapInPandas(give, schema)
