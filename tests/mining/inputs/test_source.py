"""The Spark data source: whatever `check` reads is a DataFrame with the same rows."""

from pathlib import Path

import pytest

from fencepost.mining.inputs.source import HistorySource
from fencepost.traces import jsonlines
from fencepost.traces.canonical_rows import OPERATION_COLUMNS, operation_row
from fencepost.traces.errors import FencepostError
from fencepost.traces.schema import SCHEMAS
from fencepost.traces.store import TraceStore

EDN = """
{:type :invoke, :f :write, :value 1, :process 0, :time 10, :index 0}
{:type :ok, :f :write, :value 1, :process 0, :time 20, :index 1}
{:type :invoke, :f :read, :value nil, :process 1, :time 30, :index 2}
{:type :ok, :f :read, :value 1, :process 1, :time 40, :index 3}
"""


@pytest.mark.spark
def test_a_folder_of_traces_gives_its_rows(campaign: Path, mixed, spark) -> None:
    """Each table has the rows of the folder behind their source: nested records, nulls and all."""
    frame = spark.read.format("fencepost").load(str(campaign))
    assert frame.columns == ["source", "trace_id", *OPERATION_COLUMNS]
    rows = {(row["trace_id"], row["op_id"]): row for row in frame.collect()}
    stored = {trace.trace_id: trace for trace in TraceStore.open(campaign)}
    assert len(rows) == sum(len(trace.operations) for trace in stored.values()) > 0
    for trace in stored.values():
        for operation in trace.operations:
            row = rows[trace.trace_id, operation.op_id]
            assert row["source"] == str(campaign)
            assert _plain(row, OPERATION_COLUMNS) == _told(operation_row(operation))


def test_the_other_tables_are_an_option(campaign: Path, mixed) -> None:
    """Events and traces come as the same pieces; their schema is the table's behind the source."""
    told = {}
    for table in ("events", "traces"):
        reader = HistorySource({"path": str(campaign), "table": table}).reader(None)
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        assert batches[0].schema.names == ["source", *SCHEMAS[table].names]
        told[table] = sum(batch.num_rows for batch in batches)
    assert told == {"events": sum(len(trace.events) for trace in mixed), "traces": len(mixed)}


def _plain(row, columns):
    return [
        [tuple(inner) for inner in row[name]] if isinstance(row[name], list) else row[name]
        for name in columns
    ]


def _told(row):
    return [[tuple(inner) for inner in value] if isinstance(value, (list, tuple)) else value for value in row]


@pytest.mark.spark
def test_foreign_histories_and_json_lines_are_read_side_by_side(mixed, tmp_path: Path, spark) -> None:
    """A folder of files of several formats is one DataFrame; a history without an id gets the number of its
    file."""
    (tmp_path / "a.edn").write_text(EDN)
    (tmp_path / "b.edn").write_text(EDN)
    jsonlines.write_traces(tmp_path / "c.jsonl", mixed[:3])
    frame = spark.read.format("fencepost").load(str(tmp_path))
    found = sorted((Path(row["source"]).name, row["trace_id"], row["op_id"]) for row in frame.collect())
    assert [row for row in found if row[0] == "a.edn"] == [
        ("a.edn", 0, row[2]) for row in found if row[0] == "a.edn"
    ]
    assert {row[1] for row in found if row[0] == "b.edn"} == {1}
    assert len([row for row in found if row[0] == "a.edn"]) == 2
    assert {row[1] for row in found if row[0] == "c.jsonl"} == {trace.trace_id for trace in mixed[:3]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "verdicts"}, "a table of events, operations, traces"),
        ({"format": "csv"}, "a format of auto"),
        ({"path": "nowhere"}, "nothing there"),
        ({"path": ""}, "a path"),
    ],
)
def test_bad_options_are_told_in_a_sentence(options, said, campaign: Path) -> None:
    """An unknown table or format, or a path without histories, says what was expected."""
    with pytest.raises(FencepostError, match=said):
        HistorySource({"path": str(campaign), **options}).reader(None).partitions()
