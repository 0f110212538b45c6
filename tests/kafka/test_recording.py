"""What clients did, row by row: retries, lost answers, alike records; and that the judges hold a run to these
rows."""

import asyncio
import itertools
import sys
import threading

import pytest
from attrs import evolve
from crc32c import crc32c

import fencepost.kafka
from fencepost.checkers.verdict import Decision
from fencepost.conformance.lab import Lab
from fencepost.conformance.runner import new_run
from fencepost.impl.core.broker_context import FIRST_WIRE_CLIENT
from fencepost.impl.log import validation
from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.impl.log.batch.record_walk import COMPILED_WALK
from fencepost.impl.log.validation import MOST_PRODUCED_BYTES, MOST_PRODUCED_RECORDS
from fencepost.impl.log.values import FOREIGN, batch_of
from fencepost.impl.messages.broker_api import (
    EARLIEST,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from fencepost.impl.messages.group_api import CommittedOffset, OffsetCommitRequest, OffsetCommitResponse
from fencepost.impl.runtime.addresses import parse_address
from fencepost.kafka.judgement import of_clients, verdict_of
from fencepost.kafka.recording import client_record
from fencepost.kafka.recording.client_record import FIRST_PROCESS, ClientRecord
from fencepost.report.event_words import event_in_words
from fencepost.traces.jsonlines import read_traces, write_traces
from fencepost.traces.kafka_names.contents import clients_of, texts_of
from fencepost.traces.kafka_names.outcomes import BATCH_REFUSED, NO_ERROR, ErrorCode
from fencepost.traces.operations import Function, Outcome
from fencepost.viewer.known.client_knowledge import Groups
from fencepost.wire.client import Access
from tests.kafka.clients import produce, producer
from tests.kafka.raw import Raw

KEY = TopicPartition("t", 0)
FIRST, SECOND = FIRST_WIRE_CLIENT, FIRST_WIRE_CLIENT + 1


class Watched:
    """A record of clients, and a clock that a test moves by asking and answering."""

    def __init__(self, most=1_000):
        self.time, self.numbers, self.met = 0, itertools.count(1), []
        self.record = ClientRecord(
            now=lambda: self.time,
            most=most,
            closed=lambda: bool(self.met),
            on_full=lambda: self.met.append(self.time),
        )

    def ask(self, records, source=FIRST, *, acks=-1, broker=1):
        """A produce request; answers its number."""
        self.time += 1
        number = next(self.numbers)
        request = ProduceRequest(correlation_id=number, partition=KEY, acks=acks, records=records, timeout=1)
        self.record.asked(broker, source, request)
        return number

    def answer(self, number, offset=-1, error=NO_ERROR, source=FIRST, *, delivered=True):
        """Its answer."""
        self.time += 1
        response = ProduceResponse(correlation_id=number, error=error, base_offset=offset, leader_epoch=3)
        self.record.answered(source, response, delivered=delivered)

    def rows(self):
        """(values, outcome, first offset, attempts) of each row."""
        return [
            (tuple(record.value for record in row.records), row.outcome, row.offset, row.attempts)
            for row in self.record.operations()
        ]


@pytest.fixture
def watched() -> Watched:
    """Nobody has connected yet."""
    return Watched()


def numbered(*values, sequence, epoch=0):
    """A batch of an idempotent producer."""
    records = [Record(place, 0, None, b"%d" % value) for place, value in enumerate(values)]
    return encode_batch(
        records, base_offset=0, leader_epoch=-1, producer_id=7, producer_epoch=epoch, base_sequence=sequence
    )


def test_an_acknowledged_batch_is_one_row(watched):
    """Rule: records of one batch with one fate are one row, with offsets, epoch, times and the connection as
    process."""
    watched.answer(watched.ask(batch_of((1, 2, 3))), 40)
    (row,) = watched.record.operations()
    assert [record.offset for record in row.records] == [40, 41, 42]
    assert (row.invoke_time, row.completion_time, row.leader_epoch, row.process) == (1, 2, 3, FIRST_PROCESS)


def test_a_refusal_and_its_retry_are_one_append(watched):
    """Rule: an error that proves that nothing was written leaves the append open for a retry, on any
    connection."""
    watched.answer(watched.ask(batch_of((1,))), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert watched.rows() == [((1,), Outcome.FAIL, None, 1)]
    again = watched.ask(batch_of((1,)), SECOND, broker=2)
    assert watched.rows() == [((1,), Outcome.UNKNOWN, None, 2)]
    watched.answer(again, 5, source=SECOND)
    assert watched.rows() == [((1,), Outcome.OK, 5, 2)]
    assert not (watched.record.repeated or watched.record.alike)


def test_a_retry_after_a_lost_answer_may_have_written_twice():
    """Rule: a plain producer that repeats what had no answer is said to; an idempotent one is not."""
    for batch, repeated in ((batch_of((1, 2)), True), (numbered(1, 2, sequence=0), False)):
        watched = Watched()
        watched.ask(batch)
        watched.record.lost(1)
        assert watched.rows() == [((1, 2), Outcome.UNKNOWN, None, 1)]
        watched.answer(watched.ask(batch, SECOND, broker=2), 9, source=SECOND)
        assert watched.rows() == [((1, 2), Outcome.OK, 9, 2)]
        assert watched.record.repeated is repeated


def test_a_retry_in_other_batches_keeps_each_records_fate(watched):
    """Rule: records are followed one by one, because a client may batch them otherwise when it tries
    again."""
    watched.answer(watched.ask(batch_of((1, 2, 3))), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    watched.answer(watched.ask(batch_of((1,))), 0)
    watched.answer(watched.ask(batch_of((2, 3, 4))), 1)
    assert watched.rows() == [((1,), Outcome.OK, 0, 2), ((2, 3), Outcome.OK, 1, 2), ((4,), Outcome.OK, 3, 1)]


def test_an_answer_that_nobody_hears_and_one_that_says_too_little_leave_doubt(watched):
    """Rule: a connection that has gone, and NOT_ENOUGH_REPLICAS_AFTER_APPEND, leave the append unknown."""
    watched.answer(watched.ask(batch_of((1,))), 0, delivered=False)
    watched.answer(watched.ask(batch_of((2,))), 1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    watched.ask(batch_of((3,)))
    assert {row[1] for row in watched.rows()} == {Outcome.UNKNOWN}
    assert all(row.completion_time is None for row in watched.record.operations())


def test_acks_0_and_a_record_sent_twice_on_purpose(watched):
    """Rule: without acks an append is done when it is sent; an equal record after an acknowledgement is
    another one, and the trace says so."""
    watched.ask(batch_of((1,)), acks=0)
    assert watched.rows() == [((1,), Outcome.OK, None, 1)]
    watched.answer(watched.ask(batch_of((2,))), 1)
    assert not watched.record.alike
    watched.answer(watched.ask(batch_of((2,))), 2)
    assert watched.rows()[1:] == [((2,), Outcome.OK, 1, 1), ((2,), Outcome.OK, 2, 1)]
    assert watched.record.alike


def test_rows_of_one_moment_are_in_the_order_of_their_first_requests(watched):
    """Rule: a record that was refused and sent again was still sent before what followed it at the same
    time of the cluster, which stands still while a turn lasts."""
    first = watched.ask(batch_of((1,)))
    watched.time -= 1
    watched.answer(watched.ask(batch_of((2,))), 0)
    watched.answer(first, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    watched.answer(watched.ask(batch_of((1,))), 1)
    assert [row.invoke_time for row in watched.record.operations()] == [1, 1]
    assert [row[0] for row in watched.rows()] == [(1,), (2,)]


def test_equal_records_of_an_idempotent_producer_are_others(watched):
    """Rule: another sequence is another record; where it is equal to one before, the trace says so."""
    watched.answer(watched.ask(numbered(1, sequence=0)), 0)
    assert not watched.record.alike
    watched.answer(watched.ask(numbered(1, sequence=1)), 1)
    assert watched.rows() == [((1,), Outcome.OK, 0, 1), ((1,), Outcome.OK, 1, 1)]
    assert watched.record.alike and not watched.record.repeated


def test_equal_records_that_are_under_way_together_are_others(watched):
    """Rule: a client does not repeat a record in the same batch, nor on a connection on which it waits for
    the answer: these are others."""
    both = watched.ask(batch_of((1, 1)))
    watched.answer(watched.ask(batch_of((1,))), 2)
    watched.answer(both, 0)
    assert [row[:3] for row in watched.rows()] == [((1, 1), Outcome.OK, 0), ((1,), Outcome.OK, 2)]
    assert watched.record.alike and not watched.record.repeated


def test_a_producer_that_raises_its_epoch_sends_the_same_records():
    """Rule: a record that was refused, or had no answer, and comes in the producer's next epoch with a new
    sequence (KIP-360) is another attempt of the same append; without an answer it may be written twice."""
    for refused, repeated in ((True, False), (False, True)):
        watched = Watched()
        first = watched.ask(numbered(1, sequence=5))
        if refused:
            watched.answer(first, error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        else:
            watched.record.lost(1)
        watched.answer(watched.ask(numbered(1, sequence=0, epoch=1)), 8)
        assert watched.rows() == [((1,), Outcome.OK, 8, 2)]
        assert watched.record.repeated is repeated and not watched.record.alike


def test_equal_records_are_no_finding():
    """Rule: a producer, idempotent or not, may send a record again on purpose."""
    for idempotent in (True, False):
        with (
            fencepost.kafka.cluster(brokers=1) as kafka,
            producer(kafka, enable_idempotence=idempotent) as client,
        ):
            kafka.create_topic("t")
            produce(client, [7, 7, 7])
            produce(client, [7])
            kafka.assert_ok()
            kafka.assert_no_duplicates("t")


def test_keys_tombstones_and_foreign_values(watched):
    """Rule: a row has one key; a tombstone is one; records of any bytes have value ids made of their
    content."""
    records = [
        Record(0, 0, b"a", b"x"),
        Record(1, 0, b"a", b"y"),
        Record(2, 0, b"b", None),
        Record(3, 0, None, b"x"),
    ]
    watched.answer(watched.ask(encode_batch(records, base_offset=0, leader_epoch=-1)), 0)
    rows = watched.record.operations()
    assert [(row.key, row.argument, len(row.records)) for row in rows] == [
        ("a", None, 2), ("b", "tombstone", 1), (None, None, 1),
    ]  # fmt: skip
    values = [record.value for row in rows for record in row.records]
    assert len(set(values)) == 4 and min(values) >= FOREIGN


def test_reads_and_ends_and_what_is_left_out():
    """Rule: a fetch with records is a poll from the offset that was asked for; empty ones, followers and
    other questions are no rows."""
    record = Watched().record
    data = encode_batch([Record(n, 0, None, b"%d" % n) for n in range(4)], base_offset=0, leader_epoch=2)
    for number, found in ((1, data), (2, b"")):
        wanted = FetchPartition(partition=KEY, offset=2)
        request = FetchRequest(
            correlation_id=number, replica_id=-1, max_wait=0, max_bytes=9, partitions=(wanted,)
        )
        record.asked(1, FIRST, request)
        fetched = FetchedPartition(
            partition=KEY, error=NO_ERROR, high_watermark=4, leader_epoch=2, records=found
        )
        record.answered(FIRST, FetchResponse(correlation_id=number, partitions=(fetched,)), delivered=True)
    for number, timestamp in ((3, -1), (4, EARLIEST)):
        record.asked(1, FIRST, ListOffsetsRequest(correlation_id=number, partition=KEY, timestamp=timestamp))
        answer = ListOffsetsResponse(correlation_id=number, error=NO_ERROR, offset=4, leader_epoch=2)
        record.answered(FIRST, answer, delivered=True)
    poll, listed = record.operations()
    assert [found.value for found in poll.records] == [2, 3] and (poll.offset, poll.end_offset) == (2, 4)
    assert listed.function is Function.LIST_OFFSETS and listed.offset == 4
    assert record._asked == {}


def test_a_commit_is_an_event_that_a_timeline_shows(watched):
    """Rule: a person sees which offset a group committed, by whom and when, and the page its group; no judge
    takes it for more than that."""
    for number, error in ((1, NO_ERROR), (2, ErrorCode.ILLEGAL_GENERATION)):
        request = OffsetCommitRequest(
            correlation_id=number, group_id="billing", generation_id=1, member_id="m", group_instance_id=None,
            offsets=(CommittedOffset(partition=KEY, offset=4),),
        )  # fmt: skip
        watched.record.asked(2, FIRST, request)
        watched.time += 1
        answer = OffsetCommitResponse(correlation_id=number, error=error)
        watched.record.answered(FIRST, answer, delivered=True)
    done, refused = watched.record.spoken(9)
    assert (done.time, done.node, done.topic, done.partition) == (1, 2, "t", 0)
    assert event_in_words(done) == f"OffsetCommit 4 of group billing by client {FIRST_PROCESS}"
    assert event_in_words(refused) == f"{event_in_words(done)} fails (ILLEGAL_GENERATION)"
    assert watched.record.operations() == [] and watched.record.size == 2
    groups = Groups()
    groups.event(7, done)
    groups.event(8, refused)
    assert groups.facts.last(("billing", "committed t-0")) == 4


def test_the_bound_closes_the_record():
    """Rule: beyond the bound nothing is recorded, and whoever owns the record hears of it."""
    watched = Watched(most=3)
    watched.answer(watched.ask(batch_of((1, 2, 3))), 0)
    watched.answer(watched.ask(batch_of((4,))), 3)
    assert len(watched.record.sent) == 3 and watched.met


def test_a_run_is_held_to_what_its_clients_heard():
    """Rule: the rows bind. Where a final read lacks what a client was told to be written, the verdict is a
    lost write."""
    with fencepost.kafka.cluster(brokers=1) as kafka, producer(kafka) as client:
        kafka.create_topic("t")
        for value in range(5):
            produce(client, (value,))
        trace = kafka.end()
        assert verdict_of(trace).decision is Decision.OK
    final = next(row for row in reversed(trace.operations) if row.function is Function.POLL)
    kept = tuple(record for record in final.records if record.value != 3)
    assert len(kept) == len(final.records) - 1
    tampered = evolve(
        trace,
        operations=tuple(evolve(row, records=kept) if row is final else row for row in trace.operations),
    )
    verdict = verdict_of(tampered, ("log",))
    assert verdict.decision is Decision.ILLEGAL and verdict.findings[0].offset == 3


def test_a_trace_says_what_clients_and_records_are_called():
    """Rule: for people, a trace has the client id of each connection that sends or reads, and the texts of
    keys and values, cut and as they came; records that are numbers need none, and no judge asks for them."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        with producer(kafka, client_id="shop") as client:
            client.send("t", key=b"k", value=b"<b>an order</b>").get(60)
            client.send("t", key=b"\xff", value=b"x" * 200).get(60)
            client.send("t", key=b"gone", value=None).get(60)
            client.send("t", value=b"7").get(60)
        trace = kafka.end()
        assert sorted(texts_of(trace.events).values(), key=repr) == [
            ("\\xff", "x" * 80 + "..."),
            ("gone", None),
            ("k", "<b>an order</b>"),
        ]
        named = clients_of(trace.events)
        assert {named[row.process] for row in of_clients(trace)} == {"shop"}
        assert [event.time for event in trace.events] == sorted(event.time for event in trace.events)
        assert kafka.verdict().decision is Decision.OK


def test_a_batch_that_its_header_refuses_takes_nothing_from_the_record():
    """Rule: more records than a broker accepts are refused before one of them is decoded, and leave room for
    what is accepted."""
    watched = Watched(most=10)
    records = [Record(place, 0, None, b"") for place in range(MOST_PRODUCED_RECORDS + 1)]
    many = encode_batch(records, base_offset=0, leader_epoch=-1)
    watched.answer(watched.ask(many), error=ErrorCode.MESSAGE_TOO_LARGE)
    assert watched.record.size == 0 and not watched.met
    watched.answer(watched.ask(batch_of((1,))), offset=0)
    assert watched.record.size == 1


def broken(data):
    """A batch of which the last record ends too early, under a checksum that is right."""
    data = bytearray(data[:-1])
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    return _checked(data)


def _checked(data):
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def late():
    """A batch whose second record has a time beyond 64 bits."""
    records = [Record(place, time, None, b"%d" % place) for place, time in enumerate((0, 10))]
    data = bytearray(encode_batch(records, base_offset=0, leader_epoch=-1))
    data[27:35] = data[35:43] = ((1 << 63) - 1).to_bytes(8, "big")
    return _checked(data)


def expanding():
    """A small batch whose one record is larger than a broker decompresses."""
    record = Record(0, 0, None, bytes(MOST_PRODUCED_BYTES))
    return encode_batch([record], base_offset=0, leader_epoch=-1, codec="zstd")


@pytest.mark.parametrize(
    "batch", [broken(batch_of((1, 2))), late(), expanding()], ids=["end", "time", "size"]
)
def test_what_no_broker_accepts_is_never_decoded(batch, monkeypatch):
    """Rule: the bounds and checks of a broker come before a record is decoded, whatever the answer."""
    decoded = []
    monkeypatch.setattr(client_record, "contents_of", lambda data, header: decoded.append(header))
    watched = Watched(most=10)
    watched.ask(batch)
    assert decoded == [] and watched.record.size == 0


REFUSALS = sorted(BATCH_REFUSED)


@pytest.mark.parametrize("error", REFUSALS)
def test_a_refused_batch_takes_nothing_from_the_record_but_a_line(error):
    """Rule: of batches that a broker refuses for what they are, one line for each connection, partition and
    reason says how many; they neither fill the record, nor stand in it as appends of records."""
    watched = Watched(most=4)
    watched.answer(watched.ask(batch_of((8, 9))), offset=0)
    before = watched.record.spoken(0)
    records = [Record(0, 0, b"a key", b"some text"), Record(1, 0, None, b"9")]
    for _ in range(20):
        refused = watched.ask(encode_batch(records, base_offset=0, leader_epoch=-1))
        watched.answer(refused, error=error)
    assert watched.record.size == 2 and not watched.met
    assert not watched.record.alike and watched.record.spoken(0) == before
    first, line = watched.record.operations()
    assert [record.value for record in first.records] == [8, 9]
    assert (line.outcome, line.error, line.attempts, line.records) == (Outcome.FAIL, error.value, 20, ())
    assert (line.invoke_time, line.completion_time) == (3, watched.time)
    watched.answer(watched.ask(encode_batch(records, base_offset=0, leader_epoch=-1)), offset=2)
    assert watched.record.size == 4


def test_a_refusal_says_nothing_about_an_earlier_attempt(watched):
    """Rule: a record whose first attempt is in doubt stays in doubt when a broker refuses its second one."""
    batch = numbered(1, 2, sequence=0)
    watched.ask(batch)
    watched.record.lost(1)
    watched.answer(watched.ask(batch), error=ErrorCode.INVALID_PRODUCER_EPOCH)
    assert watched.rows() == [((1, 2), Outcome.UNKNOWN, None, 2)]


def test_refused_batches_leave_no_phantom_and_hide_none(tmp_path):
    """Rule: a broker that refuses batches is healthy; a record of a refused batch in a log is a finding."""
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        kafka.create_topic("squeezed", config={"cleanup.policy": "compact"})
        with producer(kafka) as client:
            client.send("t", value=b"7").get(60)
        with Raw(kafka, "squeezed", 0) as raw:
            batch = encode_batch([Record(0, 0, None, b"12")], base_offset=0, leader_epoch=-1)
            topic = {"name": "squeezed", "partition_data": ({"index": 0, "records": batch},)}
            raw.ask(0, 7, acks=-1, timeout=5_000, topic_data=(topic,))
        trace = kafka.end()
    (line,) = [
        row for row in of_clients(trace) if row.function is Function.APPEND and row.topic == "squeezed"
    ]
    assert (line.records, line.error) == ((), "INVALID_RECORD")
    assert verdict_of(trace).decision is Decision.OK
    write_traces(tmp_path / "t.jsonl", [trace])
    (again,) = read_traces(tmp_path / "t.jsonl")
    assert again == trace
    (sent,) = [row for row in of_clients(trace) if row.topic == "t" and row.records]
    seen = evolve(
        sent,
        op_id=sent.op_id + 1_000,
        function=Function.POLL,
        invoke_time=line.completion_time,
        completion_time=line.completion_time + 1,
        isolation="read_uncommitted",
        offset=1,
        acks=None,
        records=(evolve(sent.records[0], offset=1, value=12),),
    )
    planted = evolve(trace, operations=(*trace.operations, seen))
    assert "phantom_record" in {finding.anomaly for finding in verdict_of(planted).findings}


def test_an_answer_about_many_records_is_one_entry():
    """Rule: an answer about a batch is taken in one step of few calls, however many records it has, because
    others wait for it."""
    watched = Watched(most=200_000)
    records = [Record(place, 0, None, b"") for place in range(100_000)]
    number = watched.ask(encode_batch(records, base_offset=0, leader_epoch=-1))
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        watched.answer(number, offset=0)
    finally:
        sys.setprofile(None)
    assert len(calls) < 1_000
    assert watched.record.operations()[0].outcome is Outcome.OK


def test_many_records_are_checked_outside_the_loop(monkeypatch):
    """Rule: a broker of the embedded cluster takes what a thread has found about a batch of many records, and
    does not check it again in the loop."""
    walked = []

    def walk(data, count, *place):
        walked.append((count, threading.current_thread().name))
        return COMPILED_WALK.examine(data, count, *place)

    monkeypatch.setattr(validation, "examine", walk)
    with fencepost.kafka.cluster(brokers=1) as kafka:
        kafka.create_topic("t")
        with Raw(kafka, "t", 0) as raw:
            records = [Record(place, 0, None, b"once") for place in range(100_000)]
            batch = encode_batch(records, base_offset=0, leader_epoch=-1)
            topic = {"name": "t", "partition_data": ({"index": 0, "records": batch},)}
            raw.ask(0, 7, acks=-1, timeout=60_000, topic_data=(topic,))
    ((_, where),) = [each for each in walked if each[0] == 100_000]
    assert where.startswith("asyncio")


def test_many_records_keep_nobody_waiting():
    """Rule: who asks after a batch of many records has arrived is answered before it is appended, as the
    loop takes the batch in steps."""

    async def order(where):
        run = new_run(where, Access())
        await run.look()
        lab, answered = Lab(run), []
        topic, other = await lab.topic(), await lab.link()
        records = [Record(place, 0, None, b"") for place in range(60_000)]
        data = encode_batch(records, base_offset=0, leader_epoch=-1)
        part = {"name": topic.name, "partition_data": [{"index": 0, "records": data}]}

        async def asked(name, waited):
            answered.append((name, await waited))

        large = asyncio.ensure_future(
            asked("large", lab.ask(topic.leader, 0, 7, acks=-1, timeout=60_000, topic_data=[part]))
        )
        await asyncio.sleep(0)
        while not topic.leader._answers or topic.leader._writer.transport.get_write_buffer_size():
            await asyncio.sleep(0.001)
        await asked("other", lab.ask(other, 18, 0))
        await large
        await lab.close()
        return answered

    with fencepost.kafka.cluster(brokers=1) as kafka:
        where = tuple(parse_address(each) for each in kafka.bootstrap_servers.split(","))
        (first, _), (_, answer) = asyncio.run(order(where))
    assert first == "other"
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE"
