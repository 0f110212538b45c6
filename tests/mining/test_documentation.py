"""docs/reference/mining-tables.md says what the result tables hold."""

from pathlib import Path

import pytest

from fencepost.mining.results.result_rows import RESULTS, SCHEMAS

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "mining-tables.md").read_text()


@pytest.mark.parametrize("result", RESULTS)
def test_every_result_column_is_documented(result: str) -> None:
    """The tables of docs/reference/mining-tables.md list exactly the columns of the results, with type
    and null."""
    section = TEXT.split(f"\n### Table `{result}`\n")[1].split("\n#")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    told = {name.strip().strip("`"): kind.strip() for name, kind, _ in rows}
    assert list(told) == SCHEMAS[result].names
    for field in SCHEMAS[result]:
        assert ("null" in told[field.name]) == field.nullable, field.name
        kind = str(field.type)
        assert told[field.name].startswith("list of" if kind.startswith("list") else kind), field.name
