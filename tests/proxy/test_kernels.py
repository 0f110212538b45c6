"""Machine code against plain Python: the same ids, the same text, and nothing where something is odd."""

import random

import msgspec
import numpy as np
import pytest

from fencepost.impl.log.batch.record_batch import Header, Record, encode_batch, read_header
from fencepost.proxy.record.kernels import KERNELS
from fencepost.proxy.record.lines import run_text
from fencepost.proxy.record.values import Values


@pytest.fixture(scope="module", autouse=True)
def loaded():
    KERNELS.load()
    assert KERNELS.ready


def batch(rng, count, **options):
    made = [
        Record(
            n,
            5 + rng.randrange(10**6),
            None if rng.random() < 0.3 else rng.randbytes(rng.randrange(20)),
            rng.randbytes(rng.choice((0, 1, 59, 92, 118, 127, 128, 129, 255, 256, 300, 9_000))),
            tuple(Header("h", rng.randbytes(5)) for _ in range(rng.randrange(3))),
        )
        for n in range(count)
    ]
    return encode_batch(made, base_offset=0, leader_epoch=-1, **options)


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("producer", [(-1, -1, -1), (7, 3, 2**31 - 5), (2**62, 32_767, 0)])
def test_ids_are_those_of_the_library(producer, codec):
    """Rule: records of every length around a block of the hash have the id that hashlib's function gives."""
    rng = random.Random(repr((producer, codec)))
    names = ("producer_id", "producer_epoch", "base_sequence")
    for size in (32, 1, 64):
        values = Values(key=rng.randbytes(size))
        data = batch(rng, 200, codec=codec, **dict(zip(names, producer, strict=True)))
        header = read_header(data)
        ids, deltas = values._of_large(data, header)
        assert (ids.tolist(), deltas) == values._of_any(data, header)


def test_what_is_odd_is_left_to_plain_python():
    """Rule: damaged records give no ids, or the ids that plain Python gives; never one beyond the bytes."""
    rng, values, agreed = random.Random(5), Values(key=b"k" * 32), 0
    whole = batch(rng, 40)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(61, len(data))] = rng.randrange(256)
        found = values._of_large(bytes(data), read_header(whole))
        if found is not None:
            ids, deltas = found
            assert (ids.tolist(), deltas) == values._of_any(bytes(data), read_header(whole))
            agreed += 1
    assert 0 < agreed < 400
    assert KERNELS.ids(whole[:100], 61, 40, b"k", (True, 0, 0)) is None


def test_lanes_of_every_length():
    """Rule: records that are hashed together have their own ids, however many and however long they are, and
    nothing after the last byte is read."""
    rng, values = random.Random(8), Values(key=b"k" * 32)
    for count in range(1, 20):
        for sizes in ((0, 1), (115, 116, 117, 118, 119, 120), (0, 300, 128)):
            made = [Record(n, 5, None, rng.randbytes(rng.choice(sizes)), ()) for n in range(count)]
            data = encode_batch(made, base_offset=0, leader_epoch=-1)
            header = read_header(data)
            ids, _ = values._of_large(data, header)
            assert ids.tolist() == values._of_any(data, header)[0]


@pytest.mark.parametrize("base", [-1, 0, 9, 99_999, 2**62])
@pytest.mark.parametrize("epoch", [-1, 0, 12])
def test_text_is_that_of_the_encoder(base, epoch):
    """Rule: a row's records read as what plain Python would have written."""
    numbers = [1 << 62, (1 << 63) - 1, 5, 0, 10, 99, 10**8, 10**16, 10**16 - 1] * 10
    text = run_text('a "topic"', 7, base, np.array(numbers, np.int64), epoch)
    assert text == run_text('a "topic"', 7, base, numbers, epoch)
    expected = {"topic": 'a "topic"', "partition": 7, "offset": base, "values": numbers}
    told = {} if base < 0 or epoch < 0 else {"leader_epoch": epoch}
    assert msgspec.json.decode(text) == expected | told
