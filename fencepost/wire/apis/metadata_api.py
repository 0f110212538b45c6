"""Metadata: who is in the cluster, and who leads what."""

from collections.abc import Iterable
from typing import Any

from fencepost.impl.messages.broker_api import NO_LEADER, MetadataRequest, MetadataResponse, PartitionMetadata
from fencepost.impl.messages.topic_partition import is_legal_topic
from fencepost.traces.kafka_names.internal_topics import INTERNAL_TOPICS
from fencepost.traces.kafka_names.outcomes import NO_ERROR, ErrorCode
from fencepost.wire.handling import Call, Handling
from fencepost.wire.plain import grouped

NOT_ASKED = -(1 << 31)
"""Value for authorized operations that were not requested (KIP-430); there is no authorizer here."""
FIRST_WITH_AUTO_CREATION = 4
"""Before it a client could not say that it wants no topic to be created."""


def metadata(call: Call, request: Any) -> Handling:
    """The live brokers, and the requested topics in the order of the request. call: the request's context;
    request: kio's class."""
    names = None if request.topics is None else tuple(dict.fromkeys(topic.name for topic in request.topics))
    if call.version == 0 and not names:
        names = None  # version 0 has no null: an empty list means all topics
    may_create = call.version < FIRST_WITH_AUTO_CREATION or request.allow_auto_topic_creation
    valid = None if names is None else tuple(name for name in names if is_legal_topic(name))
    (answer,) = yield [
        MetadataRequest(correlation_id=call.next_id(), topics=valid, allow_auto_topic_creation=may_create)
    ]
    live = sorted({*answer.live_brokers, call.broker.node})
    return call.answer(
        brokers=live_brokers(call, live, "node_id"),
        cluster_id=call.broker.cluster_id,
        controller_id=answer.controller_id if answer.controller_id in live else -1,
        topics=_topics(names, answer, set(live)),
        cluster_authorized_operations=NOT_ASKED,
    )


def live_brokers(call: Call, live: Iterable[int], node_id: str) -> list[dict[str, Any]]:
    """The brokers of an answer, as far as their addresses are known.

    Args:
        call: the request's context.
        live: those that live.
        node_id: kio's name of a broker's id.
    """
    addresses = call.broker.addresses()
    return [
        {node_id: node, "host": addresses[node][0], "port": addresses[node][1], "rack": call.rack(node)}
        for node in live
        if node in addresses
    ]


def _topics(names: tuple[str, ...] | None, answer: MetadataResponse, live: set[int]) -> Iterable[Any]:
    known = grouped((each.partition.topic, each) for each in answer.partitions)
    errors = dict(answer.errors)
    for name in known if names is None else names:
        error = NO_ERROR
        if name not in known:
            seen = errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            error = seen if is_legal_topic(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
        yield {
            "error_code": error,
            "name": name,
            "is_internal": name in INTERNAL_TOPICS,
            "partitions": [_partition(each, live) for each in known.get(name, ())],
            "topic_authorized_operations": NOT_ASKED,
        }


def _partition(known: PartitionMetadata, live: set[int]) -> dict[str, Any]:
    """A leader that does not live is no leader, though its epoch was the last one."""
    led = known.leader in live
    return {
        "error_code": NO_ERROR if led else ErrorCode.LEADER_NOT_AVAILABLE,
        "partition_index": known.partition.partition,
        "leader_id": known.leader if led else NO_LEADER,
        "leader_epoch": known.leader_epoch,
        "replica_nodes": known.replicas,
        "isr_nodes": known.isr,
        "offline_replicas": [replica for replica in known.replicas if replica not in live],
    }
