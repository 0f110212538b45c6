"""Which requests may be late: none that version 1 of transactions assumes to come in time (KAFKA-17754)."""

import pytest

from fencepost.impl.messages import transaction_api as kafka
from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.sim.world import _may_be_late, _may_duplicate
from fencepost.traces.kafka_names.outcomes import NO_ERROR

KEY = TopicPartition("out", 0)
WHO = {"correlation_id": 1, "transactional_id": "x", "producer_id": 1, "producer_epoch": 0}


def marker(version: int) -> kafka.WriteTxnMarkersRequest:
    made = kafka.TxnMarker(
        producer_id=1, producer_epoch=0, commit=True, coordinator_epoch=0, partitions=(KEY,), version=version
    )
    return kafka.WriteTxnMarkersRequest(correlation_id=1, marker=made)


@pytest.mark.parametrize("version", [1, 2])
def test_what_counts_for_the_next_transaction_is_in_time_in_version_1(version: int) -> None:
    """Rule (KIP-890): in version 2 each of them has an epoch that is over, so that it may come late, or twice
    (seed 45000337 of the profile everything: an end that was held back ended the next transaction)."""
    offsets = kafka.TxnOffsetCommitRequest(**WHO, group_id="g", offsets=(), adds_partition=version == 2)
    for message in (kafka.EndTxnRequest(**WHO, commit=True, version=version), marker(version), offsets):
        assert _may_be_late(message) == _may_duplicate(message) == (version == 2)


def test_what_adds_to_a_transaction_is_in_time_and_questions_are_not() -> None:
    """Rule: a leader's question, its answer and a batch may come late: that is what KIP-890 is for."""
    assert not _may_be_late(kafka.AddPartitionsToTxnRequest(**WHO, partitions=(KEY,)))
    assert not _may_be_late(kafka.AddOffsetsToTxnRequest(**WHO, group_id="g"))
    assert _may_be_late(kafka.AddPartitionsToTxnRequest(**WHO, partitions=(KEY,), verify_only=True))
    assert _may_be_late(kafka.AddPartitionsToTxnResponse(correlation_id=1, error=NO_ERROR))
