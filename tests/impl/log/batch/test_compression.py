"""Codecs: they give back what they got, always the same bytes, and no more than they may."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.impl.log.batch.compression import CODECS, DecompressionError, compress, decompress

SEARCH = settings(derandomize=True, deadline=None, database=None, max_examples=80)
EACH_CODEC = pytest.mark.parametrize("codec", CODECS)
COMPRESSING = pytest.mark.parametrize("codec", CODECS[1:])


@EACH_CODEC
@SEARCH
@given(st.binary(max_size=100), st.integers(1, 2_000))
def test_what_was_compressed_comes_back(codec, piece, times):
    """Rule (L6): any data, empty and of several blocks as well; the same input gives the same bytes."""
    data = piece * times
    packed = compress(codec, data)
    assert decompress(codec, packed) == data
    assert compress(codec, data) == packed


@COMPRESSING
def test_data_that_repeats_shrinks(codec):
    """A codec that does nothing would pass every round trip."""
    assert len(compress(codec, b"abcdefgh" * 10_000)) < 8_000


@EACH_CODEC
def test_what_grows_beyond_the_bound_is_refused(codec):
    """Exactly the bound is read; one byte more is not."""
    data = b"x" * 300_000
    packed = compress(codec, data)
    assert decompress(codec, packed, bound=len(data)) == data
    with pytest.raises(DecompressionError):
        decompress(codec, packed, bound=len(data) - 1)


@COMPRESSING
@SEARCH
@given(st.binary(min_size=20, max_size=400), st.data())
def test_a_frame_that_is_cut_off_is_refused(codec, content, data):
    """Fewer bytes never read as the whole data. (Snappy's blocks may end at a border: then fewer come
    back.)"""
    packed = compress(codec, content)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    with contextlib.suppress(DecompressionError):
        assert decompress(codec, cut) != content


@COMPRESSING
@SEARCH
@given(st.binary(max_size=200))
def test_foreign_bytes_are_an_error_never_a_crash(codec, data):
    """Whatever comes, decompress returns or raises DecompressionError."""
    with contextlib.suppress(DecompressionError):
        decompress(codec, data, bound=1 << 20)


def test_a_raw_snappy_block_is_read():
    """Clients that are not Java's may write the block without xerial's frame."""
    import cramjam

    assert decompress("snappy", bytes(cramjam.snappy.compress_raw(b"abc" * 50))) == b"abc" * 50


@pytest.mark.parametrize("length", [b"\x00\x00\x00\x09", b"\xff\xff\xff\xff", b"\x00"])
def test_a_snappy_block_of_a_wrong_length_is_refused(length):
    """A length beyond the data, a negative one and half of one."""
    frame = compress("snappy", b"abc")[:16]
    with pytest.raises(DecompressionError):
        decompress("snappy", frame + length + b"\x03\x08abc")


def test_the_frames_are_kafkas():
    """The first bytes: gzip without a time, xerial version 1, lz4 with independent blocks (KIP-57), zstd."""
    starts = {codec: compress(codec, b"abc" * 100).hex() for codec in CODECS}
    assert starts["gzip"].startswith("1f8b0800" + "00000000")
    assert starts["snappy"].startswith("82534e415050590000000001" + "00000001")
    assert starts["lz4"].startswith("04224d18") and int(starts["lz4"][8:10], 16) & 0x60 == 0x60
    assert starts["zstd"].startswith("28b52ffd")
