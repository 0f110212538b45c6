"""A recording written piece by piece is the trace that reading it whole gives."""

import json

import pyarrow.parquet as pq
import pytest

from fencepost.cli import run
from fencepost.mining.inputs import long_recordings
from fencepost.mining.inputs.long_recordings import write_long
from fencepost.traces import parts
from fencepost.traces.events import Event, Name
from fencepost.traces.jsonlines import event_line, operation_line
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.parts import BEFORE, RECORDING, RETRIED, part_name, read_recording
from fencepost.traces.schema import TABLES
from fencepost.traces.tables import Tables, traces_of_tables

HEAD = {"type": "trace", "trace_id": 1, "plan": "", "seed": 0, "software_version": "x"}


def append(number, time, values, outcome=Outcome.OK, at=None, **more):
    """An append of one partition. at: the offset of its first record, if it is known."""
    records = tuple(
        Record(topic="t", partition=0, offset=-1 if at is None else at + n, value=value)
        for n, value in enumerate(values)
    )
    done = {"completion_time": time + 5} if outcome is not Outcome.UNKNOWN else {}
    return Operation(
        op_id=number,
        process=1,
        function=Function.APPEND,
        topic="t",
        partition=0,
        invoke_time=time,
        outcome=outcome,
        acks=-1,
        records=records,
        **done,
        **more,
    )


def recording(folder, *, retried=False, cut=False, same=False, equal=False):
    """Parts as a proxy leaves them: invocations before the whole, also in another part; one that is refused
    and sent again in two; records from before, one of which was sent here. equal: and some that are equal to
    records that were sent here without a producer id, at the same offset or not."""
    folder.mkdir()
    (folder / RECORDING).write_text("{}")
    unknown = Outcome.UNKNOWN
    named = {5: {"producer_id": 9, "producer_epoch": 0, "sequence": 0}}  # its id is that of one record only
    lines = [
        [operation_line(append(n, 10 * n, [n], unknown, **named.get(n, {}))) for n in range(1, 8)],
        [operation_line(append(n, 10 * n, [n])) for n in (3, 1, 2, 6)]
        + [
            operation_line(append(20, 200, [70, 71], unknown)),
            operation_line(append(20, 200, [70, 71], Outcome.FAIL)),
        ],
        [operation_line(append(n, 10 * n, [n + 49])) for n in (21, 22)]
        + [operation_line(append(23, 230, [5], unknown, argument=BEFORE))]
        + [operation_line(append(24, 240, [99], unknown, argument=BEFORE))]
        + [operation_line(append(27, 1, [6], unknown, argument=BEFORE, at=60))] * equal
        + [operation_line(append(28, 1, [72], unknown, argument=BEFORE, at=61))] * equal
        + [operation_line(append(29, 290, [72], at=61))] * equal
        + [operation_line(append(25, 250, [98], Outcome.FAIL))]
        + ([operation_line(append(26, 260, [1]))] if same else []),
    ]
    events = [event_line(Event(time=5 * n, name=Name.MARK, cause="low_watermark")) for n in range(7)]
    if retried:
        events.append(event_line(Event(time=90, name=Name.MARK, cause=RETRIED)))
    for number, each in enumerate(lines, start=1):
        body = [json.dumps(HEAD).encode(), *each, *(events if number == 2 else [])]
        text = b"\n".join(line.rstrip(b"\n") for line in body) + b"\n"
        if cut and number == len(lines):
            text += b'{"type":"operation","op_i'
        (folder / part_name(number, whole=number < len(lines))).write_bytes(text)
    return folder


def read(folder):
    """The one trace of a folder, whatever its row groups."""
    tables = Tables(**{name: pq.read_table(folder / name) for name in TABLES})
    (trace,) = traces_of_tables(tables)
    return trace


@pytest.mark.parametrize("options", [{}, {"retried": True}, {"cut": True}, {"same": True}, {"equal": True}])
def test_piece_by_piece_is_the_same_trace(tmp_path, monkeypatch, options):
    """Rule: header, operations and events are those of the whole; row groups are small and promise nothing
    whole."""
    monkeypatch.setattr(long_recordings, "GROUP_EVENTS", 3)
    monkeypatch.setattr(long_recordings, "GROUP_WEIGHT", 33)
    monkeypatch.setattr(long_recordings, "MOST_HELD", 66)
    folder = recording(tmp_path / "run", **options)
    whole = read_recording(folder)
    written = write_long(folder, tmp_path / "out")
    assert (written.operations, written.events) == (
        len(whole.operations),
        len(whole.events),
    ) and written.events
    found = read(tmp_path / "out")
    assert {row.op_id: row for row in found.operations} == {row.op_id: row for row in whole.operations}
    assert sorted(found.events, key=lambda event: event.time) == list(whole.events)
    assert (found.claims, found.unique_values) == (whole.claims, whole.unique_values)
    assert found.unique_values is not any(options.get(name, False) for name in ("same", "equal"))
    file = pq.ParquetFile(next((tmp_path / "out" / "operations").glob("*.parquet")))
    assert file.num_row_groups > 2
    numbers = {row.op_id for row in found.operations}
    assert {20, 23, 28}.isdisjoint(numbers)
    assert (27 in numbers) is options.get("equal", False)  # equal to one that was sent here, and another one


def test_the_progress_counts_both_walks_over_the_parts(tmp_path):
    folder = tmp_path / "recording"
    recording(folder)
    steps = []
    write_long(folder, tmp_path / "out", lambda done, all_steps: steps.append((done, all_steps)))
    assert steps == [(done, 6) for done in range(1, 7)]


def test_records_count_for_what_is_held_and_written_at_once(tmp_path, monkeypatch):
    """Rule: memory is bounded by records, not by operations; one may have thousands. Planted: counted
    by operations, all of them would be in one row group."""
    monkeypatch.setattr(long_recordings, "GROUP_WEIGHT", 1_000)
    monkeypatch.setattr(long_recordings, "MOST_HELD", 2_000)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / RECORDING).write_text("{}")
    rows = [append(n, 10 * n, range(1_000 * n, 1_000 * n + 400)) for n in range(1, 21)]
    body = [json.dumps(HEAD).encode(), *(operation_line(row).rstrip(b"\n") for row in rows)]
    (folder / part_name(1, whole=True)).write_bytes(b"\n".join(body) + b"\n")
    most = []
    add = long_recordings.Ordered.add
    monkeypatch.setattr(
        long_recordings.Ordered, "add", lambda self, row: (add(self, row), most.append(self.weight))[0]
    )
    assert write_long(folder, tmp_path / "out").operations == 20
    assert max(most) <= 2_000 + 410
    file = pq.ParquetFile(next((tmp_path / "out" / "operations").glob("*.parquet")))
    sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert sum(sizes) == 20 and max(sizes) <= 3
    assert [row.op_id for row in read(tmp_path / "out").operations] == list(range(1, 21))


@pytest.mark.parametrize("bound", ["ROWS_MAX", "RECORDS_MAX"])
def test_what_is_too_long_says_what_to_do_and_convert_does_it(tmp_path, monkeypatch, capsys, bound):
    """Rule: `check` names the two ways; `convert` writes what `mine` reads. Rows are bounded, and so are the
    records in them."""
    monkeypatch.setattr(parts, bound, 10)
    folder = recording(tmp_path / "run")
    run(["check", str(folder)])
    heard = capsys.readouterr()
    said = heard.err + heard.out
    assert "fencepost mine convert" in said and "fencepost mine" in said
    assert run(["mine", "convert", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert len(read(tmp_path / "out").operations) == 11
