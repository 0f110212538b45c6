"""All that a broker has to do with transactions, put together: it coordinates some, writes markers into the
logs that it leads, and asks before it begins one there.

Owns the wiring. Must not know any rule.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from fencepost.impl.broker.parts import Parts
from fencepost.impl.broker.producer_ids import ProducerIds
from fencepost.impl.coordinator.group_coordinator import GroupCoordinator
from fencepost.impl.coordinator.internal_topic import InternalTopic
from fencepost.impl.core.procedures import Procedures
from fencepost.impl.messages import group_api, transaction_api
from fencepost.impl.messages.broker_api import ProduceRequest
from fencepost.impl.replication.leader import LeaderRole
from fencepost.impl.transaction.admission import TransactionAdmission
from fencepost.impl.transaction.description import TransactionDescription
from fencepost.impl.transaction.marker_writer import MarkerWriter
from fencepost.impl.transaction.transaction_coordinator import TransactionCoordinator
from fencepost.impl.transaction.transaction_table import TransactionTable
from fencepost.impl.transaction.transactional_offsets import TransactionalOffsets
from fencepost.impl.transaction.verification import TIMER, TransactionVerification
from fencepost.traces.kafka_names.internal_topics import STATE_TOPIC


@define
class Transactions:
    """handlers, timers: what the broker hands over."""

    coordinator: TransactionCoordinator
    writer: MarkerWriter
    verification: TransactionVerification
    offsets: TransactionalOffsets
    topic: InternalTopic
    handlers: dict[type, Callable[[int, Any], None]] = field(factory=dict)
    timers: dict[str | int, Callable[..., None]] = field(factory=dict)


def make_transactions(
    parts: Parts, groups: GroupCoordinator, leader: LeaderRole, ids: ProducerIds, procedures: Procedures
) -> Transactions:
    """The parts of transactions, which hear of every replica that the leader role hears of."""
    broker_context, metadata = leader.broker_context, groups.metadata
    table = TransactionTable(broker_context, leader.partitions)
    log = parts.transaction_log(leader, table=table)
    markers = parts.transaction_markers(table, log, metadata)
    coordinator = parts.transaction_coordinator(
        table, log, parts.transaction_loading(table), markers, ids, metadata, groups.table
    )
    verification = parts.transaction_verification(broker_context, metadata, table)
    offsets = parts.transactional_offsets(groups.table, groups.log, groups.offsets, verification)
    writer = parts.marker_writer(leader)
    writer.refusals.append(offsets.refusal)
    writer.on_written.append(verification.marked)
    writer.on_durable.append(offsets.ended)
    admission = TransactionAdmission(leader, verification)
    topic = InternalTopic(
        STATE_TOPIC,
        broker_context,
        metadata,
        procedures,
        lambda: table.count,
        table.options.state_topic_replication_factor,
    )
    leader.on_complete += [coordinator.moved, writer.moved]

    def find(source: int, request: group_api.FindCoordinatorRequest) -> None:
        if request.transactional:
            topic.find(source, request, table.key_of(request.group_id).partition)
        else:
            groups.find(source, request)

    made = Transactions(coordinator, writer, verification, offsets, topic)
    made.handlers = {
        **coordinator.handlers,
        **TransactionDescription(table, log, markers).handlers,
        group_api.FindCoordinatorRequest: find,
        ProduceRequest: admission.produce,
        transaction_api.AddPartitionsToTxnResponse: verification.on_answer,
        transaction_api.TxnOffsetCommitRequest: offsets.commit,
        transaction_api.WriteTxnMarkersRequest: writer.write_markers,
    }
    made.timers = {**coordinator.timers, MarkerWriter.TIMER: writer.expire, TIMER: verification.expire}
    return made
