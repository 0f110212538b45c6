"""What a client may append: each rule of Kafka's LogValidator refuses its batch with Kafka's error code, and
every other batch passes unchanged."""

from collections.abc import Callable
from struct import pack_into

import pytest
from attrs import evolve
from crc32c import crc32c

from fencepost.impl.log import validation
from fencepost.impl.log.batch.compression import compress
from fencepost.impl.log.batch.record_batch import CODECS, CorruptBatchError, Record, encode_batch, read_header
from fencepost.impl.log.log_options import LogOptions
from fencepost.impl.log.validation import RefusedBatchError, validated
from fencepost.traces.kafka_names.outcomes import ErrorCode

OPTIONS = LogOptions()
RECORDS = [Record(offset, 1_000 + offset, b"k%d" % offset, b"value") for offset in range(40)]
GOOD = encode_batch(RECORDS, base_offset=0, leader_epoch=-1)
NUMBERED = encode_batch(
    RECORDS, base_offset=0, leader_epoch=-1, producer_id=7, producer_epoch=1, base_sequence=3
)


def changed(data: bytes, form: str, at: int, value: int) -> bytes:
    """One field of the header changed, the checksum right."""
    batch = bytearray(data)
    pack_into(form, batch, at, value)
    return checksummed(batch)


def checksummed(batch: bytearray) -> bytes:
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">I", batch, 17, crc32c(batch[21:]))
    return bytes(batch)


def refusal(data: bytes, options: LogOptions = OPTIONS) -> ErrorCode:
    with pytest.raises(RefusedBatchError) as caught:
        validated(data, options)
    return caught.value.error


@pytest.mark.parametrize("codec", CODECS)
def test_a_good_batch_is_appended_as_it_came(codec: str) -> None:
    """Of every codec, with keys, with a producer's number."""
    for data in (
        encode_batch(RECORDS, base_offset=0, leader_epoch=-1, codec=codec),
        encode_batch(RECORDS[:1], base_offset=0, leader_epoch=5, codec=codec),
    ):
        assert validated(data, evolve(OPTIONS, compact=True)) is data
    assert validated(NUMBERED, OPTIONS) is NUMBERED


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("control", changed(GOOD, ">h", 21, 0x20)),
        ("delete horizon", changed(GOOD, ">h", 21, 0x40)),
        ("base offset", changed(GOOD, ">q", 0, 1)),
        ("no records", changed(changed(GOOD[:61], ">i", 57, 0), ">i", 23, 0)),
        ("gaps", changed(GOOD, ">i", 23, 40)),
        ("fewer records than it says", changed(changed(GOOD, ">i", 23, 40), ">i", 57, 41)),
        ("more records than it says", changed(changed(GOOD, ">i", 23, 38), ">i", 57, 39)),
        ("producer id below -1", changed(GOOD, ">q", 43, -2)),
        ("producer without epoch", changed(NUMBERED, ">h", 51, -1)),
        ("producer without sequence", changed(NUMBERED, ">i", 53, -1)),
        ("transaction without producer", changed(GOOD, ">h", 21, 0x10)),
        ("two batches", GOOD + GOOD),
        ("empty body", checksummed(bytearray(GOOD[:61]))),
        ("garbage", checksummed(bytearray(GOOD[:61] + b"\x01garbage"))),
        ("a record cut off", checksummed(bytearray(GOOD[:-1]))),
        ("garbage that claims zstd", changed(GOOD, ">h", 21, 4)),
        ("the issue's batch", checksummed(bytearray(changed(NUMBERED, ">h", 21, 0x20)[:61]))),
    ],
)
def test_invalid_records(what: str, data: bytes) -> None:
    """INVALID_RECORD, as Kafka answers: what a client may not claim, and records that are none."""
    assert refusal(data) is ErrorCode.INVALID_RECORD, what


@pytest.mark.parametrize(
    "data",
    [b"", GOOD[:60], GOOD[:-2], changed(GOOD, ">b", 16, 1), GOOD[:-1] + b"x", changed(GOOD, ">h", 21, 5)],
)
def test_bytes_that_are_no_whole_batch_are_corrupt(data: bytes) -> None:
    """CORRUPT_MESSAGE: cut off, of another format, with a wrong checksum or an unknown codec."""
    with pytest.raises(CorruptBatchError):
        validated(data, OPTIONS)


