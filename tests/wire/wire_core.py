"""A broker core of canned answers, and connections in front of it."""

from typing import Any

from admin_core import admin_answer

from fencepost.impl.messages import broker_api as kafka
from fencepost.impl.messages import group_api as groups
from fencepost.impl.messages import transaction_api as transactions
from fencepost.traces.kafka_names.outcomes import ErrorCode
from fencepost.wire.codec import write_request
from fencepost.wire.connection import Connection, Submit, Write
from fencepost.wire.handling import BrokerView
from fencepost.wire.versions import APIS

OK = ErrorCode.NONE
VIEW = BrokerView(node=1, addresses=lambda: {1: ("one.example", 9092), 2: ("two.example", 9093)})


def answer(request: Any) -> Any:
    """What a healthy broker says."""
    number = request.correlation_id
    match request:
        case kafka.ProduceRequest():
            return kafka.ProduceResponse(
                correlation_id=number, error=OK, base_offset=7, leader_epoch=3, log_start_offset=1
            )
        case kafka.FetchRequest():
            return kafka.FetchResponse(
                correlation_id=number,
                partitions=tuple(
                    kafka.FetchedPartition(
                        partition=each.partition,
                        error=OK,
                        leader_epoch=3,
                        high_watermark=9,
                        log_start_offset=1,
                        records=b"bytes",
                        last_stable_offset=8,
                        aborted=((5, 2),) if request.read_committed else (),
                    )
                    for each in request.partitions
                ),
            )
        case kafka.ListOffsetsRequest():
            return kafka.ListOffsetsResponse(
                correlation_id=number, error=OK, offset=4, leader_epoch=3, timestamp=1_000
            )
        case kafka.OffsetsForLeaderEpochRequest():
            return kafka.OffsetsForLeaderEpochResponse(
                correlation_id=number,
                ends=tuple(
                    kafka.EpochEnd(partition=each.partition, error=OK, epoch=3, end_offset=6)
                    for each in request.queries
                ),
            )
        case kafka.MetadataRequest():
            known = [name for name in request.topics or ("t",) if name == "t"]
            return kafka.MetadataResponse(
                correlation_id=number,
                partitions=tuple(
                    kafka.PartitionMetadata(
                        partition=kafka.TopicPartition(name, place),
                        leader=place + 1,
                        leader_epoch=3,
                        replicas=(1, 2, 3),
                        isr=(1, 2),
                    )
                    for name in known
                    for place in range(3)
                ),
                live_brokers=(1, 2),
                controller_id=2,
                errors=tuple(
                    (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for name in request.topics or ()
                    if name != "t"
                ),
            )
        case kafka.InitProducerIdRequest():
            return kafka.InitProducerIdResponse(
                correlation_id=number, error=OK, producer_id=1_000, producer_epoch=0
            )
        case groups.FindCoordinatorRequest():
            return groups.FindCoordinatorResponse(correlation_id=number, error=OK, node=2)
        case groups.JoinGroupRequest():
            if not request.member_id:
                return groups.JoinGroupResponse(
                    correlation_id=number, error=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"
                )
            return groups.JoinGroupResponse(
                correlation_id=number,
                error=OK,
                generation_id=1,
                protocol_name="range",
                leader="m",
                member_id="m",
                members=(("m", b"subscription"),),
                instances=(("m", "static"),),
            )
        case groups.SyncGroupRequest():
            return groups.SyncGroupResponse(correlation_id=number, error=OK, assignment=b"mine")
        case groups.HeartbeatRequest():
            return groups.HeartbeatResponse(correlation_id=number, error=ErrorCode.REBALANCE_IN_PROGRESS)
        case groups.LeaveGroupRequest():
            return groups.LeaveGroupResponse(correlation_id=number, error=OK)
        case groups.OffsetCommitRequest():
            return groups.OffsetCommitResponse(correlation_id=number, error=OK)
        case groups.OffsetFetchRequest():
            asked = request.partitions or (kafka.TopicPartition("t", 0),)
            return groups.OffsetFetchResponse(
                correlation_id=number,
                error=OK,
                offsets=tuple(
                    groups.CommittedOffset(partition=each, offset=11, leader_epoch=3, metadata="m")
                    for each in asked
                ),
            )
        case transactions.AddPartitionsToTxnRequest():
            return transactions.AddPartitionsToTxnResponse(correlation_id=number, error=OK)
        case transactions.AddOffsetsToTxnRequest():
            return transactions.AddOffsetsToTxnResponse(
                correlation_id=number, error=ErrorCode.CONCURRENT_TRANSACTIONS
            )
        case transactions.EndTxnRequest():
            renewed = {"producer_id": 5, "producer_epoch": 3} if request.version == 2 else {}
            return transactions.EndTxnResponse(correlation_id=number, error=OK, **renewed)
        case transactions.TxnOffsetCommitRequest():
            return transactions.TxnOffsetCommitResponse(
                correlation_id=number, error=ErrorCode.ILLEGAL_GENERATION
            )
    return admin_answer(request)


def connection(**options: Any) -> Connection:
    """A new one."""
    return Connection(**{"source": 1 << 48, "broker": VIEW, "apis": APIS} | options)


def sent(actions: list[Any]) -> list[bytes]:
    """The bytes among the actions."""
    return [action.data for action in actions if isinstance(action, Write)]


def asked(actions: list[Any]) -> list[Any]:
    """The core's requests among them."""
    return [action.message for action in actions if isinstance(action, Submit)]


def carry_out(it: Connection, actions: list[Any]) -> list[Any]:
    """Answer what the core is asked, and what follows from it; everything that was to be done."""
    done, actions = [], list(actions)
    while actions:
        action = actions.pop(0)
        done.append(action)
        if isinstance(action, Submit):
            actions += it.answered(answer(action.message))
    return done


def request_bytes(number: int, body: Any, client_id: str | None = "c") -> bytes:
    """A frame."""
    return write_request(number, client_id, body)
