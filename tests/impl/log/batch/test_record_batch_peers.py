"""Record batches against two independent implementations: what they write we read, what we write they read,
and the checksums agree.

kafka-python reads and writes in Python, with python-snappy, lz4 and zstandard; aiokafka does in C, with a
checksum of its own.
"""

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from attrs import evolve
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as peer_codec
from kafka.record._crc32c import crc as crc32c_in_python
from kafka.record.default_records import DefaultRecordBatch as PyBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder

from fencepost.impl.log.batch import record_batch
from fencepost.impl.log.batch.compression import CODECS, compress, decompress
from fencepost.impl.log.batch.control_records import EndTransaction, end_transaction_batch
from tests.impl.log.batch_strategies import PRODUCERS, records
from tests.selfcheck.amounts import amount

SEARCH = settings(derandomize=True, deadline=None, database=None, max_examples=amount(25, 60))
READERS = pytest.mark.parametrize("reader", [PyBatch, AioBatch], ids=["kafka-python", "aiokafka"])
WRITERS = pytest.mark.parametrize("writer", [PyBuilder, AioBuilder], ids=["kafka-python", "aiokafka"])
EACH_CODEC = pytest.mark.parametrize("codec", CODECS)
WORK_FOR_A_CODEC = record_batch.Record(
    0, 1_000, b"key", b"abcdefgh" * 500, (record_batch.Header("h", b"x" * 50),)
)
"""Both writers leave a batch uncompressed that would not shrink."""


def as_record(theirs: Any) -> record_batch.Record:
    """A peer's record as ours."""
    headers = tuple(record_batch.Header(key, value) for key, value in theirs.headers)
    return record_batch.Record(theirs.offset, theirs.timestamp, theirs.key, theirs.value, headers)


@READERS
@EACH_CODEC
@SEARCH
@given(data=st.data())
def test_a_peer_reads_what_we_write(reader, codec, data):
    """Each field of the header and each record, as we meant it; the checksum is the one that the peer
    computes."""
    base = data.draw(st.integers(0, 1 << 40))
    made, producer = data.draw(records(base_offset=base)), data.draw(PRODUCERS)
    delta = made[-1].offset - base + data.draw(st.integers(0, 9))
    stamp = data.draw(st.none() | st.integers(0, 1 << 45))
    batch = record_batch.encode_batch(
        made,
        base_offset=base,
        leader_epoch=5,
        codec=codec,
        last_offset_delta=delta,
        log_append_time_ms=stamp,
        **producer,
    )
    theirs = reader(batch)
    assert theirs.validate_crc()
    assert (theirs.magic, theirs.base_offset, theirs.next_offset) == (2, base, base + delta + 1)
    assert theirs.compression_type == CODECS.index(codec)
    assert (theirs.timestamp_type, theirs.max_timestamp) == (
        int(stamp is not None),
        max(record.timestamp_ms for record in made) if stamp is None else stamp,
    )
    assert theirs.is_transactional == producer.get("transactional", False)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (
        producer.get("producer_id", -1),
        producer.get("producer_epoch", -1),
        producer.get("base_sequence", -1),
    )
    seen = tuple(as_record(record) for record in theirs)
    expected = made if stamp is None else tuple(evolve(record, timestamp_ms=stamp) for record in made)
    assert seen == expected
    if reader is PyBatch:
        assert (theirs.leader_epoch, theirs.size_in_bytes, theirs.records_count) == (5, len(batch), len(made))


@WRITERS
@EACH_CODEC
@SEARCH
@given(data=st.data())
def test_we_read_what_a_peer_writes(writer, codec, data):
    """Each field of the header and each record, as the peer was told; the checksum is the one that we
    compute."""
    drawn = data.draw(records(base_offset=1))
    made = (WORK_FOR_A_CODEC, *drawn)
    producer = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1, **data.draw(PRODUCERS)}
    transactional = producer.pop("transactional", False)
    builder = writer(
        magic=2,
        compression_type=CODECS.index(codec),
        is_transactional=transactional,
        batch_size=1 << 30,
        **producer,
    )
    for record in made:
        pairs = [(header.key, header.value) for header in record.headers]
        assert builder.append(record.offset, record.timestamp_ms, record.key, record.value, pairs) is not None
    batch = bytes(builder.build())
    (header,) = record_batch.read_headers(batch)
    assert record_batch.read_records(batch, header) == made
    assert (header.codec, header.size, header.count) == (codec, len(batch), len(made))
    assert (header.base_offset, header.last_offset) == (0, made[-1].offset)
    assert header.base_timestamp_ms == made[0].timestamp_ms
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in made)
    assert header.timestamp_type is record_batch.TimestampType.CREATE
    assert (header.is_transactional, header.is_control) == (transactional, False)
    assert producer == {
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
    }


@SEARCH
@given(made=records(gaps=False), producer=PRODUCERS)
def test_without_a_codec_the_bytes_are_the_same(made, producer):
    """Whoever writes a batch that is not compressed: the same bytes, checksum included."""
    told = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "transactional": False, **producer}
    transactional = told.pop("transactional")
    ours = record_batch.encode_batch(made, base_offset=0, leader_epoch=0, transactional=transactional, **told)
    for writer in (PyBuilder, AioBuilder):
        builder = writer(
            magic=2, compression_type=0, is_transactional=transactional, batch_size=1 << 30, **told
        )
        for record in made:
            pairs = [(header.key, header.value) for header in record.headers]
            builder.append(record.offset, record.timestamp_ms, record.key, record.value, pairs)
        theirs = bytearray(builder.build())
        theirs[12:16] = bytes(4)  # the leader epoch, which a producer leaves to the broker
        assert bytes(theirs) == ours


@READERS
@pytest.mark.parametrize("commit", [True, False])
def test_a_peer_reads_our_markers(reader, commit):
    """The end of a transaction is a control batch to them as well."""
    marker = EndTransaction(commit=commit, coordinator_epoch=7)
    batch = reader(
        end_transaction_batch(
            marker, base_offset=3, leader_epoch=1, producer_id=8, producer_epoch=0, timestamp_ms=5
        )
    )
    assert batch.validate_crc() and batch.is_control_batch and batch.is_transactional
    (record,) = batch
    assert record.key == b"\x00\x00\x00" + bytes([commit])
    if reader is PyBatch:
        assert (record.commit, record.abort) == (commit, not commit)


@SEARCH
@given(st.binary(max_size=300))
def test_the_checksum_is_crc_32c(data):
    """In hardware as in plain Python."""
    assert crc32c(data) == crc32c_in_python(data)


PEER_CODECS = {
    "gzip": (peer_codec.gzip_encode, peer_codec.gzip_decode),
    "snappy": (peer_codec.snappy_encode, peer_codec.snappy_decode),
    "lz4": (peer_codec.lz4_encode, peer_codec.lz4_decode),
    "zstd": (peer_codec.zstd_encode, peer_codec.zstd_decode),
}


@pytest.mark.parametrize("codec", sorted(PEER_CODECS))
@SEARCH
@given(st.binary(min_size=1, max_size=200), st.integers(1, 1_500))
def test_the_codecs_agree_with_other_libraries(codec, piece, times):
    """Frames of one library are read by the other, beyond a block of snappy and lz4."""
    encode, decode = PEER_CODECS[codec]
    data = piece * times
    assert decode(compress(codec, data)) == data
    assert decompress(codec, bytes(encode(data))) == data
