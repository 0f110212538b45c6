"""The table of what is spoken, and every row at every version."""

import random

import pytest
from kio.schema.errors import ErrorCode
from wire_core import asked, carry_out, connection, request_bytes, sent
from wire_values import random_entity

from fencepost.impl.messages.group_api import OffsetFetchResponse
from fencepost.traces.kafka_names.outcomes import ErrorCode as Code
from fencepost.wire.codec import read_response, write_response
from fencepost.wire.connection import Close
from fencepost.wire.decoder import Message, read
from fencepost.wire.plain import _WIRE_ERRORS, filled
from fencepost.wire.schemas import request_schema, response_schema
from fencepost.wire.versions import APIS

DATA_PATH = {
    0: (0, 12),
    1: (4, 12),
    2: (0, 6),
    3: (0, 9),
    8: (2, 8),
    9: (1, 7),
    10: (0, 3),
    11: (0, 5),
    12: (0, 3),
    13: (0, 3),
    14: (0, 3),
    17: (0, 1),
    18: (0, 3),
    22: (0, 5),
    23: (2, 4),
    36: (0, 1),
}
"""Which clients need which is in docs/reference/wire.md."""


def spoken():
    """(key, version) of everything that is read."""
    return [
        (api.key, version)
        for api in APIS.values()
        for version in range(max(api.lowest, api.lowest_decoded), api.highest + 1)
    ]


def test_the_advertised_versions_are_the_documented_ones():
    """A range that grows or shrinks by mistake changes what clients believe about the broker."""
    assert {key: (APIS[key].lowest, APIS[key].highest) for key in DATA_PATH} == DATA_PATH
    assert APIS[0].lowest_decoded == 3


def test_kio_knows_every_version_that_is_read():
    """A row without classes would fail at its first request only."""
    for key, version in spoken():
        assert request_schema(key, version).__version__ == version
        assert response_schema(key, version).__version__ == version


def test_every_error_of_the_core_has_a_number():
    """By name; an error without one would turn an answer into the end of a connection."""
    assert all(isinstance(code, ErrorCode) for code in _WIRE_ERRORS.values())


def made(key, version, /, **values):
    """A request at this version; fields that it lacks are left out."""
    return filled(request_schema(key, version), values)


def test_an_old_answer_to_list_offsets_has_one_offset_or_none():
    """Version 0, which kio does not have: the bytes are those of Kafka's protocol guide."""
    request = bytes.fromhex("ffffffff 00000001 0001 74 00000001 00000003 fffffffffffffffe 00000001")
    message = read(request_schema(2, 0), Message(request, 100), 0)
    (topic,) = message.topics
    (part,) = topic.partitions
    assert (topic.name, part.partition_index, part.timestamp, part.max_num_offsets) == ("t", 3, -2, 1)
    for offsets, tail in (((7,), "00000001 0000000000000007"), ((), "00000000")):
        topics = [{"name": "t", "partitions": [{"partition_index": 3, "old_style_offsets": offsets}]}]
        frame = write_response(5, filled(response_schema(2, 0), {"topics": topics}))
        assert frame[8:] == bytes.fromhex(f"00000001 0001 74 00000001 00000003 0000 {tail}")


@pytest.mark.parametrize(("key", "version"), spoken())
def test_every_row_answers_at_every_version(key, version):
    """Random requests: each ends in a response of its own version, or in none where Kafka has none, and never
    in a mistake of ours."""
    rng = random.Random(f"row {key} {version}")
    for number in range(12):
        body = random_entity(request_schema(key, version), rng)
        it = connection()
        done = carry_out(it, it.receive(request_bytes(number, body)))
        closed = [action.reason for action in done if isinstance(action, Close)]
        if key == 0 and body.acks == 0:
            assert not sent(done) and all(reason.startswith("a produce with acks=0") for reason in closed)
        else:
            (frame,) = sent(done)
            assert read_response(key, version, frame[4:], 1_000)[0] == number and not closed


@pytest.mark.parametrize("version", range(4, 13))
def test_fetch_tells_everything_that_its_version_has(version):
    """Records as they are, high watermark, last stable offset, log start, aborted transactions; never a
    session."""
    part = {
        "partition": 2,
        "current_leader_epoch": 3,
        "fetch_offset": 4,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 100,
    }
    topic = {"topic": "t", "partitions": (part,)}
    body = made(
        1,
        version,
        cluster_id=None,
        replica_id=2,
        max_wait=5,
        min_bytes=1,
        max_bytes=1_000,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=(topic,),
        forgotten_topics_data=(),
        rack_id="",
    )
    it = connection()
    actions = it.receive(request_bytes(1, body))
    request = actions[0].message
    assert request.replica_id == -1, "a client does not pass for a follower"
    assert (request.min_bytes, request.total_max_bytes, request.read_committed) == (1, 1_000, True)
    assert request.partitions[0].leader_epoch == (3 if version >= 9 else -1)
    (frame,) = sent(carry_out(it, actions))
    response = read_response(1, version, frame[4:], 100)[1]
    (answer,) = response.responses[0].partitions
    assert (answer.partition_index, answer.high_watermark, answer.last_stable_offset) == (2, 9, 8)
    assert answer.records == b"bytes" and answer.aborted_transactions[0].first_offset == 2
    if version >= 5:
        assert answer.log_start_offset == 1
    if version >= 7:
        assert response.session_id == 0


