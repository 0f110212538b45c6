"""What is recorded under each verb of a fault is what the client was sent."""

import json
import struct
import sys
from datetime import timedelta

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from fencepost.impl.log.batch.record_batch import Record, encode_batch
from fencepost.proxy.exchange import Close, ToBroker, ToClient, Wait
from fencepost.proxy.faults import FaultHook, RequestFaults, parse
from fencepost.proxy.faults.verbs import SHAPES, VERBS
from fencepost.proxy.pipe import Pipe
from fencepost.proxy.proxied_cluster import Cluster
from fencepost.proxy.record.lines import Lines
from fencepost.proxy.record.recorder import Recorder
from fencepost.proxy.record.values import Values
from fencepost.traces.events import Name
from fencepost.traces.jsonlines import read_lines
from fencepost.traces.operations import Function, Outcome
from fencepost.wire.codec import write_request, write_response
from fencepost.wire.passing import answer_body, api_name, error_name, header_of, request_body

HEAD = ['{"type":"trace","trace_id":0,"plan":"","seed":0,"software_version":"x"}\n']
PRODUCE, FETCH, METADATA, COMMIT = (0, 7), (1, 4), (3, 5), (8, 3)
NOW = timedelta(0)
BATCH = encode_batch([Record(n, 5, b"k", b"v%d" % n) for n in range(3)], base_offset=0, leader_epoch=0)
LOG = b"".join(
    encode_batch([Record(n, 5, b"k", b"log %d" % n)], base_offset=n, leader_epoch=0) for n in range(2, 6)
)


def request_of(api, partitions):
    """A request for these partitions of the topic t, or of the group g."""
    made = load_request_schema(*api)
    said = sys.modules[made.__module__]
    if api == PRODUCE:
        rows = tuple(said.PartitionProduceData(index=n, records=BATCH) for n in partitions)
        topics = (said.TopicProduceData(name="t", partition_data=rows),)
        return made(transactional_id=None, acks=-1, timeout=NOW, topic_data=topics)
    if api == FETCH:
        rows = tuple(
            said.FetchPartition(partition=n, fetch_offset=3, partition_max_bytes=9_999) for n in partitions
        )
        topics = (said.FetchTopic(topic="t", partitions=rows),)
        return made(replica_id=-1, max_wait=NOW, min_bytes=1, isolation_level=0, topics=topics)
    if api == METADATA:
        return made(topics=(said.MetadataRequestTopic(name="t"),), allow_auto_topic_creation=False)
    rows = tuple(
        said.OffsetCommitRequestPartition(partition_index=n, committed_offset=4, committed_metadata=None)
        for n in partitions
    )
    topics = (said.OffsetCommitRequestTopic(name="t", partitions=rows),)
    return made(
        group_id="g", generation_id_or_member_epoch=1, member_id="m", topics=topics, retention_time=NOW
    )


def answer_of(body, leader):
    """What a healthy broker answers to it."""
    made = load_response_schema(body.__api_key__, body.__version__)
    said, api = sys.modules[made.__module__], (body.__api_key__, body.__version__)
    if api == PRODUCE:
        rows = tuple(
            said.PartitionProduceResponse(
                index=one.index, error_code=ErrorCode.none, base_offset=7, log_append_time=None,
                log_start_offset=0,
            )
            for one in body.topic_data[0].partition_data
        )  # fmt: skip
        return made(
            responses=(said.TopicProduceResponse(name="t", partition_responses=rows),), throttle_time=NOW
        )
    if api == FETCH:
        rows = tuple(
            said.PartitionData(
                partition_index=one.partition, error_code=ErrorCode.none, high_watermark=6,
                last_stable_offset=6, aborted_transactions=None, records=LOG[len(LOG) // 4 :],
            )
            for one in body.topics[0].partitions
        )  # fmt: skip
        responses = (said.FetchableTopicResponse(topic="t", partitions=rows),)
        return made(throttle_time=NOW, responses=responses)
    if api == METADATA:
        brokers = tuple(said.MetadataResponseBroker(node_id=n, host="b", port=n, rack=None) for n in (1, 2))
        row = said.MetadataResponsePartition(
            error_code=ErrorCode.none, partition_index=0, leader_id=leader, replica_nodes=(1, 2),
            isr_nodes=(1, 2), offline_replicas=(),
        )  # fmt: skip
        topic = said.MetadataResponseTopic(
            error_code=ErrorCode.none, name="t", is_internal=False, partitions=(row,)
        )
        return made(throttle_time=NOW, brokers=brokers, cluster_id=None, controller_id=1, topics=(topic,))
    rows = tuple(
        said.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=ErrorCode.none)
        for one in body.topics[0].partitions
    )
    return made(throttle_time=NOW, topics=(said.OffsetCommitResponseTopic(name="t", partitions=rows),))