def test_times() -> None:
    """INVALID_TIMESTAMP for the broker's type, for a time below -1 and for one beyond 64 bits. A wrong max
    timestamp is put right, with the checksum."""
    assert refusal(changed(GOOD, ">h", 21, 0x08)) is ErrorCode.INVALID_TIMESTAMP
    assert refusal(changed(GOOD, ">q", 27, -2)) is ErrorCode.INVALID_TIMESTAMP
    assert refusal(changed(GOOD, ">q", 27, (1 << 63) - 3)) is ErrorCode.INVALID_TIMESTAMP
    none = encode_batch([Record(0, -1, None, b"v")], base_offset=0, leader_epoch=-1)
    assert validated(none, OPTIONS) is none
    for lie in (0, 5, 1 << 62):
        assert validated(changed(GOOD, ">q", 35, lie), OPTIONS) == GOOD


def test_keys_where_the_topic_is_compacted() -> None:
    """INVALID_RECORD for one record of 40 without a key; where nothing is compacted it may have none."""
    data = encode_batch([*RECORDS, Record(40, 1_040, None, b"v")], base_offset=0, leader_epoch=-1)
    assert refusal(data, evolve(OPTIONS, compact=True)) is ErrorCode.INVALID_RECORD
    assert validated(data, OPTIONS) is data


def test_max_message_bytes_comes_first() -> None:
    """MESSAGE_TOO_LARGE for a byte more, before anything else is looked at; exactly as many pass."""
    assert validated(GOOD, evolve(OPTIONS, max_message_bytes=len(GOOD))) is GOOD
    assert refusal(GOOD, evolve(OPTIONS, max_message_bytes=len(GOOD) - 1)) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(b"x" * 200, evolve(OPTIONS, max_message_bytes=199)) is ErrorCode.MESSAGE_TOO_LARGE


def test_the_bound_on_records_comes_before_decompression(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four million records of seven bytes are 28 MB in a few kilobytes: refused by their number, and nothing
    is decompressed."""
    count = 4_000_000
    data = bytearray(encode_batch([Record(0, 0, None, None)], base_offset=0, leader_epoch=-1, codec="zstd"))
    pack_into(">i", data, 23, count - 1)
    pack_into(">i", data, 57, count)
    calls: list[int] = []
    inflate: Callable[..., bytes] = validation.decompress
    monkeypatch.setattr(
        validation, "decompress", lambda *a, **k: calls.append(k["bound"]) or inflate(*a, **k)
    )
    assert refusal(checksummed(data)) is ErrorCode.MESSAGE_TOO_LARGE and not calls
    assert refusal(changed(checksummed(data), ">i", 57, 1)) is ErrorCode.INVALID_RECORD and not calls


@pytest.mark.parametrize("codec", CODECS[1:])
def test_the_bound_on_decompressed_bytes(codec: str) -> None:
    """A bomb of zeros stops at the bound, whatever it would grow to, and its memory with it."""
    import tracemalloc

    bomb = compress(codec, bytes(4 * validation.MOST_PRODUCED_BYTES))
    data = bytearray(encode_batch(RECORDS[:1], base_offset=0, leader_epoch=-1, codec=codec)[:61] + bomb)
    options = evolve(OPTIONS, max_message_bytes=1 << 30)
    data = checksummed(data)
    tracemalloc.start()
    try:
        assert refusal(data, options) is ErrorCode.MESSAGE_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 3 * validation.MOST_PRODUCED_BYTES + len(data)
    finally:
        tracemalloc.stop()


def test_a_refused_batch_says_what_is_wrong() -> None:
    """Expected, seen, where."""
    with pytest.raises(
        RefusedBatchError,
        match=r"produced batch: expected no control records from a client, saw a control batch",
    ):
        validated(changed(GOOD, ">h", 21, 0x20), OPTIONS)
    assert read_header(GOOD).count == 40
