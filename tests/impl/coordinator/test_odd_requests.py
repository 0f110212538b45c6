"""Requests whose frame is legal and whose fields are not: each is answered with an error, and the coordinator
goes on."""

from typing import Any

import pytest
from group_lab import OFFSETS, T0, GroupLab

from fencepost.impl.coordinator.group_records import LONGEST_STRING
from fencepost.impl.messages import group_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.kafka_names.outcomes import ErrorCode

LARGEST = (1 << 63) - 1


def commit(lab: GroupLab, *offsets: kafka.CommittedOffset, group: str = "g") -> Any:
    """An OffsetCommit of somebody who assigns himself."""
    asked = lab.send(
        1,
        kafka.OffsetCommitRequest(
            correlation_id=lab.number(),
            group_id=group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            offsets=offsets,
        ),
    )
    lab.rest()
    return asked.answer


def test_a_commit_without_offsets_commits_nothing(lab: GroupLab) -> None:
    """Issue 27, point 16: it halted the coordinator. Kafka answers without an error and writes nothing."""
    answer = commit(lab)
    assert (answer.error, answer.appended) == (ErrorCode.NONE, False)
    assert lab.partition(1, OFFSETS).log.log_end_offset == 0
    assert commit(lab, kafka.CommittedOffset(partition=T0, offset=7)).error is ErrorCode.NONE
    assert lab.committed(1) == 7


@pytest.mark.parametrize(
    ("error", "offset"),
    [
        (ErrorCode.INVALID_TOPIC_EXCEPTION, {"partition": TopicPartition("x" * 40_000, 0)}),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, {"partition": TopicPartition("t", 1 << 40)}),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, {"partition": TopicPartition("t", -1)}),
        (ErrorCode.INVALID_REQUEST, {"leader_epoch": 1 << 31}),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, {"metadata": "m" * 4_097}),
        (ErrorCode.NONE, {"offset": LARGEST}),
        (ErrorCode.NONE, {"metadata": "\U0001f600" * 4_096}),
    ],
)
def test_offsets_that_no_record_can_hold_are_refused(
    error: ErrorCode, offset: dict[str, Any], lab: GroupLab
) -> None:
    """Names, numbers beyond 32 bits, long metadata; at the bound they are taken."""
    answer = commit(lab, kafka.CommittedOffset(**{"partition": T0, "offset": 7} | offset))
    assert answer.error is error and answer.appended == (error is ErrorCode.NONE)
    assert lab.partition(1, OFFSETS).log.log_end_offset == (error is ErrorCode.NONE)


def test_a_commit_larger_than_a_message_may_be_is_refused_whole(lab: GroupLab) -> None:
    """INVALID_COMMIT_OFFSET_SIZE, as Kafka answers when the log of the offsets takes no batch of that
    size."""
    offsets = [
        kafka.CommittedOffset(partition=TopicPartition("t", number), offset=1, metadata="m" * 4_096)
        for number in range(300)
    ]
    assert commit(lab, *offsets).error is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert commit(lab, *offsets[:200]).error is ErrorCode.NONE


def test_names_that_no_record_can_hold_are_refused(lab: GroupLab) -> None:
    """A string of a record has an int16 length; a member's id is a name and what the broker adds."""
    assert (
        commit(lab, kafka.CommittedOffset(partition=T0, offset=7), group="g" * 32_768).error
        is ErrorCode.INVALID_GROUP_ID
    )
    assert lab.join(1, group="g" * 32_768).answer.error is ErrorCode.INVALID_GROUP_ID
    assert lab.join(1, client="c" * LONGEST_STRING).answer.error is ErrorCode.INVALID_REQUEST
    assert lab.join(1, instance="i" * LONGEST_STRING).answer.error is ErrorCode.INVALID_REQUEST
    assert lab.join(1, protocols=("p" * 32_768,)).answer.error is ErrorCode.INVALID_REQUEST
    joined = lab.enter(1, client="c" * (LONGEST_STRING - 64))
    lab.rest()
    synced = lab.sync(1, joined.answer, {joined.answer.member_id: b"a"})
    lab.rest()
    assert synced.answer.error is ErrorCode.NONE and synced.answer.assignment == b"a"


@pytest.mark.parametrize("timeout_ms", [0, -1, 1 << 31])
def test_rebalance_timeouts_are_positive_and_32_bits(timeout_ms: int, lab: GroupLab) -> None:
    """One of 0 ms would let a group without a leader wait, and look again, without end."""
    request = kafka.JoinGroupRequest(
        correlation_id=-9,
        group_id="g",
        client_id="c",
        session_timeout_ms=3_000,
        rebalance_timeout_ms=timeout_ms,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )
    assert lab.send(1, request).answer.error is ErrorCode.INVALID_REQUEST
