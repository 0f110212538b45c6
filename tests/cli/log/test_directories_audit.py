"""`fencepost audit`: what a person and a program are told of several brokers' directories, and the exit
code."""

import os
from pathlib import Path

import pytest

from fencepost.cli import run
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.checkpoint.log_checkpoints import put_clean_shutdown_marker, write_offsets
from fencepost.impl.log.layout import HIGH_WATERMARKS
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.segmented_log import SegmentedLog
from fencepost.impl.log.values import foreign_id
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.impl.runtime.real_file_system import RealFiles
from fencepost.traces import operations
from fencepost.traces.jsonlines import write_traces
from fencepost.traces.trace import Trace

SMALL = LogOptions(segment_bytes=400, index_interval_bytes=100)


def write(root: Path, name: str, *, other: tuple[int, ...] = (), topic: str = "t", count: int = 20) -> Path:
    """A broker's directory. other: offsets with another record than usual."""
    (root / name).mkdir(exist_ok=True)
    files, key = RealFiles(root / name), TopicPartition(topic, 0)
    log = SegmentedLog.open(files, str(key), options=SMALL)
    for offset in range(count):
        value = b"other" if offset in other else b"v%d" % offset
        log.append_as_follower(
            encode_batch([Record(offset, 1_700_000_000_000, None, value)], base_offset=offset, leader_epoch=0)
        )
    log.close()
    write_offsets(files, HIGH_WATERMARKS, {key: count})
    put_clean_shutdown_marker(files)
    return root / name


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def test_replicas_that_agree(fencepost, tmp_path):
    """Exit code 0 and one line; the same in JSON with every replica."""
    a, b = write(tmp_path, "a"), write(tmp_path, "b")
    told = fencepost("audit", f"1={a}", f"2={b}")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("2 brokers, 1 partition, 2 replicas, 0.0 MiB: no findings")
    told = fencepost("audit", f"1={a}", f"2={b}", "--json", "--deep")
    (partition,) = told.json["partitions"]
    assert (told.code, told.json["exit_code"], partition["decision"]) == (0, 0, "ok")
    assert [(one["broker"], one["end_offset"], one["records"]) for one in partition["replicas"]] == [
        ("1", 20, 20),
        ("2", 20, 20),
    ]


def test_replicas_that_differ(fencepost, tmp_path):
    """Exit code 1; the anomaly with its definition, both files and bytes, all replicas, and the command that
    looks closer."""
    a, b = write(tmp_path, "a"), write(tmp_path, "b", other=(3, 4))
    told = fencepost("audit", f"1={a}", f"2={b}")
    assert (told.code, told.err) == (1, "")
    assert "t-0: illegal, log_divergence" in told.out
    assert "WRONG log_divergence at offset 3: two replicas hold different records" in told.out
    assert f"{b}/t-0/{0:020d}.log at byte " in told.out
    assert f"look closer: fencepost log dump {b}/t-0 --deep --verify-index" in told.out
    assert "1 finding in 1 partition" in told.out
    (partition,) = fencepost("audit", f"1={a}", f"2={b}", "--json").json["partitions"]
    (finding,) = partition["findings"]
    assert (finding["anomaly"], finding["offset"], partition["anomaly"]) == (
        "log_divergence",
        3,
        "log_divergence",
    )


def test_what_cannot_be_read(fencepost, tmp_path):
    """Exit code 4 if something else could be read and has no finding, 2 if nothing could."""
    a, b = write(tmp_path, "a"), write(tmp_path, "b")
    for path in (b / "t-0").glob("*.log"):
        path.unlink()
        os.mkfifo(path)
    told = fencepost("audit", f"1={a}", f"2={b}")
    assert told.code == 4 and "NOT READABLE" in told.out and "not a plain file" in told.out
    assert "files or parts of files were not readable" in told.out
    told = fencepost("audit", f"2={b}", "--json")
    assert told.code == 2 and len(told.json["partitions"][0]["unreadable"]) > 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a"], "expected NAME=DIR, such as broker-1=/var/lib/kafka, saw 'a'"),
        (["=x"], "expected NAME=DIR"),
        ([], "expected NAME=DIR, or --source and --target, saw neither"),
        (["a=nowhere"], "nowhere: expected a broker's data directory, saw nothing there"),
    ],
)
def test_bad_arguments(fencepost, arguments, sentence):
    """One sentence on standard error, exit code 2."""
    told = fencepost("audit", *arguments)
    assert (told.code, told.out) == (2, "") and sentence in told.sentence


def test_topics_that_are_not_there(fencepost, tmp_path):
    """One sentence that says what was asked for."""
    a = write(tmp_path, "a")
    told = fencepost("audit", f"1={a}", "--topic", "x*")
    assert told.code == 2 and "expected partitions of topics that match 'x*', saw none" in told.sentence


def test_names_from_the_disk_are_escaped(fencepost, tmp_path):
    """What others put into file names does not reach the terminal as it is."""
    a = write(tmp_path, "a", topic="t\x1b[31m")
    told = fencepost("audit", f"1={a}", "--topic", "*")
    assert told.code == 0
    (a / "t\x1b[31m-0" / f"{0:020d}.index").unlink()
    told = fencepost("audit", f"1={a}")
    assert told.code == 1 and "\x1b" not in told.out


def test_the_help_has_examples():
    """--help teaches."""
    assert run(["log", "audit", "--help"]) == 0


def test_a_history_says_where_each_acknowledged_record_is(fencepost, tmp_path):
    """`--history` joins a trace with the directories; a name that is none is refused."""
    a, b = write(tmp_path, "a", count=2), write(tmp_path, "b", count=3)
    record = operations.Record(topic="shown", partition=0, offset=2, value=foreign_id(None, b"v2"))
    append = operations.Operation(
        op_id=1, process=1, function=operations.Function.APPEND, invoke_time=1, completion_time=2,
        outcome=operations.Outcome.OK, acks=-1, topic="shown", partition=0, offset=2, records=(record,),
    )  # fmt: skip
    trace = Trace(trace_id=1, plan="", seed=1, software_version="x", operations=(append,))
    path = tmp_path / "trace.jsonl"
    write_traces(path, [trace])
    places = ("log", "audit", f"1={a}", f"2={b}", "--history", path)
    said = fencepost(*places, "--named", "t=shown")
    assert f"v{record.value}, acknowledged at 2 of shown-0, is on broker 2 only" in said.out
    assert "of 1 acknowledged record, 0 are on every replica" in said.out
    (placement,) = fencepost(*places, "--named", "t=shown", "--json").json["history"]["placements"]
    assert placement["holders"] == ["2"] and placement["lacking"] == ["1"]
    assert "expected NAME=NAME" in fencepost(*places, "--named", "t").err
