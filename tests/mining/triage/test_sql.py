"""docs/reference/mining-tables.md answers ten questions in SQL, and its tables are as it says."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fencepost.mining.triage.triage import COVERAGE, GROUPS, OVER_REPRESENTED

pytestmark = [pytest.mark.spark, pytest.mark.java]

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "mining-tables.md").read_text()
SECTION = TEXT.split("## Tables, and ten questions in SQL")[1].split("\n## ")[0]
VIEWS, *QUERIES = re.findall(r"```sql\n(.*?)```", SECTION, re.DOTALL)
TABLES = ("findings", "verdicts", "groups", "over_represented", "coverage", "spectra")


def views(engine: str) -> list[str]:
    """The statements of the document for an engine, for each table."""
    begin = VIEWS.split(f"-- {engine}\n")[1].split("-- ")[0]
    of_table, features = begin.split(";")[:2]
    return [*(of_table.replace("groups", name) for name in TABLES), features]


def cells(rows) -> list[list]:
    return [[round(cell, 9) if isinstance(cell, float) else cell for cell in row] for row in rows]


@pytest.fixture(scope="module")
def duck(planted):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[dev]'")
    with duckdb.connect() as connection:
        for statement in views("DuckDB"):
            connection.execute(statement.replace("out/mine", str(planted.out)))
        yield connection


@pytest.fixture(scope="module")
def in_spark(planted, spark):
    for statement in views("Spark SQL"):
        spark.sql(statement.replace("out/mine", str(planted.out)))
    yield spark
    for name in (*TABLES, "features"):
        spark.catalog.dropTempView(name)


def test_there_are_ten_questions() -> None:
    """Rule: what the title promises."""
    assert len(QUERIES) == 10


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_both_engines_answer_alike(number, duck, in_spark) -> None:
    """Rule: each query is the same in Spark SQL and DuckDB, and so is its answer."""
    theirs = duck.execute(QUERIES[number])
    names, told = [column[0] for column in theirs.description], cells(theirs.fetchall())
    ours = in_spark.sql(QUERIES[number])
    assert ours.columns == names
    assert cells(ours.collect()) == told
    if "unknown" not in QUERIES[number]:  # every run could be decided
        assert told


def test_the_answers_are_right(duck, planted) -> None:
    """Rule: the counts are those of the runs that were mined."""
    assert [row[2] for row in duck.execute(QUERIES[0]).fetchall()] == [4, 4]
    assert duck.execute(QUERIES[9]).fetchall() == [("default", len(planted.runs), len(planted.bug_of))]
    (traces,) = duck.execute("select max(of_traces) from coverage").fetchone()
    assert traces == len(planted.runs)


@pytest.mark.parametrize(
    ("name", "schema"), [("groups", GROUPS), ("over_represented", OVER_REPRESENTED), ("coverage", COVERAGE)]
)
def test_tables_have_the_documented_columns(name, schema, planted) -> None:
    """Rule: each table has the columns of its schema, and the document names each of them with its type."""
    rows = pq.read_table(planted.out / name)
    assert rows.schema.names == schema.names and [str(one) for one in rows.schema.types] == [
        str(one) for one in schema.types
    ]
    rest = SECTION.split(f"| `{name}` |")[1]
    for column in schema.names:
        assert f"`{column}`" in rest, column
