"""From the results of a mining to its bugs: grouped, described, written.

Owns: the order of the steps on Spark, and the tables `groups` and `over_represented`. Must not know: how a trace is judged.
"""

from pathlib import Path
from typing import Any

from fencepost.mining.triage.bugs import Bug, Bugs, Example
from fencepost.mining.triage.grouping import PARTITIONS, Grouping, group
from fencepost.mining.triage.overrepresented import over_represented

NO_EVENTS = "these histories have no protocol events: only their operations were compared"
NO_HEALTHY = "there is no healthy trace to hold them against: every step counts as strange"


def triage(spark: Any, out: Path) -> Bugs:
    """The bugs of the mining in `out`, which has the tables `evidence` and `contrast`; writes `groups` and bugs.json.

    Returns: the bugs, the one with the most traces first; none where nothing is bad.
    """
    evidence = spark.read.parquet(str(out / "evidence"))
    contrast = spark.read.parquet(str(out / "contrast"))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    try:
        found = _bugs(evidence, contrast, out) if evidence.limit(1).count() else Bugs()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    found.write(out)
    return found


def _bugs(evidence: Any, contrast: Any, out: Path) -> Bugs:
    grouping = group(evidence.persist(), contrast.persist())
    labelled = grouping.labelled.persist()
    try:
        shares, tested = over_represented(labelled, contrast)
        _write_groups(labelled, out)
        bugs = tuple(_described(labelled, grouping, shares))
    finally:
        for frame in (labelled, evidence, contrast):
            frame.unpersist()
    return Bugs(bugs=bugs, bad=grouping.bad, healthy=grouping.healthy, tested=tested)


def _write_groups(labelled: Any, out: Path) -> None:
    """The table `groups`: which bug each bad trace is."""
    labelled.select("source", "trace_id", "anomaly", labelled["label"].alias("bug")).write.mode(
        "overwrite"
    ).parquet(str(out / "groups"))


def _described(labelled: Any, grouping: Grouping, shares: dict[int, Any]) -> Any:
    from pyspark.sql import functions as sql

    example = sql.struct("source", "trace_id", "operations", "replay")
    by_size = sql.struct("operations", "source", "trace_id")
    rows = labelled.groupBy("label").agg(
        sql.count("*").alias("traces"),
        sql.min_by(example, by_size).alias("smallest"),
        sql.min_by(example, sql.struct("source", "trace_id")).alias("first"),
        sql.max(sql.exists("features", lambda feature: feature.startswith("step: "))).alias("events"),
    )
    counts = {
        column: labelled.groupBy("label", column)
        .count()
        .orderBy("label", sql.desc("count"), column)
        .collect()
        for column in ("anomaly", "profile")
    }
    for row in rows.orderBy("label").collect():
        label = int(row["label"])
        by = {
            column: {one[column]: int(one["count"]) for one in found if one["label"] == label}
            for column, found in counts.items()
        }
        missing = [*([] if row["events"] else [NO_EVENTS]), *([] if grouping.healthy else [NO_HEALTHY])]
        anomaly = next(iter(by["anomaly"]))
        yield Bug(
            number=label,
            name=grouping.names.get(label, f"{anomaly}-rest"),
            anomaly=anomaly,
            traces=int(row["traces"]),
            anomalies=by["anomaly"],
            profiles=by["profile"],
            first=Example(**row["first"].asDict()),
            smallest=Example(**row["smallest"].asDict()),
            items=grouping.items.get(label, {}),
            shares=tuple(shares.get(label, ())),
            missing=tuple(missing),
        )
