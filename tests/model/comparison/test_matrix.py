"""The table of `fencepost model matrix`: what stands in it already is not run again, and one row that differs
decides."""

import pytest

from fencepost.cli import run as fencepost
from fencepost.model.comparison.matrix import Sheet, cells, headings
from fencepost.model.comparison.sameness import Comparison, Seen
from fencepost.model.registry import NAMES, shipped
from fencepost.traces.errors import FencepostError

HELD = Seen(result="holds", invariant="", steps=0, distinct=1_234, depth=5, seconds=0.5)
FELL = Seen(result="violated", invariant="COMMIT-SAFE", steps=4)


def whole(name, size, seen=HELD, other=HELD):
    """A table with every row of a model's variants."""
    model = shipped(name)
    sheet = Sheet(headings(model))
    for row in model.variants(size):
        sheet.rows.append(cells(model, row, Comparison(constants=row.constants, explorer=seen, tlc=other)))
    return sheet


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["small", "medium"])
def test_rows_are_told_apart(name, size):
    """Rule: the columns name every variant, so that a table that was written says which of them it has."""
    model = shipped(name)
    rows = model.variants(size)
    sheet = whole(name, size)
    assert all(sheet.has(model, row) for row in rows)
    assert len(set(sheet.rows)) == len(rows)
    del sheet.rows[3]
    assert [sheet.has(model, row) for row in rows].count(False) == 1


def test_a_finished_table_runs_nothing(tmp_path, capsys):
    """Rule: --resume keeps the rows of --out, and the verdict is that of all rows."""
    file = tmp_path / "table.md"
    sheet = whole("group", "medium")
    file.write_text(sheet.text)
    command = ["model", "matrix", "--model", "group", "--size", "medium", "--out", str(file), "--resume"]
    assert fencepost(command) == 0
    assert "all the same" in capsys.readouterr().err
    assert file.read_text() == sheet.text
    file.write_text(whole("group", "medium", HELD, FELL).text)
    assert fencepost(command) == 1
    assert "holds / violated" in capsys.readouterr().out


def test_another_table_is_refused(tmp_path, capsys):
    """Rule: what is not this table is the caller's mistake in one sentence, and is not written over."""
    file = tmp_path / "table.md"
    file.write_text("| a | b |\n|---|---|\n")
    with pytest.raises(FencepostError, match="a table with the columns"):
        Sheet.read(file, headings(shipped("group")))
    assert fencepost(["model", "matrix", "--out", str(file), "--resume"]) == 2
    assert fencepost(["model", "matrix", "--resume"]) == 2
    assert "no --out" in capsys.readouterr().err
    assert file.read_text() == "| a | b |\n|---|---|\n"