@pytest.mark.parametrize("version", range(10))
def test_metadata_tells_leaders_replicas_and_who_is_offline(version):
    """Broker 3 does not live: it is listed nowhere, leads nothing, and its replicas are offline. Topics come
    in the order asked."""
    names = ("unknown", "t", "../t")
    topics = tuple({"name": name} for name in names)
    body = made(
        3,
        version,
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    it = connection()
    (frame,) = sent(carry_out(it, it.receive(request_bytes(1, body))))
    response = read_response(3, version, frame[4:], 100)[1]
    assert [(each.node_id, each.host, each.port) for each in response.brokers] == [
        (1, "one.example", 9092),
        (2, "two.example", 9093),
    ]
    assert [(each.name, each.error_code.name) for each in response.topics] == [
        ("unknown", "unknown_topic_or_partition"),
        ("t", "none"),
        ("../t", "invalid_topic_exception"),
    ]
    parts = response.topics[1].partitions
    assert [(each.leader_id, each.error_code.name) for each in parts] == [
        (1, "none"),
        (2, "none"),
        (-1, "leader_not_available"),
    ]
    assert parts[0].replica_nodes == (1, 2, 3) and parts[0].isr_nodes == (1, 2)
    if version >= 1:
        assert response.controller_id == 2
    if version >= 5:
        assert parts[0].offline_replicas == (3,)
    if version >= 7:
        assert parts[0].leader_epoch == 3


@pytest.mark.parametrize("version", range(6))
def test_an_old_client_joins_without_knowing_of_required_ids(version):
    """KIP-394: from version 4 on a client joins again with the id that it was given; before, it is done for
    it."""
    protocol = {"name": "range", "metadata": b"s"}
    body = made(
        11,
        version,
        group_id="g",
        session_timeout=10_000,
        rebalance_timeout=10_000,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=(protocol,),
    )
    it = connection()
    (frame,) = sent(carry_out(it, it.receive(request_bytes(1, body))))
    response = read_response(11, version, frame[4:], 100)[1]
    assert response.member_id == "m"
    assert response.error_code.name == ("member_id_required" if version >= 4 else "none")
    assert response.generation_id == (-1 if version >= 4 else 1)


@pytest.mark.parametrize("version", range(2, 9))
def test_a_commit_for_an_unknown_partition_fails_alone(version):
    """The group hears of the known ones only; the other has its error, as Kafka's broker looks into its
    metadata first."""
    parts = tuple(
        {
            "partition_index": index,
            "committed_offset": 3,
            "committed_leader_epoch": 2,
            "committed_metadata": None,
        }
        for index in (0, 9)
    )
    topic = {"name": "t", "partitions": parts}
    body = made(
        8,
        version,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        retention_time=-1,
        topics=(topic,),
    )
    it = connection()
    done = carry_out(it, it.receive(request_bytes(1, body)))
    commit = asked(done)[-1]
    assert [(each.partition.partition, each.offset, each.metadata) for each in commit.offsets] == [(0, 3, "")]
    assert commit.offsets[0].leader_epoch == (2 if version >= 6 else -1)
    response = read_response(8, version, sent(done)[0][4:], 100)[1]
    assert [(each.partition_index, each.error_code.name) for each in response.topics[0].partitions] == [
        (0, "none"),
        (9, "unknown_topic_or_partition"),
    ]


@pytest.mark.parametrize("version", [1, 3])
def test_transactions_are_refused_in_words(version, it):
    """Nobody coordinates them here: UNSUPPORTED_VERSION is what Java's producer takes for final."""
    done = it.receive(request_bytes(1, made(10, version, key="x", key_type=1)))
    response = read_response(10, version, sent(done)[0][4:], 100)[1]
    assert response.error_code.name == "unsupported_version"
    assert response.error_message == "Transactions are not supported by this broker"


def test_an_error_of_the_group_is_each_partitions_before_offset_fetch_2():
    """There was no field for it."""
    for version in (1, 2):
        topic = {"name": "t", "partition_indexes": (0, 1)}
        it = connection()
        (request,) = asked(it.receive(request_bytes(1, made(9, version, group_id="g", topics=(topic,)))))
        refused = OffsetFetchResponse(correlation_id=request.correlation_id, error=Code.NOT_COORDINATOR)
        response = read_response(9, version, sent(it.answered(refused))[0][4:], 100)[1]
        if version == 1:
            errors = [(each.committed_offset, each.error_code.name) for each in response.topics[0].partitions]
            assert errors == [(-1, "not_coordinator")] * 2
        else:
            assert (response.error_code.name, response.topics) == ("not_coordinator", ())
