"""Translates what a transactional producer of ours asks into Kafka's messages, and the answers back.

Owns the translation. Must not know any rule of transactions, or connections. The version that is spoken of
Produce, TxnOffsetCommit and EndTxn says which version of transactions the producer uses (KIP-890), so that a
client has to choose the one that its cluster has finalized (`transaction_version`).
"""

from collections.abc import Mapping
from typing import Any

from fencepost.impl.messages import transaction_api as core
from fencepost.wire.plain import by_topic, keyed
from fencepost.wire.translation import Translation, committed_topics, first_error, translation

FEATURE = "transaction.version"
FIRST_VERSION = {0: 11, 26: 4, 28: 4}
"""The highest versions of Produce, EndTxn and TxnOffsetCommit in the first version of transactions."""
ANY_PRODUCER_MS = 60_000
"""The time-out of an idempotent producer without transactions: nobody reads it."""


def transaction_version(features: Any) -> int:
    """The version of transactions that a cluster has.

    Parameters:
      features: `finalized_features` of an answer to ApiVersions, as kio's classes.
    Returns: 2 if `transaction.version` 2 is finalized, otherwise 1.
    """
    levels = {each.name: each.max_version_level for each in features or ()}
    return 2 if levels.get(FEATURE, 0) >= 2 else 1


def _ask_producer_id(request: core.InitProducerIdRequest) -> Mapping[str, Any]:
    transactional = request.transactional_id
    return {"transaction_timeout": request.transaction_timeout_ms if transactional else ANY_PRODUCER_MS}


def _ask_add_partitions(request: core.AddPartitionsToTxnRequest) -> Mapping[str, Any]:
    return {
        "v3_and_below_transactional_id": request.transactional_id,
        "v3_and_below_producer_id": request.producer_id,
        "v3_and_below_producer_epoch": request.producer_epoch,
        "v3_and_below_topics": by_topic((key.topic, key.partition) for key in request.partitions),
    }


def _tell_add_partitions(request: core.AddPartitionsToTxnRequest, response: Any) -> Mapping[str, Any]:
    """All partitions have the same error; of a mixture the worse one is what counts."""
    rows = keyed(response.results_by_topic_v3_and_below, "results_by_partition")
    return {"error": first_error(each.partition_error_code for _, each in rows)}


def _tell_offsets(request: core.TxnOffsetCommitRequest, response: Any) -> Mapping[str, Any]:
    return {"error": first_error(each.error_code for _, each in keyed(response.topics))}


TRANSLATIONS: dict[type, Translation] = {
    core.InitProducerIdRequest: translation(22, core.InitProducerIdResponse, _ask_producer_id),
    core.AddPartitionsToTxnRequest: translation(
        24, core.AddPartitionsToTxnResponse, _ask_add_partitions, _tell_add_partitions, lane="transaction"
    ),
    core.AddOffsetsToTxnRequest: translation(25, core.AddOffsetsToTxnResponse, lane="transaction"),
    core.EndTxnRequest: translation(
        26, core.EndTxnResponse, lambda asked: {"committed": asked.commit}, lane="transaction"
    ),
    core.TxnOffsetCommitRequest: translation(
        28,
        core.TxnOffsetCommitResponse,
        lambda asked: {"topics": committed_topics(asked.offsets)},
        _tell_offsets,
        lane="group",
    ),
}
