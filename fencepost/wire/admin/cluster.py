"""The cluster and its brokers' disks: DescribeCluster, DescribeLogDirs."""

from typing import Any

from kio.schema.errors import ErrorCode as WireError

from fencepost.impl.messages.admin_api import DescribeLogDirsRequest
from fencepost.impl.messages.broker_api import MetadataRequest
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.traces.outcomes import NO_ERROR
from fencepost.wire.apis.metadata import NOT_ASKED
from fencepost.wire.handling import NO_THROTTLE, Call, Handling, error_code, grouped

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
        return call.make(
            "DescribeClusterResponse",
            throttle_time=NO_THROTTLE,
            error_code=WireError.mismatched_endpoint_type
            if mismatched
            else WireError.unsupported_endpoint_type,
            error_message="this is the address of a broker",
            endpoint_type=endpoints,
            cluster_id=call.broker.cluster_id,
            brokers=(),
        )
    (answer,) = yield [MetadataRequest(correlation_id=call.next_id(), topics=())]
    live = sorted({*answer.live_brokers, call.broker.node})
    addresses = call.broker.addresses()
    return call.make(
        "DescribeClusterResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(NO_ERROR),
        error_message=None,
        endpoint_type=BROKERS,
        cluster_id=call.broker.cluster_id,
        controller_id=answer.controller_id if answer.controller_id in live else -1,
        brokers=tuple(
            call.make(
                "DescribeClusterBroker",
                broker_id=node,
                host=addresses[node][0],
                port=addresses[node][1],
                rack=call.rack(node),
            )
            for node in live
            if node in addresses
        ),
        cluster_authorized_operations=NOT_ASKED,
    )


def describe_log_dirs(call: Call, request: Any) -> Handling:
    """A broker's one log directory, by its name in a cluster's folder. call: the request's context; request:
    kio's class."""
    (answer,) = yield [
        DescribeLogDirsRequest(
            correlation_id=call.next_id(),
            partitions=None
            if request.topics is None
            else tuple(
                TopicPartition(each.topic, number) for each in request.topics for number in each.partitions
            ),
        )
    ]
    return call.make(
        "DescribeLogDirsResponse",
        throttle_time=NO_THROTTLE,
        error_code=error_code(NO_ERROR),
        results=(
            call.make(
                "DescribeLogDirsResult",
                error_code=error_code(answer.error),
                log_dir=f"broker-{call.broker.node}/files",
                topics=tuple(
                    call.make(
                        "DescribeLogDirsTopic",
                        name=name,
                        partitions=tuple(
                            call.make(
                                "DescribeLogDirsPartition",
                                partition_index=each.partition.partition,
                                partition_size=each.size,
                                offset_lag=each.offset_lag,
                                is_future_key=False,
                            )
                            for each in logs
                        ),
                    )
                    for name, logs in grouped((each.partition.topic, each) for each in answer.logs).items()
                ),
            ),
        ),
    )
