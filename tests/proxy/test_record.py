"""The record: what is written, what never is, and what is left after the worst."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import confluent_kafka as ck
import confluent_kafka.admin
import pytest
from attrs import evolve
from disk_bound import judged_at_the_bound
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from proxy_lab import proxy_lab
from wire_lab import wire_lab

from fencepost.checkers.judges import DEFAULT_CHECKS, judge
from fencepost.checkers.verdict import Decision
from fencepost.impl.log.batch.record_batch import (
    Header,
    Record,
    encode_batch,
    read_header,
    with_leader_fields,
)
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.proxied_cluster import Cluster
from fencepost.proxy.record import polls, recorder
from fencepost.proxy.record.appends import RETRIED_NS, Append, Appends
from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.polls import LAST_STABLE_LATER
from fencepost.proxy.record.reads import Sessions, shown
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Kept, Values, content_of
from fencepost.proxy.server.record_files import key_of
from fencepost.proxy.server.recording_proxy import WhenFull
from fencepost.traces.errors import TraceError
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_lines
from fencepost.traces.operations import Function, Outcome
from fencepost.traces.parts import parts_of, read_recording
from fencepost.traces.plan import TopicOptions
from fencepost.wire.codec import write_request, write_response
from fencepost.wire.hook import PASS, Cut, Drop

SECRET = b"attack at dawn"
KEY = b"k" * 32
FETCH, LIST_OFFSETS = 1, 2
HEAD = ['{"type":"trace","trace_id":0,"plan":"","seed":0,"software_version":"x"}\n']
FULL = [f"full-{when}-{kept}" for when in WhenFull for kept in (Kept.HASH, Kept.FULL)]
PATIENCE_S = 600
"""On a crowded machine; what is to fail says so by a time-out of the client."""


@pytest.fixture(scope="module")
def lab():
    class Planted:
        """Loses the answers to some produce requests."""

        lose = 0

        def on_request(self, source, header, body):
            return PASS

        def on_answer(self, source, header, body, answer):
            if header.api_key == 0 and self.lose:
                self.lose -= 1
                return Cut()
            return PASS

    hook = Planted()
    topics = [
        TopicOptions(name=name, partitions=2)
        for name in ("orders", "early", "lossy", "killed", "many", *FULL)
    ]
    with wire_lab(*topics, brokers=1, server={"hook": hook}) as made:
        made.hook, made.address = hook, f"127.0.0.1:{made.ports[1]}"
        yield made


def produce(bootstrap, topic, count, start=0, *, until=None, **settings):
    """How many of the records were acknowledged. until: what is waited for before those that are left are
    given up."""
    producer, told = ck.Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings}), []
    for n in range(start, start + count):
        producer.produce(
            topic,
            b"%s %d" % (SECRET, n),
            key=SECRET,
            headers=[("h", SECRET)],
            on_delivery=lambda e, m: told.append(e),
        )
        producer.poll(0)
    if until is not None:
        end = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < end, "it never came true"
            producer.poll(0.05)
        producer.purge()
    producer.flush(PATIENCE_S)
    return sum(error is None for error in told)


def consume(bootstrap, topic, count):
    consumer = ck.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    got, deadline = 0, time.monotonic() + 600
    while got < count and time.monotonic() < deadline:
        got += len([one for one in consumer.consume(500, 0.2) if one.error() is None])
    consumer.commit(asynchronous=False)
    consumer.close()
    return got


def ok(trace):
    found = [verdict for verdict in judge(trace, DEFAULT_CHECKS) if verdict.decision is not Decision.OK]
    assert not found, found
    return True


@pytest.mark.parametrize("kept", list(Kept))
def test_an_application_is_recorded_and_nothing_is_found(lab, tmp_path, kept):
    """Appends, polls, joins, commits; the values of what is read are those of what was sent."""
    topic = "orders"
    with proxy_lab(lab.address, tmp_path, {"kept": kept}) as proxy:
        assert produce(proxy.bootstrap, topic, 300) == 300
        assert consume(proxy.bootstrap, topic, 300) >= 300
    trace = proxy.trace()
    sent = {
        r.value
        for row in trace.operations
        if row.function is Function.APPEND and row.argument is None
        for r in row.records
    }
    read = {r.value for row in trace.operations if row.function is Function.POLL for r in row.records}
    assert sent <= read and (len(sent) == 300) is (kept is not Kept.SIZE)
    assert {row.function for row in trace.operations} >= {
        Function.JOIN,
        Function.COMMIT,
        Function.FETCH_COMMITTED,
    }
    assert ok(trace)
    requests = [event for event in trace.events if event.name is Name.REQUEST]
    assert {"produce", "fetch", "join_group", "heartbeat", "metadata"} - {
        event.cause for event in requests
    } <= {"heartbeat"}
    said = json.loads(requests[0].detail)
    assert {"connection", "correlation", "client", "version", "us"} <= set(said)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
    assert SECRET not in everything
    contents = list(tmp_path.rglob("*.records"))
    assert bool(contents) is (kept is Kept.FULL)


def test_what_a_client_deletes_is_recorded_and_its_names_are_used_again(lab, tmp_path):
    """A topic and a group that were deleted begin anew: the same offsets, generations from 1, and nothing
    committed."""
    topic, group = "again", "g"
    with proxy_lab(lab.address, tmp_path) as proxy:
        admin = ck.admin.AdminClient({"bootstrap.servers": proxy.bootstrap, "log_level": 0})
        for start, count in ((0, 30), (100, 10)):
            admin.create_topics([ck.admin.NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
            assert produce(proxy.bootstrap, topic, count, start) == count
            assert consume(proxy.bootstrap, topic, count) >= count
            admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
            admin.delete_topics([topic])[topic].result(PATIENCE_S)
    trace = proxy.trace()
    names = [event.name for event in trace.events]
    assert names.count(Name.TOPIC_DELETION) == names.count(Name.GROUP_REMOVED) == 2
    assert ok(trace)
    kept = {Name.TOPIC_DELETION, Name.GROUP_REMOVED, Name.GROUP_PHASE}
    forgotten = evolve(trace, events=tuple(one for one in trace.events if one.name not in kept))
    names = {one.anomaly for verdict in judge(forgotten, DEFAULT_CHECKS) for one in verdict.findings}
    assert {"inconsistent_offsets", "generation_regressed"} & names, names


def test_many_records_of_a_batch_or_a_fetch_become_several_rows(lab, tmp_path, monkeypatch):
    """Rule: no row has more than MOST_IN_ROW records, so that its readers take each line; nothing is lost or
    found by it."""
    for module in (recorder, polls):
        monkeypatch.setattr(module, "MOST_IN_ROW", 40)
    with proxy_lab(lab.address, tmp_path) as proxy:
        assert produce(proxy.bootstrap, "many", 300, **{"linger.ms": 300}) == 300
        assert consume(proxy.bootstrap, "many", 300) == 300
    trace = proxy.trace()
    for function in (Function.APPEND, Function.POLL):
        sizes = [len(row.records) for row in trace.operations if row.function is function]
        assert sum(sizes) == 300
        assert max(sizes) == 40
    assert ok(trace)


def test_the_key_is_its_owners_and_kept(tmp_path):
    """Mode 600, the same again, and refused when others may read it."""
    key = key_of(tmp_path)
    assert len(key) == 32 and key_of(tmp_path) == key
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(TraceError, match="mode 600"):
        key_of(tmp_path)


def test_what_was_there_before_is_no_finding(lab, tmp_path):
    """Records that were sent without the proxy are appends of unknown outcome by nobody."""
    produce(lab.address, "early", 50)
    with proxy_lab(lab.address, tmp_path) as proxy:
        assert consume(proxy.bootstrap, "early", 50) == 50
        produce(proxy.bootstrap, "early", 20, start=50)
        consume(proxy.bootstrap, "early", 20)
    trace = proxy.trace()
    before = [row for row in trace.operations if row.argument == "before the proxy"]
    assert sum(len(row.records) for row in before) == 50
    assert ok(trace)


@pytest.mark.parametrize("idempotent", [True, False])
def test_an_answer_that_is_lost_leaves_the_append_open_until_it_is_tried_again(lab, tmp_path, idempotent):
    """One row for the append, with two attempts; without idempotence the claims allow that it stands
    twice."""
    with proxy_lab(lab.address, tmp_path) as proxy:
        lab.hook.lose = 1
        settings = {
            "enable.idempotence": idempotent,
            "retries": 10,
            "socket.timeout.ms": 60_000,
            "retry.backoff.ms": 10,
        }
        assert produce(proxy.bootstrap, "lossy", 1, **settings) == 1
        consume(proxy.bootstrap, "lossy", 1)
    trace = proxy.trace()
    (row,) = [row for row in trace.operations if row.function is Function.APPEND and row.argument is None]
    assert (row.outcome, row.attempts) == (Outcome.OK, 2)
    assert trace.claims.duplicates is not idempotent
    assert ok(trace)


class ProxyLoses:
    """The proxy's own hook."""

    def __init__(self, verdict):
        self.verdict = verdict

    def on_request(self, source, header, body):
        return PASS

    def on_answer(self, source, header, body, answer):
        return self.verdict if header.api_key == 0 else PASS


