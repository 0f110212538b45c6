"""docs/reference/traces.md says everything that a reader of the tables needs."""

from pathlib import Path

import attrs
import pytest

from fencepost.traces.kafka_names.outcomes import ErrorCode, outcome_of_attempt
from fencepost.traces.operations import Function, Outcome, Position, Record
from fencepost.traces.schema import SCHEMAS, TABLES
from fencepost.traces.trace import Claims

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "traces.md").read_text()


def section(heading: str) -> str:
    """The text below a heading, up to the next of its level."""
    return TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows(text: str) -> dict[str, list[str]]:
    """Cells of the table rows that begin with a name in backticks, by that name."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return {line.split("`")[1]: [cell.strip() for cell in line.strip("|").split("|")] for line in lines}


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_documented_with_its_type(table: str) -> None:
    """The tables of docs/reference/traces.md list exactly the columns of the schema, with type and null."""
    text = section(f"Table `{table}`")
    documented = rows(text.split("**Claims**")[0])
    assert list(documented) == SCHEMAS[table].names
    for field in SCHEMAS[table]:
        told = documented[field.name][1]
        assert ("null" in told) == field.nullable, field.name
        kind = str(field.type)
        assert told.startswith(kind if not kind.startswith("list") else "list of"), field.name
        if field.nullable:
            assert "null:" in documented[field.name][2], field.name


def test_the_claims_are_documented() -> None:
    """Every field of the claims stands in its table."""
    assert list(rows(section("Table `traces`").split("**Claims**")[1])) == [
        field.name for field in attrs.fields(Claims)
    ]


def test_nested_fields_functions_and_outcomes_are_named() -> None:
    """Every field of a record and a position, every function and every outcome is named."""
    text = section("Table `operations`")
    for cls in (Record, Position):
        assert all(f"`{field.name}`" in text for field in attrs.fields(cls))
    for word in (*Function, *Outcome):
        assert f"`{word.value}`" in text, word


def test_the_outcome_table_is_the_code() -> None:
    """The outcome table names every error code with what it proves before and after an append."""
    documented = rows(section("Outcomes by error"))
    assert documented.keys() == {code.value for code in ErrorCode}
    for code in ErrorCode:
        expected = [outcome_of_attempt(code, appended=appended).value for appended in (False, True)]
        assert documented[code.value][1:] == expected, code
