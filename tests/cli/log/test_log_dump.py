"""`fencepost log dump`: what a person and a program are told of whole directories, good and bad, and the exit
code."""

import os
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.cli import run
from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch
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

BASE = f"{0:020d}"
NAMES = (
    f"{BASE}.log",
    f"{BASE}.index",
    f"{BASE}.timeindex",
    f"{BASE}.txnindex",
    f"{BASE}.snapshot",
    "leader-epoch-checkpoint",
    "replication-offset-checkpoint",
    "partition.metadata",
    "anything.log",
    "anything",
)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition of several segments that our own log wrote, closed cleanly."""
    options = LogOptions(segment_bytes=500, index_interval_bytes=100)
    log = SegmentedLog.open(RealFiles(tmp_path), "t-0", options=options)
    for number in range(30):
        records = [
            Record(0, 1_700_000_000_000 + number, b"key", b"value %d" % number, (Header("h", b"\xff"),))
        ]
        batch = encode_batch(
            records, base_offset=0, leader_epoch=-1, producer_id=5, producer_epoch=0, base_sequence=number
        )
        log.append_as_leader(batch, number // 10)
    log.close()
    return tmp_path / "t-0"


def test_a_log_that_we_wrote_has_nothing_wrong(fencepost, partition) -> None:
    """Rule (L5): segments, indexes, snapshots and epochs of a real directory, followed through and through;
    the same from the directory above."""
    assert len(list(partition.glob("*.log"))) > 3 and list(partition.glob("*.snapshot"))
    for path in (partition, partition.parent):
        told = fencepost("log dump", path, "--deep", "--verify-index")
        assert told.code == 0 and told.err == "", told
        assert "nothing wrong" in told.out and "value 'value 29'" in told.out
    assert "epoch 2 start_offset 20" in told.out
    assert "time 2023-11-14T22:13:20.029Z" in told.out and "producer 5 epoch 0 sequence 29..29" in told.out


def test_the_json_holds_everything(fencepost, partition) -> None:
    """One object: each record once, each file with how far it is good; bytes that are no text are base64."""
    told = fencepost("log dump", partition, "--deep", "--json")
    segments = [file for file in told.json["files"] if file["kind"] == "segment"]
    offsets = [
        record["offset"] for file in segments for batch in file["content"] for record in batch["contents"]
    ]
    assert offsets == list(range(30))
    assert all(file["good_bytes"] == file["bytes"] for file in segments)
    assert segments[-1]["next_offset"] == 30
    record = segments[0]["content"][0]["contents"][0]
    assert record["value"] == "value 0" and record["headers"] == [["h", {"base64": "/w=="}]]
    assert (told.json["flaws"], told.json["exit_code"]) == (0, 0)


def test_a_torn_segment_is_a_finding_with_how_far_it_is_good(fencepost, partition) -> None:
    """The good batches, the flaw with its place, the exit code 1."""
    path = partition / f"{BASE}.log"
    good = path.stat().st_size
    with open(path, "ab") as file:
        file.write(path.read_bytes()[:50])
    told = fencepost("log dump", path)
    assert told.code == 1
    assert f"WRONG at byte {good}: expected a batch of" in told.out
    assert f"good for the first {good} of {good + 50} bytes" in told.out
    told = fencepost("log dump", path, "--json")
    (file,) = told.json["files"]
    assert (told.code, file["good_bytes"], file["flaws"]) == (1, good, 1)
    assert file["content"][-1]["flaw"]["position"] == good


def test_a_flipped_bit_is_a_finding(fencepost, partition) -> None:
    """The batch is shown with its bad checksum, and the batches after it too."""
    path = partition / f"{BASE}.log"
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    told = fencepost("log dump", partition)
    assert told.code == 1 and told.out.count(" BAD\n") == 1 and told.out.count("WRONG") == 1
    assert "good for the first 0 of" in told.out and "offset 29..29" in told.out


def test_verify_index_follows_the_entries(fencepost, partition) -> None:
    """An index that ascends and leads astray is found only by following it; a missing one is
    said, and is nothing wrong."""
    path = partition / f"{BASE}.index"
    path.write_bytes(pack(">ii", 1, 7))
    assert fencepost("log dump", partition).code == 0
    for target in (partition, partition / f"{BASE}.log"):
        told = fencepost("log dump", target, "--verify-index")
        assert (
            told.code == 1 and f"WRONG {BASE}.index at byte 0: expected a batch at 7 of the log" in told.out
        )
    path.write_bytes(pack(">iiii", 3, 9, 2, 5))
    assert "saw 2 at 5" in fencepost("log dump", partition / f"{BASE}.log", "--verify-index").out
    path.unlink()
    told = fencepost("log dump", partition, "--verify-index")
    assert told.code == 0 and f"no index {BASE}.index: a broker makes it anew" in told.out


def test_a_new_segment_needs_no_index(fencepost, tmp_path: Path) -> None:
    """Kafka makes a segment's indexes when it first needs them: a killed broker leaves an empty segment
    without (seen on one of version 3.5)."""
    folder = tmp_path / "new-0"
    folder.mkdir()
    (folder / f"{200:020}.log").touch()
    told = fencepost("log dump", folder, "--verify-index")
    assert (told.code, "WRONG" in told.out) == (0, False)


def test_a_segment_that_overlaps_the_one_before_is_a_finding(fencepost, partition) -> None:
    """Its name says an offset that the segment before already holds."""
    second = sorted(partition.glob("*.log"))[1]
    second.rename(partition / f"{1:020d}.log")
    told = fencepost("log dump", partition)
    assert told.code == 1 and f"after {BASE}.log, saw one from 1" in told.out


def test_a_foreign_file_is_a_finding(fencepost, tmp_path) -> None:
    """A file that is none of Kafka's, named by the caller; in a directory it is left out."""
    foreign = tmp_path / "notes.txt"
    foreign.write_text("hello \x1b[31m world")
    told = fencepost("log dump", foreign)
    assert told.code == 1 and "expected a file of a Kafka log, saw one that begins with 'hello" in told.out
    assert "\x1b" not in told.out
    told = fencepost("log dump", tmp_path)
    assert told.code == 2 and "saw a directory without any" in told.sentence and told.out == ""


