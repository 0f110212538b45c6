"""Answers in error in the shape of a request of any API and version, and rows taken out of requests and put
into answers."""

import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.static.constants import EntityType
from wire_values import encoded, random_entity

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.wire import shapes
from fencepost.wire.error_answers import answer_in_error, error_answer, errors_in, with_error
from fencepost.wire.versions import APIS

NO_PLACE = frozenset(
    {
        *("alter_client_quotas", "alter_replica_log_dirs", "alter_user_scram_credentials", "create_acls"),
        *("delete_acls", "describe_transactions", "write_txn_markers", "describe_log_dirs"),
    }
)
"""Rows of their responses name nothing that their requests name in the same way."""


def requests(*, of=None, count=12):
    """Random requests of every API of kio at its lowest and its highest version, or of one API at all."""
    rng = random.Random(19)
    for key in sorted(api_key_map) if of is None else [of]:
        versions = versions_of(key)
        for version in versions if of is not None else sorted({versions[0], versions[-1]}):
            kind = load_request_schema(key, version)
            for _ in range(count):
                yield random_entity(kind, rng)


def versions_of(key):
    """Those of kio's requests of an API."""
    found = []
    for version in range(30):
        with suppress(Exception):
            load_request_schema(key, version)
            found.append(version)
    return found


def name_of(body):
    """kio's name of the API."""
    return type(body).__module__.split(".")[2]


def test_every_request_of_kio_can_be_answered_with_an_error():
    """Rule: the answer is of the right class, can be written, holds the error and no other; where there is
    none, the request names nothing, or its API is on the list."""
    answered, without_place = set(), set()
    for body in requests(count=4):
        name = name_of(body)
        answer = error_answer(body, ErrorCode.unknown_server_error)
        if answer is None:
            without_place.add(name)
            continue
        answered.add(name)
        assert answer.__type__ is EntityType.response and answer.__api_key__ == body.__api_key__
        assert answer.__version__ == body.__version__
        assert set(errors_in(answer)) == {ErrorCode.unknown_server_error}
        assert encoded(answer)
    never = without_place - answered
    assert never == NO_PLACE & never and {name for name in NO_PLACE if name not in answered} == never
    assert len(answered) > 70


@pytest.mark.parametrize("key", [key for key in APIS if key not in (17, 18, 35, 36)])
def test_each_partition_of_a_request_has_its_row(key):
    """Rule: whatever the spoken request names is named by its answer, once and in its order, unless the error
    is one of the whole request."""
    seen = 0
    for body in requests(of=key, count=5):
        answer = error_answer(body, ErrorCode.unknown_server_error)
        if answer is None or not shapes.partitions_of(body) or key == 46:
            continue
        if key not in (3, 19, 37):
            assert shapes.partitions_of(answer) == shapes.partitions_of(body)
            seen += 1
        assert shapes.topics_of(answer) == [
            name for name in shapes.topics_of(body) if name in shapes.topics_of(answer)
        ]
    assert seen > 0 or key not in (0, 1, 2, 8, 9, 21, 23, 45, 47)


def test_an_error_of_the_whole_request_stands_at_the_top_where_there_is_a_place():
    """Rule: as Kafka does it: NOT_COORDINATOR of OffsetFetch is at the top from version 2 on, and in each
    partition before."""
    new, old = load_request_schema(9, 7), load_request_schema(9, 1)
    rng = random.Random(3)
    for kind, top in ((new, True), (old, False)):
        body = next(
            each for _ in range(99) if shapes.partitions_of(each := random_entity(kind, rng)) and each.topics
        )
        answer = error_answer(body, ErrorCode.not_coordinator)
        assert (getattr(answer, "error_code", None) == ErrorCode.not_coordinator) is top
        assert (shapes.partitions_of(answer) == []) is top


