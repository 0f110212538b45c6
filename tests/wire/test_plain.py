"""Kafka's messages from plain data: what is converted, left out, and empty."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.plain import by_topic, filled, keyed, keys_of, request
from fencepost.wire.schemas import response_schema

COMMIT, FETCH, JOIN = 8, 1, 11


def test_errors_and_times_are_converted_and_the_rest_is_empty():
    """Rule: a field without a value is nothing, zero or empty, and no error."""
    row = {"partition_index": 2, "error_code": ErrorCode.NOT_COORDINATOR}
    answer = filled(response_schema(COMMIT, 8), {"topics": [{"name": "t", "partitions": [row]}]})
    assert answer.throttle_time == timedelta(0)
    assert answer.topics[0].partitions[0].error_code is WireError.not_coordinator
    joining = request(JOIN, 5, {"group_id": "g", "session_timeout": 9_000})
    assert joining.session_timeout == timedelta(seconds=9) and joining.protocols == ()
    assert filled(response_schema(FETCH, 12), {}).error_code is WireError.none


@pytest.mark.parametrize(("version", "has"), [(5, False), (6, True)])
def test_what_a_version_lacks_is_left_out(version, has):
    """Rule: the same values serve every version; a leader epoch is in commits from version 6 on."""
    row = {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": 2}
    made = request(COMMIT, version, {"topics": [{"name": "t", "partitions": [row]}]})
    assert hasattr(made.topics[0].partitions[0], "committed_leader_epoch") is has


def test_partitions_stand_below_their_topics_and_come_back_as_keys():
    """Rule: topics and partitions keep the order in which they first come."""
    rows = [("u", {"partition_index": 1}), ("t", {"partition_index": 0}), ("u", {"partition_index": 0})]
    topics = by_topic(rows)
    assert [(each["name"], len(each["partitions"])) for each in topics] == [("u", 2), ("t", 1)]
    made = request(COMMIT, 8, {"topics": topics})
    assert [key for key, _ in keyed(made.topics)] == [
        TopicPartition("u", 1),
        TopicPartition("u", 0),
        TopicPartition("t", 0),
    ]
    assert keys_of(None, "partitions") is None
