"""Record batches: what is written is read back, what is damaged is found, and each says what it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch, end_transaction_of
from fencepost.impl.log.batch.header import readable_headers
from fencepost.impl.log.batch.record_batch import (
    CODECS,
    HEADER_SIZE,
    CorruptBatchError,
    Damage,
    Header,
    Record,
    TimestampType,
    encode_batch,
    read_header,
    read_headers,
    read_records,
    with_leader_fields,
)
from fencepost.impl.log.batch.varint import decode_varint, encode_varint
from tests.impl.log.batch_strategies import CODEC_NAMES, PRODUCERS, records
from tests.selfcheck.amounts import amount

SEARCH = settings(derandomize=True, deadline=None, database=None, max_examples=amount(60, 150))
RECORDS = (Record(7, 1_000, b"k", b"v", (Header("h", None),)), Record(9, 990, None, None))


def only(data: bytes) -> tuple[object, tuple[Record, ...]]:
    """The one batch of a buffer."""
    (header,) = read_headers(data)
    return header, read_records(data, header)


@SEARCH
@given(
    st.integers(0, 1 << 40).flatmap(lambda base: st.tuples(st.just(base), records(base_offset=base))),
    st.integers(-1, (1 << 31) - 1),
    CODEC_NAMES,
    PRODUCERS,
    st.integers(0, 50),
    st.booleans(),
)
def test_a_batch_reads_back(based, epoch, codec, producer, span, control):
    """Every field and every record survives, for each codec; a batch may span more offsets than it has
    records."""
    base, made = based
    delta = made[-1].offset - base + span
    data = encode_batch(
        made,
        base_offset=base,
        leader_epoch=epoch,
        codec=codec,
        last_offset_delta=delta,
        control=control,
        **producer,
    )
    header, seen = only(data)
    assert seen == made
    assert (header.base_offset, header.leader_epoch, header.codec, header.count) == (
        base,
        epoch,
        codec,
        len(made),
    )
    assert (header.position, header.size, header.next_offset) == (0, len(data), base + delta + 1)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (
        made[0].timestamp_ms,
        max(record.timestamp_ms for record in made),
    )
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
        producer.get("producer_id", -1),
        producer.get("producer_epoch", -1),
        producer.get("base_sequence", -1),
    )
    assert (header.is_transactional, header.is_control) == (producer.get("transactional", False), control)
    assert data == encode_batch(
        made,
        base_offset=base,
        leader_epoch=epoch,
        codec=codec,
        last_offset_delta=delta,
        control=control,
        **producer,
    ), "the same records, the same bytes"


@SEARCH
@given(records(), CODEC_NAMES, st.data())
def test_any_flipped_bit_under_the_checksum_is_found(made, codec, data):
    """CRC-32C covers byte 21 to the end: no flip of a byte there goes unseen."""
    batch = bytearray(encode_batch(made, base_offset=0, leader_epoch=1, codec=codec))
    position = data.draw(st.integers(21, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptBatchError) as caught:
        read_header(bytes(batch))
    assert caught.value.damage is Damage.CRC and caught.value.position == 0


@pytest.mark.parametrize("position", [8, 9, 10, 11, 16, 17, 18, 19, 20])
def test_a_flipped_bit_in_length_magic_or_checksum_is_found(position):
    """Those fields stand outside the checksum, and still no flip in them goes unseen."""
    batch = encode_batch(RECORDS, base_offset=7, leader_epoch=1) + encode_batch(
        (Record(10, 1, None, b"x"),), base_offset=10, leader_epoch=1
    )
    for bit in range(8):
        broken = bytearray(batch)
        broken[position] ^= 1 << bit
        with pytest.raises(CorruptBatchError):
            list(read_headers(bytes(broken)))


@SEARCH
@given(records(), CODEC_NAMES, st.data())
def test_a_torn_batch_is_found_after_the_whole_ones(made, codec, data):
    """The batches before a torn one are yielded; the error says where, what was expected and what is
    there."""
    whole = encode_batch((Record(0, 5, None, b"x"),), base_offset=0, leader_epoch=1)
    batch = encode_batch(made, base_offset=0, leader_epoch=1, codec=codec)
    kept = data.draw(st.integers(1, len(batch) - 1))
    reading = read_headers(whole + batch[:kept])
    assert next(reading).size == len(whole)
    with pytest.raises(CorruptBatchError) as caught:
        next(reading)
    error = caught.value
    assert error.damage is Damage.TORN and error.position == len(whole)
    assert error.expected in (f"a batch of {len(batch)} bytes", "12 bytes up to its length")
    assert error.seen == f"{kept} bytes" and f"record batch at byte {len(whole)}" in str(error)
    assert readable_headers(whole + batch[:kept]) == ([read_header(whole)], str(error))


@pytest.mark.parametrize(
    ("data", "damage", "words"),
    [
        (bytes(61), Damage.LENGTH, "expected a length of at least 49, saw 0"),
        (b"\xff" * 80, Damage.LENGTH, "saw -1"),
        (bytes(8) + (22).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(20), Damage.MAGIC, "before 0.11"),
        (
            bytes(8) + (60).to_bytes(4, "big") + bytes(4) + b"\x09" + bytes(60),
            Damage.MAGIC,
            "expected magic 2, saw 9",
        ),
    ],
)
def test_what_is_no_batch_is_refused(data, damage, words):
    """Zeros, ones, message sets of old versions and unknown versions are named as such."""
    with pytest.raises(CorruptBatchError, match=words) as caught:
        list(read_headers(data))
    assert caught.value.damage is damage


def rewritten(offset: int, size: int, value: int) -> bytes:
    """The bytes of a batch with a field changed and the checksum made right again."""
    from crc32c import crc32c

    data = bytearray(encode_batch(RECORDS, base_offset=7, leader_epoch=1))
    data[offset : offset + size] = value.to_bytes(size, "big", signed=True)
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize(
    ("offset", "size", "value", "words"),
    [
        (0, 8, -1, "base offset"),
        (12, 4, -2, "leader epoch"),
        (21, 2, 5, "codec"),
        (23, 4, -1, "last offset delta"),
        (57, 4, -1, "records"),
        (57, 4, 4, "records"),
    ],
)
def test_a_header_that_cannot_be_is_refused(offset, size, value, words):
    """A field that no writer means is corruption even where the checksum holds."""
    with pytest.raises(CorruptBatchError, match=words) as caught:
        read_header(rewritten(offset, size, value))
    assert caught.value.damage is Damage.HEADER


@SEARCH
@given(records(least=2), CODEC_NAMES, st.data())
def test_records_that_make_no_sense_are_corrupt_never_a_crash(made, codec, data):
    """Whatever bytes stand where records should be, reading ends in records or in CorruptBatchError."""
    batch = bytearray(encode_batch(made, base_offset=0, leader_epoch=1, codec=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))
    header = read_header(bytes(batch), check_crc=False)
    try:
        assert len(read_records(bytes(batch), header)) == len(made)
    except CorruptBatchError as error:
        assert error.damage is Damage.RECORDS


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_record_count_is_corrupt(count):
    """Bytes left over and bytes that are missing are both found."""
    data = rewritten(57, 4, count)
    with pytest.raises(CorruptBatchError, match="expected"):
        read_records(data, read_header(data))


def test_a_record_beyond_the_last_offset_is_corrupt():
    """The header's last offset bounds the records': here the second record is one past it."""
    data = rewritten(23, 4, 1)
    with pytest.raises(CorruptBatchError, match="offset delta 2 after 0 in a batch up to 1"):
        read_records(data, read_header(data))


def test_an_empty_batch_keeps_its_span_and_its_producer():
    """A batch that compaction emptied still tells which sequence its producer got to."""
    data = encode_batch(
        (), base_offset=5, leader_epoch=2, codec="zstd", last_offset_delta=9, producer_id=4, producer_epoch=0,
        base_sequence=(1 << 31) - 3, empty_timestamp_ms=77,
    )  # fmt: skip
    header, seen = only(data)
    assert (len(data), seen, header.count) == (HEADER_SIZE, (), 0)
    assert (header.last_offset, header.next_offset, header.max_timestamp_ms) == (14, 15, 77)
    assert header.last_sequence == 6, "sequence numbers wrap to 0"


def test_the_brokers_time_is_the_time_of_every_record():
    """A batch of type log append gives all of its records the one time."""
    header, seen = only(encode_batch(RECORDS, base_offset=7, leader_epoch=1, log_append_time_ms=5_555))
    assert header.timestamp_type is TimestampType.LOG_APPEND
    assert [record.timestamp_ms for record in seen] == [5_555, 5_555]


def test_a_delete_horizon_leaves_the_times_of_the_records():
    """KIP-534 keeps the horizon in the base timestamp, and the records' times are as they were."""
    header, seen = only(encode_batch(RECORDS, base_offset=7, leader_epoch=1, delete_horizon_ms=123_456))
    assert header.delete_horizon_ms == 123_456 and seen == RECORDS
    assert only(encode_batch(RECORDS, base_offset=7, leader_epoch=1))[0].delete_horizon_ms is None


