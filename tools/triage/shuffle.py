"""`python -m tools.triage.shuffle MINED`: labels drawn by chance must share nothing.

MINED is a mining with --tables. Of its healthy traces some are called bad, at random, again and again; every
feature that passes the correction then is invented. Only distinct runs may be in it: copies of one run are
alike by more than chance.
"""

from pathlib import Path
from random import Random
from typing import Any

import rich_click as click

from fencepost.mining.spark.session import session
from fencepost.mining.triage.overrepresented import over_represented
from fencepost.mining.triage.rows import ALL


def passing(spark: Any, mined: Path, *, shuffles: int, bad: int, seed: int) -> list[list[str]]:
    """Of each shuffle the features that pass."""
    from pyspark.sql import functions as sql

    spectra = spark.read.parquet(str(mined / "spectra")).where("state = 'healthy'").persist()
    ids = sorted((row["source"], row["trace_id"]) for row in spectra.select("source", "trace_id").collect())
    found = []
    for number in range(shuffles):
        chosen = Random(seed + number).sample(ids, bad)
        labels = spark.createDataFrame(
            [(*one, 1) for one in chosen], "source string, trace_id bigint, label bigint"
        )
        joined = spectra.join(sql.broadcast(labels), ["source", "trace_id"], "left")
        healthy = joined.where("label is null")
        each = healthy.select("profile", sql.explode("features").alias("feature"))
        everyone = healthy.select("profile", sql.lit(ALL).alias("feature"))
        contrast = (
            each.unionByName(everyone).groupBy("profile", "feature").agg(sql.count("*").alias("traces"))
        )
        shares, _ = over_represented(joined.where("label is not null"), contrast)
        found.append([one.feature for one in shares.get(1, [])])
    return found


@click.command()
@click.argument("mined", type=click.Path(path_type=Path, exists=True))
@click.option("--shuffles", default=20, show_default=True)
@click.option("--bad", default=10, show_default=True, help="Traces that are called bad.")
@click.option("--seed", default=1, show_default=True)
def command(mined: Path, shuffles: int, bad: int, seed: int) -> None:
    """Say how many features pass in each shuffle."""
    with session("local[2]", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        found = passing(spark, mined, shuffles=shuffles, bad=bad, seed=seed)
    click.echo(
        f"{sum(map(len, found))} features pass in {shuffles} shuffles, {bad} traces called bad in each"
    )
    for features in found:
        for feature in features:
            click.echo(f"  {feature}")


if __name__ == "__main__":
    command()
