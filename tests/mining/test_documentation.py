"""docs/reference/mining-tables.md says what the result tables hold."""

import re
from pathlib import Path

import pytest

from fencepost.mining.results.result_rows import RESULTS, SCHEMAS

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "mining-tables.md").read_text()


@pytest.mark.parametrize("result", RESULTS)
def test_every_result_column_is_documented(result: str) -> None:
    """docs/reference/mining-tables.md lists exactly the columns of each result, and which may be null."""
    said = TEXT.split(f"\n### Table `{result}`\n\n")[1].split("\n\n")[0]
    schema = SCHEMAS[result]
    assert re.findall(r"`(\w+)`", said) == schema.names
    nullable = [field.name for field in schema if field.nullable]
    assert re.findall(r"`(\w+)` \([^)]*\bnull:", said) == nullable
