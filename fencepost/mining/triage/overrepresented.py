"""Which features a bug's traces have more often than comparable healthy ones, on Spark SQL.

Owns: the two measures, the correction, and what comes to the driver. Must not know: what a feature is, how
traces were grouped.

    Ochiai             a / sqrt((a + b) (a + c)): a bad traces with the feature, b without, c healthy ones
                       with it
    likelihood ratio   G = 2 sum(observed ln(observed / expected)) over the 2x2 table, chi-squared with one
                       degree of freedom
    corrected          p times the number of features that were tested with it (Bonferroni): no order of all
                       of them is needed. Pairs of
                       steps are ten times as many as everything else, and are corrected apart, each half of
                       the chance being theirs

Comparable are healthy traces of the same profile, because a swarm's profile alone explains many features: the
share of healthy traces that have a feature is the mean over the profiles of the bug's traces, weighted by how
many come from each. A profile without healthy traces is left out, and where none has any, all healthy traces
are taken.
"""

from collections.abc import Iterable, Mapping
from math import erfc, sqrt
from typing import Any

from fencepost.mining.triage.bugs import Shared
from fencepost.mining.triage.rows import ALL

ALPHA = 0.01
"""Chance that any feature of any bug passes though none has to do with it."""
MOST_PER_BUG = 60
"""Features of a bug that come to the driver, the largest likelihood ratio first."""
KEPT = 20
"""Features of a bug that are reported, after those that say the same as a simpler one are left out."""
PAIR = "then: "
VERDICT = "step: liveness_failed"
"""Steps that are the verdict itself, in other words."""


