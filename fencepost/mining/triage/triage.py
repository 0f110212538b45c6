"""From the results of a mining to its bugs: grouped, described, written.

Owns: the order of the steps, whether Spark or this process counts, and the tables `groups`,
`over_represented` and `coverage`. Must not know: how a trace is judged.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import asdict, evolve

from fencepost.mining.triage import in_memory
from fencepost.mining.triage.bugs import Bugs
from fencepost.mining.triage.grouping import GROUPS, Labels, coverage, group, groups_of
from fencepost.mining.triage.in_memory import InMemory, healthy_of, rows_of, values_in
from fencepost.mining.triage.on_spark import OnSpark

PARTITIONS = 8
"""Partitions of a shuffle: triage shuffles little in comparison with what was judged."""

_TEXT: Any = pa.string()
_INT: Any = pa.int64()
_FLOAT: Any = pa.float64()
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
    bad, asked = _rows(out / "evidence"), tables and _rows(out / "spectra")
    read = [out / name for name in ("evidence", *(("spectra",) if asked else ()))]
    few = values_in(*read) <= in_memory.MOST_VALUES
    spark = None if few or not (bad or asked) else session()
    with _few_partitions(spark):
        found = _bugs(spark, out) if bad else Bugs()
        if asked:
            _write(out, "coverage", COVERAGE, coverage(_counted(spark, out / "spectra")))
    if not bad:
        _write(out, "groups", GROUPS, [])
    _write(out, "over_represented", OVER_REPRESENTED, list(_shared_rows(found)))
    found = evolve(found, judged=judged)
    found.write(out)
    return found


def _bugs(spark: Any, out: Path) -> Bugs:
    evidence = _counted(spark, out / "evidence")

    def write(labels: Labels) -> None:
        if isinstance(evidence, OnSpark):
            evidence.write_groups(_uri(out / "groups"), labels)
        else:
            _write(out, "groups", GROUPS, groups_of(evidence.rows, labels).to_pylist())

    return group(evidence, healthy_of(out / "contrast"), write)


def _counted(spark: Any, folder: Path) -> InMemory | OnSpark:
    """The rows of a table, on Spark if there is a session."""
    return InMemory(rows_of(folder)) if spark is None else OnSpark(spark.read.parquet(_uri(folder)))


@contextmanager
def _few_partitions(spark: Any) -> Iterator[None]:
    """Shuffles of a session have PARTITIONS parts meanwhile; nothing without a session."""
    if spark is None:
        yield
        return
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    try:
        yield
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def _rows(folder: Path) -> int:
    """Rows of a table, by its footers."""
    return sum(int(pq.read_metadata(path).num_rows) for path in sorted(folder.glob("*.parquet")))


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
