"""The cluster and its brokers' disks: DescribeCluster, DescribeLogDirs."""

from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.admin_api import DescribeLogDirsRequest
from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.wire.apis.metadata_api import NOT_ASKED, live_brokers
from fencepost.wire.handling import Call, Handling
from fencepost.wire.plain import by_topic, keys_of

BROKERS, CONTROLLERS = 1, 2
"""The kinds of endpoints that a request from version 1 on may ask for; there is no quorum of controllers here
(KIP-919)."""
FIRST_WITH_ENDPOINTS = 1


def describe_cluster(call: Call, request: Any) -> Handling:
    """The live brokers and the controller, as this broker knows them. call: the request's context; request:
    kio's class."""
    endpoints = request.endpoint_type if call.version >= FIRST_WITH_ENDPOINTS else BROKERS
    if endpoints != BROKERS:
        yield ()
        mismatched = endpoints == CONTROLLERS
        return call.answer(
            error_code=WireError.mismatched_endpoint_type
            if mismatched
            else WireError.unsupported_endpoint_type,
            error_message="this is the address of a broker",
            endpoint_type=endpoints,
            cluster_id=call.broker.cluster_id,
        )
    (answer,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=())]
    live = sorted({*answer.live_brokers, call.broker.node})
    return call.answer(
        endpoint_type=BROKERS,
        cluster_id=call.broker.cluster_id,
        controller_id=answer.controller_id if answer.controller_id in live else -1,
        brokers=live_brokers(call, live, "broker_id"),
        cluster_authorized_operations=NOT_ASKED,
    )


def describe_log_dirs(call: Call, request: Any) -> Handling:
    """A broker's one log directory, by its name in a cluster's folder. call: the request's context; request:
    kio's class."""
    (answer,) = yield [
        DescribeLogDirsRequest(
            correlation_id=call.next_id(), partitions=keys_of(request.topics, "partitions", "topic")
        )
    ]
    logs = (
        (
            each.partition.topic,
            {
                "partition_index": each.partition.partition,
                "partition_size": each.size,
                "offset_lag": each.offset_lag,
            },
        )
        for each in answer.logs
    )
    directory = f"broker-{call.broker.node}/files"
    return call.answer(results=[{"error_code": answer.error, "log_dir": directory, "topics": by_topic(logs)}])
