"""The codecs of a record batch, by Kafka's names and ids.

Owns the framing of Kafka's Java clients and brokers, and the bound on the decompressed size of a batch. Must
not know records. The output depends only on the input and the library's version: no times, no names, no host.

- gzip: one member without a time.
- snappy: the blocks of xerial's SnappyOutputStream, 32 KiB each; a raw block can be read as well.
- lz4: the LZ4 frame format with independent blocks (KIP-57).
- zstd: a frame (KIP-110).
"""

import struct
from collections.abc import Callable

import cramjam

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of the codecs; the index is the id in a batch's attributes."""
MOST_DECOMPRESSED_BYTES = 256 * 1024 * 1024
"""Bound on the decompressed records of one batch. Reason: a few bytes of zstd can expand to gigabytes."""

_GZIP_LEVEL, _LZ4_LEVEL, _ZSTD_LEVEL = 6, 1, 3
"""Kafka's default levels (KIP-390)."""
_XERIAL = struct.Struct(">8sii")
_XERIAL_MAGIC, _XERIAL_VERSION = b"\x82SNAPPY\x00", 1
_XERIAL_BLOCK = 32 * 1024
_BLOCK_SIZE = struct.Struct(">i")
_FIRST_GUESS = 4
"""The first guess of the ratio of sizes. Records often shrink to a quarter; a wrong guess costs another
attempt."""
_NO_ROOM = "write whole buffer"
"""The error text of cramjam if the output does not fit. Any other text means damaged input."""


class DecompressionError(ValueError):
    """Damaged bytes, or bytes that expand beyond the bound."""


class TooMuchDataError(DecompressionError):
    """Bytes that expand beyond the bound; their content is not known."""


def compress(codec: str, data: bytes) -> bytes:
    """Compress `data` in the framing of the codec. codec: one of CODECS."""
    return _COMPRESS[codec](data)


def decompress(codec: str, data: bytes, *, bound: int = MOST_DECOMPRESSED_BYTES) -> bytes:
    """Decompress data.

    Args:
        codec: one of CODECS.
        data: the compressed bytes.
        bound: the largest size of the result in bytes.

    Returns:
        the decompressed bytes.

    Raises:
        DecompressionError: if the data is damaged or truncated.
        TooMuchDataError: if the result would exceed the bound.
    """
    try:
        return _DECOMPRESS[codec](data, bound)
    except (cramjam.DecompressionError, struct.error) as error:
        raise DecompressionError(str(error)) from None


def _gzip(data: bytes) -> bytes:
    return bytes(cramjam.gzip.compress(data, level=_GZIP_LEVEL))


def _snappy(data: bytes) -> bytes:
    parts = [_XERIAL.pack(_XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += (_BLOCK_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _lz4(data: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def _into(decompress_into: Callable[[bytes, bytearray], int]) -> Callable[[bytes, int], bytes]:
    """A decoder that never holds more than `bound` bytes. Frames need not contain the size of their content
    (Java's streams do not), so the buffer doubles until it is large enough."""

    def decode(data: bytes, bound: int) -> bytes:
        room = min(bound, max(4096, _FIRST_GUESS * len(data)))
        while True:
            out = bytearray(room)
            try:
                size = decompress_into(data, out)
            except cramjam.DecompressionError as error:
                if _NO_ROOM not in str(error):
                    raise
                if room == bound:
                    raise TooMuchDataError(f"more than {bound} bytes") from None
                room = min(bound, 2 * room)
            else:
                return bytes(memoryview(out)[:size])

    return decode


def _unsnappy(data: bytes, bound: int) -> bytes:
    if data[:8] != _XERIAL_MAGIC:
        return _unsnappy_block(data, bound)
    parts, position, size = [], _XERIAL.size, 0
    while position < len(data):
        (length,) = _BLOCK_SIZE.unpack_from(data, position)
        position += _BLOCK_SIZE.size
        if not 0 <= length <= len(data) - position:
            raise DecompressionError(f"a block of {length} bytes where {len(data) - position} are left")
        part = _unsnappy_block(data[position : position + length], bound - size)
        parts.append(part)
        size += len(part)
        position += length
    return b"".join(parts)


def _unsnappy_block(data: bytes, bound: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(data)
    if size > bound:
        raise TooMuchDataError(f"a block of {size} bytes where the bound leaves {bound}")
    return bytes(cramjam.snappy.decompress_raw(data))


def _bounded(data: bytes, bound: int) -> bytes:
    if len(data) > bound:
        raise TooMuchDataError(f"{len(data)} bytes where the bound is {bound}")
    return data


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
_DECOMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "none": _bounded,
    "gzip": _into(cramjam.gzip.decompress_into),
    "snappy": _unsnappy,
    "lz4": _into(cramjam.lz4.decompress_into),
    "zstd": _into(cramjam.zstd.decompress_into),
}