def test_an_error_row_says_that_there_is_nothing():
    """Rule: no offset, no epoch, no records: -1 and nothing, as Kafka fills them."""
    body = next(each for each in requests(of=0) if shapes.partitions_of(each))
    row = error_answer(body, ErrorCode.not_leader_or_follower).responses[0].partition_responses[0]
    assert (row.base_offset, row.log_append_time) == (-1, None)
    body = next(each for each in requests(of=1) if shapes.partitions_of(each))
    row = error_answer(body, ErrorCode.not_leader_or_follower).responses[0].partitions[0]
    assert (row.high_watermark, row.records) == (-1, b"")
    join = error_answer(next(requests(of=11)), ErrorCode.unknown_member_id)
    assert (join.generation_id, join.members) == (-1, ())
    coordinator = error_answer(next(requests(of=10)), ErrorCode.coordinator_not_available)
    assert (coordinator.node_id, coordinator.host, coordinator.port) == (-1, "", -1)


def two_partitions():
    """A produce to t-0 and t-1."""
    from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData

    from fencepost.wire.handling import MILLISECOND

    rows = tuple(PartitionProduceData(index=index, records=b"bytes") for index in (0, 1))
    return ProduceRequest(
        acks=-1, timeout=MILLISECOND, topic_data=(TopicProduceData(name="t", partition_data=rows),)
    )


def test_a_partition_is_taken_out_of_a_request_and_put_into_its_answer():
    """Rule: one partition fails and the other does not, as a correct broker may answer."""
    body, hit = two_partitions(), TopicPartition("t", 1)
    rest = shapes.without(body, [hit])
    assert shapes.partitions_of(rest) == [TopicPartition("t", 0)] and shapes.partitions_of(
        shapes.only(body, [hit])
    ) == [hit]
    assert shapes.partitions_of(shapes.without(body, shapes.partitions_of(body))) == []
    answer = error_answer(rest, ErrorCode.none)
    assert answer is None, "no error is not an error"
    answer = shapes.changed(
        error_answer(rest, ErrorCode.unknown_server_error),
        lambda key, row: replace(row, error_code=ErrorCode.none, base_offset=5),
    )
    both = shapes.merged(answer, error_answer(body, ErrorCode.not_leader_or_follower, [hit]))
    (topic,) = both.responses
    assert [(row.index, row.error_code, row.base_offset) for row in topic.partition_responses] == [
        (0, ErrorCode.none, 5),
        (1, ErrorCode.not_leader_or_follower, -1),
    ]


def test_rows_of_an_answer_are_put_in_error():
    """Rule: only those that are named; a whole topic of Metadata loses its partitions, a partition its leader
    only."""
    from kio.schema.metadata.v9.response import (
        MetadataResponse,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )

    def topic(name):
        row = MetadataResponsePartition(
            error_code=ErrorCode.none, partition_index=0, leader_id=1, leader_epoch=3, replica_nodes=(1, 2)
        )
        return MetadataResponseTopic(error_code=ErrorCode.none, name=name, partitions=(row,))

    answer = MetadataResponse(throttle_time=timedelta(0), brokers=(), topics=(topic("t"), topic("u")))
    changed_answer = with_error(answer, ErrorCode.unknown_topic_or_partition, topics=["t"])
    assert [(each.error_code.name, len(each.partitions)) for each in changed_answer.topics] == [
        ("unknown_topic_or_partition", 0),
        ("none", 1),
    ]
    one = with_error(answer, ErrorCode.leader_not_available, [TopicPartition("u", 0)]).topics[1].partitions[0]
    assert (one.error_code, one.leader_id) == (ErrorCode.leader_not_available, -1)
    assert (one.leader_epoch, one.replica_nodes) == (3, (1, 2))
    whole = answer_in_error(answer, ErrorCode.leader_not_available)
    assert set(errors_in(whole)) == {ErrorCode.leader_not_available}


def test_what_a_request_names():
    """Rule: group, acks."""
    join = next(each for each in requests(of=11))
    assert shapes.group_of(join) == join.group_id
    find = replace(next(each for each in requests(of=10) if hasattr(each, "key_type")), key_type=0)
    assert shapes.group_of(find) == getattr(find, "key", None)
    assert shapes.group_of(replace(find, key_type=1)) is None
    assert shapes.is_answered(two_partitions()) and not shapes.is_answered(replace(two_partitions(), acks=0))
