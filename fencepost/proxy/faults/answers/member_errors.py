"""The errors of the requests of KIP-848, KIP-932 and KIP-1071: members whose assignment the broker makes.

Owns those rows. Must not know faults.
"""

from collections.abc import Mapping

from fencepost.proxy.faults.answers.row import GROUP_IF, LEADER, MEMBER_IF, MOVES, SHARED_IF, WRITTEN, Row

MEMBERS: Mapping[str, Row] = {
    "ConsumerGroupHeartbeat": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if=f"{MEMBER_IF} UNSUPPORTED_ASSIGNOR INVALID_REGULAR_EXPRESSION FENCED_INSTANCE_ID",
        source="KIP-848",
        effect=True,
    ),
    "ShareGroupHeartbeat": Row(
        any_time=MOVES, after=WRITTEN, only_if=MEMBER_IF, source="KIP-932", effect=True
    ),
    "StreamsGroupHeartbeat": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if=f"{MEMBER_IF} CLUSTER_AUTHORIZATION_FAILED STREAMS_INVALID_TOPOLOGY"
        " STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED",
        source="KIP-1071",
        effect=True,
    ),
    "ConsumerGroupDescribe": Row(any_time=MOVES, only_if=GROUP_IF, source="KIP-848"),
    "ShareGroupDescribe": Row(any_time=MOVES, only_if=GROUP_IF, source="KIP-932"),
    "StreamsGroupDescribe": Row(any_time=MOVES, only_if=GROUP_IF, source="KIP-1071"),
    "ShareFetch": Row(any_time=LEADER, only_if=f"{SHARED_IF} CORRUPT_MESSAGE", source="KIP-932", effect=True),
    "ShareAcknowledge": Row(any_time=LEADER, only_if=SHARED_IF, source="KIP-932", effect=True),
    "DescribeShareGroupOffsets": Row(any_time=MOVES, only_if=GROUP_IF, source="KIP-932"),
    "AlterShareGroupOffsets": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if=f"{GROUP_IF} NON_EMPTY_GROUP UNKNOWN_TOPIC_OR_PARTITION KAFKA_STORAGE_ERROR",
        source="KIP-932",
        effect=True,
    ),
    "DeleteShareGroupOffsets": Row(
        any_time=MOVES,
        after=WRITTEN,
        only_if=f"{GROUP_IF} NON_EMPTY_GROUP UNKNOWN_TOPIC_OR_PARTITION KAFKA_STORAGE_ERROR",
        source="KIP-932",
        effect=True,
    ),
}
