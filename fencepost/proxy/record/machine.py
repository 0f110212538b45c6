"""The loops of kernels.py as numba's functions: importing this loads a compiler.

Owns the walk over records, BLAKE2b (RFC 7693) and digits. Must not know what an id means beyond values.py.
What is odd ends a loop early: the plain form decides then what is wrong.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc, assignment"

import numpy as np
from numba import njit

IV = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
ORDERS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.uint64,
)
"""RFC 7693, section 2.7: which word of the message each step of a round takes. Unsigned: a signed index costs
a comparison."""
BLOCK = 128
ALL, LOW = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0xFFFFFFFF)
FOREIGN = np.uint64(1 << 62)
SEQUENCES = np.uint64(1 << 31)
OF_SEQUENCE = np.uint64(0x9E3779B1)


@njit(cache=True, nogil=True)
def _turn(word, by):
    return (word >> np.uint64(by)) | (word << np.uint64(64 - by))


@njit(cache=True, nogil=True)
def _step(a, b, c, d, x, y):
    """The mixing function G, section 3.1."""
    a = a + b + x
    d = _turn(d ^ a, 32)
    c = c + d
    b = _turn(b ^ c, 24)
    a = a + b + y
    d = _turn(d ^ a, 16)
    c = c + d
    b = _turn(b ^ c, 63)
    return a, b, c, d


@njit(cache=True, nogil=True)
def compress(h, m, counted, last):
    """The function F, section 3.2: state h takes block m; counted: bytes up to its end."""
    v0, v1, v2, v3, v4, v5, v6, v7 = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    v8, v9, v10, v11 = IV[0], IV[1], IV[2], IV[3]
    v12, v13, v14, v15 = IV[4] ^ np.uint64(counted), IV[5], IV[6], IV[7]
    if last:
        v14 ^= ALL
    for r in range(12):
        s = ORDERS[r]
        v0, v4, v8, v12 = _step(v0, v4, v8, v12, m[s[0]], m[s[1]])
        v1, v5, v9, v13 = _step(v1, v5, v9, v13, m[s[2]], m[s[3]])
        v2, v6, v10, v14 = _step(v2, v6, v10, v14, m[s[4]], m[s[5]])
        v3, v7, v11, v15 = _step(v3, v7, v11, v15, m[s[6]], m[s[7]])
        v0, v5, v10, v15 = _step(v0, v5, v10, v15, m[s[8]], m[s[9]])
        v1, v6, v11, v12 = _step(v1, v6, v11, v12, m[s[10]], m[s[11]])
        v2, v7, v8, v13 = _step(v2, v7, v8, v13, m[s[12]], m[s[13]])
        v3, v4, v9, v14 = _step(v3, v4, v9, v14, m[s[14]], m[s[15]])
    h[0] ^= v0 ^ v8
    h[1] ^= v1 ^ v9
    h[2] ^= v2 ^ v10
    h[3] ^= v3 ^ v11
    h[4] ^= v4 ^ v12
    h[5] ^= v5 ^ v13
    h[6] ^= v6 ^ v14
    h[7] ^= v7 ^ v15


@njit(cache=True, nogil=True)
def state_of(head, block):
    """What the block of a key leaves; head: IV with the parameters in its first word."""
    h = head.copy()
    compress(h, block.view(np.uint64), BLOCK, False)
    return h


@njit(cache=True, nogil=True)
def _hash(data, start, end, state, h, block, words):
    """The first eight bytes of the digest, big-endian, of some bytes, at least one."""
    h[:] = state
    counted, left = BLOCK, end - start
    while left > BLOCK:
        block[:] = data[start : start + BLOCK]
        counted += BLOCK
        compress(h, words, counted, False)
        start, left = start + BLOCK, left - BLOCK
    for n in range(left):
        block[n] = data[start + n]
    for n in range(left, BLOCK):
        block[n] = 0
    compress(h, words, counted + left, True)
    word, turned = h[0], np.uint64(0)
    for _ in range(8):
        turned = turned << np.uint64(8) | word & np.uint64(255)
        word = word >> np.uint64(8)
    return turned


@njit(cache=True, nogil=True)
def _varint(data, position, end):
    """(number, position after it); position -1: longer than 28 bits, or beyond the end."""
    number, shift = 0, 0
    while position < end and shift < 28:
        byte = np.int64(data[position])
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
    return 0, -1


@njit(cache=True, nogil=True)
def ids_of(data, position, state, plain, mixed, first, ids, deltas):
    """Fill ids and offset deltas; returns how many records are as they have to be."""
    available = len(data)
    h, block = np.empty(8, np.uint64), np.empty(BLOCK, np.uint8)
    words = block.view(np.uint64)
    for place in range(len(ids)):
        length, position = _varint(data, position, available)
        end = position + length
        if position < 0 or length < 0 or end > available:
            return place
        position += 1  # attributes
        while position < end and data[position] & 128:  # the time delta, which is no part of the content
            position += 1
        position += 1
        delta, position = _varint(data, position, end)
        if position < 0 or position >= end or delta < 0:
            return place
        number = _hash(data, position, end, state, h, block, words)
        if plain:
            ids[place] = np.int64(FOREIGN | number >> np.uint64(2))
        else:
            sequence = (first + np.uint64(delta)) % SEQUENCES
            low = (number ^ (sequence * OF_SEQUENCE + mixed)) & LOW
            ids[place] = np.int64(FOREIGN | (number >> np.uint64(34)) << np.uint64(32) | low)
        deltas[place] = delta
        position = end
    return len(ids)


@njit(cache=True, nogil=True)
def _put(out, at, text):
    for n in range(len(text)):
        out[at + n] = text[n]
    return at + len(text)


@njit(cache=True, nogil=True)
def _digits(out, at, number, scratch):
    if number < 0:
        out[at] = 45
        at, number = at + 1, -number
    many, rest = 0, np.uint64(number)
    while True:
        less = rest // np.uint64(10)
        scratch[many] = np.uint8(48) + np.uint8(rest - less * np.uint64(10))
        many, rest = many + 1, less
        if rest == 0:
            break
    for n in range(many):
        out[at + n] = scratch[many - 1 - n]
    return at + many


@njit(cache=True, nogil=True)
def text_of(ids, base, before, between, after, out):
    """Fill out with `before OFFSET between ID after` for each id, with commas; returns its length. base -1:
    so is every offset."""
    at, scratch = 0, np.empty(20, np.uint8)
    for place in range(len(ids)):
        if place:
            out[at] = 44
            at += 1
        at = _put(out, at, before)
        at = _digits(out, at, base + place if base >= 0 else base, scratch)
        at = _put(out, at, between)
        at = _digits(out, at, ids[place], scratch)
        at = _put(out, at, after)
    return at
