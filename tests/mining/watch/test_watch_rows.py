"""The quick form of operations: it says what the vocabulary's own says, and leaves everything that is odd
to the careful reader."""

from pathlib import Path

import msgspec
import pytest
from attrs import evolve

from fencepost.mining.watch_rows import OperationRow, read_quickly
from fencepost.traces.canonical_rows import operation_row
from fencepost.traces.jsonlines import lines_of, read_traces, write_traces
from fencepost.traces.operations import Function, Operation
from tests.mining.watch.watch_by_hand import history, low_watermark

TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":1,"software_version":"v"}'
ROW = '{"type":"operation","op_id":0,"process":0,"function":"append","invoke_time":0,"outcome":"unknown"%s}'


@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_quickly_is_what_is_read(seed: int, tmp_path: Path) -> None:
    """Rule: traces under way, several in a file, come out with the rows and events that the careful reader
    finds."""
    made = [evolve(history(seed), trace_id=seed), evolve(history(seed + 50), events=(low_watermark(5, 1),))]
    write_traces(tmp_path / "f.jsonl", made)
    assert read_quickly(tmp_path / "f.jsonl") == list(read_traces(tmp_path / "f.jsonl"))


@pytest.mark.parametrize(
    "lines",
    [
        [TRACE.replace("}", ',"digest":"ab"}'), ROW % ""],
        [ROW % ""],
        [TRACE, ROW % ',"colour":"red"'],
        [TRACE, ROW % ',"topic":3'],
        [TRACE, ROW % f',"offset":{2**63}'],
        [TRACE, ROW % ',"records":[{"topic":"t","partition":0,"offset":0,"value":1,"x":1}]'],
        [TRACE, ROW.replace("unknown", "maybe") % ""],
        [TRACE, ROW.replace('{"type":"operation",', '{').replace("}", ',"type":"operation"}') % ""],
        [TRACE, ROW % ', "argument":' + "[" * 100_000],
        [TRACE, "{"],
        [],
    ],
    ids=str,
)  # fmt: skip
def test_anything_odd_is_left_to_the_careful_reader(lines: list[str], tmp_path: Path) -> None:
    """Rule: a whole trace, an unknown field, a wrong type, a number too large, another order of fields, a
    torn line: the quick reader does not say what."""
    (tmp_path / "f.jsonl").write_text("".join(line + "\n" for line in lines))
    assert read_quickly(tmp_path / "f.jsonl") is None


def test_the_form_has_every_field_and_default() -> None:
    """Rule: a column that is added to the vocabulary is in the form too."""
    least = Operation(op_id=1, process=2, function=Function.POLL, invoke_time=3, outcome="ok")
    made = OperationRow(1, 2, Function.POLL, 3, "ok")
    assert operation_row(made) == operation_row(least)
    assert msgspec.json.encode(made).decode() == next(
        line for line in lines_of(evolve(history(1), operations=(least,), events=())) if '"operation"' in line
    )
