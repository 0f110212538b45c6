"""The records of __transaction_state: Kafka's bytes, both versions."""

import struct

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from fencepost.impl.messages.topic_partition import TopicPartition
from fencepost.impl.transaction.transaction_records import (
    TransactionValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fencepost.impl.transaction.transaction_states import NUMBERS, PREVIOUS, TransactionPhase

VALUE = TransactionValue(
    producer_id=7,
    producer_epoch=3,
    phase=TransactionPhase.ONGOING,
    timeout_ms=60_000,
    partitions=(TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("u", 1)),
    updated_ms=1_000,
    started_ms=900,
)


def test_version_0_is_kafkas():
    """Rule (KIP-98): TransactionLogValue 0, field by field as its schema has them."""
    topics = (
        b"\0\0\0\2"
        + b"\0\1t"
        + b"\0\0\0\2"
        + b"\0\0\0\0"
        + b"\0\0\0\2"
        + b"\0\1u"
        + b"\0\0\0\1"
        + b"\0\0\0\1"
    )
    expected = struct.pack(">hqhib", 0, 7, 3, 60_000, 1) + topics + struct.pack(">qq", 1_000, 900)
    assert encode_value(VALUE, version=0) == expected
    assert encode_key("ab") == b"\0\0\0\2ab"


def test_version_1_is_flexible():
    """Rule (KIP-890): compact strings and arrays, an empty tag section in each, tagged fields at the end."""
    value = evolve(VALUE, previous_producer_id=6, next_producer_id=9, client_version=2)
    topics = b"\3" + b"\2t" + b"\3" + b"\0\0\0\0" + b"\0\0\0\2" + b"\0" + b"\2u" + b"\2" + b"\0\0\0\1" + b"\0"
    tags = b"\3" + b"\0\x08" + struct.pack(">q", 6) + b"\1\x08" + struct.pack(">q", 9) + b"\2\2\0\2"
    expected = struct.pack(">hqhib", 1, 7, 3, 60_000, 1) + topics + struct.pack(">qq", 1_000, 900) + tags
    assert encode_value(value, version=1) == expected


def test_an_empty_transaction_has_no_partitions_at_all():
    """Rule (KIP-98): null, as Kafka writes it."""
    empty = evolve(VALUE, phase=TransactionPhase.EMPTY, partitions=())
    assert encode_value(empty, version=0)[17:21] == b"\xff\xff\xff\xff"
    assert encode_value(empty, version=1)[17:18] == b"\0"


names = st.text("abc", min_size=1, max_size=4)
values = st.builds(
    TransactionValue,
    producer_id=st.integers(0, 1 << 62),
    producer_epoch=st.integers(-1, (1 << 15) - 1),
    phase=st.sampled_from([phase for phase in TransactionPhase if phase is not TransactionPhase.EMPTY]),
    timeout_ms=st.integers(0, 1 << 30),
    partitions=st.sets(st.builds(TopicPartition, names, st.integers(0, 99)), max_size=5).map(
        lambda keys: tuple(sorted(keys))
    ),
    updated_ms=st.integers(-1, 1 << 50),
    started_ms=st.integers(-1, 1 << 50),
)


@given(values, st.sampled_from([0, 1]))
def test_what_is_written_is_read(value, version):
    """Rule (KIP-98): both versions come back as they were."""
    assert decode_value(encode_value(value, version=version)) == value


@given(values, st.sampled_from([0, 1]), st.integers(0, 60))
def test_bytes_that_end_early_are_no_value(value, version, size):
    """Rule (KIP-98): a record that is cut short says nothing, and raises nothing."""
    data = encode_value(value, version=version)
    assert decode_value(data[: min(size, len(data) - 1)]) is None


@pytest.mark.parametrize("data", [b"", b"\0\7", b"\0\2" + b"\0" * 40, b"\0\1" + b"\xff" * 60, b"\xff" * 40])
def test_other_bytes_are_no_value(data):
    """Rule (KIP-98): an unknown version, or a count that makes no sense, is None."""
    assert decode_value(data) is None


@pytest.mark.parametrize("data", [None, b"", b"\0\1\0\1a", b"\0\0\0\5a", b"\0\0\0\1\xff"])
def test_other_keys_are_none(data):
    """Rule (KIP-98): a key of another version or kind is left out."""
    assert decode_key(data) is None
    assert decode_key(encode_key("a-b")) == "a-b"


def test_the_states_are_kafkas():
    """Rule (KIP-98): numbers in records, and which state may follow which (TransactionState)."""
    assert [phase.value for phase, _ in sorted(NUMBERS.items(), key=lambda each: each[1])] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert set(PREVIOUS) == set(TransactionPhase)
    assert all(TransactionPhase.DEAD not in before for before in PREVIOUS.values())
