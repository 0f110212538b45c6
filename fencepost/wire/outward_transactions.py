"""Translates what a transactional producer of ours asks into Kafka's messages, and the answers back.

Owns the translation. Must not know any rule of transactions, or connections. The version that is spoken of
Produce, TxnOffsetCommit and EndTxn says which version of transactions the producer uses (KIP-890), so that a
client has to choose the one that its cluster has finalized (`transaction_version`).
"""

from datetime import timedelta
from typing import Any

from fencepost.impl.messages import transaction_api as core
from fencepost.wire.dialogue import Dialogue
from fencepost.wire.handling import MILLISECOND, grouped
from fencepost.wire.translation import Translation, committed_topics, error_of, first_error

FEATURE = "transaction.version"
FIRST_VERSION = {0: 11, 26: 4, 28: 4}
"""The highest versions of Produce, EndTxn and TxnOffsetCommit in the first version of transactions."""
ID, EPOCH = core.NO_PRODUCER, core.NO_PRODUCER_EPOCH
ANY_PRODUCER = timedelta(milliseconds=60_000)
"""The time-out of an idempotent producer without transactions: nobody reads it."""


def transaction_version(features: Any) -> int:
    """The version of transactions that a cluster has.

    Parameters:
      features: `finalized_features` of an answer to ApiVersions, as kio's classes.
    Returns: 2 if `transaction.version` 2 is finalized, otherwise 1.
    """
    levels = {each.name: each.max_version_level for each in features or ()}
    return 2 if levels.get(FEATURE, 0) >= 2 else 1


def _ask_producer_id(to: Dialogue, request: core.InitProducerIdRequest) -> Any:
    timeout = request.transaction_timeout_ms * MILLISECOND if request.transactional_id else ANY_PRODUCER
    return to.make(
        22,
        "InitProducerIdRequest",
        transactional_id=request.transactional_id,
        transaction_timeout=timeout,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
    )


def _tell_producer_id(request: core.InitProducerIdRequest, response: Any) -> core.InitProducerIdResponse:
    return core.InitProducerIdResponse(
        correlation_id=request.correlation_id,
        error=error_of(response.error_code),
        producer_id=response.producer_id,
        producer_epoch=response.producer_epoch,
    )


def _ask_add_partitions(to: Dialogue, request: core.AddPartitionsToTxnRequest) -> Any:
    topics = grouped((key.topic, key.partition) for key in request.partitions)
    return to.make(
        24,
        "AddPartitionsToTxnRequest",
        v3_and_below_transactional_id=request.transactional_id,
        v3_and_below_producer_id=request.producer_id,
        v3_and_below_producer_epoch=request.producer_epoch,
        v3_and_below_topics=tuple(
            to.make(24, "AddPartitionsToTxnTopic", name=name, partitions=tuple(numbers))
            for name, numbers in topics.items()
        ),
    )


def _tell_add_partitions(
    request: core.AddPartitionsToTxnRequest, response: Any
) -> core.AddPartitionsToTxnResponse:
    """All partitions have the same error; of a mixture the worse one is what counts."""
    error = first_error(
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    )
    return core.AddPartitionsToTxnResponse(correlation_id=request.correlation_id, error=error)


def _ask_add_offsets(to: Dialogue, request: core.AddOffsetsToTxnRequest) -> Any:
    return to.make(
        25,
        "AddOffsetsToTxnRequest",
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        group_id=request.group_id,
    )


def _tell_add_offsets(request: core.AddOffsetsToTxnRequest, response: Any) -> core.AddOffsetsToTxnResponse:
    error = error_of(response.error_code)
    return core.AddOffsetsToTxnResponse(correlation_id=request.correlation_id, error=error)


def _ask_end(to: Dialogue, request: core.EndTxnRequest) -> Any:
    return to.make(
        26,
        "EndTxnRequest",
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        committed=request.commit,
    )


def _tell_end(request: core.EndTxnRequest, response: Any) -> core.EndTxnResponse:
    return core.EndTxnResponse(
        correlation_id=request.correlation_id,
        error=error_of(response.error_code),
        producer_id=getattr(response, "producer_id", ID),
        producer_epoch=getattr(response, "producer_epoch", EPOCH),
    )


def _ask_offsets(to: Dialogue, request: core.TxnOffsetCommitRequest) -> Any:
    return to.make(
        28,
        "TxnOffsetCommitRequest",
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=committed_topics(to, 28, "TxnOffsetCommitRequest", request.offsets),
    )


def _tell_offsets(request: core.TxnOffsetCommitRequest, response: Any) -> core.TxnOffsetCommitResponse:
    error = first_error(each.error_code for topic in response.topics for each in topic.partitions)
    return core.TxnOffsetCommitResponse(correlation_id=request.correlation_id, error=error)


TRANSLATIONS: dict[type, Translation] = {
    core.InitProducerIdRequest: Translation(_ask_producer_id, _tell_producer_id),
    core.AddPartitionsToTxnRequest: Translation(_ask_add_partitions, _tell_add_partitions, "transaction"),
    core.AddOffsetsToTxnRequest: Translation(_ask_add_offsets, _tell_add_offsets, "transaction"),
    core.EndTxnRequest: Translation(_ask_end, _tell_end, "transaction"),
    core.TxnOffsetCommitRequest: Translation(_ask_offsets, _tell_offsets, "group"),
}