@pytest.mark.parametrize("verdict", [Cut(), Drop()])
def test_an_answer_that_the_client_never_got_leaves_the_outcome_unknown(lab, tmp_path, verdict):
    """Cut or dropped by the proxy: what the broker said does not count, for the client may try again."""
    with proxy_lab(lab.address, tmp_path, hook_for=lambda node: ProxyLoses(verdict)) as proxy:
        settings = {
            "retries": 0,
            "enable.idempotence": False,
            "message.timeout.ms": 120_000,
            "socket.timeout.ms": 5_000,
        }
        assert produce(proxy.bootstrap, "lossy", 1, start=7, **settings) == 0
    appends = [row for row in proxy.trace().operations if row.function is Function.APPEND]
    assert appends and {row.outcome for row in appends} == {Outcome.UNKNOWN}
    assert all(row.completion_time is None for row in appends)


@pytest.mark.parametrize("kept", [Kept.HASH, Kept.FULL])
@pytest.mark.parametrize("when_full", list(WhenFull))
def test_at_the_disk_bound_recording_or_traffic_stops(lab, tmp_path, when_full, kept):
    """Rule: what is on disk never exceeds the bound, and is readable: a whole beginning of what passed. With
    stop-traffic no broker gets a record that is not in it; with stop-recording the application notices
    nothing. How many records a row has is the client's choice: as many as were queued when it sent."""
    judged_at_the_bound(lab.address, tmp_path, f"full-{when_full}-{kept}", when_full, kept)