class Host:
    """What owns a pipe's sockets, without sockets: the broker answers at once, every wait is over at once."""

    def __init__(self, text):
        self.lines, self.time, self.to_client, self.carried = [], 10, b"", []
        self.faults = RequestFaults()
        self.faults.arm(parse(text), 0)
        self.recorder = Recorder(lines=Lines(self.lines.append), values=Values(key=b"k" * 32))
        self.pipe = Pipe(
            number=1, cluster=Cluster(lambda upstream: ("127.0.0.1", 1)), broker=("b", 1), client="c",
            now=lambda: self.time, watcher=self.recorder, hook=FaultHook(self.faults, 1, lambda: self.time),
        )  # fmt: skip

    def send(self, number, body):
        self.do(self.pipe.from_client(write_request(number, "c", body)))

    def do(self, actions):
        self.time += 1_000
        for action in actions:
            if isinstance(action, ToClient):
                self.to_client += action.data
            elif isinstance(action, ToBroker):
                self.broker(action.data)
            elif isinstance(action, Wait):
                self.time += action.milliseconds * 1_000_000
                self.do(self.pipe.woken(action.side))
            elif isinstance(action, Close):
                self.end()
        self.pipe.settle()

    def broker(self, frame):
        header = header_of(frame)
        body = request_body(header, frame)
        self.carried.append(header.correlation_id)
        answer = answer_of(body, leader=1 + header.correlation_id % 2)
        if not self.pipe.closed:
            self.do(self.pipe.from_broker(write_response(header.correlation_id, answer)))

    def end(self):
        late = self.pipe.late()
        for frame in late.frames if late is not None else ():
            self.carried.append(header_of(frame).correlation_id)
        self.pipe.ended("the client has closed")

    def heard(self, apis):
        """The answers that arrived whole, by correlation id."""
        found, data = {}, self.to_client
        while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack(">i", data[:4])[0]):
            (number,) = struct.unpack(">i", data[4:8])
            found[number] = answer_body(*apis[number], data[: 4 + size])
            data = data[4 + size :]
        return found


def errors_of(api, body):
    """By partition: the error that an answer names."""
    if api == PRODUCE:
        return {one.index: error_name(one.error_code) for one in body.responses[0].partition_responses}
    rows = body.topics[0].partitions
    return {one.partition_index: error_name(one.error_code) for one in rows}


CASES = {
    "lose answer": ["lose answer to {api}"],
    "silence": ["silence {api}"],
    "silence answer": ["silence answer to {api}"],
    "cut before": ["cut before {api}"],
    "cut after": ["cut after {api}"],
    "half answer": ["half answer to {api}"],
    "delay": ["delay {api} by 50ms"],
    "hold": ["hold {api} by 50ms"],
    "hold connection": ["hold connection at {api} by 50ms"],
    "delay answer": ["delay answer to {api} by 50ms"],
    "answer": [
        "answer UNKNOWN_SERVER_ERROR to {api}",
        "answer UNKNOWN_SERVER_ERROR to {api}, after effect",
        "answer NOT_LEADER_OR_FOLLOWER to Produce",
        "answer NOT_LEADER_OR_FOLLOWER to Produce on t-0",
        "answer NOT_LEADER_OR_FOLLOWER to Produce, after effect",
        "answer NOT_COORDINATOR to OffsetCommit",
        "answer OFFSET_NOT_AVAILABLE to Fetch",
    ],
    "throttle": ["throttle {api} by 50ms"],
    "stale answer": ["stale answer to Metadata"],
    "move leader": ["move leader on t-0 for 50ms"],
    "move coordinator": ["move coordinator of group g for 50ms"],
    "forget member": ["forget member"],
    "reshape": [f"reshape Fetch to {shape}, illegal" for shape in SHAPES],
    "observe": ["observe {api}"],
    "skip answer": ["skip answer to {api}, illegal"],
}
APIS = (PRODUCE, FETCH, METADATA, COMMIT)