def over_represented(labelled: Any, contrast: Any) -> tuple[dict[int, list[Shared]], int]:
    """By label the features that pass, the largest likelihood ratio first, and how many pairs were tested.

    labelled: label, profile, features of each bad trace; contrast: profile, feature, traces of healthy ones,
    with ALL for all of a profile.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    counted = _counted(labelled, contrast)
    a, b = sql.col("bad").cast("double"), (sql.col("of_bad") - sql.col("bad")).cast("double")
    c = sql.col("healthy") * sql.col("of_healthy")
    d = sql.col("of_healthy") - c
    n = a + b + c + d

    def part(observed: Any, row: Any, column: Any) -> Any:
        return sql.when(observed > 0, observed * sql.log(observed * n / (row * column))).otherwise(0.0)

    ratio = 2 * (
        part(a, a + b, a + c) + part(b, a + b, b + d) + part(c, c + d, a + c) + part(d, c + d, b + d)
    )
    tested = counted.withColumn("ochiai", a / sql.sqrt((a + b) * (a + c))).withColumn("ratio", ratio)
    tested = tested.persist()
    try:
        is_pair = sql.col("feature").startswith(PAIR)
        pairs = {bool(row[0]): int(row[1]) for row in tested.groupBy(is_pair).count().collect()}
        more = tested.where(a / (a + b) > sql.col("healthy"))
        order = Window.partitionBy("label").orderBy(sql.desc("ratio"), sql.length("feature"), "feature")
        top = more.withColumn("place", sql.row_number().over(order)).where(sql.col("place") <= MOST_PER_BUG)
        rows = top.orderBy("label", "place").collect()
    finally:
        tested.unpersist()
    return reported(rows, pairs), sum(pairs.values())


def reported(rows: Iterable[Any], pairs: Mapping[bool, int]) -> dict[int, list[Shared]]:
    """By label the features that pass.

    Args:
        rows: of each label, the features with the largest ratios, the largest first: label, feature, bad,
            of_bad, healthy, of_healthy, ochiai, ratio.
        pairs: how many pairs of label and feature were tested, by whether the feature is a pair of steps.
    """
    found: dict[int, list[Shared]] = {}
    for row in rows:
        p = min(1.0, _chance(row["ratio"]) * 2 * pairs[row["feature"].startswith(PAIR)])
        if p <= ALPHA:
            found.setdefault(int(row["label"]), []).append(
                Shared(
                    feature=row["feature"],
                    bad=int(row["bad"]),
                    of_bad=int(row["of_bad"]),
                    healthy=float(row["healthy"]),
                    of_healthy=int(row["of_healthy"]),
                    ochiai=round(float(row["ochiai"]), 4),
                    likelihood_ratio=round(float(row["ratio"]), 2),
                    p=p,
                )
            )
    return {label: without_echoes(shared)[:KEPT] for label, shared in found.items()}


def _counted(labelled: Any, contrast: Any) -> Any:
    """label, feature, bad, of_bad, healthy (a share), of_healthy."""
    from pyspark.sql import functions as sql

    summed = contrast.groupBy("profile", "feature").agg(sql.sum("traces").alias("traces"))
    of_profile = summed.where(sql.col("feature") == ALL).select(
        "profile", sql.col("traces").alias("of_profile")
    )
    of_profile = of_profile.where(sql.col("of_profile") > 0)
    sizes = labelled.groupBy("label").agg(sql.count("*").alias("of_bad"))
    by_profile = (
        labelled.groupBy("label", "profile")
        .agg(sql.count("*").alias("here"))
        .join(sql.broadcast(of_profile), "profile", "left")
    )
    with_some = by_profile.groupBy("label").agg(
        sql.sum(sql.when(sql.col("of_profile").isNotNull(), sql.col("here"))).alias("with_some"),
        sql.sum("of_profile").alias("own"),
    )
    everybody = of_profile.agg(sql.sum("of_profile").alias("everybody"))
    sizes = sizes.join(with_some, "label").crossJoin(sql.broadcast(everybody))
    sizes = sizes.withColumn("of_healthy", sql.coalesce("own", "everybody", sql.lit(0)))
    shares = by_profile.where(sql.col("of_profile").isNotNull()).join(
        with_some.select("label", "with_some"), "label"
    )
    shares = shares.select(
        "label",
        "profile",
        (sql.col("here") / sql.col("with_some") / sql.col("of_profile")).alias("per_trace"),
    )
    none = (
        with_some.where(sql.col("with_some").isNull())
        .select("label")
        .crossJoin(of_profile.select("profile"))
        .crossJoin(everybody)
    )
    shares = shares.unionByName(
        none.select("label", "profile", (1 / sql.col("everybody")).alias("per_trace"))
    )
    own = labelled.select("label", sql.explode("features").alias("feature")).where(
        ~sql.col("feature").startswith(VERDICT)
    )
    own = own.groupBy("label", "feature").agg(sql.count("*").alias("bad"))
    theirs = (
        summed.join(sql.broadcast(shares), "profile")
        .groupBy("label", "feature")
        .agg(sql.sum(sql.col("traces") * sql.col("per_trace")).alias("healthy"))
    )
    together = own.join(theirs, ["label", "feature"], "left").fillna(0.0, ["healthy"])
    return together.join(sql.broadcast(sizes.select("label", "of_bad", "of_healthy")), "label")


def _chance(ratio: float) -> float:
    """The probability of so large a likelihood ratio by chance: the upper tail of chi-squared with one degree
    of freedom."""
    return erfc(sqrt(max(ratio, 0.0) / 2))


def without_echoes(shared: list[Shared]) -> list[Shared]:
    """Without pairs and repetitions that say no more than one of their steps does, which is there with a
    ratio about as large."""
    steps = {one.feature.removeprefix("step: "): one for one in shared if one.feature.startswith("step: ")}
    kept = []
    for one in shared:
        kind, words = one.feature.split(": ", 1)
        inner = (
            words.split(" -> ")
            if kind == "then"
            else [words]
            if kind in ("again", "last", "last of the cluster")
            else []
        )
        if not any(
            word in steps and one.likelihood_ratio <= 1.25 * steps[word].likelihood_ratio for word in inner
        ):
            kept.append(one)
    return kept