def test_an_appended_row_after_a_refusal_waits_for_another_try():
    """Refused, tried again, acknowledged: one row that is ok. Refused and never tried again: it has
    failed."""
    lines = []
    appends = Appends(Lines(lines.append))
    header = read_header(encode_batch([Record(0, 1, None, b"x")], base_offset=0, leader_epoch=-1))

    def made(number):
        where = {"topic": "t", "partition": 0, "header": header, "first": 0, "key": None, "node": 1}
        return [Append(op_id=number, process=1, time=number, values=[number], acks=-1, **where)]

    first = appends.sent(("plain", 1), made(1))
    appends.answered(("plain", 1), first, 10, "NOT_LEADER_OR_FOLLOWER", -1, -1)
    assert appends.sent(("plain", 1), made(9)) is first
    appends.answered(("plain", 1), first, 20, "NONE", 5, 0)
    second = appends.sent(("plain", 2), made(2))
    appends.answered(("plain", 2), second, 30, "NOT_LEADER_OR_FOLLOWER", -1, -1)
    appends.tick(30 + RETRIED_NS)
    third = appends.sent(("plain", 3), made(3))
    appends.lost(third)
    (trace,) = read_lines(HEAD + lines, where="lines")
    found = {row.op_id: (row.outcome, row.attempts, row.offset) for row in trace.operations}
    assert found == {1: (Outcome.OK, 2, 5), 2: (Outcome.FAIL, 1, None), 3: (Outcome.UNKNOWN, 1, None)}
    assert not appends.repeated and appends.unknown == 1


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_record_has_one_id_from_the_request_to_the_reader(codec):
    """Equal content compares whatever the codec; with idempotence two equal records differ, and the log's
    stamps change nothing."""
    records = [Record(n, 5 + n, b"k", b"v" * 100, (Header("h", b"x"),)) for n in range(3)]
    values = Values(key=KEY)
    plain = encode_batch(records, base_offset=0, leader_epoch=-1, codec=codec)
    ids, deltas = values.of_batch(plain, read_header(plain))
    assert len(set(ids)) == 1 and deltas is None
    mine = encode_batch(
        records,
        base_offset=0,
        leader_epoch=-1,
        codec=codec,
        producer_id=7,
        producer_epoch=0,
        base_sequence=2**31 - 2,
    )
    sent, _ = values.of_batch(mine, read_header(mine))
    assert len(set(sent)) == 3 and {content_of(one) for one in sent} == {content_of(ids[0])}
    assert content_of(ids[0]) == values.content(b"k", b"v" * 100, b"\x02\x02h\x02x")
    stored = with_leader_fields(mine, base_offset=1_000, leader_epoch=4)
    read = shown(stored, 1_001, values, None)
    assert [(run.offset, run.leader_epoch, run.values) for run in read.runs] == [(1_001, 4, sent[1:])]
    other, _ = Values(key=b"o" * 32).of_batch(plain, read_header(plain))
    assert other[0] != ids[0]


