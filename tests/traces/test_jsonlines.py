"""Strict reading of JSON lines."""

from pathlib import Path

import pytest

from fencepost.traces import jsonlines
from fencepost.traces.errors import TraceError

TRACE = '{"type":"trace","trace_id":1,"plan":"","seed":1,"software_version":"v"}'
EVENT = '{"type":"event","time":0,"name":"phase"}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([EVENT], r"f:1: expected a trace's own line first, saw event"),
        ([TRACE, "[1]"], r"f:2: expected a JSON object, saw list"),
        ([TRACE, "{"], r"f:2: expected a JSON object"),
        ([TRACE, "", '{"time":0}'], r'f:3: expected a "type"'),
        ([TRACE, '{"type":["event"]}'], r'f:2: expected a "type"'),
        ([TRACE, EVENT.replace("phase", "phrase")], r"f:2: .*phrase"),
        ([TRACE, EVENT.replace("0", '"0"')], r"f:2: .*time"),
        ([TRACE, EVENT.replace("0", "true")], r"f:2: .*time"),
        ([TRACE, EVENT.replace("0", str(2**63))], r"f:2: expected 64-bit integers"),
        ([TRACE, EVENT.replace("time", "tyme")], r"f:2: .*unknown field tyme"),
        ([TRACE, '{"type":"event","name":"phase"}'], r"f:2: .*time"),
        ([TRACE.replace("}", ',"operations":[]}')], r"f:1: .*unknown field operations"),
        ([TRACE.replace("}", ',"claims":{"lost":[]}}')], r"f:1: .*unknown field lost"),
        (
            [
                TRACE.replace(
                    "}",
                    ',"claims":{"loss":[{"topic":"t","partition":0,"start":0,"end":1,"reason":"","x":1}]}}',
                )
            ],
            r"f:1: .*unknown field x",
        ),
    ],
)
def test_each_mistake_is_named_with_its_line(lines: list[str], said: str) -> None:
    """An unreadable line is refused in one sentence with file and line."""
    with pytest.raises(TraceError, match=said) as caught:
        list(jsonlines.read_lines(lines, where="f"))
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_file_is_one_sentence(tmp_path: Path) -> None:
    """A file that is not there, or not text, is the caller's mistake."""
    with pytest.raises(TraceError, match="No such file"):
        list(jsonlines.read_traces(tmp_path / "none"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="bytes:1"):
        list(jsonlines.read_traces(tmp_path / "bytes"))


def test_several_traces_follow_each_other(tmp_path: Path, make_trace) -> None:
    """One file holds several traces, each with its own rows, one line per row."""
    traces = [make_trace(1), make_trace(2, appends=0), make_trace(3)]
    assert jsonlines.write_traces(tmp_path / "f", traces) == 3
    assert list(jsonlines.read_traces(tmp_path / "f")) == traces
    rows = sum(1 + len(trace.operations) + len(trace.events) for trace in traces)
    assert len((tmp_path / "f").read_text().splitlines()) == rows
