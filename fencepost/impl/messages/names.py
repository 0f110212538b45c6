"""The names of messages, as fixed text: they key the randomness of a message on its way, frames between our
processes carry them, and traces call a request so.

Owns the table. A class may be renamed; its name here stays, so that no seed changes its run, and processes
of two versions understand each other.
"""

from collections.abc import Mapping
from typing import Any

from fencepost.impl.messages import admin_api, broker_api, group_api, transaction_api

NAMES: Mapping[type, str] = {
    broker_api.ProduceRequest: "ProduceRequest",
    broker_api.FetchRequest: "FetchRequest",
    broker_api.ListOffsetsRequest: "ListOffsetsRequest",
    broker_api.DeleteRecordsRequest: "DeleteRecordsRequest",
    broker_api.OffsetsForLeaderEpochRequest: "OffsetsForLeaderEpochRequest",
    broker_api.MetadataRequest: "MetadataRequest",
    broker_api.LeaderAndIsrRequest: "LeaderAndIsrRequest",
    broker_api.UpdateMetadataRequest: "UpdateMetadataRequest",
    broker_api.StopReplicaRequest: "StopReplicaRequest",
    broker_api.ControlledShutdownRequest: "ControlledShutdownRequest",
    transaction_api.InitProducerIdRequest: "InitProducerIdRequest",
    transaction_api.AddPartitionsToTxnRequest: "AddPartitionsToTxnRequest",
    transaction_api.AddOffsetsToTxnRequest: "AddOffsetsToTxnRequest",
    transaction_api.TxnOffsetCommitRequest: "TxnOffsetCommitRequest",
    transaction_api.EndTxnRequest: "EndTxnRequest",
    transaction_api.WriteTxnMarkersRequest: "WriteTxnMarkersRequest",
    transaction_api.DescribeTransactionRequest: "DescribeTransactionRequest",
    transaction_api.ListTransactionsRequest: "ListTransactionsRequest",
    transaction_api.DescribeProducersRequest: "DescribeProducersRequest",
    group_api.FindCoordinatorRequest: "FindCoordinatorRequest",
    group_api.JoinGroupRequest: "JoinGroupRequest",
    group_api.SyncGroupRequest: "SyncGroupRequest",
    group_api.HeartbeatRequest: "HeartbeatRequest",
    group_api.LeaveGroupRequest: "LeaveGroupRequest",
    group_api.OffsetCommitRequest: "OffsetCommitRequest",
    group_api.OffsetFetchRequest: "OffsetFetchRequest",
    group_api.ListGroupsRequest: "ListGroupsRequest",
    group_api.DescribeGroupRequest: "DescribeGroupRequest",
    group_api.DeleteGroupRequest: "DeleteGroupRequest",
    group_api.OffsetDeleteRequest: "OffsetDeleteRequest",
    admin_api.CreateTopicsRequest: "CreateTopicsRequest",
    admin_api.DeleteTopicsRequest: "DeleteTopicsRequest",
    admin_api.CreatePartitionsRequest: "CreatePartitionsRequest",
    admin_api.DescribeConfigsRequest: "DescribeConfigsRequest",
    admin_api.AlterConfigsRequest: "AlterConfigsRequest",
    admin_api.AlterPartitionReassignmentsRequest: "AlterPartitionReassignmentsRequest",
    admin_api.ListPartitionReassignmentsRequest: "ListPartitionReassignmentsRequest",
    admin_api.ElectLeadersRequest: "ElectLeadersRequest",
    admin_api.DescribeLogDirsRequest: "DescribeLogDirsRequest",
    broker_api.ProduceResponse: "ProduceResponse",
    broker_api.FetchResponse: "FetchResponse",
    broker_api.ListOffsetsResponse: "ListOffsetsResponse",
    broker_api.DeleteRecordsResponse: "DeleteRecordsResponse",
    broker_api.OffsetsForLeaderEpochResponse: "OffsetsForLeaderEpochResponse",
    broker_api.MetadataResponse: "MetadataResponse",
    broker_api.ControlResponse: "ControlResponse",
    broker_api.ControlledShutdownResponse: "ControlledShutdownResponse",
    transaction_api.InitProducerIdResponse: "InitProducerIdResponse",
    transaction_api.AddPartitionsToTxnResponse: "AddPartitionsToTxnResponse",
    transaction_api.AddOffsetsToTxnResponse: "AddOffsetsToTxnResponse",
    transaction_api.TxnOffsetCommitResponse: "TxnOffsetCommitResponse",
    transaction_api.EndTxnResponse: "EndTxnResponse",
    transaction_api.WriteTxnMarkersResponse: "WriteTxnMarkersResponse",
    transaction_api.DescribeTransactionResponse: "DescribeTransactionResponse",
    transaction_api.ListTransactionsResponse: "ListTransactionsResponse",
    transaction_api.DescribeProducersResponse: "DescribeProducersResponse",
    group_api.FindCoordinatorResponse: "FindCoordinatorResponse",
    group_api.JoinGroupResponse: "JoinGroupResponse",
    group_api.SyncGroupResponse: "SyncGroupResponse",
    group_api.HeartbeatResponse: "HeartbeatResponse",
    group_api.LeaveGroupResponse: "LeaveGroupResponse",
    group_api.OffsetCommitResponse: "OffsetCommitResponse",
    group_api.OffsetFetchResponse: "OffsetFetchResponse",
    group_api.ListGroupsResponse: "ListGroupsResponse",
    group_api.DescribeGroupResponse: "DescribeGroupResponse",
    group_api.DeleteGroupResponse: "DeleteGroupResponse",
    group_api.OffsetDeleteResponse: "OffsetDeleteResponse",
    admin_api.CreateTopicsResponse: "CreateTopicsResponse",
    admin_api.DeleteTopicsResponse: "DeleteTopicsResponse",
    admin_api.CreatePartitionsResponse: "CreatePartitionsResponse",
    admin_api.DescribeConfigsResponse: "DescribeConfigsResponse",
    admin_api.AlterConfigsResponse: "AlterConfigsResponse",
    admin_api.AlterPartitionReassignmentsResponse: "AlterPartitionReassignmentsResponse",
    admin_api.ListPartitionReassignmentsResponse: "ListPartitionReassignmentsResponse",
    admin_api.ElectLeadersResponse: "ElectLeadersResponse",
    admin_api.DescribeLogDirsResponse: "DescribeLogDirsResponse",
}
"""By class, of every message between clients and brokers."""


def name_of(message: Any) -> str:
    """The name of a message. message: of a class in NAMES."""
    return NAMES[type(message)]