def recorded_pipe(keep=None):
    """A connection whose traffic is recorded, and the lines of the record."""
    lines = []
    pipe = Pipe(
        number=1,
        cluster=Cluster(lambda upstream: ("127.0.0.1", 1)),
        broker=("b", 1),
        client="c",
        now=lambda: 5,
        watcher=Recorder(lines=Lines(lines.append), values=Values(key=KEY), keep=keep),
    )
    return pipe, lines


@pytest.mark.parametrize(("replica_id", "rows"), [(-1, 1), (-2, 0), (3, 0)])
def test_the_log_end_that_a_replica_or_a_debugger_is_told_is_no_end_for_clients(replica_id, rows):
    """Rule: a request with another replica id than -1 is answered with the leader's log end, which a high
    watermark may be below (Kafka's ReplicaManager.fetchOffset)."""
    ask, answer = load_request_schema(LIST_OFFSETS, 4), load_response_schema(LIST_OFFSETS, 4)
    asked, said = sys.modules[ask.__module__], sys.modules[answer.__module__]
    wanted = asked.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    topics = (asked.ListOffsetsTopic(name="t", partitions=(wanted,)),)
    told = said.ListOffsetsPartitionResponse(
        partition_index=0, error_code=ErrorCode.none, timestamp=-1, offset=9, leader_epoch=2
    )
    responses = (said.ListOffsetsTopicResponse(name="t", partitions=(told,)),)
    pipe, lines = recorded_pipe()
    pipe.from_client(write_request(7, "c", ask(replica_id=replica_id, isolation_level=0, topics=topics)))
    pipe.from_broker(write_response(7, answer(throttle_time=timedelta(0), topics=responses)))
    pipe.settle()
    (trace,) = read_lines(HEAD + lines, where="lines")
    assert [row.offset for row in trace.operations if row.function is Function.LIST_OFFSETS] == [9] * rows


def fetched(high_watermark, last_stable_offset, records, keep=None):
    """The trace of one fetch from offset 3 on that a broker answered so."""
    fetch, answer = load_request_schema(FETCH, 4), load_response_schema(FETCH, 4)
    asked, said = sys.modules[fetch.__module__], sys.modules[answer.__module__]
    partition = asked.FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=99)
    pipe, lines = recorded_pipe(keep)
    request = fetch(
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=1,
        isolation_level=0,
        topics=(asked.FetchTopic(topic="t", partitions=(partition,)),),
    )
    pipe.from_client(write_request(7, "c", request))
    claimed = said.PartitionData(
        partition_index=0,
        error_code=ErrorCode.none,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        aborted_transactions=None,
        records=records,
    )
    responses = (said.FetchableTopicResponse(topic="t", partitions=(claimed,)),)
    pipe.from_broker(write_response(7, answer(throttle_time=timedelta(0), responses=responses)))
    pipe.settle()
    (trace,) = read_lines(HEAD + lines, where="lines")
    return trace


