"""From the results of a mining to its bugs: grouped, described, written.

Owns: the order of the steps, whether Spark or this process counts, and the tables `groups`,
`over_represented` and `coverage`. Must not know: how a trace is judged.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import asdict, evolve

from fencepost.mining.triage import small
from fencepost.mining.triage.bugs import Bug, Bugs, Example, Shared
from fencepost.mining.triage.grouping import PARTITIONS, group
from fencepost.mining.triage.overrepresented import over_represented

NO_EVENTS = "these histories have no protocol events: only their operations were compared"
NO_HEALTHY = "there is no healthy trace to hold them against: every step counts as strange"


_TEXT: Any = pa.string()
_INT: Any = pa.int64()
_FLOAT: Any = pa.float64()
GROUPS = pa.schema(
    [
        *(("source", _TEXT), ("trace_id", _INT), ("anomaly", _TEXT), ("bug", _INT)),
        ("also", pa.list_(pa.field("element", pa.int64()))),
    ]
)
OVER_REPRESENTED = pa.schema(
    [
        *(("bug", _INT), ("name", _TEXT), ("feature", _TEXT), ("bad", _INT), ("of_bad", _INT)),
        *(("healthy", _FLOAT), ("of_healthy", _INT), ("ochiai", _FLOAT), ("likelihood_ratio", _FLOAT)),
        ("p", _FLOAT),
    ]
)
COVERAGE = pa.schema([("profile", _TEXT), ("feature", _TEXT), ("traces", _INT), ("of_traces", _INT)])
"""The tables that triage adds to those of mining (docs/how-to/triage.md)."""


def triage(session: Callable[[], Any], out: Path, *, tables: bool = False, judged: int = 0) -> Bugs:
    """The bugs of the mining in `out`, which has the tables `evidence` and `contrast`; writes `groups`,
    `over_represented` and bugs.json.

    session: gives a Spark session; not asked where nothing is bad, or little enough to count here. tables:
    write `coverage` too, from `spectra`; judged: traces of the mining. Returns: the bugs, the one with the
    most traces first.
    """
    found = Bugs()
    bad, asked = _rows(out / "evidence"), tables and _rows(out / "spectra")
    read = [out / name for name in ("evidence", *(("spectra",) if asked else ()))]
    if small.values_in(*read) <= small.MOST_VALUES:
        found = _bugs_here(out) if bad else found
        if asked:
            _write(out, "coverage", COVERAGE, small.coverage(small.rows_of(out / "spectra")))
    elif bad or asked:
        found = _on_spark(session(), out, bad=bool(bad), asked=bool(asked))
    if not bad:
        _write(out, "groups", GROUPS, [])
    _write(out, "over_represented", OVER_REPRESENTED, list(_shared_rows(found)))
    found = evolve(found, judged=judged)
    found.write(out)
    return found


def _bugs_here(out: Path) -> Bugs:
    """The bugs, counted in this process."""
    contrast = small.summed(out / "contrast")
    labelled = small.labelled(small.rows_of(out / "evidence"), contrast)
    shares, tested = small.over_represented(labelled.rows, contrast)
    _write(out, "groups", GROUPS, [{**row, "bug": row["label"]} for row in labelled.rows])
    bugs = tuple(
        _bug(row, labelled.clusters.names, labelled.clusters.items, labelled.healthy, shares)
        for row in small.described(labelled)
    )
    return Bugs(bugs=bugs, bad=len(labelled.rows), healthy=labelled.healthy, tested=tested)


def _on_spark(spark: Any, out: Path, *, bad: bool, asked: bool) -> Bugs:
    """The bugs, if any trace is bad, and `coverage`, if it is asked for."""
    found = Bugs()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    try:
        if bad:
            evidence, contrast = (spark.read.parquet(_uri(out / name)) for name in ("evidence", "contrast"))
            found = _bugs(evidence, contrast, out)
        if asked:
            _write_coverage(spark.read.parquet(_uri(out / "spectra")), out)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    return found


def _rows(folder: Path) -> int:
    """Rows of a table, by its footers."""
    return sum(int(pq.read_metadata(path).num_rows) for path in sorted(folder.glob("*.parquet")))


def _bugs(evidence: Any, contrast: Any, out: Path) -> Bugs:
    grouping = group(evidence.persist(), contrast.persist())
    labelled = grouping.labelled.persist()
    try:
        shares, tested = over_represented(labelled, contrast)
        _write_groups(labelled, out)
        bugs = tuple(
            _bug(row, grouping.names, grouping.items, grouping.healthy, shares)
            for row in _described(labelled)
        )
    finally:
        for frame in (labelled, evidence, contrast):
            frame.unpersist()
    return Bugs(bugs=bugs, bad=grouping.bad, healthy=grouping.healthy, tested=tested)


def _uri(path: Path) -> str:
    """A local path as a URI for Spark, which may have another default file system."""
    return f"file://{path.absolute()}"


def _shared_rows(found: Bugs) -> Iterator[dict[str, Any]]:
    for bug in found.bugs:
        for shared in bug.shares:
            yield {"bug": bug.number, "name": bug.name, **asdict(shared)}


def _write(out: Path, name: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    """A table of few rows, which are on the driver anyway. It replaces what an interrupted triage left."""
    shutil.rmtree(out / name, ignore_errors=True)
    (out / name).mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out / name / "part-0.parquet")


def _write_coverage(spectra: Any, out: Path) -> None:
    """The table `coverage`: how many judged traces of a profile have each feature."""
    from pyspark.sql import functions as sql

    of = spectra.groupBy("profile").agg(sql.count("*").alias("of_traces"))
    each = spectra.select("profile", sql.explode("features").alias("feature")).groupBy("profile", "feature")
    counted = each.agg(sql.count("*").alias("traces")).join(sql.broadcast(of), "profile")
    counted.select(*COVERAGE.names).write.mode("overwrite").parquet(_uri(out / "coverage"))


def _write_groups(labelled: Any, out: Path) -> None:
    """The table `groups`: which bug each bad trace is, and which it shows also."""
    labelled.select("source", "trace_id", "anomaly", labelled["label"].alias("bug"), "also").write.mode(
        "overwrite"
    ).parquet(_uri(out / "groups"))


def _described(labelled: Any) -> Iterator[dict[str, Any]]:
    """As small.described, from Spark."""
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
    shown = labelled.select(sql.explode("also").alias("label")).groupBy("label").count().collect()
    also = {int(row["label"]): int(row["count"]) for row in shown}
    for row in rows.orderBy("label").collect():
        label = int(row["label"])
        by = {
            column: {one[column]: int(one["count"]) for one in found if one["label"] == label}
            for column, found in counts.items()
        }
        yield {
            **{name: row[name] for name in ("label", "traces", "events")},
            "also": also.get(label, 0),
            **{name: row[name].asDict() for name in ("smallest", "first")},
            **by,
        }


def _bug(
    row: dict[str, Any],
    names: dict[int, str],
    items: dict[int, dict[str, float]],
    healthy: int,
    shares: dict[int, list[Shared]],
) -> Bug:
    """A bug of a row of small.described. names, items: of each group; healthy: traces to compare with;
    shares: the features of each group."""
    label = int(row["label"])
    anomaly = next(iter(row["anomaly"]))
    missing = [*([] if row["events"] else [NO_EVENTS]), *([] if healthy else [NO_HEALTHY])]
    return Bug(
        number=label,
        name=names.get(label, f"{anomaly}-rest"),
        anomaly=anomaly,
        traces=int(row["traces"]),
        anomalies=row["anomaly"],
        profiles=row["profile"],
        first=Example(**row["first"]),
        smallest=Example(**row["smallest"]),
        items=items.get(label, {}),
        shares=tuple(shares.get(label, ())),
        also=row["also"],
        missing=tuple(missing),
    )
