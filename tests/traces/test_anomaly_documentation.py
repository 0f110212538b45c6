"""docs/reference/anomalies.md and docs/reference/verdicts.md show the anomaly table as it is."""

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("rewrite_anomalies", HERE / "rewrite_anomalies.py")
assert spec is not None and spec.loader is not None
writer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(writer)


@pytest.mark.parametrize("name,heading,rows", writer.TABLES)
def test_the_tables_are_the_codes(name, heading, rows) -> None:
    """Each row of both documents is what `python tests/traces/rewrite_anomalies.py` writes from the table."""
    text = (writer.DOCS / name).read_text()
    first, last = writer.rows_below(text, heading)
    assert text.split("\n")[first:last] == rows()
