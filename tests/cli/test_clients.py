"""The client tools without a cluster: what they refuse, and the history that they keep. With one:
test_cluster.py."""

import asyncio
import io
import os
import sys
from pathlib import Path

import msgspec
import pytest
from attrs import evolve

from fencepost.cli.cluster.client.client_options import Bootstrap
from fencepost.cli.cluster.client.consumers import Lines, nameable
from fencepost.cli.cluster.client.history import RecordedRun, add_run
from fencepost.cli.cluster.client.produce import _lines
from fencepost.impl.client.reader import ReadRecord
from fencepost.impl.messages.broker_api import TopicPartition
from fencepost.report.commands import consume_recorded
from fencepost.traces.errors import TraceError
from fencepost.traces.jsonlines import read_traces, write_traces
from fencepost.traces.operations import Function, Operation, Outcome, Record

MISTAKES = [
    (["cluster", "produce", "t"], "expected a cluster that was brought up here, saw no cluster.json"),
    (["cluster", "consume", "t"], "expected a cluster that was brought up here, saw no cluster.json"),
    (["cluster", "produce", "t", "--idempotent", "--acks", "1"], "expected all, saw 1"),
    (["cluster", "produce", "t", "--acks", "2"], "Invalid value for '--acks'"),
    (["cluster", "produce", "t", "--partitioner", "best"], "Invalid value for '--partitioner'"),
    (["cluster", "produce", "t", "--linger-ms", "-1"], "Invalid value for '--linger-ms'"),
    (["cluster", "consume", "t", "--max", "0"], "Invalid value for '--max'"),
    (["cluster", "consume"], "Missing argument 'TOPIC'"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES, ids=str)
def test_mistakes_are_told_in_one_sentence(arguments, sentence, tmp_path, fencepost):
    """Rule: what cannot be done is said with expected, seen and where, exit code 2."""
    told = fencepost(*arguments, "--directory", tmp_path)
    assert told.code == 2 and sentence in told.sentence


@pytest.mark.parametrize("tool", ["cluster produce", "cluster consume"])
def test_a_history_of_something_else_is_refused_before_the_work(tool, tmp_path, fencepost):
    """Rule: FILE is looked at first; what is not ours stays as it is."""
    path = tmp_path / "mine.txt"
    path.write_text("notes\n")
    told = fencepost(tool, "t", "--directory", tmp_path, "--record", path)
    assert told.code == 2 and "mine.txt:1: expected a JSON object" in told.sentence
    assert path.read_text() == "notes\n"


def append(op_id: int, value: int, offset: int, at: int) -> Operation:
    """An acknowledged append of one record."""
    record = Record(topic="t", partition=0, offset=offset, value=value, leader_epoch=0)
    return Operation(
        op_id=op_id,
        process=0,
        function=Function.APPEND,
        invoke_time=at,
        outcome=Outcome.OK,
        completion_time=at + 5,
        topic="t",
        partition=0,
        acks=-1,
        offset=offset,
        leader_epoch=0,
        records=(record,),
    )


def poll(op_id: int, process: int, *records: Record, at: int) -> Operation:
    """A poll from the beginning."""
    return Operation(
        op_id=op_id, process=process, function=Function.POLL, invoke_time=at, outcome=Outcome.OK,
        completion_time=at + 5, topic="t", partition=0, offset=0, end_offset=len(records), records=records,
    )  # fmt: skip


BASE = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def test_the_runs_of_one_file_are_one_trace(tmp_path, fencepost):
    """Rule: op ids, processes and clocks of a later run go on behind the earlier ones', and the whole is
    judged."""
    path = tmp_path / "deep" / "h.jsonl"
    sent = [append(number, 100 + number, number, BASE + number * SECOND) for number in range(3)]
    assert add_run(path, sent).operations == 3
    read = tuple(record for one in sent for record in one.records)
    assert add_run(path, [poll(0, 1, *read, at=BASE + 9 * SECOND)]).strangers == 0
    (trace,) = read_traces(path)
    assert [(one.op_id, one.process, one.clock_id) for one in trace.operations] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
        (3, 2, 1),
    ]
    assert trace.digest and trace.concurrent_processes and trace.claims.clock_uncertainty_ns > 0
    assert fencepost("check", path, "--checks", "log,kafka").code == 0