def test_every_verb_is_in_the_table():
    assert set(CASES) == set(VERBS)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api_name(api[0]))
@pytest.mark.parametrize("text", [text for texts in CASES.values() for text in texts])
def test_what_is_recorded_is_what_the_client_was_sent(text, api):
    """Rule: each request has a row that says whether its answer arrived whole, and each operation has the
    outcome that its answer names; without a whole answer it is unknown."""
    name = {PRODUCE: "Produce", FETCH: "Fetch", METADATA: "Metadata", COMMIT: "OffsetCommit"}[api]
    try:
        host = Host(text.format(api=name))
    except ValueError as error:  # no correct broker does it to this API
        pytest.skip(str(error))
    requests = {1: api, 2: api, 3: api}
    for number in requests:
        if not host.pipe.closed and not host.pipe.silent:
            host.send(number, request_of(api, (0, 1)))
    host.end()
    heard = host.heard(requests)
    (trace,) = read_lines(HEAD + host.lines, where="lines")
    rows = {row.op_id: row for row in trace.operations}
    events = [json.loads(one.detail) for one in trace.events if one.name is Name.REQUEST]
    said = {one["correlation"]: one for one in events}
    assert len(said) == len(events) and set(said) >= set(heard)
    assert said
    for number, event in said.items():
        mine = [rows[op_id] for op_id in event.get("operations", ())]
        if number not in heard:
            assert event["says"] == "the client did not get an answer"
            assert all(row.outcome is Outcome.UNKNOWN for row in mine)
            assert bool(mine) is (api == PRODUCE)
            continue
        assert "says" not in event
        answer = heard[number]
        if number not in host.carried:
            assert event["by"] == "fault"
        if api == PRODUCE:
            errors = errors_of(api, answer)
            assert [row.partition for row in mine] == sorted(errors) == [0, 1]
            assert event.get("error", "NONE") in errors.values()
            for row in mine:
                outcome = {"NONE": Outcome.OK}.get(errors[row.partition], Outcome.UNKNOWN)
                assert row.outcome is outcome  # what was refused stays open until it is not tried again
                if outcome is Outcome.OK:
                    assert (row.offset, row.completion_time) == (7, row.invoke_time + event["us"] * 1_000)
        if api == FETCH:
            shown = {row.partition: [record.offset for record in row.records] for row in mine}
            for one in answer.responses[0].partitions:
                if error_name(one.error_code) == "NONE" and one.partition_index in shown:
                    assert shown[one.partition_index] in ([], [3], [3, 4], [3, 4, 5])
                    assert bool(shown[one.partition_index]) is bool(one.records)
    if api == COMMIT:
        commits = [row.outcome for row in trace.operations if row.function is Function.COMMIT]
        unheard = len(said) - len([number for number in said if number in heard])
        assert commits.count(Outcome.UNKNOWN) >= unheard
        good = sum(set(errors_of(api, body).values()) == {"NONE"} for body in heard.values())
        assert commits.count(Outcome.OK) == good


@pytest.mark.parametrize(
    "text", ["delay answer to Produce by 50ms", "answer NOT_LEADER_OR_FOLLOWER to Produce"]
)
def test_an_answer_of_a_fault_is_marked(text):
    """Rule: a delayed answer is the broker's own, at the time at which it left; an answer of a fault is a row
    that says so, and the append has failed."""
    host = Host(text)
    host.send(1, request_of(PRODUCE, (0,)))
    host.recorder.close()
    (trace,) = read_lines(HEAD + host.lines, where="lines")
    (event,) = [json.loads(one.detail) for one in trace.events if one.name is Name.REQUEST]
    (row,) = trace.operations
    if text.startswith("delay"):
        assert row.outcome is Outcome.OK and "by" not in event
        assert row.completion_time - row.invoke_time >= 50_000_000
        assert event["us"] >= 50_000
    else:
        assert row.outcome is Outcome.FAIL and row.error == "NOT_LEADER_OR_FOLLOWER"
        assert event["by"] == "fault" and event["error"] == "NOT_LEADER_OR_FOLLOWER"
        assert host.carried == []
