"""The questions of wire_only.py in Kafka's messages, and the answers back.

Owns the translation. Our own brokers have no such messages, so that the table of what they speak does not
know them: the version is chosen here.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from fencepost.asked import wire_only as core
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.client import Link
from fencepost.wire.dialogue import Versions
from fencepost.wire.outward_questions import since_epoch_ms
from fencepost.wire.plain import keyed, keys_of, request
from fencepost.wire.translation import Tell, error_of, told

METADATA_TOPIC = "__cluster_metadata"
MOST_PARTITIONS = 2_000
"""Of an answer to DescribeTopicPartitions: Kafka's own default of the largest one."""


@frozen
class KafkaOnly:
    """A message that only Kafka's brokers know."""

    key: int
    # The highest version that is spoken.
    highest: int
    # values(the request) -> the fields of kio's request.
    values: Any
    tell: Tell
    # The lowest one that says what is asked.
    lowest: int = 0

    def version(self, versions: Versions | None) -> int | None:
        """The version to speak; None if the broker does not know the message."""
        low, high = (0, -1) if versions is None else versions.ranges.get(self.key, (0, -1))
        version = min(self.highest, high)
        return version if version >= max(low, self.lowest) else None

    def ask(self, link: Link, asked: Any) -> Any:
        """kio's request.

        Args:
            link: to the broker, which knows the message.
            asked: the core's.
        """
        version = self.version(link.dialogue.versions)
        assert version is not None, "only a broker that speaks it is asked"
        return request(self.key, version, self.values(asked))


def _group_values(asked: core.ConsumerGroupDescribeRequest) -> Mapping[str, Any]:
    return {"group_ids": [asked.group_id], "include_authorized_operations": False}


def _tell_group(
    asked: core.ConsumerGroupDescribeRequest, response: Any
) -> core.ConsumerGroupDescribeResponse:
    (group,) = response.groups
    members = tuple(
        (
            each.member_id,
            each.instance_id,
            keys_of(each.assignment.topic_partitions, "partitions", "topic_name"),
            each.member_epoch,
            each.client_id,
            each.client_host,
        )
        for each in group.members
    )
    described: core.ConsumerGroupDescribeResponse = told(
        core.ConsumerGroupDescribeResponse,
        asked,
        group,
        state=group.group_state,
        assignor=group.assignor_name,
        members=members,
    )
    return described


def _quorum_values(asked: core.DescribeQuorumRequest) -> Mapping[str, Any]:
    return {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]}


def _tell_quorum(asked: core.DescribeQuorumRequest, response: Any) -> core.DescribeQuorumResponse:
    parts = [each for topic in response.topics for each in topic.partitions]
    error = error_of(response.error_code)
    if error is ErrorCode.NONE and parts:
        error = error_of(parts[0].error_code)
    if error is not ErrorCode.NONE or not parts:
        return core.DescribeQuorumResponse(correlation_id=asked.correlation_id, error=error)
    (part,) = parts
    return core.DescribeQuorumResponse(
        correlation_id=asked.correlation_id,
        error=error,
        leader=part.leader_id,
        leader_epoch=part.leader_epoch,
        high_watermark=part.high_watermark,
        voters=tuple(map(_replica, part.current_voters)),
        observers=tuple(map(_replica, part.observers)),
    )


def _replica(state: Any) -> core.QuorumReplica:
    return core.QuorumReplica(
        node=state.replica_id,
        log_end_offset=state.log_end_offset,
        last_fetch_ms=_ms(getattr(state, "last_fetch_timestamp", None)),
        last_caught_up_ms=_ms(getattr(state, "last_caught_up_timestamp", None)),
    )


def _ms(time: Any) -> int:
    return int(time) if isinstance(time, int) else since_epoch_ms(time)


def _topic_values(asked: core.DescribeTopicPartitionsRequest) -> Mapping[str, Any]:
    return {
        "topics": [{"name": name} for name in asked.topics],
        "response_partition_limit": MOST_PARTITIONS,
        "cursor": None,
    }


def _tell_topics(
    asked: core.DescribeTopicPartitionsRequest, response: Any
) -> core.DescribeTopicPartitionsResponse:
    known = [topic for topic in response.topics if error_of(topic.error_code) is ErrorCode.NONE]
    return core.DescribeTopicPartitionsResponse(
        correlation_id=asked.correlation_id,
        partitions=tuple(
            core.EligiblePartition(
                partition=key,
                leader=each.leader_id,
                leader_epoch=each.leader_epoch,
                replicas=tuple(each.replica_nodes),
                isr=tuple(sorted(each.isr_nodes)),
                eligible=tuple(each.eligible_leader_replicas or ()),
                last_known=tuple(each.last_known_elr or ()),
            )
            for key, each in keyed(known)
        ),
    )


def _tell_cluster(asked: core.DescribeClusterRequest, response: Any) -> core.DescribeClusterResponse:
    described: core.DescribeClusterResponse = told(
        core.DescribeClusterResponse,
        asked,
        response,
        addresses={one.broker_id: (one.host, one.port) for one in response.brokers},
    )
    return described


KAFKA_ONLY: dict[type, KafkaOnly] = {
    core.DescribeClusterRequest: KafkaOnly(
        60, 2, lambda asked: {"include_fenced_brokers": True}, _tell_cluster, lowest=2
    ),
    core.ConsumerGroupDescribeRequest: KafkaOnly(69, 1, _group_values, _tell_group),
    core.DescribeQuorumRequest: KafkaOnly(55, 2, _quorum_values, _tell_quorum),
    core.DescribeTopicPartitionsRequest: KafkaOnly(75, 0, _topic_values, _tell_topics),
}
