"""The comparison of a broker's files with a trace finds what is missing, extra or different."""

import struct

import pytest

from fencepost.impl.log.batch.record_batch import Record as Stored
from fencepost.impl.log.batch.record_batch import encode_batch, read_header
from fencepost.proxy.record.values import Values
from fencepost.traces.operations import Function, Operation, Outcome, Record
from fencepost.traces.trace import Trace
from tools.proxy_apps import shown
from tools.proxy_apps.__main__ import Result, table
from tools.proxy_apps.compare import compared
from tools.proxy_apps.shown import seeds_of

KEY = b"k" * 32


def operation(number, function, **fields):
    """One that ended well."""
    return Operation(
        op_id=number, process=1, function=function, invoke_time=number, completion_time=number + 1,
        outcome=Outcome.OK, **fields,
    )  # fmt: skip


def stored(folder, name, records):
    """A partition's only segment."""
    (folder / name).mkdir(parents=True)
    data = encode_batch(records, base_offset=0, leader_epoch=0)
    (folder / name / f"{0:020}.log").write_bytes(data)
    return data


@pytest.fixture
def both(tmp_path):
    """A broker's folder and the operations that made it: three records and a commit."""
    data = stored(tmp_path, "orders-0", [Stored(n, 5, b"k", b"%d" % n) for n in range(3)])
    ids, _ = Values(key=KEY).of_batch(data, read_header(data))
    group = struct.pack(">hh", 1, 1) + b"g" + struct.pack(">h", 6) + b"orders" + struct.pack(">i", 0)
    stored(tmp_path, "__consumer_offsets-0", [Stored(0, 5, group, struct.pack(">hq", 3, 2))])
    state = struct.pack(">hqhib", 0, 7, 0, 60_000, 2)
    stored(tmp_path, "__transaction_state-0", [Stored(0, 5, b"t", state)])
    records = tuple(Record(topic="orders", partition=0, offset=n, value=ids[n]) for n in range(3))
    return tmp_path, [
        operation(1, Function.APPEND, topic="orders", partition=0, acks=-1, offset=0, records=records),
        operation(2, Function.COMMIT, group="g", topic="orders", partition=0, offset=2),
        operation(3, Function.TXN),
    ]


def differences(folder, operations):
    """In words."""
    trace = Trace(trace_id=1, plan="", seed=0, software_version="x", operations=tuple(operations))
    found = compared(trace, folder, KEY)
    assert (found.records, found.commits, found.transactions) == (3, 1, 1)
    return " ".join(found.differences)


def test_what_is_the_same_has_no_difference(both):
    """Rule: all in both, nothing to say."""
    assert differences(*both) == ""


@pytest.mark.parametrize(
    ("place", "change", "says"),
    [
        (0, lambda row: [], "3 records missing in the trace"),
        (1, lambda row: [], "1 commits missing in the trace"),
        (2, lambda row: [], "1 committed and 0 aborted transactions missing"),
        (
            0,
            lambda row: [
                row,
                operation(
                    9,
                    Function.APPEND,
                    topic="orders",
                    partition=0,
                    acks=-1,
                    offset=3,
                    records=(Record(topic="orders", partition=0, offset=3, value=1 << 62),),
                ),
            ],
            "1 other records, at 3",
        ),
        (
            0,
            lambda row: [
                operation(
                    1,
                    Function.APPEND,
                    topic="orders",
                    partition=0,
                    acks=-1,
                    offset=0,
                    records=(*row.records[:2], Record(topic="orders", partition=0, offset=2, value=1 << 62)),
                )
            ],
            "at 2",
        ),
        (1, lambda row: [row, row], "1 commits extra in the trace"),
        (2, lambda row: [row, row], "1 committed and 0 aborted transactions extra"),
    ],
)
def test_each_planted_difference_is_named(both, place, change, says):
    """Rule: a row that is missing, extra or other is found, and said."""
    folder, rows = both
    assert says in differences(folder, [*rows[:place], *change(rows[place]), *rows[place + 1 :]])


def test_the_page_has_a_cell_for_each_case():
    """Rule: what failed stands in the table as it is."""
    made = table(
        {
            "a @ 3.9.2": Result(case="a @ 3.9.2", outcome="ok", worked="ended well", records=1_000),
            "b @ 4.4.0": Result(case="b @ 4.4.0", outcome="failed", why="3 records missing"),
        }
    )
    assert "| a | ended well: 1,000, 0, 0 | not run |" in made
    assert "| b | not run | **3 records missing** |" in made


def test_the_last_run_of_each_seed_counts(tmp_path):
    """Rule: a seed that ran again is what it was then; one that did not run is not among those that ran. A
    rate is that of the first seed."""
    (tmp_path / "job.json").write_text('{"library": "x@1"}')
    lost = '{"seed": 0, "findings": [{"anomaly": "lost_write"}]}'
    again, failed = '{"seed": 0, "findings": []}', '{"seed": 2, "failed": "y", "findings": []}'
    (tmp_path / "runs.jsonl").write_text("\n".join((lost, lost.replace("0", "1"), again, failed)))
    (tmp_path / "findings").mkdir()
    for first, shows in ((1, " (9/10)"), (0, "")):  # the second is of a seed that shows it no more
        known = f'{{"first": {first}, "rate": [9, 10]}}'
        (tmp_path / "findings" / "lost_write.json").write_text(known)
        assert seeds_of(tmp_path) == f"| x@1 | 2/3 | `lost_write` 1{shows} |"


def test_another_release_is_run_and_not_written(tmp_path, monkeypatch, capsys):
    """Rule: NAME@VERSION runs that release and writes no row; a run without it writes what is known anew into
    every row, and leaves of the others what was seen."""
    page, late, left = tmp_path / "page.md", "aiokafka-stale-leader", "kafkajs-left-member"
    row = f"| kafkajs@2.0.0 | [words](../findings/{left}.md) | 4.4.0 | once known |"
    page.write_text(before := f"{shown.MARK}\n\n{row}\n<!-- end -->")
    monkeypatch.setattr(shown.jars, "missing", lambda: "")
    monkeypatch.setattr(shown, "shown", lambda name, library, known, folder: ("seen", library))
    monkeypatch.setattr(shown, "KNOWN", {left: shown.Known(since="1.8.0", reported="#1")})
    for words in ([f"{late}@0.9.0"], [late]):
        shown.command.main([*words, "--docs", str(page)], standalone_mode=False)
        assert (page.read_text() == before) == ("@" in words[0])
    said = capsys.readouterr().out
    assert f"{late}@0.9.0: ok: seen: aiokafka@0.9.0" in said
    assert f"{late}: ok: seen: {shown.RELEASES['aiokafka']}" in said
    assert f"../findings/{late}.md) | 4.4.0 |  |" in page.read_text()
    assert row.replace("once known", "1.8.0; #1") in page.read_text()