@pytest.mark.parametrize("codec", CODECS)
def test_a_leader_stamps_offset_and_epoch_without_touching_the_rest(codec):
    """What a producer sent gets another offset and epoch; checksum and records are as they were."""
    sent = encode_batch(
        [Record(0, 1, None, b"a"), Record(1, 2, None, b"b")], base_offset=0, leader_epoch=-1, codec=codec
    )
    stored = with_leader_fields(memoryview(sent), base_offset=100, leader_epoch=6)
    header, seen = only(stored)
    assert (header.base_offset, header.leader_epoch) == (100, 6)
    assert [record.offset for record in seen] == [100, 101]
    assert stored[17:] == sent[17:]


@pytest.mark.parametrize("commit", [True, False])
def test_the_marker_of_a_transaction_reads_back(commit):
    """A commit and an abort marker are control records of their own batch."""
    marker = EndTransaction(commit=commit, coordinator_epoch=3)
    data = end_transaction_batch(
        marker, base_offset=4, leader_epoch=1, producer_id=9, producer_epoch=2, timestamp_ms=10
    )
    header, seen = only(data)
    assert header.is_control and header.is_transactional and header.base_sequence == -1
    assert end_transaction_of(seen[0]) == marker
    assert end_transaction_of(Record(0, 0, b"\0\0\0\2", b"\0" * 6)) is None
    assert end_transaction_of(Record(0, 0, b"", b"")) is None
    assert end_transaction_of(Record(0, 0, b"\0\0\0\1", b"")) is None


