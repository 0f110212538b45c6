"""From the results of a mining to its bugs, and the tables about them.

Owns: the tables `groups`, `over_represented` and `coverage`. Must not know: how a trace is judged, how
groups are made.

Spark's tasks have reduced what was mined: to evidence of bad traces, and to counts of healthy ones. The rest
is this process's, without a session.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import asdict, evolve

from fencepost.mining.triage.bugs import Bugs
from fencepost.mining.triage.grouping import coverage, group
from fencepost.mining.triage.tables import healthy_of, size_of

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
"""The tables that triage adds to those of mining (docs/reference/mining-tables.md)."""


def triage(out: Path, *, tables: bool = False, judged: int = 0) -> Bugs:
    """The bugs of the mining in `out`, which has the tables `evidence` and `contrast`; writes `groups`,
    `over_represented` and bugs.json.

    tables: write `coverage` too, from `spectra`; judged: traces of the mining. Returns: the bugs, the one
    with the most traces first.
    """
    found = Bugs()
    with pq.ParquetWriter(_file(out, "groups"), GROUPS) as writer:
        if size_of(out / "evidence"):
            found = group(
                out / "evidence",
                healthy_of(out / "contrast"),
                lambda rows: writer.write_table(pa.Table.from_pylist(rows, schema=GROUPS)),
            )
    shared = (
        {"bug": bug.number, "name": bug.name, **asdict(one)} for bug in found.bugs for one in bug.shares
    )
    _write(out, "over_represented", OVER_REPRESENTED, shared)
    if tables:
        _write(out, "coverage", COVERAGE, coverage(out / "spectra"))
    found = evolve(found, judged=judged)
    found.write(out)
    return found


def _file(out: Path, name: str) -> Path:
    """The file of a table, which replaces what an interrupted triage left."""
    shutil.rmtree(out / name, ignore_errors=True)
    (out / name).mkdir()
    return out / name / "part-0.parquet"


def _write(out: Path, name: str, schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), _file(out, name))
