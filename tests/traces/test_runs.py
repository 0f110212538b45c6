"""Records that a line writes as runs: the same operation as records that are written one by one."""

import json

import pytest

from fencepost.mining.watch_rows import read_quickly
from fencepost.traces.errors import TraceError
from fencepost.traces.jsonlines import MOST_VALUES, operation_line, read_lines, records_in

TRACE = json.dumps(
    {
        "type": "trace",
        "trace_id": 1,
        "target": "x",
        "seed": 0,
        "plan": "",
        "software_version": "1",
        "profile": "x",
        "claims": {},
    }
)
OPERATION = {
    "type": "operation", "op_id": 1, "process": 1, "function": "poll", "invoke_time": 0, "outcome": "ok",
    "completion_time": 7, "topic": "t", "partition": 0, "offset": 5,
}  # fmt: skip
RUNS = [
    {"topic": "t", "partition": 0, "offset": 5, "values": [9, -(2**63), 2**63 - 1], "leader_epoch": 3},
    {"topic": "t", "partition": 1, "offset": -1, "values": [7, 7]},
    {"topic": "t", "partition": 0, "offset": 8, "values": []},
]
RECORDS = [
    {"topic": "t", "partition": 0, "offset": 5, "value": 9, "leader_epoch": 3},
    {"topic": "t", "partition": 0, "offset": 6, "value": -(2**63), "leader_epoch": 3},
    {"topic": "t", "partition": 0, "offset": 7, "value": 2**63 - 1, "leader_epoch": 3},
    {"topic": "t", "partition": 1, "offset": -1, "value": 7},
    {"topic": "t", "partition": 1, "offset": -1, "value": 7},
]


def line(**more):
    return json.dumps(OPERATION | more, separators=(",", ":"))


def read(*lines):
    (trace,) = read_lines([TRACE, *lines], where="f")
    return trace.operations


def test_runs_are_records():
    """Rule: a run says the same as a record at each of its offsets, in order."""
    short, long = read(line(runs=RUNS)), read(line(records=RECORDS))
    assert short == long
    assert operation_line(short[0]) == operation_line(long[0])
    assert records_in(line(runs=RUNS).encode()) == records_in(line(records=RECORDS).encode()) == 5


def test_both_readers_agree(tmp_path):
    """Rule: watch reads runs as everybody else does."""
    path = tmp_path / "part.jsonl"
    for one in (line(runs=RUNS), line(records=RECORDS)):
        path.write_text(f"{TRACE}\n{one}\n")
        (found,) = read_quickly(path)
        rows = [
            (r.topic, r.partition, r.offset, r.value, r.leader_epoch) for r in found.operations[0].records
        ]
        expected = [(r.topic, r.partition, r.offset, r.value, r.leader_epoch) for r in read(one)[0].records]
        assert rows == expected
        assert len(rows) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": 5},
        {"runs": [5]},
        {"runs": [RUNS[0] | {"values": ["x"]}]},
        {"runs": [RUNS[0] | {"values": [2**63]}]},
        {"runs": [RUNS[0] | {"more": 1}]},
        {"runs": [RUNS[0] | {"offset": -2}]},
        {"runs": [RUNS[0] | {"offset": 2**63 - 2}]},
        {"runs": [RUNS[0] | {"values": [0] * (MOST_VALUES + 1)}]},
        {"runs": RUNS, "records": RECORDS},
    ],
    ids=["number", "numbers", "text", "large", "unknown", "offset", "beyond", "many", "both"],
)
def test_what_is_no_run_is_refused(wrong, tmp_path):
    """Rule: a line whose runs no trace can hold is refused with its place, by both readers."""
    with pytest.raises(TraceError, match="f:2"):
        read(line(**wrong))
    path = tmp_path / "part.jsonl"
    path.write_text(f"{TRACE}\n{line(**wrong)}\n")
    assert read_quickly(path) is None
