"""docs/reference/traces.md says everything that a reader of the tables needs."""

import re
from pathlib import Path

import attrs
import pytest

from fencepost.traces.kafka_names.outcomes import ErrorCode, outcome_of_attempt
from fencepost.traces.operations import Function, Outcome, Position, Record
from fencepost.traces.schema import SCHEMAS, TABLES

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
    documented = rows(text)
    assert list(documented) == SCHEMAS[table].names
    for field in SCHEMAS[table]:
        told = documented[field.name][1]
        assert ("null" in told) == field.nullable, field.name
        kind = str(field.type)
        assert told.startswith(kind if not kind.startswith("list") else "list of"), field.name


def test_nested_fields_functions_and_outcomes_are_named() -> None:
    """Every field of a record and a position, every function and every outcome is named."""
    text = section("Table `operations`")
    for cls in (Record, Position):
        assert all(f"`{field.name}`" in text for field in attrs.fields(cls))
    for word in (*Function, *Outcome):
        assert f"`{word.value}`" in text, word


def test_the_outcomes_are_the_codes() -> None:
    """Before an append the codes that are listed are unknown, after one all are; the others fail."""
    said = re.findall(r"`([A-Z_]+)`", section("Outcomes by error").split("are unknown")[1].split("\n")[0])
    for code in ErrorCode:
        before, after = (outcome_of_attempt(code, appended=appended) for appended in (False, True))
        if code is ErrorCode.NONE:
            assert (before, after) == (Outcome.OK, Outcome.OK)
        else:
            assert after is Outcome.UNKNOWN
            assert (before is Outcome.UNKNOWN) == (code.value in said), code
            assert before in (Outcome.UNKNOWN, Outcome.FAIL)
    assert set(said) < {code.value for code in ErrorCode}