def test_a_header_key_that_is_no_text_survives():
    """Foreign bytes in a header's key are read and written back as they were."""
    made = (Record(0, 1, None, None, (Header(b"\xff\xfe".decode("utf-8", "surrogateescape"), b"v"),)),)
    assert only(encode_batch(made, base_offset=0, leader_epoch=0))[1] == made


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_read_from_anywhere(kind):
    """Bytes, bytearrays and views, from the middle on."""
    batch = encode_batch(RECORDS, base_offset=7, leader_epoch=1, codec="lz4")
    data = kind(b"junk" + batch)
    (header,) = read_headers(data, start=4)
    assert (header.position, header.end_position, read_records(data, header)) == (4, len(data), RECORDS)


@SEARCH
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varints_read_back(value):
    """Every 64-bit number survives; small ones have one byte."""
    data = encode_varint(value)
    assert decode_varint(b"x" + data + b"x", 1) == (value, 1 + len(data))
    assert (len(data) == 1) == (-64 <= value < 64)


def test_a_varint_without_end_is_refused():
    """An eleventh byte, a 65th bit and a missing byte are errors."""
    with pytest.raises(ValueError, match="more than 10 bytes"):
        decode_varint(b"\xff" * 10 + b"\x01", 0)
    with pytest.raises(ValueError, match="more than 64 bits"):
        decode_varint(b"\xff" * 9 + b"\x03", 0)
    with pytest.raises(IndexError):
        decode_varint(b"\xff", 0)
