"""The structure of records without objects: the walk accepts what read_records reads and nothing else; the
screen agrees with the walk or abstains."""

import random

import pytest

from fencepost.impl.log.batch.record_batch import (
    CorruptBatchError,
    Header,
    Record,
    encode_batch,
    read_header,
    read_records,
)
from fencepost.impl.log.batch.record_walk import SCREENED_RECORDS, examine, screen, walk
from fencepost.impl.log.batch.varint import encode_varint

BODY = 61


def batch(records) -> bytes:
    return encode_batch(records, base_offset=0, leader_epoch=0)


def drawn(draw: random.Random, count: int) -> list[Record]:
    """Records of one producer: keys, values, times and headers of all kinds, or alike."""
    alike, binary = draw.random() < 0.5, draw.random() < 0.3
    value_size = draw.choice((0, 5, 63, 64, 100, 9_000))
    with_headers, tombstones = draw.random() < 0.2, draw.random() < 0.3
    made = []
    for offset in range(count):
        size = value_size if alike else draw.randrange(200)
        value = draw.randbytes(size) if binary else b"x" * size
        key = draw.choice((None, b"", b"k%d" % offset, b"k" * 70)) if not alike else b"k%d" % (offset % 7)
        time = 1_000_000 + draw.choice(
            (0, offset, offset * 1_000, -offset, 1 << 40 if draw.random() < 0.02 else 0)
        )
        headers = (Header("h", draw.choice((None, b"v"))),) if with_headers and draw.random() < 0.3 else ()
        made.append(
            Record(offset, time, key, None if tombstones and draw.random() < 0.05 else value, headers)
        )
    return made


def verdict(data: bytes, count: int) -> object:
    """What the walk says; None for a refusal."""
    try:
        return walk(data, count, count - 1)
    except (IndexError, ValueError):
        return None


def reference(data: bytes, count: int) -> bool:
    """Whether read_records reads them."""
    head = read_header(batch([Record(0, 0, None, None)]))
    from attrs import evolve

    header = evolve(head, size=BODY + len(data), count=count, last_offset_delta=count - 1)
    try:
        read_records(bytes(BODY) + data, header)
    except CorruptBatchError:
        return False
    return True


@pytest.mark.parametrize("seed", range(6))
def test_walk_and_screen_agree_with_read_records(seed: int) -> None:
    """Whole batches and damaged ones: a byte changed, cut off or put in."""
    draw = random.Random(seed)
    screened = refused = 0
    for _ in range(120):
        count = draw.choice((1, 5, SCREENED_RECORDS, 100, 200))
        records = drawn(draw, count)
        data = batch(records)[BODY:]
        said = verdict(data, count)
        times = [record.timestamp_ms - records[0].timestamp_ms for record in records]
        assert said is not None
        assert (said.largest_time_delta_ms, said.smallest_time_delta_ms) == (max(times), min(times))
        assert said.keyless == sum(record.key is None for record in records)
        guess = screen(data, count)  # of too few records it says nothing
        assert guess in (None, said)
        screened += guess is not None
        for _ in range(10):
            bad, place = bytearray(data), draw.randrange(len(data))
            match draw.randrange(4):
                case 0:
                    bad[place] ^= 1 << draw.randrange(8)
                case 1:
                    del bad[place]
                case 2:
                    bad.insert(place, draw.randrange(256))
                case 3:
                    del bad[place:]
            changed = bytes(bad)
            said = verdict(changed, count)
            assert (said is not None) == reference(changed, count), (seed, changed.hex(), count)
            if changed:
                assert screen(changed, count) in (None, said)
            refused += said is None
    assert screened >= 3 and refused > 400, (screened, refused)


def test_the_screen_decides_what_producers_send() -> None:
    """Keys, no keys, binary values and values of zeros, times that go on for a minute: no batch of these is
    left to the slower form."""
    for value in (
        lambda n: b"v" * 100,
        lambda n: bytes(100),
        lambda n: random.Random(n).randbytes(100),
        lambda n: b"v" * 30,
    ):
        for key in (lambda n: b"key-%d" % n, lambda n: None):
            records = [Record(n, 1_000 + 60 * n, key(n), value(n)) for n in range(1_000)]
            data = batch(records)[BODY:]
            assert screen(data, 1_000) == walk(data, 1_000, 999) == examine(data, 1_000, 999)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01garbage",
        b"\x80" * 40,
        encode_varint(6) + b"\0\0\0\x05\x01\0",
        encode_varint(6) + b"\0\0\0\x01\x05\0",
        encode_varint(6) + b"\0\0\x01\x01\x01\0",
        encode_varint(6) + b"\0\0\0\x01\x01\x01",
        encode_varint(-6) + b"\0\0\0\x01\x01\0",
        encode_varint(1 << 40) + b"\0\0\0\x01\x01\0",
        encode_varint(9) + b"\0\0\0\x01\x01\x02\x01\x01\x01",
    ],
)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    """Nothing, garbage, endless numbers, null lengths below -1, negative deltas, header counts and record
    lengths, a header without a key."""
    with pytest.raises((ValueError, IndexError)):
        walk(data, 1, 0)
    assert not reference(data, 1)


def test_gaps_are_for_compacted_batches_only() -> None:
    """Offset deltas ascend up to the last one; the screen takes no batch with gaps."""
    data = batch([Record(0, 0, b"k", b"v"), Record(5, 0, b"k", b"v")])[BODY:]
    assert walk(data, 2, 7).keyless == 0
    with pytest.raises(ValueError, match="not between 0 and 5"):
        walk(data, 2, 4)
