"""The records of __consumer_offsets, byte by byte, and the consumer protocol inside them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.impl.coordinator import group_records
from fencepost.impl.messages import consumer_protocol
from fencepost.impl.messages.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)


def test_keys_and_values_are_kafkas() -> None:
    """Rule (P4): the bytes are those of Kafka's message definitions: OffsetCommitKey 1, OffsetCommitValue 3,
    GroupMetadataKey 2."""
    assert (
        group_records.encode_key(group_records.OffsetKey("g", T0)).hex()
        == "0001" + "000167" + "000174" + "00000000"
    )
    assert group_records.encode_key(group_records.GroupKey("g")).hex() == "0002" + "000167"
    value = group_records.OffsetValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp_ms=9)
    assert (
        group_records.encode_offset(value).hex() == "0003" + f"{5:016x}" + f"{2:08x}" + "00016d" + f"{9:016x}"
    )


def test_older_versions_are_read() -> None:
    """Rule (P4): values 0 and 1 of older brokers are read; version 1 names its own expiry."""
    zero = bytes.fromhex("0000" + f"{5:016x}" + "00016d" + f"{9:016x}")
    one = bytes.fromhex("0001" + f"{5:016x}" + "00016d" + f"{9:016x}" + f"{77:016x}")
    assert group_records.decode_offset(zero) == group_records.OffsetValue(
        offset=5, metadata="m", commit_timestamp_ms=9
    )
    assert group_records.decode_offset(one) == group_records.OffsetValue(
        offset=5, metadata="m", commit_timestamp_ms=9, expires_at_ms=77
    )
    assert group_records.decode_offset(b"\x00\x09rest") is None


def test_the_version_of_kafka_4_is_read() -> None:
    """Rule (P4): version 4 is the first flexible one: a compact string, and tags, of which the topic's id is
    one."""
    start = "0004" + f"{5:016x}" + f"{2:08x}"
    expected = group_records.OffsetValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp_ms=9)
    for tags in ("00", "01" + "00" + "10" + "ab" * 16):
        assert group_records.decode_offset(bytes.fromhex(start + "026d" + f"{9:016x}" + tags)) == expected
    empty = group_records.decode_offset(bytes.fromhex(start + "01" + f"{9:016x}" + "00"))
    assert empty is not None and empty.metadata == ""


MEMBERS = st.builds(
    group_records.MemberValue,
    member_id=st.text(max_size=8),
    group_instance_id=st.none() | st.text(max_size=4),
    client_id=st.text(max_size=4),
    client_host=st.text(max_size=4),
    rebalance_timeout_ms=st.integers(0, 2**31 - 1),
    session_timeout_ms=st.integers(0, 2**31 - 1),
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
GROUPS = st.builds(
    group_records.GroupValue,
    protocol_type=st.text(max_size=8),
    generation=st.integers(-1, 2**31 - 1),
    protocol=st.none() | st.text(max_size=8),
    leader=st.none() | st.text(max_size=8),
    since_ms=st.integers(-1, 2**62),
    members=st.lists(MEMBERS, max_size=3).map(tuple),
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a crowded machine
@given(GROUPS)
def test_group_metadata_comes_back(value: group_records.GroupValue) -> None:
    """Rule (P4): what is written is what is read."""
    assert group_records.decode_group(group_records.encode_group(value)) == value


@given(st.binary(max_size=60))
def test_foreign_bytes_are_no_record(data: bytes) -> None:
    """Rule: whatever a log holds, a loader is not stopped by it."""
    (
        group_records.decode_key(data),
        group_records.decode_offset(data),
        group_records.decode_group(data),
        consumer_protocol.decode_subscription(data),
        consumer_protocol.decode_assignment(data),
    )


def test_keys_of_other_kinds_are_passed_over() -> None:
    """Rule (P4): a key of a version that is not known is none."""
    assert group_records.decode_key(b"\x00\x07xx") is None
    assert group_records.decode_key(None) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("é", 233)],
)
def test_the_hash_is_javas(text: str, number: int) -> None:
    """Rule (P4): String.hashCode, by values published in Java's documentation of it and common knowledge; the
    least integer goes to partition 0."""
    assert group_records.java_hash(text) == number
    assert group_records.partition_of(text, 50) == (0 if number == -(2**31) else abs(number) % 50)


PARTITIONS = st.lists(
    st.builds(TopicPartition, st.text(min_size=1, max_size=4), st.integers(0, 99)), max_size=6, unique=True
).map(lambda keys: tuple(sorted(keys)))


@given(st.lists(st.text(min_size=1, max_size=5), max_size=4), PARTITIONS)
def test_the_consumer_protocol_comes_back(topics: list[str], partitions: tuple[TopicPartition, ...]) -> None:
    """Rule (P5): subscriptions and assignments are read as they were written."""
    told = consumer_protocol.Subscription(topics=tuple(topics), owned=partitions)
    assert consumer_protocol.decode_subscription(consumer_protocol.encode_subscription(told)) == told
    assert consumer_protocol.decode_assignment(consumer_protocol.encode_assignment(partitions)) == partitions