def test_a_lost_record_is_found_in_a_recorded_history(tmp_path, fencepost):
    """Rule: the judge bites here too: an acknowledged record that a later read jumps over is a finding."""
    path = tmp_path / "h.jsonl"
    sent = [append(number, 100 + number, number, BASE + number * SECOND) for number in range(3)]
    add_run(path, sent)
    read = (sent[0].records[0], sent[2].records[0])
    add_run(path, [evolve(poll(0, 0, *read, at=BASE + 9 * SECOND), end_offset=3)])
    told = fencepost("check", path, "--checks", "log", "--json")
    assert told.code == 1 and told.json["anomalies"] == {"skipped_offset": 1}


def test_records_of_strangers_are_counted(tmp_path):
    """Rule: the tool says that the judge would take them for phantoms, before the judge does."""
    record = Record(topic="t", partition=0, offset=0, value=5)
    assert add_run(tmp_path / "h.jsonl", [poll(0, 0, record, at=BASE)]).strangers == 1


def test_one_producer_that_may_duplicate_makes_the_claim(tmp_path):
    """Rule: retries without idempotence may write twice, whoever is recorded after them."""
    path = tmp_path / "h.jsonl"
    RecordedRun.begin(path, may_duplicate=True).end([append(0, 1, 0, BASE)], duplicates=True)
    add_run(path, [append(0, 2, 1, BASE + SECOND)])
    (trace,) = read_traces(path)
    assert trace.claims.duplicates and "without idempotence" in trace.claims.reasons[0]


def test_a_trace_of_a_campaign_is_not_added_to(tmp_path):
    """Rule: a run is never mixed into somebody else's trace."""
    path = tmp_path / "h.jsonl"
    add_run(path, [])
    (trace,) = read_traces(path)
    write_traces(path, [evolve(trace, profile="default")])
    with pytest.raises(TraceError, match="expected a history that `fencepost cluster produce`"):
        add_run(path, [])


# ---- what consume prints


def read(offset: int, value: bytes | None, key: bytes | None = b"k") -> ReadRecord:
    """A record as a consumer gets it."""
    return ReadRecord(partition=TopicPartition("t", 0), offset=offset, timestamp_ms=5, key=key, value=value)


@pytest.mark.parametrize(
    ("lines", "printed"),
    [(Lines(None, None, False), "a\n\n\\xff\n"), (Lines(None, "=", False), "k=a\nk=\n=\\xff\n")],
)
def test_a_record_becomes_a_line(lines, printed, capsys):
    """Rule: the value, behind its key if one asks for it; a tombstone is an empty line, bytes that are no
    text are told by their codes."""
    lines.print([read(0, b"a"), read(1, None), read(2, b"\xff", None)])
    assert capsys.readouterr().out == printed and lines.printed == 3


def test_json_lines_tell_everything(capsys):
    """Rule: an object for each record, null for what is not there."""
    Lines(None, None, True).print([read(7, None, None)])
    shown = {"topic": "t", "partition": 0, "offset": 7, "timestamp_ms": 5, "key": None, "value": None}
    assert msgspec.json.decode(capsys.readouterr().out) == shown


def test_no_more_lines_than_asked_for():
    """Rule (--max): what does not fit stays unprinted."""
    lines = Lines(3, None, False)
    assert lines.room(5) == 3 and not lines.full
    lines.print([read(0, b"")] * 3)
    assert lines.full and lines.room(5) == 0


def test_records_without_a_value_id_stand_in_no_row():
    """Rule: a trace cannot name them; the tool says how many there are."""
    known = Record(topic="t", partition=0, offset=0, value=5)
    rows, without = nameable([poll(0, 0, known, evolve(known, offset=1, value=-1), at=BASE)])
    assert (rows[0].records, without) == ((known,), 1)


NOWHERE = Bootstrap(servers=(), ca=None, user=None)
FAR = Bootstrap(servers=(("k-1", 9092), ("k-2", 9093)), ca=Path("my ca.pem"), user="ann")
NAMED = [
    (NOWHERE, "out/cluster", "consume t --from-beginning --timeout-ms 2000 --record h"),
    (NOWHERE, "my cluster", "--directory '{here}/my cluster' --record h"),
    (FAR, "out/cluster", "--bootstrap k-1:9092,k-2:9093 --tls-ca 'my ca.pem' --user ann --record h"),
]


@pytest.mark.parametrize(("where", "directory", "words"), NAMED, ids=["default", "directory", "bootstrap"])
def test_a_read_is_named_by_what_names_its_cluster(where, directory, words, tmp_path, monkeypatch):
    """Rule: the command that reads what was sent reaches the same cluster, and says no more than it needs."""
    monkeypatch.chdir(tmp_path)
    command = consume_recorded("t", "h", where.options(Path(directory).resolve()))
    assert command.startswith("fencepost cluster consume t --from-beginning ")
    assert command.endswith(words.format(here=tmp_path))