def test_what_cannot_be_opened_is_one_sentence(fencepost, tmp_path) -> None:
    """Nothing there, or a pipe (which would wait for ever): exit code 2, nothing on standard output but the
    error as JSON where that is asked for."""
    pipe = tmp_path / "0.log"
    os.mkfifo(pipe)
    for path, says in ((tmp_path / "none", "saw nothing there"), (pipe, "not a plain file")):
        for options in ((), ("--json",)):
            told = fencepost("log dump", path, *options)
            assert told.code == 2 and says in told.sentence and told.err.count("\n") == 1
            assert says in told.json["error"] if options else told.out == ""


def test_an_unreadable_file_of_many_is_left_out(fencepost, partition) -> None:
    """The rest is told, and the exit code says that something was left out."""
    os.mkfifo(partition / f"{99:020d}.log")
    told = fencepost("log dump", partition)
    assert told.code == 4 and "NOT READABLE" in told.out and "offset 29..29" in told.out
    assert fencepost("log dump", partition, "--json").json["unreadable"] == 1


def test_a_read_that_fails_is_told(fencepost, partition, monkeypatch) -> None:
    """A disk that gives EIO in the middle ends that file, not the dump."""
    from fencepost.cli.log.log_files import RealSource

    honest = RealSource.read_at

    def failing(self, position, size):
        if self._file.name.endswith(f"{BASE}.log"):
            raise OSError(5, "Input/output error")
        return honest(self, position, size)

    monkeypatch.setattr(RealSource, "read_at", failing)
    told = fencepost("log dump", partition)
    assert told.code == 4 and f"NOT READABLE {partition / BASE}.log: Input/output error" in told.out


def test_payloads_cannot_write_to_the_terminal(fencepost, tmp_path) -> None:
    """Escapes, new lines and bytes that are no text come as what they are, cut to a bearable length."""
    value = b"\x1b]0;title\x07\n\xff" + b"x" * 1_000
    path = tmp_path / "copy"
    path.write_bytes(encode_batch([Record(3, -1, None, value)], base_offset=3, leader_epoch=0))
    told = fencepost("log dump", path, "--deep")
    assert told.code == 0, "a segment under another name"
    (line,) = [line for line in told.out.split("\n") if "value" in line]
    assert "\\x1b]0;title\\x07\\n\\xff" in line and len(line) < 400 and "time none key null" in line


@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(name=st.sampled_from(NAMES), data=st.binary(max_size=200), as_json=st.booleans())
def test_any_bytes_under_any_name_are_told(tmp_path, capsys, name, data, as_json) -> None:
    """Never a traceback: nothing wrong or a finding."""
    path = tmp_path / name
    path.write_bytes(data)
    code = run(["log", "dump", str(path), "--deep", "--verify-index", *(["--json"] if as_json else [])])
    told = capsys.readouterr()
    path.unlink()
    assert code in (0, 1) and "Traceback" not in told.err


def test_a_reader_that_leaves_early_changes_nothing(partition) -> None:
    """`| head` is no error."""
    for options in ([], ["--json"]):
        words = [sys.executable, "-m", "fencepost.cli", "log", "dump", str(partition), "--deep", *options]
        code = "from fencepost.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words[3:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        assert process.wait(600) == 0 and b"Error" not in errors, errors


# `fencepost audit`: what a person and a program are told of several brokers' directories, and the exit
# code.


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
