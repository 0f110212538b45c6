"""Producer snapshots have Kafka's bytes, come back as they were, and count as none when damaged."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.log.producer.producer_state import ProducedBatch, Producer, ProducerState
from fencepost.impl.log.producer.snapshot import decode_snapshot, encode_snapshot


def state() -> ProducerState:
    last = ProducedBatch(first_sequence=3, last_sequence=5, first_offset=10, last_offset=12, timestamp_ms=99)
    return ProducerState({7: Producer(7, 2, [last], 99, 10, 4), 9: Producer(9, 0, [], 50)}, end_offset=13)


def test_the_bytes_are_kafkas():
    """Rule: version, CRC-32C, count, then id, epoch, last sequence, last offset, delta, timestamp,
    coordinator epoch, open transaction."""
    data = encode_snapshot(state())
    assert len(data) == 2 + 4 + 4 + 2 * 46
    assert data[:2].hex() == "0001" and data[6:10].hex() == "00000002"
    entry = (
        "0000000000000007 0002 00000005 000000000000000c 00000002 0000000000000063 00000004 000000000000000a"
    )
    assert data[10:56].hex() == entry.replace(" ", "")


def test_it_comes_back_as_it_was():
    """Rule: state in, state out."""
    assert decode_snapshot(encode_snapshot(state()), 13) == state()


@settings(max_examples=100, derandomize=True, database=None)
@given(position=st.integers(0, 101), bit=st.integers(0, 7), cut=st.integers(0, 102))
def test_a_damaged_snapshot_counts_as_none(position, bit, cut):
    """Rule: a flipped bit anywhere or a missing end is noticed."""
    data = bytearray(encode_snapshot(state()))
    assert cut == len(data) or decode_snapshot(bytes(data[:cut]), 13) is None
    data[position] ^= 1 << bit
    assert decode_snapshot(bytes(data), 13) is None