# ---- what produce reads


class Pieces(io.RawIOBase):
    """A pipe that gives what it gets."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def read(self, size: int = -1) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


@pytest.mark.parametrize(
    "pieces",
    [(b"a\nb\r\n\nlast",), (b"a", b"\nb\r", b"\n\nla", b"st"), (b"a\nb\r\n", b"\n", b"last")],
    ids=len,
)
def test_lines_come_whole_however_they_arrive(pieces):
    """Rule: a line ends with its line feed (or the input), wherever the pipe cuts it; the carriage return
    before it is no part of it."""

    async def lines() -> list[bytes]:
        return [line async for line in _lines(Pieces(*pieces))]

    assert asyncio.run(lines()) == [b"a", b"b", b"", b"last"]


def test_a_reader_that_leaves_is_no_error(monkeypatch):
    """Rule: `consume | head` ends when head does, with exit code 0."""

    class Gone:
        def write(self, text: str) -> None:
            raise BrokenPipeError

        def fileno(self) -> int:
            return os.open(os.devnull, os.O_WRONLY)

    monkeypatch.setattr(sys, "stdout", Gone())
    lines = Lines(None, None, False)
    lines.print([read(0, b"a")])
    assert lines.full


# ---- what is written ahead


def sent(one: Operation) -> Operation:
    """An append that was sent and of which nothing was heard."""
    records = tuple(evolve(record, offset=-1, leader_epoch=-1) for record in one.records)
    return evolve(
        one, outcome=Outcome.UNKNOWN, completion_time=None, offset=None, leader_epoch=None, records=records
    )


def test_what_was_written_ahead_can_be_judged_at_once(tmp_path, fencepost):
    """Rule: before a run has ended, its file holds what was sent and what was acknowledged; a later run
    numbers its own around it."""
    path = tmp_path / "h.jsonl"
    whole = [append(number, 100 + number, number, BASE + number * SECOND) for number in range(3)]
    killed = RecordedRun.begin(path)
    killed.write([sent(whole[0]), sent(whole[1])])
    killed.write([whole[0]])
    (trace,) = read_traces(path)
    assert [(one.outcome, one.offset) for one in trace.operations] == [
        (Outcome.OK, 0),
        (Outcome.UNKNOWN, None),
    ]
    assert not trace.digest
    path.write_bytes(
        path.read_bytes() + b'{"type":"operation","op_id":9'
    )  # it was killed in the middle of a line
    assert fencepost("check", path, "--checks", "log").code == 4
    later = RecordedRun.begin(path)
    later.write([whole[2]])
    later.end([whole[2]])
    (trace,) = read_traces(path)
    assert [(one.op_id, one.clock_id, one.outcome.value) for one in trace.operations] == [
        (1 << 32, 0, "ok"),
        ((1 << 32) + 1, 0, "unknown"),
        (2, 1, "ok"),
    ]
    read = (whole[0].records[0], whole[1].records[0], whole[2].records[0])
    assert add_run(path, [poll(0, 1, *read, at=BASE + 9 * SECOND)]).strangers == 0
    assert fencepost("check", path, "--checks", "log,kafka").code == 0


def test_two_runs_write_into_one_file(tmp_path):
    """Rule: a run that ends writes the file anew, and the other's rows go on in it; nothing of either is
    lost."""
    path = tmp_path / "h.jsonl"
    one, other = RecordedRun.begin(path), RecordedRun.begin(path)
    rows = [append(number, 100 + number, number, BASE + number * SECOND) for number in range(4)]
    one.write([rows[0]])
    other.write([sent(rows[2])])
    one.write([rows[1]])
    one.end(rows[:2])
    assert not next(read_traces(path)).digest, "the other is under way"
    other.write([rows[2]])
    other.write([rows[3]])
    other.end(rows[2:])
    (trace,) = read_traces(path)
    assert [record.value for one in trace.operations for record in one.records] == [100, 101, 102, 103]
    assert len({one.op_id for one in trace.operations}) == 4 and trace.digest and not trace.events


def test_a_run_without_idempotence_claims_less_until_it_has_ended(tmp_path):
    """Rule: of a killed run nobody knows whether it retried, so a record may stand twice; one that ended
    well takes that back."""
    path = tmp_path / "h.jsonl"
    run = RecordedRun.begin(path, may_duplicate=True)
    assert next(read_traces(path)).claims.duplicates
    run.end([append(0, 1, 0, BASE)])
    (trace,) = read_traces(path)
    assert not trace.claims.duplicates and trace.claims.reasons == ()