def test_a_last_stable_offset_that_was_read_after_the_high_watermark():
    """Rule: Kafka reads the high watermark before the last stable offset (Partition.readRecords), so that an
    answer may claim one above the other. That is no finding; both values are on record."""
    trace = fetched(10, 12, None)
    row = next(row for row in trace.operations if row.function is Function.POLL)
    assert (row.end_offset, row.last_stable_offset) == (10, 10)
    (mark,) = [event for event in trace.events if event.cause == LAST_STABLE_LATER]
    assert json.loads(mark.detail) == {"op_id": row.op_id, "high_watermark": 10, "last_stable_offset": 12}


def test_a_fetched_record_that_has_no_key_or_value_is_named():
    """Rule: with --values full, a record that cannot be taken apart is a mark; the poll is a row all the
    same, and nothing is raised."""
    value = b"\xff" * 20
    whole = encode_batch([Record(3, 5, None, value)], base_offset=3, leader_epoch=0)
    broken = whole.replace(b"\x01\x28" + value, b"\xff\xff" + value)
    assert broken != whole
    kept = []
    trace = fetched(4, 4, broken, keep=lambda *content: kept.append(content))
    assert kept == []
    assert [event.cause for event in trace.events if event.name is Name.MARK] == ["unread_batch"]
    assert Function.POLL in {row.function for row in trace.operations}
    fetched(4, 4, whole, keep=lambda *content: kept.append(content))
    assert len(kept) == 1


def test_fetch_sessions_are_followed():
    """What a session asked before goes on until it is named again, forgotten, or the session ends."""
    sessions = Sessions()
    full = sessions.asked("b", 0, 0, {("t", 0): 5, ("t", 1): 7}, [])
    sessions.answered("b", 9, 0, full)
    assert sessions.asked("b", 9, 1, {("t", 0): 6}, []) == {("t", 0): 6, ("t", 1): 7}
    assert sessions.asked("b", 9, 2, {}, [("t", 1)]) == {("t", 0): 6}
    assert sessions.asked("c", 9, 1, {("t", 3): 1}, []) == {("t", 3): 1}
    assert sessions.asked("b", 9, -1, {("t", 0): 1}, []) == {("t", 0): 1}
    assert sessions.asked("b", 9, 3, {}, []) == {}


PROXY = "from fencepost.cli import main; main()"


@pytest.mark.parametrize("number", range(4))
def test_killed_at_any_moment_the_trace_up_to_then_is_readable(lab, tmp_path, number):
    """kill -9: every record that a client was told of is in the trace, as acknowledged or at least as
    sent."""
    where = ["--upstream", lab.address, "--listen", "127.0.0.1:0", "--record", str(tmp_path / "live")]
    command = ["proxy", *where, "--part-s", "0.1", "--json", "--no-view"]
    process = subprocess.Popen([sys.executable, "-c", PROXY, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = json.loads(process.stdout.readline())["listen"]
    producer, told = (
        ck.Producer(
            {"bootstrap.servers": port, "log_level": 0, "message.timeout.ms": 60_000, "linger.ms": 1}
        ),
        [],
    )
    for n in range(60 + 150 * number):
        producer.produce(
            "killed", b"%d" % n, partition=0, on_delivery=lambda e, m: e is None and told.append(m.offset())
        )
        producer.poll(0.001)
        if n == 20 + 130 * number:
            end = time.monotonic() + 600
            while not told and time.monotonic() < end:  # a client has heard of something by now
                producer.poll(0.05)
            os.kill(process.pid, signal.SIGKILL)
    process.wait()
    producer.purge()
    producer.flush(5)
    (run,) = Path(tmp_path / "live").glob("run-*")
    trace = read_recording(run)
    appends = [row for row in trace.operations if row.function is Function.APPEND]
    acknowledged = {record.offset for row in appends if row.outcome is Outcome.OK for record in row.records}
    unknown = sum(len(row.records) for row in appends if row.outcome is Outcome.UNKNOWN)
    assert told and len(set(told) - acknowledged) <= unknown
    assert not any(verdict.findings for verdict in judge(trace, DEFAULT_CHECKS))
    assert all(path.stat().st_size for path in parts_of(run))
