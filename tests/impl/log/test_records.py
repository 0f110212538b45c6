"""Record batches: what is written is what is read, and nothing else passes for a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.impl.log.records import HEADER_SIZE, CorruptBatchError, decode_batches, encode_batch

VALUES = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5).map(tuple)
BATCHES = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**31 - 1), VALUES), max_size=5)


def _encoded(batches: list) -> bytes:
    return b"".join(encode_batch(*batch) for batch in batches)


@given(BATCHES)
def test_batches_come_back_as_they_were_written(batches: list) -> None:
    """Rule: encoding and decoding are inverse, in order, and the batches' places tile the buffer."""
    data = _encoded(batches)
    decoded = list(decode_batches(data))
    assert [(batch.base_offset, batch.leader_epoch, batch.values) for batch in decoded] == batches
    assert [batch.position for batch in decoded] == [
        sum(batch.size for batch in decoded[:index]) for index in range(len(decoded))
    ]
    assert sum(batch.size for batch in decoded) == len(data)


@given(BATCHES, st.data())
def test_a_torn_end_yields_whole_batches_then_refuses(batches: list, data: st.DataObject) -> None:
    """Rule: of a buffer cut anywhere the whole batches are read, and a cut inside a batch is an error, never a shorter batch."""
    whole = _encoded(batches)
    cut = data.draw(st.integers(0, len(whole)))
    ends = [0]
    for batch in decode_batches(whole):
        ends.append(batch.position + batch.size)
    expected = sum(end <= cut for end in ends) - 1
    read = []
    try:
        for batch in decode_batches(whole[:cut]):
            read.append((batch.base_offset, batch.leader_epoch, batch.values))
        torn = False
    except CorruptBatchError:
        torn = True
    assert read == batches[:expected]
    assert torn is (cut not in ends)


@given(VALUES, st.data())
def test_a_flipped_bit_in_the_records_is_corruption(values: tuple, data: st.DataObject) -> None:
    """Rule: the checksum covers the record count and the records."""
    batch = bytearray(encode_batch(7, 3, values))
    bit = data.draw(st.integers(HEADER_SIZE * 8, len(batch) * 8 - 1))
    batch[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptBatchError):
        list(decode_batches(bytes(batch)))


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_checks_out(garbage: bytes) -> None:
    """Rule: decoding any bytes ends in batches with a right checksum or in CorruptBatchError, nothing else."""
    try:
        for batch in decode_batches(garbage):
            assert encode_batch(batch.base_offset, batch.leader_epoch, batch.values)
    except CorruptBatchError as corrupt:
        assert "batch at byte" in str(corrupt)
